// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// threeRules are what a person may have in the profile; the third one has
// something to do.
const threeRules = `{"rules": [
	{"id": "rule-1", "find": "never there", "replace": "x", "stages": ["request"]},
	{"id": "rule-2", "find": "nor this", "replace": "y", "stages": ["request"]},
	{"id": "rule-3", "find": "secret (\\w+)", "flags": "g", "replace": "[a $1 that is kept back]", "stages": ["request"]}
]}`

// inspected is a site where a model that takes no pictures was asked about one,
// and rules changed what was said.
func inspected(t *testing.T) *site {
	t.Helper()
	s := newSiteOf(t, setup{services: []model.Service{textOnly}, model: speech(func(_ context.Context, r *model.Request, say func(model.Delta) bool) {
		say(model.TextDelta("I see no picture."))
	})})
	if _, err := s.app.Profiles.Set(apptest.Context(t), pipeline.Profile{Name: "Ada", Rules: json.RawMessage(threeRules)}, 0); err != nil {
		t.Fatal(err)
	}
	return s
}

// A newcomer finds out, from the message on, why the model did not see a file
// and what the third rule changed, with the keyboard alone; every view keeps the
// rules of axe-core.
func TestNewcomerInspects(t *testing.T) {
	t.Parallel()
	s := inspected(t)
	b := openTab(t, 1440, 900)
	axe := newChecker(t, b)
	look := func(name string) { look(t, b, axe, name, name == "inspector" || name == "rule") }
	b.Do(chromedp.Navigate(s.URL), see("#composer"), choose(sample(t, "photo.jpg"), sample(t, "notes.md")))
	b.send("What is in my picture? The secret number is 7.")
	b.rest()
	b.sameAnew()

	// The file.
	b.Script(`document.querySelector(".message.user footer a:not([data-edit])").focus()`)
	b.Do(press("\r"), see("#files"))
	b.Says("#files", "photo.jpg", "described, not seen", "plain-8b does not support pictures.", "notes.md", "seen")
	look("inspector")
	b.Script(`document.querySelector("#why input").focus()`)
	b.Do(press("photo.jpg"), press("\r"), see("#why [role=status]"))
	b.Says("#why [role=status]", "photo.jpg", "does not support pictures")

	// The rule.
	b.Script(`document.querySelectorAll("#view .tabs a")[1].focus()`)
	b.Do(press("\r"), see(".change-of-step"))
	b.Says("#view", "regex-processor", "Rule rule-3", "secret number", "[a number that is kept back]")
	if strings.Contains(b.Text("#view"), "rule-1") {
		t.Error("a rule is told of that had nothing to do")
	}
	b.Script(`[...document.querySelectorAll("#view summary")].find((s) => s.innerText.includes("regex-processor")).scrollIntoView()`)
	look("rule")

	// The rest: the messages as sent, the next call, the request.
	b.Script(`document.querySelectorAll("#view .tabs a")[0].focus()`)
	b.Do(press("\r"), see("#b-1"))
	b.Script(`document.querySelectorAll("#view details").forEach((d) => { d.open = true })`)
	b.Says("#view", "Source", "session-loader", "[a number that is kept back]")
	b.Script(`document.getElementById("view").scrollIntoView()`)
	look("blocks")
	b.Do(click(`a[aria-label="Back to the conversation"]`), see("#composer"))
	b.send("And now?")
	b.rest()
	b.Script(`[...document.querySelectorAll(".message footer a[href*='/context']")].at(-1).focus()`)
	b.Do(press("\r"), see("#view"))
	b.Do(click("#view .tabs a:nth-child(3)"), see("#view .table"))
	b.Says("#view", "Prefix shared with the previous call", "same", "added")
	look("compared")
	b.Do(click("#view .tabs a:nth-child(4)"), see("#view .code"))
	b.Says("#view", "plain-8b", "And now?")
	if strings.Contains(b.Text("#view"), "secret number") {
		t.Error("the request holds what the rule took out")
	}
	look("request")
}

// look holds what is shown to the rules of axe-core, wide and narrow, light and
// dark, and takes pictures where they are wanted.
func look(t *testing.T, b *tab, axe checker, name string, pictures bool) {
	t.Helper()
	for _, size := range []struct {
		name          string
		width, height int64
	}{{"narrow", 390, 844}, {"wide", 1440, 900}} {
		resize(b, size.width, size.height)
		for _, scheme := range []string{"dark", "light"} {
			b.Prefer(scheme, true)
			rules := colorRules
			if scheme == "light" {
				rules = allRules
			}
			axe.check("html", rules, name, scheme, size.name)
			if screens == "" || !pictures {
				continue
			}
			shot := small(t, get(b, chromedp.CaptureScreenshot()))
			if len(shot) > maxScreen {
				t.Errorf("%s has %d bytes", name, len(shot))
			}
			if err := os.WriteFile(filepath.Join(screens, name+"-"+size.name+"-"+scheme+".png"), shot, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// Each view of a call is whole in both languages, and what is not there is
// missing.
func TestInspections(t *testing.T) {
	t.Parallel()
	s := inspected(t)
	id := s.send(t, "A <b>secret</b> word", map[string]string{"a <i>.txt": "hello <u>"})
	page := s.ask(t, "GET", "/c/"+string(id), "", nil).body
	links := regexp.MustCompile(`/r/\w+/context\?of=\w+`).FindAllString(page, -1)
	if len(links) != 2 {
		t.Fatalf("links: %q", links)
	}
	run, _, _ := strings.Cut(links[0], "?")
	for path, want := range map[string]int{
		links[0]: 200, links[1]: 200, run: 200, run + "/1": 200, run + "/1?view=steps": 200, run + "/1?view=diff": 200, run + "/1?view=request": 200,
		run + "/1?view=junk&all=1": 200, run + "/1?about=a+%3Ci%3E.txt": 200, run + "/1?about=nothing": 200, run + "/1?about=" + strings.Repeat("x", 600): 200,
		run + "/2": 404, run + "?of=msg_none": 404, run + "/x": 404, "/r/run_00000000000000000000000000/context": 404, "/r/junk/context": 404,
	} {
		for _, language := range []string{"en", "zh"} {
			a := s.ask(t, "GET", path, "", nil, "Accept-Language", language)
			if a.StatusCode != want {
				t.Errorf("%s: status %d, want %d", path, a.StatusCode, want)
			}
			checkPage(t, path, a.body, language)
			if strings.Contains(a.body, "<b>secret") || strings.Contains(a.body, "hello <u>") {
				t.Errorf("%s: what was written became markup", path)
			}
			if want == http.StatusOK && strings.Contains(path, "view=diff") && language == "en" && !strings.Contains(a.body, "first model call") {
				t.Errorf("%s: nothing says that there is nothing to compare with", path)
			}
		}
	}
}

// The page says in both languages how media went to the model's API.
func TestInspectedWays(t *testing.T) {
	t.Parallel()
	ways := []model.Transport{model.ByBytes, model.ByURL, model.ByFileID, model.ByMediaID}
	names := []string{"a.gif", "b.gif", "c.gif", "d.gif"}
	s := newSiteOf(t, setup{services: services(t)[1:], model: speech(func(_ context.Context, r *model.Request, say func(model.Delta) bool) {
		held := map[artel.Digest]model.Name{}
		for _, m := range artel.MediaOf(r.Messages[len(r.Messages)-1].Parts) {
			if way := ways[slices.Index(names, m.Filename)]; way != model.ByBytes {
				held[m.Ref.Digest] = model.Name{By: way, Text: "https://files.example/name-" + m.Filename + "?sig=secret"}
			}
		}
		r.OnNames(held)
		say(model.TextDelta("Four pictures."))
	})})
	files := map[string]string{}
	for i, name := range names {
		files[name] = "GIF89a\x01\x00" + string(rune(i+1)) + "\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff,\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00;"
	}
	id := s.send(t, "See these.", files)
	run, _, _ := strings.Cut(regexp.MustCompile(`/r/\w+/context\?of=\w+`).FindString(s.ask(t, "GET", "/c/"+string(id), "", nil).body), "?")
	for language, wants := range map[string][]string{
		"en": {"Sent inside the request.", "as a URL of this server", "as an uploaded file of the service", "by its id, because"},
		"zh": {"传送方式：直接放在请求里。", "给出本服务器的地址", "引用服务已保存的文件", "只给出标识"},
	} {
		page := s.ask(t, "GET", run, "", nil, "Accept-Language", language).body
		checkPage(t, run, page, language)
		for _, want := range wants {
			if n := strings.Count(page, want); want != wants[0] && n != 2 || n == 0 {
				t.Errorf("%s: %q stands there %d times, want it with the file and in the message", language, want, n)
			}
		}
		if !strings.Contains(page, "name-c.gif") {
			t.Errorf("%s: the id of the file is not told", language)
		}
	}
}
