// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/webui/webuitest"
)

// misfits lists what does not fit: the page scrolls sideways, a control or a
// heading is out of sight or cut, the composer cannot be reached.
const misfits = `(async () => {
	for (let i = 0; i < 2; i++) await new Promise(requestAnimationFrame); // what follows the size has happened
	const out = [], root = document.documentElement;
	if (root.scrollWidth > root.clientWidth) out.push("the page is " + root.scrollWidth + " wide");
	if (root.scrollHeight > root.clientHeight) out.push("the page is " + root.scrollHeight + " high");
	const name = (e) => e.localName + (e.id && "#" + e.id) + "." + e.className + " " + (e.innerText || e.ariaLabel || "").slice(0, 30);
	const rolls = (e) => { for (let n = e.parentElement; n; n = n.parentElement) if (/auto|scroll/.test(getComputedStyle(n).overflowX) && n.matches(".table, pre, .value, .bar")) return true; };
	const covered = document.querySelector("main").inert;
	for (const e of document.querySelectorAll("button, a, summary, h1, h2, input, textarea, .note, .badge")) {
		if (!e.checkVisibility({ visibilityProperty: true }) || e.closest(".visually-hidden, .skip, [inert]") || e.matches(".visually-hidden, .skip") || rolls(e)) continue;
		const box = e.getBoundingClientRect();
		if (box.width && (box.left < -1 || box.right > innerWidth + 1)) out.push(name(e) + " lies from " + box.left + " to " + box.right);
		if (e.matches("button, .button, summary") && e.scrollWidth > e.clientWidth + 1 && !e.closest(".conversation")) out.push(name(e) + " is cut: " + e.scrollWidth + " in " + e.clientWidth);
	}
	for (const e of covered ? [] : document.querySelectorAll("#text, #composer .go:not([disabled])")) {
		if (!e.checkVisibility()) continue;
		e.scrollIntoView({ block: "nearest" });
		const box = e.getBoundingClientRect(), hit = document.elementFromPoint(box.x + box.width / 2, box.y + Math.min(box.height / 2, 20));
		if (!e.contains(hit)) out.push(name(e) + " is covered by " + (hit ? name(hit) : "nothing"));
	}
	return out;
})()`

// Every page fits every window, also with large text and long words.
func TestSizes(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	titles := []string{
		strings.Repeat("Donaudampfschifffahrt", 12), strings.Repeat("没有空格的很长的标题", 20), "שלום עולם " + strings.Repeat("ארוך", 50),
	}
	for i, title := range titles {
		other := s.send(t, fmt.Sprint("title ", i), nil)
		if _, err := s.app.Conversations.Rename(apptest.Context(t), other, title); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.app.Conversations.Rename(apptest.Context(t), id, titles[0]); err != nil {
		t.Fatal(err)
	}
	c := s.URL + "/c/" + string(id)
	b := openTab(t, 1440, 900)
	b.Prefer("light", true)
	for _, url := range []string{s.URL, c, c + "/a", c + "/a/report", s.URL + "/settings", s.URL + "/pipeline"} {
		b.Do(chromedp.Navigate(url), see("body"))
		b.Until(`document.readyState === "complete"`)
		b.Script(`document.querySelectorAll("#messages details").forEach(d => d.open = true)`)
		for _, percent := range []int{100, 200} {
			b.Script(fmt.Sprintf(`document.documentElement.style.fontSize = "%d%%"`, percent))
			for _, width := range []int64{360, 390, 768, 1024, 1200, 1440, 2000} {
				resize(b, width, 900)
				for _, wrong := range eval[[]string](b, misfits) {
					t.Errorf("%s, %d pixels, text at %d %%: %s", strings.Replace(url, c, "/c", 1), width, percent, wrong)
				}
			}
		}
	}
}

// On paper there is the artifact that is open, else the thread.
func TestPrint(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	c := s.URL + "/c/" + string(id)
	b := openTab(t, 1440, 900)
	for url, want := range map[string][2]string{c + "/a/report": {"A paragraph with", "Here is what I found"}, c: {"Here is what I found", "A paragraph with"}} {
		b.Do(chromedp.Navigate(url), see("#main"))
		pdf := get(b, chromedp.PrintToPDF(chromedp.PDFOutlineAndTagged()))
		heading := map[bool]string{true: "Files", false: "Report"}
		thread := url == c
		if !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Contains(pdf, []byte("/Title ("+heading[thread]+")")) || bytes.Contains(pdf, []byte("/Title ("+heading[!thread]+")")) {
			t.Errorf("%s: the outline of the document is not that of what is open: %q", url, outlineOf(pdf))
		}
		b.Do(webuitest.Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: "print"}))
		shown := b.Text("body")
		if !strings.Contains(shown, want[0]) || strings.Contains(shown, want[1]) || strings.Contains(shown, "New conversation") {
			t.Errorf("%s: on paper there is\n%s", url, shown)
		}
		b.Do(webuitest.Command(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: ""}))
	}
}

// outlineOf lists the titles of a document's outline.
func outlineOf(pdf []byte) (all []string) {
	for _, after := range bytes.Split(pdf, []byte("/Title "))[1:] {
		all = append(all, string(after[:min(len(after), 40)]))
	}
	return all
}

// A transfer is one file that a page fetched.
type transfer struct {
	url    string
	bytes  float64
	cached bool
}

// The first visit is small and asks no other host; the second one takes the
// page's own files from the cache.
func TestFirstVisit(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{})
	b := openTab(t, 1440, 900)
	var mu sync.Mutex
	all := map[network.RequestID]*transfer{}
	err := chromedp.Listen(b.Ctx, func(event any) {
		mu.Lock()
		defer mu.Unlock()
		switch e := event.(type) {
		case *network.EventRequestWillBeSent:
			all[e.RequestID] = &transfer{url: e.Request.URL}
		case *network.EventRequestServedFromCache:
			if f := all[e.RequestID]; f != nil {
				f.cached = true
			}
		case *network.EventResponseReceived:
			if f := all[e.RequestID]; f != nil && e.Response.FromDiskCache {
				f.cached = true
			}
		case *network.EventLoadingFinished:
			if f := all[e.RequestID]; f != nil {
				f.bytes = e.EncodedDataLength
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	b.Do(webuitest.Command(network.Enable, network.EnableParams{}))
	visit := func(url string) (files []transfer) {
		mu.Lock()
		clear(all)
		mu.Unlock()
		b.Do(chromedp.Navigate(url), see("#composer"))
		b.Until(`document.readyState === "complete" && "htmx" in window`)
		b.Until(`[...document.images].every((i) => i.complete)`)
		b.Wait("every file", func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, f := range all {
				if f.bytes == 0 && !f.cached {
					return false
				}
			}
			return true
		})
		mu.Lock()
		defer mu.Unlock()
		for _, f := range all {
			files = append(files, *f)
		}
		slices.SortFunc(files, func(a, b transfer) int { return strings.Compare(a.url, b.url) })
		return files
	}
	sum := 0.0
	for _, f := range visit(s.URL) {
		t.Logf("%7.0f bytes %s", f.bytes, strings.TrimPrefix(f.url, s.URL))
		sum += f.bytes
		if !strings.HasPrefix(f.url, s.URL) {
			t.Errorf("the page asks %s", f.url)
		}
	}
	t.Logf("%7.0f bytes in all", sum)
	if sum >= 150_000 {
		t.Errorf("the first visit fetches %.0f bytes", sum)
	}
	cached := 0
	for _, f := range visit(s.URL + "/?again") {
		if strings.Contains(f.url, "/static/") && !f.cached {
			t.Errorf("the second visit fetches %s again", f.url)
		}
		if f.cached {
			cached++
		}
	}
	if cached < 5 {
		t.Errorf("the second visit takes %d files from the cache", cached)
	}
}
