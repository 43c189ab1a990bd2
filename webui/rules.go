// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline/rule"
)

// A RulesPage shows the rules for an agent on a service, with a form to try
// them.
type RulesPage struct {
	frame
	RuleList
	Trial  RuleTrial
	Agents []string
}

// A RuleList is the rules of all layers, in execution order.
type RuleList struct {
	Scope    RuleScope
	Disabled bool // all rules are switched off
	Sections []RuleSection
}

// A RuleScope selects an agent and a service.
type RuleScope struct{ Agent, Service string }

// Query is the scope as a URL query.
func (s RuleScope) Query() string {
	return url.Values{"agent": {s.Agent}, "service": {s.Service}}.Encode()
}

// A RuleSection is the rules of one layer.
type RuleSection struct {
	settings.RuleLayer
	Scope   RuleScope
	Presets []ShownPreset
}

// AddURL is the address of the editor for a new rule.
func (s RuleSection) AddURL() string { return ruleURL(s.Scope, s.RulePlace, -1, -1) }

// ExportURL is the address of its export.
func (s RuleSection) ExportURL() string {
	return "/rules/export?" + url.Values{"level": {string(s.Level)}, "id": {s.ID}}.Encode()
}

// A ShownPreset is a preset, or the rules outside presets.
type ShownPreset struct {
	rule.Preset
	Section *RuleSection
	Index   int // -1: the rules outside presets
	On      bool
	Shown   []ShownRule
}

// A ShownRule is one rule in the list.
type ShownRule struct {
	rule.Rule
	Preset      *ShownPreset
	Index       int // stored position in its preset
	First, Last bool
	Name        string
	On          bool
	Focus       string // last action, whose button keeps the focus
	Explained   rule.Explanation
	Problem     string
}

// Anchor is the element id of the rule.
func (r ShownRule) Anchor() string {
	return fmt.Sprintf("rule-%s-%d-%d", r.Preset.Section.Level, r.Preset.Index+1, r.Index)
}

// URL is the address of its editor.
func (r ShownRule) URL() string {
	return ruleURL(r.Preset.Section.Scope, r.Preset.Section.RulePlace, r.Preset.Index, r.Index)
}

// Depths are the limits of its depth; "": none.
func (r ShownRule) Depths() string {
	if r.Depth == nil || r.Depth.Min == nil && r.Depth.Max == nil {
		return ""
	}
	low, high := "0", "…"
	if r.Depth.Min != nil {
		low = itoa(*r.Depth.Min)
	}
	if r.Depth.Max != nil {
		high = itoa(*r.Depth.Max)
	}
	return low + "–" + high
}

func ruleURL(s RuleScope, p settings.RulePlace, preset, index int) string {
	return "/rules/edit?" + s.Query() + "&" + url.Values{"level": {string(p.Level)}, "id": {p.ID}, "preset": {itoa(preset)}, "rule": {itoa(index)}}.Encode()
}

// ruleList reads the rules of a scope.
func (ui *handler) ruleList(r *http.Request, s RuleScope) (RuleList, error) {
	book, err := ui.app.Rules.Find(r.Context(), artel.AgentName(s.Agent), artel.ServiceID(s.Service))
	if err != nil {
		return RuleList{}, err
	}
	out := RuleList{Scope: RuleScope{string(book.Agent), string(book.Service)}, Disabled: book.Disabled}
	out.Sections = make([]RuleSection, len(book.Layers))
	for i, l := range book.Layers {
		out.Sections[i] = RuleSection{RuleLayer: l, Scope: out.Scope}
		out.Sections[i].arrange(ui)
	}
	return out, nil
}

// arrange sorts the rules of a section into execution order.
func (s *RuleSection) arrange(ui *handler) {
	s.Presets = append(s.Presets, ShownPreset{Preset: rule.Preset{Rules: s.Config.Rules}, Section: s, Index: -1, On: true})
	for i, p := range s.Config.Presets {
		s.Presets = append(s.Presets, ShownPreset{Preset: p, Section: s, Index: i, On: p.Enabled == nil || *p.Enabled})
	}
	slices.SortStableFunc(s.Presets, func(a, b ShownPreset) int {
		return cmp.Or(cmp.Compare(a.Rank(), b.Rank()), cmp.Compare(a.Order, b.Order))
	})
	for i := range s.Presets {
		p := &s.Presets[i]
		for n, r := range p.Rules {
			x := ShownRule{Rule: r, Preset: p, Index: n, Name: r.ID, On: r.Enabled == nil || *r.Enabled}
			if x.Name == "" {
				x.Name = "rules[" + itoa(n) + "]"
			}
			var err error
			if x.Explained, err = ui.app.Rules.Explain(r); err != nil {
				x.Problem = reasonOf(err)
			}
			p.Shown = append(p.Shown, x)
		}
		slices.SortStableFunc(p.Shown, func(a, b ShownRule) int { return cmp.Compare(a.Order, b.Order) })
		if n := len(p.Shown); n > 0 {
			p.Shown[0].First, p.Shown[n-1].Last = true, true
		}
	}
}

// Rank is the priority of a preset.
func (p ShownPreset) Rank() int {
	if p.Priority == nil {
		return 100
	}
	return *p.Priority
}

// reasonOf is the text of an error without its operation and subject.
func reasonOf(err error) string {
	for {
		e, ok := err.(*artel.Error) //nolint:errorlint // only the outer ones are taken off
		if !ok || e.Err == nil {
			return err.Error()
		}
		err = e.Err
	}
}

func scopeOf(v url.Values) RuleScope { return RuleScope{v.Get("agent"), v.Get("service")} }

func (ui *handler) rules(w http.ResponseWriter, r *http.Request) {
	p, err := ui.rulesPage(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, http.StatusOK, "rules.html", p)
}

func (ui *handler) rulesPage(r *http.Request) (p RulesPage, err error) {
	q := r.URL.Query()
	if p.RuleList, err = ui.ruleList(r, scopeOf(q)); err != nil {
		return p, err
	}
	if p.frame, err = ui.frame(r, ""); err != nil {
		return p, err
	}
	p.Title = locale(r).Say(phrase.PageRules, nil)
	if p.Agents, err = ui.agentNames(r); err != nil {
		return p, err
	}
	if q.Has("message") {
		if err = ui.messageToTry(r, q); err != nil {
			return p, err
		}
	}
	if !q.Has("text") {
		q.Set("text", locale(r).Say(phrase.PageRulesSample, nil))
	}
	q.Set("agent", p.Scope.Agent)
	q.Set("service", p.Scope.Service)
	p.Trial, err = ui.trial(r, q, nil)
	return p, err
}

// messageToTry fills the trial form with the text and role of a message.
func (ui *handler) messageToTry(r *http.Request, q url.Values) error {
	c, err := artel.ParseConversationID(q.Get("conversation"))
	if err != nil {
		return err
	}
	branch, err := ui.app.Messages.Branch(r.Context(), c, artel.MessageID(q.Get("message")), 1)
	if err != nil {
		return err
	}
	for _, m := range branch {
		q.Set("text", artel.TextOf(m.Parts))
		q.Set("role", string(m.Role))
	}
	return nil
}

func (ui *handler) agentNames(r *http.Request) (out []string, err error) {
	places, err := ui.app.Rules.Places(r.Context())
	for _, p := range places {
		if p.Level == settings.RulesOfAgent {
			out = append(out, p.ID)
		}
	}
	return out, err
}

// A ruleForm identifies the object of a rule form.
type ruleForm struct {
	values   url.Values
	scope    RuleScope
	place    settings.RulePlace
	revision int
	preset   int // -1: the rules outside presets
	index    int // -1: a new rule
}

func (ui *handler) ruleForm(w http.ResponseWriter, r *http.Request) (f ruleForm, err error) {
	r.Body = http.MaxBytesReader(w, r.Body, 2*maxField)
	if err := r.ParseForm(); err != nil {
		return f, brokenForm(r, err)
	}
	return formOf(r.Form), nil
}

func formOf(v url.Values) ruleForm {
	number := func(name string) int {
		if v.Get(name) == "" {
			return -1
		}
		return atoi(v.Get(name))
	}
	return ruleForm{
		v, scopeOf(v),
		settings.RulePlace{Level: settings.RuleLevel(v.Get("level")), ID: v.Get("id")},
		atoi(v.Get("revision")), number("preset"), number("rule"),
	}
}

// list returns the rules of the form's preset.
func (f ruleForm) list(c *rule.Config) (*[]rule.Rule, error) {
	switch {
	case f.preset == -1:
		return &c.Rules, nil
	case f.preset >= 0 && f.preset < len(c.Presets):
		return &c.Presets[f.preset].Rules, nil
	}
	return nil, artel.Errorf(artel.NotFound, "webui", "preset", "there is no such preset any more")
}

// changeRules performs one action on the rules of a layer.
func (ui *handler) changeRules(w http.ResponseWriter, r *http.Request) {
	f, err := ui.ruleForm(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	l, err := ui.app.Rules.Layer(r.Context(), f.place)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	done, err := f.change(&l.Config)
	if err == nil {
		l, err = ui.app.Rules.Set(r.Context(), f.place, l.Config, f.revision)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if !wantsFragment(r) {
		redirect(w, r, "/rules?"+f.scope.Query()+"#"+string(f.place.Level))
		return
	}
	list, err := ui.ruleList(r, f.scope)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	list.focus(f, done)
	parts := []part{{"rule list", list}, {"announcement", locale(r).Say(phrase.Key("page.rules_did_"+f.values.Get("do")), map[string]any{"Name": done.name})}}
	if done.removed != nil {
		parts = append(parts, part{"undo rule", undoneRule{f, l.Revision, done.name, string(done.removed)}})
	} else {
		parts = append(parts, part{"gone", "toast-rule"})
	}
	ui.fragments(w, r, http.StatusOK, parts...)
}

// undoneRule is the state needed to restore a deleted rule.
type undoneRule struct {
	Form     ruleForm
	Revision int
	Name     string
	Value    string // a rule or a preset as JSON
}

// Field returns a field of the form that deleted it.
func (u undoneRule) Field(name string) string { return u.Form.values.Get(name) }

// A ruleChange is the result of an action.
type ruleChange struct {
	name    string // of the rule or preset
	index   int    // new position of the rule
	removed json.RawMessage
}

// change performs the action of the form. Rules are stored in their present
// execution order, so none needs an order number.
func (f ruleForm) change(c *rule.Config) (out ruleChange, err error) {
	do := f.values.Get("do")
	out.index = f.index
	if name, ok := strings.CutPrefix(do, "preset_"); ok {
		return f.changePreset(c, name)
	}
	list, err := f.list(c)
	if err != nil {
		return out, err
	}
	if do == "insert" {
		var r rule.Rule
		if err := json.Unmarshal([]byte(f.values.Get("value")), &r); err != nil {
			return out, artel.Errorf(artel.Invalid, "webui", "value", "invalid rule: %w", err)
		}
		out.index = max(0, min(f.index, len(*list)))
		*list = slices.Insert(*list, out.index, r)
		out.name = r.ID
		return out, nil
	}
	if f.index < 0 || f.index >= len(*list) {
		return out, artel.Errorf(artel.NotFound, "webui", "rule", "there is no such rule any more")
	}
	chosen := (*list)[f.index]
	out.name = cmp.Or(chosen.ID, "rules["+itoa(f.index)+"]")
	switch do {
	case "switch":
		on := chosen.Enabled != nil && !*chosen.Enabled
		if (*list)[f.index].Enabled = &on; on {
			(*list)[f.index].Enabled = nil
		}
	case "delete":
		out.removed, err = json.Marshal(chosen)
		*list = slices.Delete(*list, f.index, f.index+1)
	case "up", "down", "move":
		order := make([]int, len(*list))
		for i := range order {
			order[i] = i
		}
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare((*list)[a].Order, (*list)[b].Order) })
		from := slices.Index(order, f.index)
		to := map[string]int{"up": from - 1, "down": from + 1, "move": atoi(f.values.Get("to"))}[do]
		to = max(0, min(to, len(order)-1))
		order = slices.Insert(slices.Delete(order, from, from+1), to, f.index)
		sorted := make([]rule.Rule, len(order))
		for i, at := range order {
			sorted[i] = (*list)[at]
			sorted[i].Order = 0
		}
		*list, out.index = sorted, to
	default:
		err = artel.Errorf(artel.Invalid, "webui", "do", "%q is not an action on a rule", artel.Shorten(do, 40))
	}
	return out, err
}

func (f ruleForm) changePreset(c *rule.Config, do string) (out ruleChange, err error) {
	if do == "insert" {
		var p rule.Preset
		if err := json.Unmarshal([]byte(f.values.Get("value")), &p); err != nil {
			return out, artel.Errorf(artel.Invalid, "webui", "value", "invalid preset: %w", err)
		}
		out.name = p.Name
		c.Presets = slices.Insert(c.Presets, max(0, min(f.preset, len(c.Presets))), p)
		return out, nil
	}
	if f.preset < 0 || f.preset >= len(c.Presets) {
		return out, artel.Errorf(artel.NotFound, "webui", "preset", "there is no such preset any more")
	}
	p := &c.Presets[f.preset]
	out.name = p.Name
	switch do {
	case "switch":
		on := p.Enabled != nil && !*p.Enabled
		if p.Enabled = &on; on {
			p.Enabled = nil
		}
	case "save":
		p.Name = strings.TrimSpace(f.values.Get("name"))
		if n := atoi(f.values.Get("priority")); n == 100 || f.values.Get("priority") == "" {
			p.Priority = nil
		} else {
			p.Priority = &n
		}
	case "delete":
		out.removed, err = json.Marshal(*p)
		c.Presets = slices.Delete(c.Presets, f.preset, f.preset+1)
	default:
		err = artel.Errorf(artel.Invalid, "webui", "do", "%q is not an action on a preset", artel.Shorten(do, 40))
	}
	return out, err
}

// focus keeps the keyboard focus on the changed rule.
func (l *RuleList) focus(f ruleForm, done ruleChange) {
	for i := range l.Sections {
		for j := range l.Sections[i].Presets {
			p := &l.Sections[i].Presets[j]
			for k := range p.Shown {
				if x := &p.Shown[k]; l.Sections[i].Level == f.place.Level && p.Index == f.preset && x.Index == done.index {
					x.Focus = f.values.Get("do")
				}
			}
		}
	}
}
