// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/pipeline/rule"
	"github.com/artelhq/artel/store"
)

// Rules are the use cases of the rules of find and replace.
type Rules struct{ config *Config }

// A RuleLevel is a level at which rules exist.
type RuleLevel string

// The levels, in the order in which their rules run.
const (
	RulesOfDeployment RuleLevel = "deployment"
	RulesOfService    RuleLevel = "service"
	RulesOfAgent      RuleLevel = "agent"
	RulesOfUser       RuleLevel = "user"
)

// A RulePlace names a list of rules.
type RulePlace struct {
	Level RuleLevel
	ID    string // of a service or an agent; "" at the other levels
}

// A RuleLayer is the rules of one place.
type RuleLayer struct {
	RulePlace
	Config   rule.Config
	Revision int    // of the settings or the profile that has them
	Problem  string // why they are invalid; "": they are valid
	// Replaced says that the agent has rules of its own, which replace those of the
	// service.
	Replaced bool
}

// Fixed reports whether the rules are part of the deployment's configuration.
func (l RuleLayer) Fixed() bool { return l.Level == RulesOfDeployment }

// A Rulebook has all rules for an agent on a service.
type Rulebook struct {
	Agent   artel.AgentName
	Service artel.ServiceID
	Layers  []RuleLayer // deployment, service, agent, user
	// Disabled says that the processor of rules is disabled, so that none runs.
	Disabled bool
}

// Find returns the rules for an agent on a service; "" is the lead, and the
// agent's service. Unknown ones are of kind NotFound.
func (rs *Rules) Find(ctx context.Context, name artel.AgentName, id artel.ServiceID) (b Rulebook, err error) {
	err = rs.config.view(ctx, func(tx store.Tx) error {
		b, _, _, err = rs.book(tx, name, id)
		return err
	})
	return b, err
}

func (rs *Rules) book(tx store.Tx, name artel.AgentName, id artel.ServiceID) (b Rulebook, d agent.Definition, s model.Service, err error) {
	if d, err = rs.config.agent(tx, name); err != nil {
		return b, d, s, err
	}
	s = rs.config.Services.Default()
	if id = cmp.Or(id, d.Service); id != "" {
		found, ok := rs.config.Services.Lookup(id)
		if !ok {
			return b, d, s, rs.config.chooser().Unknown(id)
		}
		s = found
	}
	b = Rulebook{Agent: d.Name, Service: s.ID}
	settings, err := rs.config.settings(tx, d, s)
	if err != nil {
		return b, d, s, err
	}
	b.Disabled = !settings.Resolve(rs.regexProcessor()).Enabled
	for _, place := range []RulePlace{{Level: RulesOfDeployment}, {RulesOfService, string(s.ID)}, {RulesOfAgent, string(d.Name)}, {Level: RulesOfUser}} {
		l, err := rs.layer(tx, place)
		if err != nil {
			return b, d, s, err
		}
		b.Layers = append(b.Layers, l)
	}
	if _, ok := pipeline.Find(settings.Agent, rs.regexProcessor()); ok {
		b.Layers[1].Replaced = true
	}
	return b, d, s, nil
}

func (rs *Rules) regexProcessor() pipeline.Processor {
	if p, ok := rs.config.Pipeline.Processors().Find(pipeline.RegexProcessor); ok {
		return p
	}
	return pipeline.Processor{ID: pipeline.RegexProcessor}
}

// Places returns the places where the user can set rules: the user, the agents,
// the services.
func (rs *Rules) Places(ctx context.Context) ([]RulePlace, error) {
	out := []RulePlace{{Level: RulesOfUser}}
	names, err := (&Pipeline{rs.config}).Agents(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		out = append(out, RulePlace{RulesOfAgent, string(name)})
	}
	for _, s := range rs.config.Services.All() {
		out = append(out, RulePlace{RulesOfService, string(s.ID)})
	}
	return out, nil
}

// Layer returns the rules of one place; an unknown one is of kind NotFound.
func (rs *Rules) Layer(ctx context.Context, place RulePlace) (l RuleLayer, err error) {
	err = rs.config.view(ctx, func(tx store.Tx) error {
		l, err = rs.layer(tx, place)
		return err
	})
	return l, err
}

func (rs *Rules) layer(tx store.Tx, place RulePlace) (l RuleLayer, err error) {
	l.RulePlace = place
	if place.Level == RulesOfUser {
		p, revision, err := stored[pipeline.Profile](tx, profileSettings)
		if err != nil {
			return l, err
		}
		l.Revision = revision
		l.read(p.Rules)
		return l, nil
	}
	list, revision, err := rs.entries(tx, place)
	if err != nil {
		return l, err
	}
	l.Revision = revision
	if e, ok := pipeline.Find(list, rs.regexProcessor()); ok {
		l.read(e.Config)
	}
	return l, nil
}

func (l *RuleLayer) read(raw json.RawMessage) {
	if string(raw) == "null" {
		return
	}
	var err error
	if l.Config, err = rule.ParseConfig(raw); err != nil {
		l.Problem = err.Error()
	}
}

// entries returns the settings that have the rules of a place.
func (rs *Rules) entries(tx store.Tx, place RulePlace) ([]pipeline.Setting, int, error) {
	name, file, err := rs.kept(tx, place)
	if err != nil || name == "" {
		return file, 0, err
	}
	list, revision, err := stored[[]pipeline.Setting](tx, name)
	if err == nil && revision == 0 {
		list = file
	}
	return list, revision, err
}

// kept returns the name under which the settings of a place are stored, and those
// of the file.
func (rs *Rules) kept(tx store.Tx, place RulePlace) (name string, file []pipeline.Setting, err error) {
	p := &Pipeline{rs.config}
	switch place.Level {
	case RulesOfDeployment:
		return "", rs.config.Deployment.Deployment, nil
	case RulesOfService:
		return p.at(tx, LevelAt{Service: artel.ServiceID(place.ID)})
	case RulesOfAgent:
		a, err := rs.config.findAgent(tx, artel.AgentName(place.ID))
		return agentSettings + string(a.Name), a.Processors, err
	}
	return "", nil, artel.Errorf(artel.NotFound, "settings.Rules", "level", "there are no rules at %q", artel.Shorten(string(place.Level), 40))
}

// Set replaces the rules of a place; other settings there stay unchanged.
// revision is that of the layer that it replaces; another one is of kind
// Conflict, code [artifact.CodeStale]. The deployment's rules cannot be changed:
// kind Denied. An invalid rule can be stored; builds skip and report it.
func (rs *Rules) Set(ctx context.Context, place RulePlace, c rule.Config, revision int) (l RuleLayer, err error) {
	const op = "settings.Rules.Set"
	if place.Level == RulesOfDeployment {
		return l, artel.Errorf(artel.Denied, op, "deployment", "the rules of the deployment are changed in its configuration")
	}
	if n := len(c.Rules); n > rule.MaxRules || len(c.Presets) > rule.MaxRules {
		return l, artel.Errorf(artel.TooLarge, op, "rules", "there can be %d rules", rule.MaxRules)
	}
	raw, err := json.Marshal(c)
	if err != nil {
		return l, artel.Errorf(artel.Invalid, op, "rules", "%w", err)
	}
	if len(raw) > maxRules {
		return l, artel.Errorf(artel.TooLarge, op, "rules", "the rules of one place have at most %d bytes together", maxRules)
	}
	err = rs.config.update(ctx, func(tx store.Tx) error {
		if place.Level == RulesOfUser {
			p, _, err := stored[pipeline.Profile](tx, profileSettings)
			if err != nil {
				return err
			}
			if p.Rules = raw; string(raw) == "{}" {
				p.Rules = nil
			}
			_, err = rs.config.putTx(tx, profileSettings, p, revision)
			return err
		}
		name, _, err := rs.kept(tx, place)
		if err != nil {
			return err
		}
		list, _, err := rs.entries(tx, place)
		if err == nil {
			list, err = withRules(list, rs.regexProcessor(), c)
		}
		if err == nil {
			err = rs.config.check(list)
		}
		if err == nil {
			_, err = rs.config.putTx(tx, name, list, revision)
		}
		return err
	})
	if err != nil {
		return l, err
	}
	return rs.Layer(ctx, place)
}

// maxRules is how many bytes the rules of one place have.
const maxRules = 4 << 20

// withRules sets the rules in a list of settings. An empty entry is removed, so
// that it does not replace that of another level.
func withRules(list []pipeline.Setting, p pipeline.Processor, c rule.Config) ([]pipeline.Setting, error) {
	list = slices.Clone(list)
	i := slices.IndexFunc(list, func(s pipeline.Setting) bool { return s.ID == p.ID })
	if i < 0 {
		i = len(list)
		list = append(list, pipeline.Setting{ID: p.ID})
	}
	config := map[string]any{}
	if len(list[i].Config) > 0 {
		if err := json.Unmarshal(list[i].Config, &config); err != nil {
			config = map[string]any{} // invalid JSON is replaced
		}
	}
	if config == nil {
		config = map[string]any{}
	}
	delete(config, "rules")
	delete(config, "presets")
	if len(c.Rules) > 0 {
		config["rules"] = c.Rules
	}
	if len(c.Presets) > 0 {
		config["presets"] = c.Presets
	}
	if list[i].Config = nil; len(config) > 0 {
		raw, err := json.Marshal(config)
		if err != nil {
			return nil, artel.Errorf(artel.Invalid, "settings.Rules.Set", "rules", "%w", err)
		}
		list[i].Config = raw
	} else if list[i].Enabled == nil {
		list = slices.Delete(list, i, i+1)
	}
	return list, nil
}

// Explain returns how a rule is understood; see [rule.Engine.Explain].
func (rs *Rules) Explain(r rule.Rule) (rule.Explanation, error) { return rs.config.Rules.Explain(r) }

// A Trial is a text to which the rules of an agent on a service are applied.
type Trial struct {
	Agent   artel.AgentName // "": the lead
	Service artel.ServiceID // "": the agent's
	Text    string
	Stage   rule.Stage // "": as for a request
	Role    artel.Role // "": user
	Depth   *int       // nil: the bounds of rules are not looked at
	// Layers replace the stored ones at the same levels, for a rule that is being
	// edited.
	Layers []RuleLayer
	Only   bool // the layers that are not among them have no rules
}

// Tried is what came of a trial.
type Tried struct {
	Rulebook
	Steps []rule.Traced // their Where.Layer counts in Layers
	Text  string        // after all rules
}

// maxTrial is how many bytes a text has that rules are tried out on.
const maxTrial = 200_000

// Try returns what each rule makes of a text, with the same engine, limits and
// order as requests. Macros in rules know the user, the agent and the model; those
// about a conversation are empty. Nothing is stored.
func (rs *Rules) Try(ctx context.Context, in Trial) (out Tried, err error) {
	if len(in.Text) > maxTrial {
		return out, artel.Errorf(artel.TooLarge, "settings.Rules.Try", "text", "rules are tried out on at most %d bytes", maxTrial)
	}
	var values map[string]string
	err = rs.config.view(ctx, func(tx store.Tx) error {
		var d agent.Definition
		var s model.Service
		if out.Rulebook, d, s, err = rs.book(tx, in.Agent, in.Service); err != nil {
			return err
		}
		user, _, err := stored[pipeline.Profile](tx, profileSettings)
		values = rs.config.macroValues(user, d, s)
		return err
	})
	if err != nil {
		return out, err
	}
	configs := make([]rule.Config, len(out.Layers))
	for i := range out.Layers {
		l := &out.Layers[i]
		n := slices.IndexFunc(in.Layers, func(o RuleLayer) bool { return o.Level == l.Level })
		switch {
		case n >= 0:
			l.Config, l.ID = in.Layers[n].Config, in.Layers[n].ID
		case in.Only:
			l.Config = rule.Config{}
		default:
			continue
		}
		if l.Level == RulesOfAgent {
			out.Layers[1].Replaced = n >= 0
		}
	}
	for i, l := range out.Layers {
		if !l.Replaced {
			configs[i] = l.Config
		}
	}
	text := rule.Text{Text: in.Text, Role: cmp.Or(in.Role, artel.RoleUser), Depth: -1}
	if in.Depth != nil {
		text.Depth = max(0, *in.Depth)
	}
	x := macro.New(macro.Context{Values: values, Now: rs.config.Now()})
	out.Steps, err = rs.config.Rules.Compile(configs...).Trace(ctx, cmp.Or(in.Stage, rule.Request), text, func(text string, escape func(string) string) (string, error) {
		r, err := x.ExpandInto(text, escape)
		return r.Text, err
	})
	if out.Text = in.Text; len(out.Steps) > 0 {
		out.Text = out.Steps[len(out.Steps)-1].After
	}
	return out, err
}

// macroValues returns the values of macros outside a conversation.
func (k *Config) macroValues(user pipeline.Profile, d agent.Definition, s model.Service) map[string]string {
	values := map[string]string{
		"user": user.Called(), "persona": user.Persona,
		"modelId": s.Model, "modelName": s.Model[strings.LastIndexByte(s.Model, '/')+1:], "profileId": string(s.ID), "profileName": s.Name, "provider": string(s.Dialect),
	}
	maps.Copy(values, d.Pipeline().Values(user.Called()))
	maps.Copy(values, k.Machine)
	return values
}

// MacroValues returns what macros that stand for a value expand to for an
// agent on a service, as far as it is known outside of a conversation.
func (rs *Rules) MacroValues(ctx context.Context, name artel.AgentName, id artel.ServiceID) (values map[string]string, err error) {
	err = rs.config.view(ctx, func(tx store.Tx) error {
		_, d, s, err := rs.book(tx, name, id)
		if err != nil {
			return err
		}
		user, _, err := stored[pipeline.Profile](tx, profileSettings)
		values = rs.config.macroValues(user, d, s)
		return err
	})
	return values, err
}

// A KnownMacro is a macro with an example and its current value.
type KnownMacro struct {
	Name    string
	Example string // how it is written
	Gives   string
}

// KnownMacros returns all macros by name, expanded with values at a time.
func KnownMacros(values map[string]string, now time.Time) []KnownMacro {
	examples := map[string]string{
		"datetime_format": "datetime_format::YYYY-MM-DD", "datetime_locale": "datetime_locale::fr",
		"random": "random::red::green::blue", "pick": "pick::red::green::blue", "randomInt": "randomInt::1::6", "roll": "roll::2d6", "roll_total": "roll_total::2d6+1", "reverse": "reverse::text", "time_utc": "time_utc::+2", "repeat": "repeat::ha::3",
		"setvar": "setvar::name::value", "getvar": "getvar::name", "addvar": "addvar::name::1", "hasvar": "hasvar::name", "deletevar": "deletevar::name",
		"addglobalvar": "addglobalvar::name::1", "hasglobalvar": "hasglobalvar::name", "deleteglobalvar": "deleteglobalvar::name", "incvar": "incvar::name", "decvar": "decvar::name",
		"setglobalvar": "setglobalvar::name::value", "getglobalvar": "getglobalvar::name", "incglobalvar": "incglobalvar::name", "decglobalvar": "decglobalvar::name",
	}
	out := make([]KnownMacro, 0, len(macro.Names()))
	for _, name := range macro.Names() {
		m := KnownMacro{Name: name, Example: "{{" + cmp.Or(examples[name], name) + "}}"}
		if r, err := macro.New(macro.Context{Values: values, Now: now}).Expand(m.Example); err == nil {
			m.Gives = r.Text
		}
		out = append(out, m)
	}
	return out
}
