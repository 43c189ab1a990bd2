// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// notices are what a browser writes when a server goes away.
var notices = []string{"ERR_CONNECTION_REFUSED", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE"}

// A server that is stopped in the middle of a run and started again loses and
// doubles nothing, and the open page finds its way back by itself.
func TestServerRestart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var calls sync.Map
	answers := speech(func(ctx context.Context, r *model.Request, say func(model.Delta) bool) {
		if _, again := calls.LoadOrStore("made", true); !again {
			say(model.CallDelta(artel.ToolCall{ID: "call-1", Name: "create_artifact", Arguments: []byte(`{"id":"notes","title":"Notes","content":"# Notes\n\nkept"}`)}))
			return
		}
		if _, again := calls.LoadOrStore("said", true); !again {
			say(model.TextDelta("Half of the answer"))
			<-ctx.Done()
			return
		}
		say(model.TextDelta("All of the answer."))
	})
	s := newSiteOf(t, setup{model: answers, dir: dir, listener: listener})
	b := openTab(t, 1440, 900)
	b.Forgive(notices...)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("before")
	b.Until(`document.querySelector(".writing")?.innerText.includes("Half of the answer") && document.querySelector("#a-notes") !== null`)
	b.Do(write("a draft"))
	s.close()
	b.Until(`!document.getElementById("offline").hidden`)
	b.picture("offline")
	b.Says("#offline", "nothing that was sent is lost")

	if listener, err = net.Listen("tcp", listener.Addr().String()); err != nil {
		t.Fatal(err)
	}
	again := newSiteOf(t, setup{model: answers, dir: dir, listener: listener})
	b.Until(`document.getElementById("offline").hidden`)
	b.Until(`!document.querySelector("#status.active, .writing")`)
	b.Says("#messages", "All of the answer.") // the run went on where it was
	if half := strings.Contains(b.Text("#messages"), "Half of the answer"); half {
		t.Error("what was said before the answer was made again is still there")
	}
	if got := get(b, chromedp.Value(chromedp.CSS("#text"))); got != "a draft" {
		t.Errorf("the draft became %q", got)
	}
	if got := eval[int](b, `document.querySelectorAll(".message.user").length * 10 + document.querySelectorAll("[id^=e-run]").length`); got != 10 {
		t.Errorf("messages and notices: %d, want one message", got)
	}
	b.sameAnew()
	b.send("after")
	b.rest()
	b.Says("#messages > :last-child", "All of the answer.")
	if n := len(again.all(t)); n != 1 {
		t.Errorf("there are %d conversations", n)
	}
}

// A connection that is cut in the middle of a text costs nothing of it.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	pieces, answers := dictated()
	s := newSiteOf(t, setup{model: answers})
	b := openTab(t, 1280, 800)
	b.Forgive(notices...)
	b.Do(chromedp.Navigate(s.URL), see("#composer"))
	b.send("go")
	var whole strings.Builder
	say := func(text string) {
		for _, piece := range split(text) {
			pieces <- piece
		}
		whole.WriteString(text)
	}
	b.Script(`window.lost = []; new MutationObserver((changes) => {
		for (const change of changes) for (const gone of change.removedNodes) if (gone.matches?.(".message, .block")) lost.push(gone.id);
	}).observe(document.body, { subtree: true, childList: true })`)
	for i := range 5 {
		say(fmt.Sprintf("Paragraph %d begins", i))
		b.Until(fmt.Sprintf(`document.querySelector(".writing")?.innerText.includes("Paragraph %d begins")`, i))
		s.CloseClientConnections()
		say(" and goes on while nobody listens.\n\n")
	}
	b.Until(`document.querySelectorAll(".writing .block").length === 5 && document.querySelector(".writing").innerText.match(/nobody listens/g)?.length === 5`)
	if lost := eval[[]string](b, `lost`); len(lost) > 0 {
		t.Errorf("while it came back, the page lost %v", lost)
	}
	close(pieces)
	b.rest()
	b.Says("#last-call", "The last call used")
	got := eval[string](b, `[...document.querySelectorAll(".message.assistant .block")].map((block) => block.innerText.trim()).join("\n\n")`)
	if want := strings.TrimSpace(whole.String()); got != want {
		t.Errorf("the page shows\n%s\nwant\n%s", got, want)
	}
	b.sameAnew()
}
