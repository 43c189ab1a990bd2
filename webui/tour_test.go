// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
)

// One conversation with a picture in two formats, a PDF, a Word document, a
// recording and a film is answered under four sets of capabilities, and the way
// of each attachment can be seen and is right.
func TestTourOfAttachments(t *testing.T) {
	t.Parallel()
	var entries []any
	sets := []struct {
		id    string
		input []any
		ways  map[string]string // what is said of each file
	}{
		{"reader", []any{"text"}, map[string]string{
			"alpha.png": "only its name and kind", "pic.tiff": "only its name and kind", "brief.pdf": "its text was sent",
			"brief.docx": "its text was sent", "tone.mp3": "only its name and kind", "clip.mp4": "only its name and kind",
		}},
		{"seer", []any{"text", "vision"}, map[string]string{
			"alpha.png": "sent unchanged", "pic.tiff": "converted to", "brief.pdf": "its text was sent",
			"brief.docx": "its text was sent", "tone.mp3": "only its name and kind", "clip.mp4": "only its name and kind",
		}},
		{"filer", []any{"text", "file"}, map[string]string{
			"alpha.png": "only its name and kind", "pic.tiff": "only its name and kind", "brief.pdf": "sent unchanged",
			"brief.docx": "sent unchanged", "tone.mp3": "sent unchanged", "clip.mp4": "sent unchanged",
		}},
		{"polymath", []any{"text", "vision", "file", "audio", "video"}, map[string]string{
			"alpha.png": "sent unchanged", "pic.tiff": "sent unchanged", "brief.pdf": "sent unchanged",
			"brief.docx": "sent unchanged", "tone.mp3": "sent unchanged", "clip.mp4": "sent unchanged",
		}},
	}
	for _, set := range sets {
		e := map[string]any{"id": set.id, "name": strings.ToUpper(set.id[:1]) + set.id[1:], "dialect": "demo", "model": "demo-" + set.id, "capabilities": map[string]any{"input": set.input}}
		if set.id == "seer" {
			e["accepts"] = []any{"image/png", "image/jpeg"}
		}
		entries = append(entries, e)
	}
	services, findings := model.ParseServices(entries, "test.json", func(string) string { return "" })
	for _, f := range findings {
		for _, w := range f.Warnings() {
			t.Error(w)
		}
	}
	s := newSiteOf(t, setup{services: services, demo: demo.Options{}})
	b := openTab(t, 1280, 900)
	b.Prefer("light", true)
	var files []string
	for _, name := range slices.Sorted(maps.Keys(sets[0].ways)) {
		files = append(files, sample(t, name))
	}
	b.Do(chromedp.Navigate(s.URL), see("#composer"), choose(files...))
	// The browser does not draw TIFF; its card has an icon then, as all others have one.
	b.Until(`document.querySelectorAll("#chosen li > :is(svg, .thumb)").length === 6 && document.querySelectorAll("#chosen .thumb").length === 1`)
	for i, set := range sets {
		b.Do(click("#model"), see("#picker"), click(fmt.Sprintf(`#picker label:has([value=%q])`, set.id)), press("\x1b"))
		b.send(fmt.Sprintf("Look at these, %d.", i+1))
		b.rest()
		b.Until(`(() => {
			const [asked, told] = [".message.user", ".message.assistant"].map((which) => [...document.querySelectorAll(which)].at(-1));
			return (asked.compareDocumentPosition(told) & Node.DOCUMENT_POSITION_FOLLOWING) !== 0 && told.innerText.includes("clip.mp4: ");
		})()`)
		answer := eval[string](b, `[...document.querySelectorAll(".message.assistant")].at(-1).innerText`)
		for name, way := range set.ways {
			_, told, ok := strings.Cut(answer, name+": ")
			told, _, _ = strings.Cut(told, "\n")
			if unread := strings.Contains(told, "I cannot read it"); !ok || unread != (way == "only its name and kind") {
				t.Errorf("%s, %s: %s, and the answer says of it %q", set.id, name, way, told)
			}
		}
		b.Script(`document.querySelectorAll(".message.user .way details").forEach((d) => { d.open = true; })`)
		for name, want := range set.ways {
			got := eval[string](b, fmt.Sprintf(`[...document.querySelectorAll(".message.user li")].find((li) => li.querySelector("bdi")?.innerText === %q)?.innerText ?? ""`, name))
			said, _, _ := strings.Cut(got, "Before")
			if !strings.Contains(said, want) || !strings.Contains(said, services[i].Name) || !strings.Contains(said, "Tokens") {
				t.Errorf("%s, %s: the page does not say %q:\n%s", set.id, name, want, got)
			}
			if changed := i > 0 && sets[i-1].ways[name] != want; changed && !strings.Contains(got, sets[i-1].ways[name]) {
				t.Errorf("%s, %s: nothing is said of the call before:\n%s", set.id, name, got)
			}
		}
		b.Script(`document.getElementById("scroller").scrollTop = 0`)
		b.picture("tour-" + set.id)
	}
	// A page that is loaded anew says the same.
	const ways = `[...document.querySelectorAll(".message.user .files li")].map((li) => li.textContent.replace(/\s+/g, " "))`
	live := eval[[]string](b, ways)
	b.Do(chromedp.Reload(), see("#messages"))
	b.Script(`document.getElementById("scroller").scrollTop = 0`)
	b.Until(`document.getElementById("older") === null`)
	if diff := cmp.Diff(live, eval[[]string](b, ways)); diff != "" {
		t.Errorf("loaded anew the ways differ (- live, + loaded):\n%s", diff)
	}
}
