// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/webui/webuitest"
)

// dictated is a model that writes what a test dictates, piece by piece. The
// answer ends when the channel is closed.
func dictated() (chan<- string, speech) {
	pieces := make(chan string)
	return pieces, func(ctx context.Context, _ *model.Request, say func(model.Delta) bool) {
		for {
			select {
			case piece, more := <-pieces:
				if !more || !say(model.TextDelta(piece)) {
					return
				}
			case <-ctx.Done():
				return
			}
		}
	}
}

// split cuts a text as models do, a few characters at a time.
func split(text string) []string {
	var out []string
	for runes := range slices.Chunk([]rune(text), 7) {
		out = append(out, string(runes))
	}
	return out
}

const prose = "## A heading\n\nThe first paragraph has **weight** and a [link](https://example.org/) in it.\n\n" +
	"- one\n- two with `code`\n  1. inner\n\n> quoted\n> twice\n\n"

const blocks = "```go\nfunc main() {\n\tfmt.Println(\"hello\")\n}\n```\n\n" +
	"| name | size |\n|---|---:|\n| photo.jpg | 12 |\n| notes.md | 3 |\n\nA last paragraph that is somewhat longer than the others, so that it takes more than one line of the thread.\n\n"

// watchShifts notes each thing that moved without the reader's doing. Code is
// colored anew while its last line grows, so that a text node in it may begin
// further to the right on the line that it was on: nobody sees that move. Such a
// node may be replaced again before the observer runs; then the entry has none.
const watchShifts = `window.shifts = []; new PerformanceObserver((list) => {
	const colored = (s) => (s.node === null || s.node.nodeType === Node.TEXT_NODE && s.node.parentNode?.closest("pre code")) && Math.round(s.previousRect.top) === Math.round(s.currentRect.top);
	for (const entry of list.getEntries()) if (entry.value > 0 && !entry.sources.every(colored)) window.shifts.push(entry.value.toFixed(5) + " " + entry.sources.map((s) =>
		(s.node?.nodeName ?? "?") + "." + (s.node?.className ?? s.node?.parentNode?.className ?? "") + " " + [s.previousRect.left, s.previousRect.top, s.currentRect.left, s.currentRect.top].map(Math.round)).join(", "));
}).observe({ type: "layout-shift", buffered: false });`

// Text is on the page while the rest of it is still being written. What is
// finished stays the same element, untouched, with the reader's selection in
// it, and nothing moves that the reader has not moved.
func TestStreaming(t *testing.T) {
	t.Parallel()
	pieces, answers := dictated()
	_, b := openSite(t, setup{model: answers}, 1280, 800)
	b.send("go")
	pieces <- "**Half** of it"
	b.Until(`document.querySelector(".writing strong")?.innerText === "Half" && document.querySelector("#status.active") !== null`)
	pieces <- " is here.\n\nSecond"
	b.Until(`document.querySelectorAll(".writing .block").length === 2`)
	b.picture("writing")
	b.Script(`window.first = document.querySelector(".writing .block");
		window.html = first.outerHTML;
		window.touched = 0;
		new MutationObserver((changes) => { touched += changes.length; }).observe(first, { subtree: true, childList: true, attributes: true, characterData: true });
		getSelection().selectAllChildren(first.querySelector("p"));` + watchShifts)
	for _, piece := range split("\n\n" + prose + blocks + prose + blocks + prose + blocks) {
		pieces <- piece
	}
	b.Until(`document.querySelectorAll(".writing table").length === 3`)
	b.Until(atEnd + ` && document.getElementById("scroller").scrollTop > 300`)

	// Scrolled up, the reader stays where they read. The scrolling itself is
	// theirs and takes a frame to be noticed.
	b.Script(`document.getElementById("scroller").scrollTop = 200`)
	b.Until(`!document.getElementById("to-end").hidden`)
	b.Script(`window.mark = document.querySelectorAll(".writing .block")[6]; window.top0 = mark.getBoundingClientRect().top`)
	for _, piece := range split(prose + blocks) {
		pieces <- piece
	}
	b.Until(`document.querySelectorAll(".writing table").length === 4`)
	if moved := eval[float64](b, `mark.getBoundingClientRect().top - top0`); moved != 0 {
		t.Errorf("what the reader looks at moved by %v pixels", moved)
	}
	b.picture("scrolled-up")
	close(pieces)
	b.rest()
	if moved := eval[float64](b, `mark.getBoundingClientRect().top - top0`); moved != 0 {
		t.Errorf("when the answer ended, what the reader looks at moved by %v pixels", moved)
	}
	if shifts := eval[[]string](b, `shifts`); len(shifts) > 0 {
		t.Errorf("things moved %d times:\n%s", len(shifts), strings.Join(shifts[:min(len(shifts), 12)], "\n"))
	}
	if got := eval[string](b, `first.isConnected && document.querySelector(".message.assistant .block") === first && first.outerHTML === html ? touched + " " + getSelection() : "replaced by " + document.querySelector(".message.assistant .block").outerHTML`); got != "0 Half of it is here." {
		t.Errorf("the first block was touched, or the selection in it is lost: %s", got)
	}
	b.Do(click("#to-end"))
	b.Until(atEnd + ` && document.getElementById("to-end").hidden`)
	b.sameAnew()
}

// A turn of the wheel by less than what counts as the end leaves the end, although
// the answer grows.
func TestScrollingUpALittle(t *testing.T) {
	t.Parallel()
	pieces, answers := dictated()
	_, b := openSite(t, setup{model: answers}, 1280, 800)
	b.send("go")
	for _, piece := range split(prose + blocks + prose + blocks + prose + blocks) {
		pieces <- piece
	}
	b.Until(`document.querySelectorAll(".writing table").length === 3`)
	b.Until(atEnd + ` && document.getElementById("scroller").scrollTop > 300`)
	b.Do(webuitest.Command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseWheel", X: 640, Y: 300, DeltaX: .01, DeltaY: -40}))
	b.Until("!" + atEnd + ` && !document.getElementById("to-end").hidden`)
	b.Script(`window.mark = document.querySelectorAll(".writing .block")[6]; window.top0 = mark.getBoundingClientRect().top`)
	for _, piece := range split(prose + blocks) {
		pieces <- piece
	}
	b.Until(`document.querySelectorAll(".writing table").length === 4`)
	if moved := eval[float64](b, `mark.getBoundingClientRect().top - top0`); moved != 0 {
		t.Errorf("what the reader looks at moved by %v pixels", moved)
	}
	b.Do(webuitest.Command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseWheel", X: 640, Y: 300, DeltaX: .01, DeltaY: 30_000}))
	b.Until(atEnd + ` && document.getElementById("to-end").hidden`)
	close(pieces)
	b.rest()
	b.Until(atEnd)
}

// What a model thinks is told apart and does not make the answer flicker.
func TestReasoning(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{model: speech(func(_ context.Context, _ *model.Request, say func(model.Delta) bool) {
		for _, piece := range split("First I look at it.\n\nThen I answer.") {
			say(model.ReasoningDelta(piece))
		}
		say(model.TextDelta("The answer."))
	})})
	b := openTab(t, 1280, 800)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("go")
	b.rest()
	b.Do(click(".reasoning summary"), see(".reasoning .body"))
	b.Says(".reasoning .body", "First I look at it.", "Then I answer.")
	b.sameAnew()
}

// Every token is on the page before the model says the next one: none is held
// back to be shown with later ones.
func TestTokensOneByOne(t *testing.T) {
	t.Parallel()
	pieces, answers := dictated()
	_, b := openSite(t, setup{model: answers}, 1280, 800)
	b.send("go")
	for i := range 30 {
		token, end := fmt.Sprintf("t%02d", i), " "
		if i%10 == 9 {
			end = ".\n\n"
		}
		pieces <- token + end
		b.Until(fmt.Sprintf(`document.querySelector(".writing")?.textContent.includes(%q)`, token))
	}
	close(pieces)
	b.rest()
}

// BenchmarkPageToken measures the time from a token on the server to the frame
// that shows it.
func BenchmarkPageToken(b *testing.B) {
	const tokens = 100
	s := newSiteOf(b, setup{model: speech(func(ctx context.Context, _ *model.Request, say func(model.Delta) bool) {
		next := time.NewTicker(20 * time.Millisecond)
		defer next.Stop()
		for i := range tokens {
			select {
			case <-next.C:
			case <-ctx.Done():
				return
			}
			end := " "
			if i%10 == 9 {
				end = ".\n\n"
			}
			say(model.TextDelta(fmt.Sprintf("t%d%s", time.Now().UnixMicro(), end)))
		}
	})})
	page := openTab(b, 1280, 800)
	// A token counts as seen in the task after the frame that painted it.
	page.Do(onEveryPage(`window.seen = new Map(); new MutationObserver(() => {
		const fresh = (document.getElementById("messages")?.textContent.match(/t\d{16}/g) ?? []).filter((token) => !seen.has(token));
		for (const token of fresh) seen.set(token, NaN);
		if (fresh.length) requestAnimationFrame(() => setTimeout(() => {
			for (const token of fresh) seen.set(token, (performance.timeOrigin + performance.now()) * 1000);
		}));
	}).observe(document, { subtree: true, childList: true, characterData: true });`))
	page.Do(chromedp.Navigate(s.URL), see("#composer"))
	page.send("warm up")
	page.rest()
	var took []float64
	for b.Loop() {
		page.Script(`seen.clear()`)
		page.send("go")
		page.Until(fmt.Sprintf(`seen.size >= %d && ![...seen.values()].some(Number.isNaN)`, tokens))
		page.rest()
		for token, at := range eval[map[string]float64](page, fmt.Sprintf(`Object.fromEntries([...seen].slice(-%d))`, tokens)) {
			said, err := strconv.ParseFloat(token[1:], 64)
			if err != nil {
				b.Fatal(err)
			}
			took = append(took, (at-said)/1000)
		}
	}
	slices.Sort(took)
	b.ReportMetric(took[len(took)/2], "ms-median")
	b.ReportMetric(took[len(took)-1], "ms-worst")
}
