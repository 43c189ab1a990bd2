// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/webui/webuitest"
)

// seedLong makes a conversation of n messages. The newest thousand are of the
// usual length; the ones before are short, for the sake of the test's time.
func (s *site) seedLong(t *testing.T, n int) artel.ConversationID {
	t.Helper()
	texts := make([]string, n)
	for i := range texts {
		texts[i] = fmt.Sprintf("Question %d, of about the length that people write.", i)
		switch {
		case n-i > 1000:
			texts[i] = "x"
		case i%2 == 1:
			texts[i] = fmt.Sprintf("### Answer %d\n\nSome **prose** of the usual length, with `code`.\n\n- one\n- two\n\n```go\nfunc f%d() {}\n```\n", i, i)
		}
	}
	return s.seed(t, fmt.Sprintf("%d messages", n), time.Now().Add(-time.Hour), texts...)
}

// A long conversation is as quickly there as a short one, at its end.
func TestLongConversation(t *testing.T) {
	s := newSite(t, demo.Options{})
	long := map[int]artel.ConversationID{}
	for _, n := range []int{40, 1000, 10_000} {
		long[n] = s.seedLong(t, n)
	}
	b := openTab(t, 1440, 900)
	b.Do(onEveryPage(`{ const look = () => {
		const scroller = document.getElementById("scroller"), last = document.querySelector("#messages > .message:last-child");
		const atEnd = scroller && scroller.scrollHeight > scroller.clientHeight && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2;
		if (document.readyState !== "loading" && last && atEnd) window.arrived = performance.now();
		else requestAnimationFrame(look);
	}; requestAnimationFrame(look); }`))
	measure := func(n int) float64 {
		var took []float64
		for range 5 {
			b.Do(chromedp.Navigate(s.URL + "/c/" + string(long[n])))
			b.Until(`window.arrived > 0`)
			took = append(took, eval[float64](b, `arrived`))
		}
		b.Says("#messages > .message:last-child", fmt.Sprintf("Answer %d", n-1))
		t.Logf("from navigation to the last of %d messages on the screen: %.0f ms at best of %.0f", n, slices.Min(took), took)
		return slices.Min(took) // what a machine that is busy with something else adds is not the page's
	}
	b.Do(chromedp.Navigate(s.URL + "/c/" + string(long[40]))) // so that browser and server are warm
	short, thousand, most := measure(40), measure(1000), measure(10_000)
	if thousand > 1000 {
		t.Errorf("1,000 messages take %.0f ms", thousand)
	}
	if thousand > 2*short+150 || most > 2*thousand+150 {
		t.Errorf("the time grows with the conversation: %.0f, %.0f and %.0f ms", short, thousand, most)
	}
}

// Scrolling up loads what was before, without a jump, back to the first.
func TestScrollingBack(t *testing.T) {
	t.Parallel()
	const messages = 1000
	s := newSite(t, script(t, "-- turn 1 --\nI have read it all.\n"))
	c := s.seedLong(t, messages)
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)), see("#messages"))
	b.Until(atEnd)
	b.Do(webuitest.Command(input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: "mouseWheel", X: 700, Y: 400, DeltaX: .01, DeltaY: -300}))
	b.Until("!" + atEnd)
	for shown, round := 40, 0; shown < messages; round++ {
		if round > messages/40+2 {
			t.Fatalf("after %d rounds there are %d messages", round, shown)
		}
		b.Script(`window.mark = document.querySelector("#messages > .message"); document.getElementById("scroller").scrollTop = 0; window.top0 = mark.getBoundingClientRect().top`)
		b.Until(fmt.Sprintf(`document.querySelectorAll("#messages > .message").length > %d`, shown))
		if moved := eval[float64](b, `new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(mark.getBoundingClientRect().top - top0))))`); moved < -1 || moved > 60 {
			t.Errorf("with %d messages the view jumped by %v pixels", shown, moved)
		}
		shown = eval[int](b, `document.querySelectorAll("#messages > .message").length`)
	}
	if got := eval[string](b, `[...document.querySelectorAll("#messages > .message")].map((m, i) => m.innerText.includes((i % 2 ? "Answer " : "Question ") + i) ? "" : i).filter(String).join(" ")`); got != "" {
		t.Errorf("messages are missing or in another order at %s", got)
	}
	if eval[bool](b, `document.getElementById("older") !== null`) {
		t.Error("the page offers more than there is")
	}
	// A new message is what its writer wants to see, wherever they were.
	b.send("and now")
	b.rest()
	b.Until(atEnd)
}
