// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/artifact/diff"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
	"github.com/artelhq/artel/pipeline/rule"
)

// A RuleEditor is the page that edits a rule.
type RuleEditor struct {
	frame
	Scope   RuleScope
	Layer   settings.RuleLayer
	Preset  int
	Index   int
	Rule    rule.Rule
	New     bool
	Refused string // why it was not saved; "": not tried
	Trial   RuleTrial
}

// Back is the URL of the list of rules.
func (e RuleEditor) Back() string { return "/rules?" + e.Scope.Query() + "#" + string(e.Layer.Level) }

// Has reports whether the rule applies to a role.
func (e RuleEditor) Has(role string) bool {
	return len(e.Rule.Roles) == 0 || slices.Contains(e.Rule.Roles, artel.Role(role))
}

// At reports whether the rule applies to a stage.
func (e RuleEditor) At(stage string) bool {
	return len(e.Rule.Stages) == 0 || slices.Contains(e.Rule.Stages, rule.Stage(stage))
}

// Bound is a limit of its depth; "": none.
func (e RuleEditor) Bound(name string) string {
	if d := e.Rule.Depth; d != nil {
		if n := map[string]*int{"min": d.Min, "max": d.Max}[name]; n != nil {
			return itoa(*n)
		}
	}
	return ""
}

// Trims are the strings to remove, one per line.
func (e RuleEditor) Trims() string { return strings.Join(e.Rule.Trim, "\n") }

// Off reports whether the rule is disabled.
func (e RuleEditor) Off() bool { return e.Rule.Enabled != nil && !*e.Rule.Enabled }

func (ui *handler) editRule(w http.ResponseWriter, r *http.Request) {
	e, err := ui.ruleEditor(r, formOf(r.URL.Query()))
	if err == nil {
		q := r.URL.Query()
		q.Set("text", locale(r).Say(phrase.PageRulesSample, nil))
		q.Set("alone", "1")
		e.Trial, err = ui.trial(r, q, &e.Rule)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, http.StatusOK, "ruleedit.html", e)
}

// ruleEditor reads the rule selected by a form.
func (ui *handler) ruleEditor(r *http.Request, f ruleForm) (e RuleEditor, err error) {
	if e.Layer, err = ui.app.Rules.Layer(r.Context(), f.place); err != nil {
		return e, err
	}
	if e.Layer.Fixed() {
		return e, artel.Errorf(artel.Denied, "webui", "rules", "%s", locale(r).Say(phrase.PageRulesFixed, nil))
	}
	list, err := f.list(&e.Layer.Config)
	if err != nil {
		return e, err
	}
	if e.New = f.index < 0; !e.New {
		if f.index >= len(*list) {
			return e, artel.Errorf(artel.NotFound, "webui", "rule", "there is no such rule any more")
		}
		e.Rule = (*list)[f.index]
	}
	if e.frame, err = ui.frame(r, ""); err != nil {
		return e, err
	}
	e.Scope, e.Preset, e.Index = f.scope, f.preset, f.index
	e.Title = locale(r).Say(phrase.PageRulesEdit, nil)
	if e.New {
		e.Title = locale(r).Say(phrase.PageRulesAdd, nil)
	}
	return e, nil
}

// ruleOf parses the rule in a form; before is its stored state.
func ruleOf(v url.Values, before rule.Rule) rule.Rule {
	lines := func(s string) string { return strings.ReplaceAll(s, "\r\n", "\n") }
	out := rule.Rule{
		ID: strings.TrimSpace(v.Get("name")), Find: lines(v.Get("find")), Flags: strings.TrimSpace(v.Get("flags")), Replace: lines(v.Get("replace")),
		Order: before.Order, Expand: rule.Expand(v.Get("expand")),
	}
	if out.Expand == rule.ExpandNone {
		out.Expand = ""
	}
	if v.Get("on") == "" {
		out.Enabled = new(bool)
	}
	for _, role := range v["role_of"] {
		out.Roles = append(out.Roles, artel.Role(role))
	}
	if len(out.Roles) == 4 {
		out.Roles = nil
	}
	for _, stage := range v["stage_of"] {
		out.Stages = append(out.Stages, rule.Stage(stage))
	}
	if len(out.Stages) == 2 {
		out.Stages = nil
	}
	for _, t := range strings.Split(lines(v.Get("trim")), "\n") {
		if t != "" {
			out.Trim = append(out.Trim, t)
		}
	}
	var d rule.Depth
	for name, to := range map[string]**int{"min": &d.Min, "max": &d.Max} {
		if n, err := strconv.Atoi(strings.TrimSpace(v.Get(name))); err == nil {
			*to = &n
		}
	}
	if d != (rule.Depth{}) {
		out.Depth = &d
	}
	return out
}

// saveRule saves the rule of a form. An invalid rule is shown again.
func (ui *handler) saveRule(w http.ResponseWriter, r *http.Request) {
	f, err := ui.ruleForm(w, r)
	var e RuleEditor
	if err == nil {
		e, err = ui.ruleEditor(r, f)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	e.Rule = ruleOf(f.values, e.Rule)
	list, err := f.list(&e.Layer.Config)
	status := http.StatusSeeOther
	if err == nil {
		_, err = ui.app.Rules.Explain(e.Rule)
	}
	if err == nil && (len(f.values["role_of"]) == 0 || len(f.values["stage_of"]) == 0) {
		err = artel.Errorf(artel.Invalid, "webui", "roles", "%s", locale(r).Say(phrase.PageRulesNowhere, nil))
	}
	if err == nil {
		if e.New {
			*list = append(*list, e.Rule)
		} else {
			(*list)[f.index] = e.Rule
		}
		_, err = ui.app.Rules.Set(r.Context(), f.place, e.Layer.Config, f.revision)
	}
	if err == nil {
		redirect(w, r, e.Back())
		return
	}
	status, e.Refused = ui.explain(r, err)
	e.Layer.Revision = f.revision
	if e.Trial, err = ui.trial(r, f.values, &e.Rule); err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, status, "ruleedit.html", e)
}

// A RuleTrial is a text, with the effect of rules on it.
type RuleTrial struct {
	Scope   RuleScope
	Text    string
	Stage   string
	Role    string
	Depth   string
	Alone   bool // only the edited rule
	Draft   bool // there is an edited rule
	Checked RuleCheck
	Steps   []TriedRule
	Others  int // number of rules that do not apply
	Result  string
	Cut     string
	Changed bool
	Rows    []CompareRow
	Problem string
}

// A RuleCheck is the result of parsing the edited rule.
type RuleCheck struct {
	rule.Explanation
	Empty   bool
	Problem string
}

// A TriedRule is the effect of one rule on a text.
type TriedRule struct {
	rule.Traced
	Number   int
	Level    string
	Draft    bool // the edited rule
	URL      string
	Duration string
	Marked   template.HTML
	Rows     []CompareRow
}

// Quiet reports whether it had no visible effect.
func (t TriedRule) Quiet() bool { return t.Count == 0 && t.Problem == "" }

func (ui *handler) tryRules(w http.ResponseWriter, r *http.Request) {
	f, err := ui.ruleForm(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	var draft *rule.Rule
	if f.values.Has("find") {
		d := ruleOf(f.values, rule.Rule{})
		draft = &d
	}
	t, err := ui.trial(r, f.values, draft)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	parts := []part{{"tried", t}}
	if draft != nil {
		parts = append(parts, part{"rule check", t.Checked})
	}
	ui.fragments(w, r, http.StatusOK, parts...)
}

// draftName marks the edited rule among the others.
const draftName = "\x00draft"

// trial applies the rules of a scope to a text, with the edited rule in place
// of its stored state.
func (ui *handler) trial(r *http.Request, v url.Values, draft *rule.Rule) (t RuleTrial, err error) {
	t = RuleTrial{
		Scope: scopeOf(v), Text: strings.ReplaceAll(v.Get("text"), "\r\n", "\n"), Stage: string(rule.Request), Role: string(artel.RoleUser),
		Depth: strings.TrimSpace(v.Get("depth")), Alone: v.Get("alone") != "", Draft: draft != nil,
	}
	if v.Get("stage") == string(rule.Display) {
		t.Stage = string(rule.Display)
	}
	if role := v.Get("role"); slices.Contains([]string{"system", "assistant", "tool"}, role) {
		t.Role = role
	}
	in := settings.Trial{
		Agent: artel.AgentName(t.Scope.Agent), Service: artel.ServiceID(t.Scope.Service), Text: t.Text, Stage: rule.Stage(t.Stage), Role: artel.Role(t.Role),
	}
	if n, err := strconv.Atoi(t.Depth); err == nil {
		in.Depth = &n
	}
	if draft != nil {
		if t.Checked.Empty = draft.Find == ""; !t.Checked.Empty {
			if t.Checked.Explanation, err = ui.app.Rules.Explain(*draft); err != nil {
				t.Checked.Problem = reasonOf(err)
			}
		}
		in.Only = t.Alone
		if in.Layers, err = ui.drafted(r, formOf(v), *draft, t.Alone); err != nil {
			return t, err
		}
	}
	tried, err := ui.app.Rules.Try(r.Context(), in)
	if artel.KindOf(err) == artel.TooLarge {
		_, t.Problem = ui.explain(r, err)
		return t, nil
	}
	if err != nil {
		return t, err
	}
	return t, t.fill(r, tried)
}

// drafted returns the rule layers with the edited rule inserted.
func (ui *handler) drafted(r *http.Request, f ruleForm, draft rule.Rule, alone bool) ([]settings.RuleLayer, error) {
	l, err := ui.app.Rules.Layer(r.Context(), f.place)
	if err != nil {
		return nil, err
	}
	draft.ID, draft.Enabled = draftName, nil
	if draft.Find == "" {
		draft.Enabled = new(bool)
	}
	if alone {
		l.Config = rule.Config{Rules: []rule.Rule{draft}}
		return []settings.RuleLayer{l}, nil
	}
	list, err := f.list(&l.Config)
	if err != nil {
		return nil, err
	}
	if f.index >= 0 && f.index < len(*list) {
		(*list)[f.index] = draft
	} else {
		*list = append(*list, draft)
	}
	return []settings.RuleLayer{l}, nil
}

// Limits of the display of one rule's effect.
const (
	triedText  = 20_000 // bytes
	triedLines = 60
)

func (t *RuleTrial) fill(r *http.Request, tried settings.Tried) error {
	for _, s := range tried.Steps {
		if s.Skipped != "" {
			t.Others++
			continue
		}
		l := tried.Layers[s.Where.Layer]
		x := TriedRule{Traced: s, Number: len(t.Steps) + 1, Level: string(l.Level), Draft: s.Name == draftName, Duration: millis(s.Took)}
		if x.Draft {
			x.Name = locale(r).Say(phrase.PageRulesThis, nil)
		} else if !l.Fixed() {
			x.URL = ruleURL(t.Scope, l.RulePlace, s.Where.Preset, s.Where.Rule)
		}
		if s.Count > 0 {
			x.Marked = matches(s.Before, s.Matches)
			d, err := diff.Lines(r.Context(), s.Before, s.After, diff.Options{Context: 1, Limit: triedLines})
			if err != nil {
				return err
			}
			x.Rows = rowsOf(d.Hunks, false)
		}
		t.Steps = append(t.Steps, x)
	}
	t.Result, t.Cut = shorten(tried.Text)
	if t.Changed = tried.Text != t.Text; t.Changed {
		d, err := diff.Lines(r.Context(), t.Text, tried.Text, diff.Options{Context: 2, Limit: 4 * triedLines})
		if err != nil {
			return err
		}
		t.Rows = rowsOf(d.Hunks, false)
	}
	return nil
}

// millis formats a duration in milliseconds.
func millis(d time.Duration) string {
	return strconv.FormatFloat(float64(d.Microseconds())/1000, 'f', 2, 64) + " ms"
}

// matches renders a text with its matches marked.
func matches(text string, places [][2]int) template.HTML {
	var b strings.Builder
	at := 0
	for _, p := range places {
		if p[1] > triedText {
			break
		}
		b.WriteString(string(render.Text(text[at:p[0]])))
		b.WriteString("<mark>" + string(render.Text(text[p[0]:p[1]])) + "</mark>")
		at = p[1]
	}
	rest, cut := text[at:], ""
	if len(text) > triedText {
		rest, cut = strings.ToValidUTF8(text[at:max(at, triedText)], ""), " …"
	}
	b.WriteString(string(render.Text(rest + cut)))
	return template.HTML(b.String()) //nolint:gosec // escaped pieces and one element
}
