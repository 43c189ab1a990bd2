// SPDX-License-Identifier: Apache-2.0

package pipeline

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/artelhq/artel"
)

// A Setting configures one processor at one level. It names the processor, so
// that it means the same in every release.
type Setting struct {
	ID      string          `json:"id"`                // of a processor, or of a group of them
	Enabled *bool           `json:"enabled,omitempty"` // nil: as without this setting
	Config  json.RawMessage `json:"config,omitempty"`  // an object of the processor's fields; absent: their defaults
}

// UnmarshalYAML reads a setting as it stands in YAML. Unknown keys are refused.
func (s *Setting) UnmarshalYAML(unmarshal func(any) error) error {
	var raw map[string]any
	if err := unmarshal(&raw); err != nil {
		return err
	}
	b, err := json.Marshal(raw)
	if err != nil {
		return fmt.Errorf("a setting of a processor cannot be read: %w", err)
	}
	list, err := ParseSettings(slices.Concat([]byte{'['}, b, []byte{']'}))
	if err == nil {
		*s = list[0]
	}
	return err
}

// ParseSettings reads a list of settings in JSON. What has the wrong form or an
// unknown key is of kind Invalid; nil and null are no settings.
func ParseSettings(list json.RawMessage) ([]Setting, error) {
	if len(list) == 0 {
		return nil, nil
	}
	dec := json.NewDecoder(bytes.NewReader(list))
	dec.DisallowUnknownFields()
	var out []Setting
	if err := dec.Decode(&out); err != nil {
		return nil, artel.Errorf(artel.Invalid, "pipeline.ParseSettings", "processors", "want a list of {id, enabled?, config?}: %w", err)
	}
	return out, nil
}

// Settings configure the processors of a build, level by level. Of the model's
// and the agent's settings for one processor the agent's is taken whole, with
// nothing of the model's. Where it leaves something out, the deployment's
// holds, then the processor's own default; a processor that nobody names has
// its defaults too.
type Settings struct {
	Disabled   []string  // ids of processors that the deployment does without, whatever the levels say
	Order      []string  // of processors that people may order; the others stay where they are
	Deployment []Setting // the defaults here
	Model      []Setting // of the service
	Agent      []Setting
}

// A SettingLevel is where a setting comes from.
type SettingLevel string

// The levels, the weakest first.
const (
	ByDefault    SettingLevel = "default" // nobody has set anything
	ByDeployment SettingLevel = "deployment"
	ByModel      SettingLevel = "model"
	ByAgent      SettingLevel = "agent"
)

func (s Settings) at(l SettingLevel) []Setting {
	switch l {
	case ByDeployment:
		return s.Deployment
	case ByModel:
		return s.Model
	case ByAgent:
		return s.Agent
	}
	return nil
}

// Find returns the setting for p. That for the processor itself goes before
// that for its group, and of several the last holds.
func Find(list []Setting, p Processor) (Setting, bool) {
	for _, id := range []string{p.ID, p.Group} {
		for _, s := range slices.Backward(list) {
			if id != "" && s.ID == id {
				return s, true
			}
		}
	}
	return Setting{}, false
}

// A Resolved says how a processor is configured where the levels come
// together.
type Resolved struct {
	Enabled   bool            `json:"enabled"`
	EnabledBy SettingLevel    `json:"enabled_by"`       // the level that says so
	Disabled  bool            `json:"disabled"`         // by the deployment, for everybody
	Winner    SettingLevel    `json:"winner"`           // the level whose entry holds
	Config    json.RawMessage `json:"config,omitempty"` // that counts, with the deployment's where the entry says nothing

	configs []json.RawMessage // what Config was made of
}

// Resolve says how p is configured by s. It takes a configuration as it is;
// [Registry.Check] finds what is wrong in it.
func (s Settings) Resolve(p Processor) Resolved {
	out := Resolved{Enabled: !p.DefaultOff, EnabledBy: ByDefault, Winner: ByDefault}
	take := func(l SettingLevel) {
		e, ok := Find(s.at(l), p)
		if !ok {
			return
		}
		out.Winner = l
		out.configs = append(out.configs, e.Config)
		if e.Enabled != nil {
			out.Enabled, out.EnabledBy = *e.Enabled, l
		}
	}
	take(ByDeployment)
	if _, ok := Find(s.Agent, p); ok {
		take(ByAgent)
	} else {
		take(ByModel)
	}
	out.Config = mergedConfig(out.configs, p.Fields)
	if s.disables(p) {
		out.Disabled, out.Enabled, out.EnabledBy = true, false, ByDeployment
	}
	return out
}

func (s Settings) disables(p Processor) bool {
	return slices.Contains(s.Disabled, p.ID) || p.Group != "" && slices.Contains(s.Disabled, p.Group)
}

// overlaid puts objects over each other, key by key, and leaves out what none
// of the fields has: keys for others of a group, and of another release.
func mergedConfig(configs []json.RawMessage, fields []Field) json.RawMessage {
	var all []keyValue
	for _, c := range configs {
		keys, err := keysOf(c)
		if err != nil {
			return c // the processor says what is wrong with it
		}
		for _, k := range keys {
			all = slices.DeleteFunc(all, func(o keyValue) bool { return o.key == k.key })
			if slices.ContainsFunc(fields, func(f Field) bool { return f.Key == k.key }) && !isNull(k.value) {
				all = append(all, k)
			}
		}
	}
	if len(all) == 0 {
		return nil
	}
	b := bytes.NewBufferString("{")
	for i, k := range all {
		if i > 0 {
			b.WriteByte(',')
		}
		name, _ := json.Marshal(k.key) // a string can always be written
		b.Write(name)
		b.WriteByte(':')
		b.Write(k.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// KnownFields returns the values of a configuration that fields have, by their
// keys, and the keys that none of them has. A null is no value. Of a
// configuration that is no object, nothing is known.
func KnownFields(config json.RawMessage, fields []Field) (known map[string]json.RawMessage, other []string) {
	keys, err := keysOf(config)
	if err != nil {
		return nil, nil
	}
	for _, k := range keys {
		if !slices.ContainsFunc(fields, func(f Field) bool { return f.Key == k.key }) {
			other = append(other, k.key)
		} else if !isNull(k.value) {
			if known == nil {
				known = map[string]json.RawMessage{}
			}
			known[k.key] = k.value
		}
	}
	return known, other
}

// Check refuses (kind Invalid) settings of one level that could not be what
// somebody wants: a configuration that does not fit the processor's fields, a
// processor that is named twice, one that cannot be disabled. A processor that
// is not known is none of these: it may be a plugin of another start. Its ids
// are returned.
func (r *Registry) Check(settings []Setting) (unknown []string, err error) {
	const op = "pipeline.Check"
	list := r.Processors()
	seen := map[string]bool{}
	for i, s := range settings {
		at := fmt.Sprintf("processors[%d]", i)
		if s.ID == "" {
			return nil, artel.Errorf(artel.Invalid, op, at+".id", "the id of a processor is missing")
		}
		at += " " + artel.Shorten(s.ID, 60)
		if seen[s.ID] {
			return nil, artel.Errorf(artel.Invalid, op, at, "the processor is named twice")
		}
		seen[s.ID] = true
		named := slices.DeleteFunc(slices.Clone(list), func(p Processor) bool { return p.ID != s.ID && p.Group != s.ID })
		if len(named) == 0 {
			unknown = append(unknown, s.ID)
		}
		for _, p := range named {
			if p.Always && s.Enabled != nil && !*s.Enabled {
				return nil, artel.Errorf(artel.Invalid, op, at+".enabled", "the processor cannot be disabled")
			}
			if err := checkConfig(s.Config, p.Fields, groupFields(list, p)); err != nil {
				return nil, &artel.Error{Op: op, Subject: at, Kind: artel.KindOf(err), Err: err}
			}
		}
	}
	return unknown, nil
}

// CheckDisabled refuses (kind Invalid) to do without what nothing works
// without, and returns the ids that name no processor.
func (r *Registry) CheckDisabled(ids []string) (unknown []string, err error) {
	list := r.Processors()
	for _, id := range ids {
		found := false
		for _, p := range list {
			if p.ID != id && (p.Group != id || id == "") {
				continue
			}
			found = true
			if p.Always {
				return nil, artel.Errorf(artel.Invalid, "pipeline.Check", "disabled "+id, "the processor cannot be disabled")
			}
		}
		if !found {
			unknown = append(unknown, id)
		}
	}
	return unknown, nil
}

// CheckOrder refuses (kind Invalid) an order that names a processor twice, or
// one whose place is fixed, and returns the ids that name no processor.
func (r *Registry) CheckOrder(ids []string) (unknown []string, err error) {
	const op = "pipeline.Check"
	list := r.Processors()
	for n, id := range ids {
		if slices.Contains(ids[:n], id) {
			return nil, artel.Errorf(artel.Invalid, op, "order "+artel.Shorten(id, 60), "the processor is named twice")
		}
		i := slices.IndexFunc(list, func(p Processor) bool { return p.ID == id })
		switch {
		case i < 0:
			unknown = append(unknown, id)
		case !list[i].Movable():
			return nil, artel.Errorf(artel.Invalid, op, "order "+id, "the processor has a fixed place: only formatters and plugins after the token limiter can be ordered")
		}
	}
	return unknown, nil
}

// groupFields returns what processors of p's group know and p does not have to.
func groupFields(list []Processor, p Processor) []Field {
	var out []Field
	for _, o := range list {
		if p.Group != "" && o.Group == p.Group {
			out = append(out, o.Fields...)
		}
	}
	return out
}

// Movable reports whether people may order the processor: it is a formatter or
// a plugin that stands between the token limiter and the asset resolver.
func (p Processor) Movable() bool {
	return (p.Group == MessageFormatters || !p.Core) && p.Priority > PriorityTokenLimiter && p.Priority < PriorityAssetResolver
}

// ordered puts the movable processors that order names into its order, in the
// places that they have among them.
func ordered(list []Processor, order []string) []Processor {
	place := make(map[string]int, len(order))
	for i, id := range order {
		place[id] = i + 1
	}
	var named []Processor
	for _, p := range list {
		if p.Movable() && place[p.ID] > 0 {
			named = append(named, p)
		}
	}
	if len(named) < 2 {
		return list
	}
	slices.SortStableFunc(named, func(a, b Processor) int { return cmp.Compare(place[a.ID], place[b.ID]) })
	out := slices.Clone(list)
	for i, p := range out {
		if p.Movable() && place[p.ID] > 0 {
			out[i], named = named[0], named[1:]
		}
	}
	return out
}
