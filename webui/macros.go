// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline/macro"
)

// A MacroPage is the page to try macros.
type MacroPage struct {
	frame
	Scope  RuleScope
	Agents []string
	Trial  MacroTrial
	Known  []DescribedMacro
}

// A MacroTrial is a text with macros, and its expansion.
type MacroTrial struct {
	Text, User, Char, Seed, Now, Zone string
	Result, Cut                       string
	Left                              []macro.Problem
	Variables                         []MacroVariable
	Problem                           string
}

// A MacroVariable is a variable after the expansion.
type MacroVariable struct {
	Name, Value string
	Global      bool
}

// A DescribedMacro is a macro with its description.
type DescribedMacro struct {
	settings.KnownMacro
	About string
}

func (ui *handler) macros(w http.ResponseWriter, r *http.Request) {
	l, s := locale(r), scopeOf(r.URL.Query())
	values, err := ui.app.Rules.MacroValues(r.Context(), artel.AgentName(s.Agent), artel.ServiceID(s.Service))
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	p := MacroPage{Scope: RuleScope{values["char"], values["profileId"]}}
	if p.frame, err = ui.frame(r, ""); err == nil {
		p.Agents, err = ui.agentNames(r)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	p.Title = l.Say(phrase.PageMacros, nil)
	q := r.URL.Query()
	now := ui.o.Now()
	for name, value := range map[string]string{
		"text": l.Say(phrase.PageMacrosSample, map[string]any{"User": "{{user}}", "Day": weekdayOf(l), "Dice": "{{roll::2d6}}"}), "user": values["user"], "char": values["char"], "seed": "1", "now": now.Format(time.RFC3339),
	} {
		if !q.Has(name) {
			q.Set(name, value)
		}
	}
	p.Trial = ui.macroTrial(r, q, values)
	for _, m := range settings.KnownMacros(values, now) {
		p.Known = append(p.Known, DescribedMacro{m, l.Say(phrase.Key("page.macro_about_"+strings.ToLower(m.Name)), nil)})
	}
	ui.show(w, r, http.StatusOK, "macros.html", p)
}

// weekdayOf is the weekday macro of a language.
func weekdayOf(l phrase.Locale) string {
	if l == phrase.Chinese {
		return "{{weekday_cn}}"
	}
	return "{{weekday}}"
}

func (ui *handler) tryMacros(w http.ResponseWriter, r *http.Request) {
	f, err := ui.ruleForm(w, r)
	var values map[string]string
	if err == nil {
		values, err = ui.app.Rules.MacroValues(r.Context(), artel.AgentName(f.scope.Agent), artel.ServiceID(f.scope.Service))
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.fragments(w, r, http.StatusOK, part{"expanded", ui.macroTrial(r, f.values, values)})
}

// macroTrial expands the macros of a text with a fixed seed and clock, so that
// only the input changes the result.
func (ui *handler) macroTrial(r *http.Request, v url.Values, values map[string]string) (t MacroTrial) {
	t = MacroTrial{
		Text: strings.ReplaceAll(v.Get("text"), "\r\n", "\n"), User: v.Get("user"), Char: v.Get("char"), Seed: v.Get("seed"), Now: strings.TrimSpace(v.Get("now")), Zone: strings.TrimSpace(v.Get("zone")),
	}
	values["user"], values["char"] = t.User, t.Char
	in := app.Expanding{Text: t.Text, Values: values, Conversation: "page", Zone: t.Zone, Seed: t.Seed}
	var err error
	if t.Now != "" {
		if in.Now, err = time.Parse(time.RFC3339, t.Now); err != nil {
			t.Problem = locale(r).Say(phrase.PageMacrosNoTime, nil)
			return t
		}
	}
	out, err := in.Expand()
	if err != nil {
		_, t.Problem = ui.explain(r, err)
		return t
	}
	t.Result, t.Cut = shorten(out.Text)
	t.Left = out.Problems
	for _, name := range slices.Sorted(maps.Keys(out.Variables)) {
		t.Variables = append(t.Variables, MacroVariable{name, artel.Shorten(out.Variables[name], 200), false})
	}
	for _, name := range slices.Sorted(maps.Keys(out.Globals)) {
		t.Variables = append(t.Variables, MacroVariable{name, artel.Shorten(out.Globals[name], 200), true})
	}
	return t
}
