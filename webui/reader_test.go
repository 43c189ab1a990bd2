// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// hear notes what live regions come to say, as a screen reader would.
const hear = `window.heard = []; new MutationObserver((changes) => {
	for (const { target, addedNodes } of changes) {
		const into = (target.nodeType === 1 ? target : target.parentElement)?.closest("[role=status],[role=alert],[aria-live]");
		const news = [into, ...[...addedNodes].filter((n) => n.matches?.("[role=alert]"))].filter((n) => n && n.ariaLive !== "off");
		for (const n of new Set(news)) if (heard.at(-1) !== n.innerText.trim()) heard.push(n.innerText.trim());
	}
}).observe(document.body, { subtree: true, childList: true, characterData: true });`

// A screen reader is told once that an answer is complete, and is not read its
// pieces; what went wrong is an alert.
func TestAnnouncements(t *testing.T) {
	t.Parallel()
	turns := 0
	s := newSiteOf(t, setup{model: speech(func(_ context.Context, _ *model.Request, say func(model.Delta) bool) {
		if turns++; turns > 1 {
			panic("the model broke")
		}
		for i := range 60 {
			say(model.TextDelta(fmt.Sprintf("piece%d ", i)))
		}
	})})
	c := s.seed(t, "Spoken", time.Now(), "hello", "good day")
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(c)), see("#messages"))
	b.Script(hear)
	b.send("go on")
	b.rest()
	done := phrase.English.Say(phrase.PageDone, nil)
	b.Until(fmt.Sprintf("heard.includes(%q)", done))
	heard := eval[[]string](b, "heard")
	if n := len(slices.DeleteFunc(slices.Clone(heard), func(s string) bool { return s != done })); n != 1 {
		t.Errorf("the end was announced %d times: %q", n, heard)
	}
	for _, text := range heard {
		if strings.Contains(text, "piece") {
			t.Errorf("a piece of the answer was read: %q", text)
		}
	}
	b.send("again")
	b.Until(`document.querySelector("#messages [role=alert]") !== null`)
	b.Until(`heard.includes(document.querySelector("#messages [role=alert]").innerText.trim())`)
	if n := eval[int](b, fmt.Sprintf("heard.filter((h) => h === %q).length", done)); n != 1 {
		t.Errorf("a failed answer was announced as complete: %q", eval[[]string](b, "heard"))
	}
}

// What is on the page has the roles that say what it is, and each has a name.
func TestRoles(t *testing.T) {
	t.Parallel()
	s, id := furnished(t)
	b := openTab(t, 1440, 900)
	b.Do(chromedp.Navigate(s.URL+"/c/"+string(id)), see("#messages"), write("And now?"), click("#composer .send"), see(".message.writing"))
	names := map[string][]string{}
	for _, n := range b.tree() {
		if !n.Ignored {
			names[said(n.Role)] = append(names[said(n.Role)], said(n.Name))
		}
	}
	for role, want := range map[string][]string{
		"navigation": {"Conversations"}, "search": nil, "main": nil, "complementary": {"Artifacts"}, "log": {"Messages"}, "article": nil,
		"progressbar": {"Task plan"}, "textbox": {"Message"}, "searchbox": {"Search"}, "status": nil, "heading": {"You", "Agent", "Artifacts"},
		"button": {"Stop", "Attach files"}, "checkbox": {"Done", "Not done yet"},
	} {
		got, ok := names[role]
		if !ok {
			t.Errorf("nothing has the role %s", role)
		}
		for _, name := range want {
			if !slices.Contains(got, name) {
				t.Errorf("no %s is named %q: %q", role, name, got)
			}
		}
	}
	for role, all := range names {
		if strings.HasPrefix(role, "progress") && slices.Contains(all, "") {
			t.Errorf("a %s has no name: %q", role, all)
		}
	}
	busy := eval[bool](b, `document.querySelector(".message.writing").ariaBusy === "true" && document.querySelector("#messages").ariaLive === "off"`)
	if !busy {
		t.Error("what is being written is read aloud while it grows")
	}
}
