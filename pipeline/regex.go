// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
)

// regexProcessor applies find-and-replace rules to the texts of the history.
// The rules of the deployment, of the agent (or of the model, if the agent has
// none) and of the user are combined; package rule defines their meaning and
// order.
func regexProcessor() Processor {
	engine := rule.New()
	return Processor{
		ID:          RegexProcessor,
		Name:        "Find and replace",
		Description: "Changes the texts of the history by rules in the request only; stored messages stay unchanged.",
		Priority:    PriorityRegex,
		Icon:        "🔤",
		Core:        true,
		Fields:      ruleFields(),
		Process:     func(ctx context.Context, d *Draft) error { return d.replace(ctx, engine) },
	}
}

func ruleFields() []Field {
	return []Field{
		{Key: "rules", Label: "Rules", Type: FieldJSON, Placeholder: "none", Check: checkRules("rules")},
		{Key: "presets", Label: "Presets: lists of rules with a name, a priority and an order", Type: FieldJSON, Placeholder: "none", Check: checkRules("presets")},
	}
}

// checkRules refuses a value that cannot be read as rules. A rule that can be
// read but not used is left out of builds, which log it.
func checkRules(key string) func(json.RawMessage) error {
	return func(value json.RawMessage) error {
		raw, err := json.Marshal(map[string]json.RawMessage{key: value})
		if err != nil {
			return err
		}
		_, err = rule.ParseConfig(raw)
		return err
	}
}

// A textLocation is the position of a text by its message and part.
type textLocation struct{ message, part int }

func (d *Draft) replace(ctx context.Context, engine *rule.Engine) error {
	layers, err := d.Settings.Rules(d.User)
	if err != nil && layers == nil {
		return err
	}
	if err != nil {
		d.Log(Error, "the user's rules are left out", map[string]any{"because": err.Error()})
	}
	set := engine.Compile(layers...)
	if d.unchanged = set.Empty(rule.Request); d.unchanged {
		return nil
	}
	var texts []rule.Text
	var at []textLocation
	for i, m := range d.Messages {
		for j, p := range m.Parts {
			if text, ok := textOf(p); ok {
				texts = append(texts, rule.Text{Text: text, Role: m.Role, Depth: len(d.Messages) - 1 - i})
				at = append(at, textLocation{i, j})
			}
		}
	}
	out, err := set.Apply(ctx, rule.Request, texts, d.ruleMacros())
	if err != nil {
		return err
	}
	for _, p := range out.Problems {
		d.Log(Error, "a rule is left out", map[string]any{"rule": artel.Shorten(p.Rule, 80), "because": p.Message})
	}
	d.applyOutcome(set, at, texts, out)
	return nil
}

// Rules returns the effective rules by layer: of the deployment, of the agent
// (or of the model, if the agent has none), of the user. It returns none if the
// regex-processor is disabled. A layer that cannot be read is of kind Invalid;
// if it is the user's, the other layers are returned with the error.
func (s Settings) Rules(u Profile) ([]rule.Config, error) {
	p := Processor{ID: RegexProcessor, Fields: ruleFields()}
	if !s.Resolve(p).Enabled {
		return nil, nil
	}
	layers := make([]rule.Config, 3)
	for _, l := range []SettingLevel{ByDeployment, ByModel, ByAgent} {
		layer := 1
		if l == ByDeployment {
			layer = 0
		}
		if e, ok := Find(s.at(l), p); ok { // the agent's layer replaces the model's
			layers[layer] = rule.Config{}
			if err := readConfig(mergedConfig([]json.RawMessage{e.Config}, p.Fields), &layers[layer]); err != nil {
				return nil, err
			}
		}
	}
	if len(bytes.TrimSpace(u.Rules)) == 0 {
		return layers, nil
	}
	own, err := rule.ParseConfig(u.Rules)
	layers[2] = own
	return layers, err
}

// textOf returns the text of a part that rules apply to.
func textOf(p artel.Part) (string, bool) {
	switch p := p.(type) {
	case artel.Text:
		return p.Text, true
	case artel.ToolResult:
		return p.Content, true
	}
	return "", false
}

// ruleMacros returns the expander of macros in rules. Changes of variables are
// discarded: only prompts set variables.
func (d *Draft) ruleMacros() rule.Expander {
	var x *macro.Expander
	return func(text string, escape func(string) string) (string, error) {
		if x == nil {
			x = macro.New(d.macroContext())
		}
		r, err := x.ExpandInto(text, escape)
		if names := r.Unknown(); len(names) > 0 {
			d.Log(Warn, "macros of a rule are not expanded", map[string]any{"macros": names, "because": r.Problems[0].Message})
		}
		return r.Text, err
	}
}

// maxRuleMessages bounds how many changed messages are named per rule.
const maxRuleMessages = 100

// applyOutcome puts the new texts into the draft, and logs the messages that
// each rule changed.
func (d *Draft) applyOutcome(set *rule.Set, at []textLocation, texts []rule.Text, out rule.Outcome) {
	stability := make(map[string]Stability)
	for _, r := range set.Rules() {
		stability[r.Name] = ruleStability(r.Rule)
	}
	type work struct {
		count, last int // number of messages, and the index of the last one
		messages    []string
	}
	done := make(map[string]*work)
	var names []string
	d.ruleStates = d.statesBetween(set, at, texts, out)
	for k, applied := range out.Applied {
		if len(applied) == 0 {
			continue
		}
		m := &d.Messages[at[k].message]
		for _, name := range applied {
			w := done[name]
			if w == nil {
				w = &work{last: -1}
				done[name] = w
				names = append(names, name)
			}
			if w.last != at[k].message {
				w.last = at[k].message
				if w.count++; w.count <= maxRuleMessages {
					w.messages = append(w.messages, m.ID)
				}
			}
			m.Stability = m.Stability.Least(cmp.Or(stability[name], Turn))
		}
		if out.Texts[k] == texts[k].Text {
			continue
		}
		m.Parts = slices.Clone(m.Parts)
		m.Parts[at[k].part] = withText(m.Parts[at[k].part], out.Texts[k])
	}
	for _, name := range names {
		d.Log(Info, "a rule found something", map[string]any{"rule": artel.Shorten(name, 80), "count": done[name].count, "messages": done[name].messages})
	}
}

// statesBetween returns the states of messages between rules, for messages that
// several rules changed.
func (d *Draft) statesBetween(set *rule.Set, at []textLocation, texts []rule.Text, out rule.Outcome) (states []priorState) {
	place := make(map[string]int)
	for i, r := range set.Rules() {
		place[r.Name] = i
	}
	for from := 0; from < len(at); {
		to := from
		var rules []string // that changed the message, in their order
		for ; to < len(at) && at[to].message == at[from].message; to++ {
			for _, name := range out.Applied[to] {
				if !slices.Contains(rules, name) {
					rules = append(rules, name)
				}
			}
		}
		slices.SortFunc(rules, func(a, b string) int { return cmp.Compare(place[a], place[b]) })
		if len(rules) < 2 {
			rules = nil // the step's own states suffice
		}
		for _, name := range rules {
			m := d.Messages[at[from].message]
			m.Parts = slices.Clone(m.Parts)
			for k := from; k < to; k++ {
				text := texts[k].Text
				for j, by := range out.Applied[k] {
					if place[by] > place[name] {
						break
					}
					if text = out.Texts[k]; j < len(out.Between[k]) {
						text = out.Between[k][j]
					}
				}
				m.Parts[at[k].part] = withText(m.Parts[at[k].part], text)
			}
			states = append(states, priorState{before: m, rule: artel.Shorten(name, 80)})
		}
		from = to
	}
	return states
}

// withText returns p with another text.
func withText(p artel.Part, text string) artel.Part {
	switch p := p.(type) {
	case artel.Text:
		p.Text = text
		return p
	case artel.ToolResult:
		p.Content = text
		return p
	}
	return p
}

// ruleStability returns how long the output of a rule stays the same. A rule
// limited to the newest messages stops applying to each of them at some point.
func ruleStability(r rule.Rule) Stability {
	if r.Depth != nil && r.Depth.Max != nil {
		return Turn
	}
	texts := append([]string{r.Replace}, r.Trim...)
	if r.Expand != "" && r.Expand != rule.ExpandNone {
		texts = append(texts, r.Find)
	}
	return macroStability(strings.Join(texts, "\n"))
}
