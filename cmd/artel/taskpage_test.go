// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/webui/webuitest"
)

// A door passes requests on to the server that is there now, so that a page
// finds it again under the same address.
type door struct {
	mu     sync.Mutex
	behind *url.URL
}

func (d *door) lead(to string) error {
	u, err := url.Parse(to)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.behind = u
	return err
}

func (d *door) handler() http.Handler {
	return &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			d.mu.Lock()
			defer d.mu.Unlock()
			r.SetURL(d.behind)
			r.Out.Host = r.In.Host
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) },
		ErrorLog:     log.New(io.Discard, "", 0),
	}
}

// open looks at the conversation before anything has happened in it.
func (k *task) open() {
	k.t.Helper()
	front := httptest.NewServer(k.door.handler())
	k.t.Cleanup(front.Close)
	browsers := webuitest.NewBrowsers(1)
	k.t.Cleanup(browsers.Quit)
	k.page = browsers.Open(k.t, 10*time.Minute, 1440, 900)
	// What a browser says when a server goes away.
	k.page.Forgive("502 (Bad Gateway)", "ERR_INCOMPLETE_CHUNKED_ENCODING", "ERR_CONNECTION_RESET", "ERR_EMPTY_RESPONSE")
	k.page.Prefer("light", true)
	k.page.Do(chromedp.Navigate(front.URL+"/c/"+string(k.conversation)), chromedp.WaitVisible(chromedp.CSS("#composer")))
}

// whole loads what the page leaves for those who scroll up.
func whole(b *webuitest.Tab) {
	b.T.Helper()
	b.Until(`(document.getElementById("older")?.scrollIntoView(), !document.getElementById("older"))`)
	b.Script(`document.getElementById("scroller").scrollTop = document.getElementById("scroller").scrollHeight`)
}

// sameAsOpen checks that the page, as it came about, comes to be the one that is
// opened now, and goes on with the latter.
func (k *task) sameAsOpen(when string) {
	k.t.Helper()
	shown := func(b *webuitest.Tab) []string {
		const order = `[...document.querySelectorAll("#messages > *")].map((m) => m.id + " " + m.innerText.slice(0, 60).replace(/\s+/g, " "))`
		return append(webuitest.Eval[[]string](b, order), b.Shown()...)
	}
	reload := func(b *webuitest.Tab) {
		b.Do(chromedp.Reload(), chromedp.WaitVisible(chromedp.CSS("#messages .message")))
		whole(b)
	}
	whole(k.page)
	anew, closeTab := k.page.Beside()
	var live, opened []string
	defer func() {
		closeTab()
		if k.t.Failed() {
			k.t.Logf("%s, the page that is opened now differs (- open all along, + opened now):\n%s", when, cmp.Diff(live, opened))
		}
	}()
	k.page.Wait("the page to show what one shows that is opened now", func() bool {
		reload(anew)
		live, opened = shown(k.page), shown(anew)
		return slices.Equal(live, opened)
	})
	reload(k.page)
}

// checkPage wants the page to show all that has happened.
func (k *task) checkPage() {
	t, b := k.t, k.page
	t.Helper()
	b.Until(`!document.querySelector("#status.active, .writing") && document.querySelector("#messages").innerText.includes("All steps to 50 are done.")`)
	k.sameAsOpen("at the end")

	// The plan, in the header and in the panel.
	b.Says("#progress", fmt.Sprintf("%d/%d", taskSteps, taskSteps))
	if ticked := webuitest.Eval[[]int](b, `[document.querySelectorAll("#plan-body input:checked").length, document.querySelectorAll("#plan-body input").length]`); !slices.Equal(ticked, []int{taskSteps, taskSteps}) {
		t.Errorf("ticked steps and steps on the page: %v", ticked)
	}

	// Every text once, in the order in which it was said.
	var want []string
	for n := range taskSteps {
		want = append(want, fmt.Sprintf("step %d", n+1))
	}
	thoughts := `[...document.querySelectorAll("#messages > .message.assistant > .body")].map((b) => b.innerText.match(/^This is what I think of (step \d+),/)?.[1]).filter(Boolean)`
	if diff := cmp.Diff(want, webuitest.Eval[[]string](b, thoughts)); diff != "" {
		t.Errorf("what was said of the steps (- want, + on the page):\n%s", diff)
	}
	if twice := webuitest.Eval[[]string](b, `(() => { const all = [...document.querySelectorAll("[id]")].map((e) => e.id); return all.filter((id, i) => all.indexOf(id) !== i); })()`); len(twice) > 0 {
		t.Errorf("ids that are on the page twice: %q", twice)
	}
	said := webuitest.Eval[[]string](b, `[...document.querySelectorAll("#messages > .message.user .said")].map((s) => s.innerText.trim())`)
	asked := []string{"Do steps 1 to 10.", "Do steps 11 to 20.", "Do steps 21 to 30.", taskCrane, "Do steps 31 to 40.", "Do steps 41 to 50."}
	if diff := cmp.Diff(asked, said); diff != "" {
		t.Errorf("what people said (- want, + on the page):\n%s", diff)
	}
	if !webuitest.Eval[bool](b, `document.querySelector(".injected")?.closest(".message").innerText.includes("`+taskCrane+`")`) {
		t.Error("the page does not tell that the crane was mentioned while a run was at work")
	}

	k.checkMarkers()
	k.checkThreads()
	k.checkCounters()
	k.pictures()
	k.checkBranches()
}

// checkMarkers wants to see where the history was summed up, and what by.
func (k *task) checkMarkers() {
	k.t.Helper()
	type marker struct{ Says, Link, Body string }
	shown := webuitest.Eval[[]marker](k.page, `[...document.querySelectorAll("#messages > .boundary")].map((m) => {
		m.querySelector("details").open = true;
		return { Says: m.querySelector("summary").innerText, Link: m.querySelector("footer > a")?.getAttribute("href") ?? "", Body: m.querySelector(".body").innerText };
	})`)
	k.page.Script(`for (const d of document.querySelectorAll(".boundary details")) d.open = false`)
	var told []artel.CompactionCompleted
	for _, e := range k.events {
		if p, err := payloadOf[artel.CompactionCompleted](e); e.Type == artel.EventCompactionCompleted && err == nil && p.OK {
			told = append(told, p)
		}
	}
	if len(shown) != len(told) || len(told) < 3 {
		k.t.Fatalf("%d markers on the page, %d compactions in the log", len(shown), len(told))
	}
	for i, p := range told {
		link := "/c/" + string(k.conversation) + "/a/" + string(p.Artifact.ID)
		if got := shown[i]; !strings.Contains(got.Says, fmt.Sprintf("%d messages", p.Replaced)) || got.Link != link || !strings.Contains(got.Body, "The plan says what is done.") {
			k.t.Errorf("marker %d is %+v, want %d messages and a link to %s", i, got, p.Replaced, link)
		}
	}
}

// checkThreads wants both subagents under their calls, and the call that was
// denied with what was answered.
func (k *task) checkThreads() {
	k.t.Helper()
	b := k.page
	b.Script(`for (const d of document.querySelectorAll(".call")) d.open = true`)
	threads := webuitest.Eval[[]string](b, `[...document.querySelectorAll("#messages > .message > .calls > .subagent")].map((s) => s.innerText)`)
	if len(threads) != len(taskScouts) {
		k.t.Fatalf("there are %d threads of subagents", len(threads))
	}
	for i, step := range taskScouts {
		for _, want := range []string{"scout", fmt.Sprintf("Look at %d.", step), "I look.", "create_artifact", "I looked at it; see the note."} {
			if !strings.Contains(threads[i], want) {
				k.t.Errorf("the thread of the scout of step %d does not show %q:\n%s", step, want, threads[i])
			}
		}
	}
	denied := webuitest.Eval[[]string](b, `[...document.querySelectorAll(".question")].map((q) => q.closest(".message").innerText)`)
	if len(denied) != 1 || !strings.Contains(denied[0], fmt.Sprintf("step %d", taskDelete)) || !strings.Contains(denied[0], "delete_artifact · Denied") {
		k.t.Errorf("what was denied: %q", denied)
	}
	b.Script(`for (const d of document.querySelectorAll(".call")) d.open = false`)
}

// checkCounters wants to see what all of it took.
func (k *task) checkCounters() {
	k.t.Helper()
	var sum artel.Usage
	for _, e := range k.events {
		if p, err := payloadOf[artel.UsageReported](e); e.Type == artel.EventUsage && err == nil {
			sum = sum.Add(p.Usage)
		}
	}
	k.page.Script(`document.getElementById("total").open = true`)
	k.page.Says("#total", grouped(sum.InputTokens+sum.OutputTokens)+" tokens", grouped(sum.InputTokens), grouped(sum.OutputTokens), fmt.Sprintf("$%.4f", sum.Cost.USD))
	k.page.Script(`document.getElementById("total").open = false`)
	if n := webuitest.Eval[int](k.page, `document.querySelectorAll("#messages > .message.assistant > footer > [id^=u-]:not(:empty)").length`); n != taskSteps/taskPart {
		k.t.Errorf("%d answers say what they took", n)
	}
}

// checkBranches goes to the other branch and back, and looks at what is said
// and made on each.
func (k *task) checkBranches() {
	k.t.Helper()
	b := k.page
	here := b.Shown()
	path := "/c/" + string(k.conversation) + "/a/report"
	b.Do(chromedp.Click(chromedp.CSS(`#artifacts a[href="`+path+`"]`), chromedp.NodeVisible))
	b.Until(fmt.Sprintf(`document.getElementById("viewer")?.innerText.includes("Step %d is done.") && document.getElementById("viewer").innerText.includes("There is a crane.")`, taskSteps))
	b.Script(`document.querySelector("#messages .siblings [data-again=previous]").click()`)
	b.Until(`document.getElementById("messages").innerText.includes("It is spoiled") && document.getElementById("viewer")?.innerText.includes("spoiled")`)
	b.Says("#messages", "Do steps 11 to 20.", "Spoil it.", "1/2")
	if text := b.Text("#messages"); strings.Contains(text, "Do steps 21 to 30.") || strings.Contains(b.Text("#viewer"), "is done") {
		k.t.Errorf("the other branch shows\n%s", text)
	}
	b.Says("#progress", fmt.Sprintf("%d/%d", 2*taskPart, taskSteps))
	k.sameAsOpen("on the other branch")
	b.Script(`document.querySelector("#messages .siblings [data-again=next]").click()`)
	b.Until(fmt.Sprintf(`document.getElementById("viewer")?.innerText.includes("Step %d is done.")`, taskSteps))
	b.Script(`document.querySelector("#panel [data-close-panel]").click()`)
	b.Until(`!document.getElementById("viewer")`)
	whole(k.page)
	if diff := cmp.Diff(here, b.Shown()); diff != "" {
		k.t.Errorf("back from the other branch, the page differs (- before, + after):\n%s", diff)
	}
}

// pictures keeps what the page looks like, where ARTEL_SCREENS names a folder.
func (k *task) pictures() {
	folder := os.Getenv("ARTEL_SCREENS")
	if folder == "" {
		return
	}
	b := k.page
	for name, show := range map[string]string{
		"summary":  `document.querySelectorAll("#messages > .boundary")[1].previousElementSibling.querySelector(".calls").scrollIntoView()`,
		"subagent": `(() => { const thread = document.querySelectorAll("#messages > .message > .calls > .subagent")[1]; thread.open = true; thread.closest(".message").scrollIntoView(); })()`,
	} {
		for size, wide := range map[string]int64{"wide-light": 1440, "narrow-dark": 390} {
			b.Do(chromedp.EmulateViewport(wide, 900))
			_, scheme, _ := strings.Cut(size, "-")
			b.Prefer(scheme, true)
			b.Script(show)
			shot, err := webuitest.Small(webuitest.Get(b, chromedp.CaptureScreenshot()))
			if err == nil {
				err = os.WriteFile(filepath.Join(folder, "task-"+name+"-"+size+".png"), shot, 0o644)
			}
			if err != nil {
				k.t.Error(err)
			}
		}
	}
	b.Do(chromedp.EmulateViewport(1440, 900))
	b.Prefer("light", true)
}

// grouped writes a number as the page does.
func grouped(n int64) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}

// payloadOf reads what an event tells.
func payloadOf[P artel.Payload](e artel.Event) (P, error) {
	var p P
	err := json.Unmarshal(e.Data, &p)
	return p, err
}
