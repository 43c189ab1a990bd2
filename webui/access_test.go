// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/model"
)

// A violation is a rule of axe-core that the page breaks, and where.
type violation struct {
	Rule, Help string
	Nodes      []string
}

// checker runs the rules of axe-core on the page that is shown.
type checker struct {
	b   *tab
	axe string
}

func newChecker(t *testing.T, b *tab) checker {
	t.Helper()
	source, err := os.ReadFile("testdata/axe.js")
	if err != nil {
		t.Fatal(err)
	}
	return checker{b, string(source)}
}

// check reports what is wrong in an element and what is in it, in a state that
// is named by its words.
func (c checker) check(element, rules string, words ...string) {
	c.b.T.Helper()
	if !eval[bool](c.b, `"axe" in window`) {
		c.b.Script(c.axe)
	}
	for _, v := range eval[[]violation](c.b, fmt.Sprintf(`axe.run(%q, {
		%s, resultTypes: ["violations"], iframes: false, preload: false,
	}).then(found => found.violations.map(v => ({
		Rule: v.id, Help: v.help, Nodes: v.nodes.map(n => n.target.join(" ") + ": " + n.html.slice(0, 160) + " " + n.failureSummary.replaceAll("\n", " ")),
	})))`, element, rules)) {
		nodes := v.Nodes
		if len(nodes) > 4 {
			nodes = append(nodes[:4:4], fmt.Sprintf("and %d more", len(v.Nodes)-4))
		}
		c.b.T.Errorf("%s: %s (%s):\n  %s", strings.Join(words, ", "), v.Help, v.Rule, strings.Join(nodes, "\n  "))
	}
}

// checkPage checks the page in light and dark, wide and narrow, and saves pictures of it, where they
// are wanted.
func (c checker) checkPage(name string) {
	c.b.T.Helper()
	shot := func(kind string) {
		c.b.T.Helper()
		if screens != "" {
			if err := os.WriteFile(filepath.Join(screens, name+"-"+kind+".png"), get(c.b, chromedp.FullScreenshot(100)), 0o600); err != nil {
				c.b.T.Fatal(err)
			}
		}
	}
	c.b.Prefer("light", true)
	c.check("html", allRules, name, "light")
	shot("light")
	c.b.Prefer("dark", true)
	c.check("html", colorRules, name, "dark")
	resize(c.b, 390, 900)
	c.check("html", otherRules, name, "narrow")
	shot("narrow-dark")
	if wide := eval[bool](c.b, `document.documentElement.scrollWidth > innerWidth`); wide {
		c.b.T.Errorf("%s is wider than the window", name)
	}
	c.b.Prefer("light", true)
	resize(c.b, 1440, 900)
}

// The rules that pages are held to, those of them that colors decide, and the
// other ones.
const (
	allRules   = `runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]`
	colorRules = `runOnly: { type: "rule", values: ["color-contrast", "link-in-text-block"] }`
	otherRules = allRules + `, rules: { "color-contrast": { enabled: false }, "link-in-text-block": { enabled: false } }`
)

// A state is one of those that the page can be in.
type state struct {
	name string
	url  string
	then []chromedp.Action[chromedp.Void]
	part string // of the page that is looked at; "": all of it
}

// visit holds states to the rules of axe-core at some widths. Those of colors
// are checked at the first width, light and dark, since no color depends on the
// width, and without animations.
func visit(t *testing.T, states []state, widths ...int64) {
	t.Helper()
	for some := range slices.Chunk(states, 5) { // each tab has its time
		t.Run(some[0].name, func(t *testing.T) {
			b := openTab(t, widths[0], 900)
			b.Forgive("404") // the page of errors has that status
			axe := newChecker(t, b)
			for _, s := range some {
				if s.part == "" {
					s.part = "html"
				}
				resize(b, widths[0], 900)
				b.Prefer("light", true)
				b.Do(chromedp.Navigate(s.url), see("#main"))
				b.Until(`document.readyState === "complete"`)
				b.Do(s.then...)
				axe.check(s.part, allRules, s.name, "light")
				b.Prefer("dark", true)
				axe.check(s.part, colorRules, s.name, "dark")
				b.Prefer("light", true)
				for _, width := range widths[1:] {
					resize(b, width, 900)
					axe.check(s.part, otherRules, s.name, fmt.Sprint(width))
				}
			}
		})
	}
}

// Every state of the page keeps the rules of axe-core.
func TestAccessiblePages(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	bad := newSiteOf(t, setup{services: []model.Service{troubled}})
	c := s.URL + "/c/" + string(id)
	visit(t, []state{
		{name: "conversations", url: c, then: steps(click(`main [popovertarget="sidebar"]`), see("#sidebar"))},
		{name: "artifacts", url: c + "/a", then: steps(see("#panel"))},
	}, 390)
	visit(t, []state{
		{name: "home", url: s.URL},
		{name: "home with problems", url: bad.URL},
		{name: "settings", url: s.URL + "/settings"},
		{name: "profile", url: s.URL + "/me"},
		{name: "pipeline", url: s.URL + "/pipeline"},
		{name: "picker", url: s.URL, then: steps(click("#model"), see("#picker"))},
		{name: "shortcuts", url: s.URL, then: steps(press("/", chromedp.ModifierCtrl), see("#shortcuts"))},
	}, 1440, 390)
}

// So do those that are seen less often.
func TestAccessibleOthers(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	asked(t, s)
	visit(t, []state{
		{name: "gateway", url: s.URL + "/gateway", then: steps(see("#requests .request"), chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#requests details")[2].open = document.querySelector("#sdk details").open = true`))},
		{name: "search", url: s.URL + "/c?search=files"},
		{name: "title", url: s.URL + "/c/" + string(id) + "/title"},
		{name: "error", url: s.URL + "/nowhere"},
		{name: "import", url: s.URL + "/import"},
		{name: "audit", url: s.URL + "/audit"},
		{name: "reference", url: s.URL + "/api/v1/docs#op-send-message", then: steps(chromedp.Evaluate[chromedp.Void](`for (const id of ["op-send-message", "op-list-messages", "schema-Problem"]) document.getElementById(id).open = true`))},
		{name: "style", url: s.URL + "/ui/style"},
	}, 1440, 390)
}

// So does a conversation.
func TestAccessibleThread(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	c := s.URL + "/c/" + string(id)
	states := []state{
		{name: "conversation", url: c, then: steps(
			see("#messages .call"), chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("#messages details").forEach(d => d.open = true)`))},
		{name: "versions", url: c + "/a/notes.md?v=1", then: steps(see("#viewer"), click("#versions > summary"), see("#versions ol"))},
	}
	states = append(states, state{name: "writing", url: c, then: steps(write("And now?"), click("#composer .send"), see(".message.writing"))})
	visit(t, states, 1440, 390)
}

// So does an artifact of each kind.
func TestAccessibleArtifacts(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	var states []state
	for _, artifact := range []string{
		"report", "board.html", "board.html?view=code", "photo.jpg", "table.csv", "data.json", "doc.svg", "report.pdf", "tone.mp3",
		"clip.mp4", "archive.zip", "code.go.txt", "notes.md?view=plain", "report?view=diff", "report?view=diff&split=1", "report?view=edit",
	} {
		states = append(states, state{name: artifact, url: s.URL + "/c/" + string(id) + "/a/" + artifact, then: steps(see("#viewer")), part: "#panel"})
	}
	visit(t, states, 1440, 390)
}

func steps(all ...chromedp.Action[chromedp.Void]) []chromedp.Action[chromedp.Void] { return all }
