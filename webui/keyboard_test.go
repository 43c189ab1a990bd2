// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/accessibility"
	"github.com/chromedp/cdproto/dom"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/model"
)

// A stop is where the focus is, and what is wrong with that.
type stop struct {
	Path  string // of the element; "": the focus is nowhere
	Wrong string
}

// probe tells of the element that has the focus. It is seen when the element,
// its label or the form around it looks different from how it looks without.
const probe = `(() => {
	const e = document.activeElement;
	if (!e || e === document.body || e === document.documentElement) return { Path: "", Wrong: "" };
	const step = (n) => n.id ? "#" + n.id : n.localName + ":" + [...(n.parentElement?.children ?? [])].indexOf(n);
	let path = "";
	for (let n = e; n && n !== document.body; n = n.id ? null : n.parentElement) path = step(n) + " " + path;
	const box = e.getBoundingClientRect();
	const looks = () => [e, ...(e.labels ?? []), e.closest("form")].filter(Boolean).map((n) => {
		const s = getComputedStyle(n), r = n.getBoundingClientRect();
		return r.width < 4 ? "" : [s.outlineStyle === "none" ? "" : s.outlineWidth + s.outlineColor, s.boxShadow, s.borderColor].join();
	}).join(";");
	const wrong = [];
	if (!e.checkVisibility({ visibilityProperty: true })) wrong.push("is hidden");
	if (e.closest("[inert]")) wrong.push("is inert");
	if (box.right <= 0 || box.bottom <= 0 || box.left >= innerWidth || box.top >= innerHeight) wrong.push("is out of sight");
	const seen = [[.5, .5], [.05, .1], [.95, .1], [.05, .9], [.95, .9]].some(([x, y]) => {
		const hit = document.elementFromPoint(box.x + box.width * x, box.y + box.height * y);
		return hit && (e.contains(hit) || hit.contains(e));
	});
	if (!e.labels?.length && !seen) wrong.push("is covered");
	for (let n = e; n; n = n.parentElement) if (getComputedStyle(n).opacity < 0.5) wrong.push("is transparent");
	const focused = looks();
	if (e.localName !== "iframe" && e.localName !== "audio" && e.localName !== "video") {
		e.blur();
		if (looks() === focused) wrong.push("looks the same without the focus");
		e.focus({ preventScroll: true, focusVisible: true });
	}
	return { Path: path.trim(), Wrong: wrong.join(", ") };
})()`

// at returns where the focus is, and reports what is wrong with that.
func (b *tab) at() string {
	b.T.Helper()
	s := eval[stop](b, probe)
	if s.Wrong != "" {
		b.T.Errorf("the focus is on %s, which %s", s.Path, s.Wrong)
	}
	return s.Path
}

// walk presses Tab until the focus has been everywhere, and returns the places
// in their order.
func (b *tab) walk(held ...chromedp.Modifier) []string {
	b.T.Helper()
	var all []string
	for range 150 {
		b.Do(press("\t", held...))
		path := b.at()
		if path == "" || len(all) > 0 && path == all[0] {
			return all
		}
		if i := slices.Index(all, path); i >= 0 && i < len(all)-1 {
			b.T.Fatalf("the focus cannot leave: %s comes after %s again", path, all[len(all)-1])
		} else if i < 0 { // the controls of a sound are several places in one
			all = append(all, path)
		}
	}
	b.T.Fatalf("Tab does not come to an end: %s", all)
	return nil
}

// reach presses Tab until the focus is on what the selector names.
func (b *tab) reach(selector string, held ...chromedp.Modifier) {
	b.T.Helper()
	for range 150 {
		if eval[bool](b, fmt.Sprintf("document.activeElement.matches(%q)", selector)) {
			b.at()
			return
		}
		b.Do(press("\t", held...))
	}
	b.T.Fatalf("Tab does not lead to %s", selector)
}

// on waits until the focus is on what the selector names.
func (b *tab) on(selector string) {
	b.T.Helper()
	b.Until(fmt.Sprintf("document.activeElement?.matches(%q)", selector))
	b.at()
}

// tree is what a screen reader is told of the page.
func (b *tab) tree() []*accessibility.Node {
	b.T.Helper()
	return protocol(b, accessibility.GetFullAXTree, accessibility.GetFullAXTreeParams{}).Nodes
}

// said is a value of the tree as text.
func said(v *accessibility.Value) string {
	if v == nil {
		return ""
	}
	return strings.Trim(string(v.Value), `"`)
}

// Every page can be walked through with Tab, forth and back; the focus is
// always seen, and what has it has a name.
func TestFocus(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	c := s.URL + "/c/" + string(id)
	b := openTab(t, 1440, 900)
	b.Prefer("light", true)
	for _, url := range []string{s.URL, c + "/a/report", s.URL + "/settings", s.URL + "/import"} {
		b.Do(chromedp.Navigate(url), see("#main"))
		b.Script(`document.querySelectorAll("#messages details").forEach(d => d.open = true); document.querySelectorAll("[loading=lazy]").forEach((e) => { e.loading = "eager"; }); document.querySelector(".skip").focus()`)
		// What loads later may add or take away what Tab leads to.
		b.Until(`document.readyState === "complete" && [...document.images].every((i) => i.complete) && [...document.querySelectorAll("audio, video")].every((m) => m.readyState > 0 || m.error || m.networkState !== HTMLMediaElement.NETWORK_LOADING)`)
		forth := append([]string{b.at()}, b.walk()...)
		back := b.walk(chromedp.ModifierShift)
		slices.Sort(forth)
		slices.Sort(back)
		if diff := cmp.Diff(forth, back); diff != "" {
			t.Errorf("%s: Tab leads to other places back (+) than forth (-):\n%s", url, diff)
		}
		for _, n := range b.tree() {
			focusable := slices.ContainsFunc(n.Properties, func(p *accessibility.Property) bool {
				return p.Name == accessibility.PropertyNameFocusable && string(p.Value.Value) == "true"
			})
			if role := said(n.Role); focusable && !n.Ignored && role != "RootWebArea" && role != "generic" && strings.TrimSpace(said(n.Name)) == "" {
				html := protocol(b, dom.GetOuterHTML, dom.GetOuterHTMLParams{BackendNodeID: n.BackendDOMNodeID}).OuterHTML
				t.Errorf("%s: something of the role %s has no name: %.300s", url, role, html)
			}
		}
	}
}

// A whole visit without a mouse.
func TestVisitByKeyboard(t *testing.T) {
	t.Parallel()
	other := model.Service{ID: "office", Name: "Office", Dialect: model.OpenAI, BaseURL: "http://127.0.0.1:9/v1", Model: "office-1", Origin: "models.json"}
	s := newSiteOf(t, setup{demo: script(t, everything), services: []model.Service{other}})
	b := openTab(t, 1440, 900)
	b.Prefer("light", true)

	// Past the list, straight to the content.
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#main"), press("\t"))
	b.on(".skip")
	b.Do(press("\r"), press("\t"))
	if !eval[bool](b, `document.activeElement.closest("main") !== null`) {
		t.Errorf("the link past the list leads to %s", b.at())
	}

	// A conversation: text, a file, a model, and off it goes.
	b.Do(press("n", chromedp.ModifierAlt))
	b.on("#text")
	b.Do(press("What is in these files?"))
	b.reach("#file")
	b.Do(choose(sample(t, "notes.md"), sample(t, "red.png")))
	b.Until(`document.querySelectorAll("#chosen .file").length === 2`)
	b.reach("#chosen li:last-child button", chromedp.ModifierShift)
	b.Do(press(" "))
	b.on("#text")
	b.Do(press("p", chromedp.ModifierAlt))
	b.Until(`document.querySelector("#picker:popover-open") !== null`)
	b.on("#picker input:checked")
	b.Do(press(kb.ArrowDown))
	chosen := eval[string](b, `document.querySelector("#picker input:checked").value`)
	b.Do(press(kb.Escape))
	b.Until(`document.querySelector("#picker:popover-open") === null`)
	b.on("#text, #model")
	if want := map[string]string{"office": "Office", "demo": "Demo"}[chosen]; !strings.Contains(b.Text("#model"), want) {
		t.Errorf("%q is chosen, the button says %q", chosen, b.Text("#model"))
	}
	b.Do(press("m", chromedp.ModifierAlt))
	b.on("#text")
	b.reach(".send")
	b.Do(press("\r"), see("#messages .message.user"))
	b.rest()

	// A second one, stopped.
	b.on("#text")
	b.Do(press("And now?\r"))
	b.Until(`document.querySelector(".message.writing")?.innerText.includes("This answer is")`)
	b.reach(".stop")
	b.Do(press(" "))
	b.Until(`document.querySelector("#status.active") === null && document.querySelector("#messages [role=alert]") !== null`)
	b.on("#text")

	// A card of the first answer.
	b.Do(press(kb.ArrowUp, chromedp.ModifierAlt))
	b.on("#messages > .message")
	for !eval[bool](b, `document.activeElement.querySelector(".call") !== null`) {
		b.Do(press(kb.ArrowUp, chromedp.ModifierAlt))
		b.on("#messages > .message")
	}
	b.reach(".call > summary")
	b.Do(press("\r"))
	b.Until(`document.activeElement.parentElement.open`)

	// The report: its source, its versions, and back.
	b.reach("#messages a[href$='/a/report']")
	b.Do(press("\r"))
	b.on("#viewer-title")
	b.reach(".tabs a:nth-child(2)")
	b.Do(press("\r"))
	b.Until(`document.querySelector(".tabs a:nth-child(2)[aria-current]") !== null`)
	b.Until(`document.activeElement.closest("#panel") !== null`)
	b.reach("#versions > summary")
	b.Do(press("\r"), see("#versions ol"))
	b.reach("#versions li a")
	b.Do(press(kb.Escape))
	b.Until(`!document.querySelector("#versions").open`)
	b.on("#versions > summary")
	b.Do(press(kb.Escape))
	b.on("#messages a[href$='/a/report']")

	// The list: search, rename, delete, undo.
	b.Do(press("k", chromedp.ModifierCtrl))
	b.on("#search")
	b.Do(fill("#search", "somebody said"), see(".conversation .excerpt")) // at once: what is found for a part of it would come late
	b.reach(".conversation .actions a")
	b.Do(press("\r"))
	b.on(".rename input")
	b.Do(press("a", chromedp.ModifierCtrl), press("Renamed by hand\r"))
	b.Until(`document.querySelector(".conversation bdi")?.innerText === "Renamed by hand"`)
	b.Until(`document.querySelector("#heading").innerText === "Renamed by hand"`)
	b.on(".conversation a")
	b.reach(".conversation .actions button")
	b.Do(press("\r"))
	b.Until(`document.querySelector(".toast button") !== null && document.querySelector(".conversation") === null`)
	b.reach(".toast form button")
	b.Do(press("\r"), see("#messages .message.user"))

	// What the keys are.
	b.Do(press("m", chromedp.ModifierAlt))
	b.on("#text")
	b.Do(press("/", chromedp.ModifierCtrl), see("#shortcuts"))
	b.on("#shortcuts *")
	b.Do(press(kb.Escape))
	b.Until(`!document.querySelector("#shortcuts").open`)
	b.on("#text")
}

// Where the window is narrow, what covers the thread keeps the focus.
func TestFocusWhereNarrow(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	c := s.URL + "/c/" + string(id)
	b := openTab(t, 390, 844)
	b.Prefer("light", true)
	b.Do(chromedp.Navigate(c), see("#messages"))
	b.reach("#panel-toggle", chromedp.ModifierShift)
	b.Do(press("\r"))
	b.Until(`document.activeElement.closest("#panel") !== null`)
	if all := b.walk(); len(all) < len(files) {
		t.Errorf("in the sheet Tab leads only to %s", all)
	}
	b.Do(press(kb.Escape))
	b.on("#panel-toggle")
	b.reach(`main [popovertarget="sidebar"]`, chromedp.ModifierShift)
	b.Do(press("\r"), see("#sidebar"))
	b.reach("#sidebar #search")
	b.Do(press(kb.Escape))
	b.on(`main [popovertarget="sidebar"]`)
}
