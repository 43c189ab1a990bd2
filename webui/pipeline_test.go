// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// piped is a site whose deployment has rules, has switched a processor off, and
// has two plugins.
func piped(t *testing.T) *site {
	t.Helper()
	nothing := func(context.Context, *pipeline.Draft) error { return nil }
	entry := func(id, config string) pipeline.Setting {
		return pipeline.Setting{ID: id, Config: json.RawMessage(config)}
	}
	return newSiteOf(t, setup{services: []model.Service{textOnly}, context: app.Context{
		Settings: pipeline.Settings{
			Disabled:   []string{pipeline.FirstUser},
			Deployment: []pipeline.Setting{entry(pipeline.MergeRoles, `{"separator":"--"}`), entry("gone-plugin", `{"a":1}`)},
		},
		Processors: []pipeline.Processor{
			{ID: "redact", Name: "Redact", Description: "Hides names.", Priority: pipeline.PriorityPlugin, Origin: "/opt/redact", Process: nothing},
			{ID: "stamp", Name: "Stamp", Description: "Adds a stamp.", Priority: pipeline.PriorityPlugin, Icon: "S", Required: true, Process: nothing, Fields: []pipeline.Field{
				{Key: "level", Label: "Level", Type: pipeline.FieldSelect, Options: []string{"low", "high"}},
				{Key: "loud", Label: "Loud", Type: pipeline.FieldBoolean},
				{Key: "words", Label: "Words", Type: pipeline.FieldList},
			}},
		},
	}})
}

// put sends a form of the pipeline.
func (s *site) put(t *testing.T, pairs ...string) answer {
	t.Helper()
	v := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		v.Set(pairs[i], pairs[i+1])
	}
	return s.ask(t, "POST", "/pipeline", "application/x-www-form-urlencoded", strings.NewReader(v.Encode()), "HX-Request", "true")
}

func (s *site) resolved(t *testing.T, id string) settings.ProcessorState {
	t.Helper()
	o, err := s.app.Pipeline.Overview(apptest.Context(t), "", "")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range o.Processors {
		if p.ID == id {
			return p
		}
	}
	t.Fatalf("there is no %s", id)
	return settings.ProcessorState{}
}

// What the forms of the pipeline send is set where they say, and nowhere else;
// what is wrong is said beside its field, and nothing is saved then.
func TestPipelineForms(t *testing.T) {
	t.Parallel()
	s := piped(t)
	for _, step := range []struct {
		name   string
		form   []string
		status int
		says   string
		check  func() bool
	}{
		{"switch off at the agent", []string{"do", "off", "id", "regex-processor", "level", "agent", "revision", "0"}, 200, `role="switch" aria-checked="false"`, func() bool {
			p := s.resolved(t, "regex-processor")
			return !p.Resolved.Enabled && p.Resolved.EnabledBy == pipeline.ByAgent
		}},
		{"with a revision of before", []string{"do", "on", "id", "regex-processor", "level", "agent", "revision", "0"}, 409, "someone else has changed", func() bool {
			return !s.resolved(t, "regex-processor").Resolved.Enabled
		}},
		{"each type of field", []string{"do", "save", "id", "stamp", "level", "model", "enabled", "on", "f.level", "high", "f.loud", "true", "f.words", "one\r\n\r\n two "}, 200, "Saved.", func() bool {
			return string(s.resolved(t, "stamp").Resolved.Config) == `{"level":"high","loud":true,"words":["one","two"]}`
		}},
		{"an empty list on purpose", []string{"do", "save", "id", "stamp", "level", "model", "empty.words", "1"}, 200, "Saved.", func() bool {
			return string(s.resolved(t, "stamp").Resolved.Config) == `{"words":[]}`
		}},
		{"a number that is none, beside one", []string{"do", "save", "id", "token-limiter", "level", "agent", "f.max_tokens", "many", "f.keep_chars", "-1"}, 422, "This is not a number.", func() bool {
			return s.resolved(t, "token-limiter").Agent == nil
		}},
		{"half a number", []string{"do", "save", "id", "token-limiter", "level", "agent", "f.max_tokens", "1.5"}, 422, "Only whole numbers", nil},
		{"what is no JSON", []string{"do", "save", "id", "regex-processor", "level", "model", "f.rules", "[{]"}, 422, "This is not JSON", nil},
		{"what is no list of rules", []string{"do", "save", "id", "regex-processor", "level", "model", "f.rules", `{"a":1}`}, 422, `aria-invalid="true"`, nil},
		{"an empty separator", []string{"do", "save", "id", "merge-system", "level", "model", "empty.separator", "1"}, 200, "Saved.", func() bool {
			return string(s.resolved(t, "merge-system").Resolved.Config) == `{"separator":""}`
		}},
		{"the agent's begins with the model's", []string{"do", "off", "id", "merge-system", "level", "agent"}, 200, "overridden by the agent", func() bool {
			p := s.resolved(t, "merge-system")
			return !p.Resolved.Enabled && string(p.Resolved.Config) == `{"separator":""}` && p.Resolved.Winner == pipeline.ByAgent
		}},
		{"say nothing again", []string{"do", "reset", "id", "merge-system", "level", "agent"}, 200, "toast-settings", func() bool {
			p := s.resolved(t, "merge-system")
			return p.Resolved.Enabled && p.Agent == nil && p.Resolved.Winner == pipeline.ByModel
		}},
		{"what cannot be switched off", []string{"do", "off", "id", "session-loader", "level", "agent"}, 422, "cannot be disabled", nil},
		{"what the deployment does without", []string{"do", "on", "id", "first-user", "level", "agent"}, 200, "Switched off by the deployment", func() bool {
			return !s.resolved(t, "first-user").Resolved.Enabled
		}},
		{"order", []string{"do", "place", "id", "stamp", "to", "0", "revision", "0"}, 200, "Moved to position 1 of 7", func() bool {
			o, err := s.app.Pipeline.Order(apptest.Context(t))
			return err == nil && slices.Equal(o.IDs, []string{"stamp", "merge-system", "merge-roles", "convert-system", "ensure-alternation", "first-user", "redact"})
		}},
		{"order of a processor with a fixed position", []string{"do", "place", "id", "token-limiter", "to", "0"}, 422, "fixed position", nil},
		{"reset the order", []string{"do", "reset-order"}, 200, "toast-settings", func() bool {
			o, err := s.app.Pipeline.Order(apptest.Context(t))
			return err == nil && o.Revision == 0
		}},
		{"reset a level", []string{"do", "reset-level", "level", "model"}, 200, "toast-settings", func() bool {
			l, err := s.app.Pipeline.Level(apptest.Context(t), settings.LevelAt{Service: "plain"})
			return err == nil && !l.Set && s.resolved(t, "stamp").Model == nil
		}},
		{"junk", []string{"do", "dance"}, 422, "Unknown action", nil},
		{"junk revision", []string{"do", "reset-order", "revision", "x"}, 422, "A revision is a number", nil},
		{"nobody's agent", []string{"agent", "nobody", "do", "reset-order"}, 422, "There is no such agent", nil},
		{"nobody's model", []string{"service", "nobody", "do", "reset-order"}, 404, "There is no such service", nil},
		{"junk undo", []string{"do", "undo", "keep", "x"}, 422, "cannot be read", nil},
	} {
		a := s.put(t, step.form...)
		if a.StatusCode != step.status || !strings.Contains(a.body, step.says) {
			t.Errorf("%s: status %d, want %d with %q:\n%.600s", step.name, a.StatusCode, step.status, step.says, a.body)
		}
		if step.check != nil && !step.check() {
			t.Errorf("%s: it is not so afterwards: %+v", step.name, s.resolved(t, "stamp").Resolved)
		}
	}

	// A reset is taken back by what its toast holds.
	yes := true
	if _, err := s.app.Pipeline.SetLevel(apptest.Context(t), settings.LevelAt{Service: "plain"}, []pipeline.Setting{{ID: "stamp", Enabled: &yes}, {ID: "lost-plugin"}}, settings.AnyRevision); err != nil {
		t.Fatal(err)
	}
	a := s.put(t, "do", "reset-level", "level", "model")
	keep := regexp.MustCompile(`name="keep" value="([^"]+)"`).FindStringSubmatch(a.body)
	if len(keep) < 2 {
		t.Fatalf("nothing to undo: %.400s", a.body)
	}
	a = s.put(t, "do", "undo", "keep", strings.ReplaceAll(keep[1], "&#34;", `"`))
	if l, err := s.app.Pipeline.Level(apptest.Context(t), settings.LevelAt{Service: "plain"}); a.StatusCode != 200 || err != nil || len(l.Settings) != 2 {
		t.Errorf("status %d, %+v, %v", a.StatusCode, l, err)
	}

	// What no processor has is shown, with the way out.
	page := s.ask(t, "GET", "/pipeline", "", nil).body
	for _, want := range []string{"lost-plugin", "gone-plugin", "It is set in artel.yaml.", "/opt/redact", "a call fails without it", "Cannot be switched off", "in effect"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if a = s.put(t, "do", "drop", "id", "lost-plugin", "level", "model"); strings.Contains(a.body, "<code>lost-plugin</code>") {
		t.Error("the lost setting is still there")
	}

	// Without script.
	form := url.Values{"do": {"off"}, "id": {"redact"}, "level": {"agent"}, "at": {"model"}}
	a = s.ask(t, "POST", "/pipeline", "application/x-www-form-urlencoded", strings.NewReader(form.Encode()))
	if a.StatusCode != http.StatusSeeOther || a.Header.Get("Location") != "/pipeline?at=model#p-redact" {
		t.Errorf("status %d to %q", a.StatusCode, a.Header.Get("Location"))
	}
	form = url.Values{"do": {"save"}, "id": {"token-limiter"}, "level": {"agent"}, "f.max_tokens": {"x"}}
	if a = s.ask(t, "POST", "/pipeline", "application/x-www-form-urlencoded", strings.NewReader(form.Encode())); a.StatusCode != 422 || !strings.Contains(a.body, "This is not a number.") {
		t.Errorf("status %d: %.300s", a.StatusCode, a.body)
	}
	checkPage(t, "/pipeline", a.body, "en")
}

// The texts of built-in processors and their fields in the catalogue equal those
// of the processors, by which the page finds the translation.
func TestProcessorsAreTranslated(t *testing.T) {
	t.Parallel()
	check := func(key, want string) {
		t.Helper()
		if got := phrase.English.Say(phrase.Key(key), nil); got != want {
			t.Errorf("%s is %q, and the processor says %q", key, got, want)
		}
	}
	for _, p := range pipeline.BuiltIn() {
		key := "page.processor_" + strings.ReplaceAll(p.ID, "-", "_")
		check(key, p.Name)
		check(key+"_about", p.Description)
		for _, f := range p.Fields {
			check("page.field_"+f.Key, f.Label)
			if f.Placeholder != "" && !json.Valid([]byte(f.Placeholder)) {
				check("page.otherwise_"+f.Key, f.Placeholder)
			}
		}
	}
}

// The whole page by keyboard, in a browser.
func TestPipelinePage(t *testing.T) {
	t.Parallel()
	s := piped(t)
	b := openTab(t, 1440, 900)
	b.Prefer("light", true)
	b.Forgive("status of 422")
	b.Do(chromedp.Navigate(s.URL+"/settings"), see("#s-plain"), click(`#s-plain a[href^="/pipeline"]`), see("#pipeline"))
	b.Script(`document.getElementById("p-stamp-up").focus()`)
	for range 2 {
		place := eval[string](b, `document.getElementById("p-stamp").dataset.place`)
		b.Do(press(" "))
		b.Until(`document.getElementById("p-stamp").dataset.place !== "` + place + `" && document.activeElement.id === "p-stamp-up"`)
	}
	b.Says("#announcement", "Moved to position 5 of 7")
	b.Script(`{ const t = new DataTransfer(), to = document.getElementById("p-merge-system"), grip = document.querySelector("#p-stamp [data-grip]");
		for (const [e, name] of [[grip, "dragstart"], [to, "dragover"], [to, "drop"], [grip, "dragend"]]) e.dispatchEvent(new DragEvent(name, { bubbles: true, cancelable: true, dataTransfer: t })); }`)
	b.Until(`document.getElementById("p-stamp").dataset.place === "0"`)
	b.Script(`document.getElementById("p-merge-roles-switch").focus()`)
	b.Do(press(" "))
	b.Until(`document.getElementById("p-merge-roles-switch").ariaChecked === "false" && document.activeElement.id === "p-merge-roles-switch"`)
	if p := s.resolved(t, "merge-roles"); p.Resolved.Enabled || p.Model == nil {
		t.Errorf("%+v", p)
	}
	b.Script(`document.querySelector("#p-token-limiter summary").focus()`)
	b.Do(press("\r"), fill("#token-limiter-agent-max_tokens", "lots"), press("\r"), see("#token-limiter-agent-max_tokens[aria-invalid]"))
	b.Says("#token-limiter-agent-max_tokens-hint", "This is not a number.")
	b.Do(fill("#token-limiter-agent-max_tokens", "4000"), press("\r"), see("#p-token-limiter .wins"))
	b.Says("#p-token-limiter .wins", "lead_agent", "in effect")
	b.Script(`document.querySelector("#p-token-limiter").scrollIntoView()`)
	axe := newChecker(t, b)
	look(t, b, axe, "pipeline", true)
}
