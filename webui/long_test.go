// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/webui/webuitest"
)

// seedLong makes a conversation of n messages. The newest thousand are of the
// usual length; the ones before are short, for the sake of the test's time.
func (s *site) seedLong(t testing.TB, n int) artel.ConversationID {
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

// A long conversation costs no more than a short one: the server does as much
// for its page, the page is as large, and it opens at the last message.
func TestLongConversation(t *testing.T) {
	s := newSite(t, demo.Options{})
	type cost struct {
		allocations float64
		bytes       int
	}
	costs := map[int]cost{}
	var newest artel.ConversationID
	for _, n := range []int{100, 1000, 10_000} {
		newest = s.seedLong(t, n)
		request := httptest.NewRequestWithContext(apptest.Context(t), "GET", s.URL+"/c/"+string(newest), nil)
		var c cost
		c.allocations = testing.AllocsPerRun(5, func() {
			w := httptest.NewRecorder()
			s.Config.Handler.ServeHTTP(w, request)
			c.bytes = w.Body.Len()
		})
		costs[n] = c
	}
	for n, c := range costs {
		if short := costs[100]; c.allocations > 1.2*short.allocations || float64(c.bytes) > 1.2*float64(short.bytes) {
			t.Errorf("the page of %d messages costs %+v, that of 100 messages %+v", n, c, short)
		}
	}
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL + "/c/" + string(newest)))
	b.Until(atEnd + ` && document.querySelector("#messages > .message:last-child").innerText.includes("Answer 9999")`)
}

// BenchmarkPageLong measures the time from navigation to the last message of a
// conversation on the screen.
func BenchmarkPageLong(b *testing.B) {
	s := newSite(b, demo.Options{})
	for _, n := range []int{40, 1000, 10_000} {
		id := s.seedLong(b, n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			page := openTab(b, 1440, 900)
			page.Do(onEveryPage(`{ const look = () => {
				const scroller = document.getElementById("scroller"), last = document.querySelector("#messages > .message:last-child");
				const atEnd = scroller && scroller.scrollHeight > scroller.clientHeight && scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < 2;
				if (document.readyState !== "loading" && last && atEnd) window.arrived = performance.now();
				else requestAnimationFrame(look);
			}; requestAnimationFrame(look); }`))
			sum := 0.0
			for b.Loop() {
				page.Do(chromedp.Navigate(s.URL + "/c/" + string(id)))
				page.Until(`window.arrived > 0`)
				sum += eval[float64](page, `arrived`)
			}
			b.ReportMetric(sum/float64(b.N), "ms-shown")
		})
	}
}

// Scrolling up loads what was before, without a jump, back to the first.
func TestScrollingBack(t *testing.T) {
	t.Parallel()
	const messages = 400
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
