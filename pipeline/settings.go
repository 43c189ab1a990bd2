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

// A Setting configures one processor, or a group, at one level. It addresses
// processors by id, so that it keeps its meaning across releases.
type Setting struct {
	ID      string          `json:"id"`                // of a processor, or of a group of them
	Enabled *bool           `json:"enabled,omitempty"` // nil: not set at this level
	Config  json.RawMessage `json:"config,omitempty"`  // object of the processor's fields; absent: defaults
}

// UnmarshalYAML reads a setting from YAML. Unknown keys are refused.
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

// ParseSettings reads a JSON list of settings. A wrong form or an unknown key
// is of kind Invalid; nil and null are empty lists.
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

// Settings configure the processors of a build, by level. If the agent has a
// setting for a processor, the model's setting for it is ignored as a whole.
// Keys that the remaining setting leaves out come from the deployment, then
// from the processor's defaults.
type Settings struct {
	Disabled   []string  // ids of processors that the deployment disables, regardless of the levels
	Order      []string  // of movable processors; the others keep their position
	Deployment []Setting // the deployment's defaults
	Model      []Setting // of the service
	Agent      []Setting
}

// A SettingLevel is the origin of a setting.
type SettingLevel string

// The levels, the weakest first.
const (
	ByDefault    SettingLevel = "default" // no setting
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

// Find returns the setting for p. A setting for the processor overrides one for
// its group; of several, the last one applies.
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

// A Resolved is the effective configuration of a processor.
type Resolved struct {
	Enabled   bool            `json:"enabled"`
	EnabledBy SettingLevel    `json:"enabled_by"`       // the level that decided Enabled
	Disabled  bool            `json:"disabled"`         // by the deployment, for all agents
	Winner    SettingLevel    `json:"winner"`           // the strongest level with a setting
	Config    json.RawMessage `json:"config,omitempty"` // merged over the levels

	configs []json.RawMessage // from which Config was merged
}

// Resolve returns the effective configuration of p. It does not validate it;
// see [Processors.Check].
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

// mergedConfig merges objects key by key, later ones first, and leaves out keys
// that no field has: they belong to other processors of a group, or to another
// release.
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
		name, _ := json.Marshal(k.key) // a string cannot fail
		b.Write(name)
		b.WriteByte(':')
		b.Write(k.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}

// KnownFields returns the values of a configuration by the keys of fields, and
// the keys that no field has. null counts as absent. For a configuration that
// is not an object, both results are empty.
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

// Check refuses (kind Invalid) settings of one level that cannot be intended: a
// configuration that does not match the processor's fields, a processor named
// twice, one that cannot be disabled. Unknown processors are allowed, since
// they may be plugins that are not loaded; their ids are returned.
func (list Processors) Check(settings []Setting) (unknown []string, err error) {
	const op = "pipeline.Check"
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

// CheckDisabled refuses (kind Invalid) ids of processors that cannot be
// disabled, and returns the ids that name no processor.
func (list Processors) CheckDisabled(ids []string) (unknown []string, err error) {
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
// one with a fixed position, and returns the ids that name no processor.
func (list Processors) CheckOrder(ids []string) (unknown []string, err error) {
	const op = "pipeline.Check"
	for n, id := range ids {
		if slices.Contains(ids[:n], id) {
			return nil, artel.Errorf(artel.Invalid, op, "order "+artel.Shorten(id, 60), "the processor is named twice")
		}
		i := slices.IndexFunc(list, func(p Processor) bool { return p.ID == id })
		switch {
		case i < 0:
			unknown = append(unknown, id)
		case !list[i].Movable():
			return nil, artel.Errorf(artel.Invalid, op, "order "+id, "the processor has a fixed position: only formatters and plugins after the token limiter can be ordered")
		}
	}
	return unknown, nil
}

// groupFields returns the fields of all processors in p's group.
func groupFields(list []Processor, p Processor) []Field {
	var out []Field
	for _, o := range list {
		if p.Group != "" && o.Group == p.Group {
			out = append(out, o.Fields...)
		}
	}
	return out
}

// Movable reports whether users may reorder the processor: it is a formatter or
// a plugin between the token limiter and the asset resolver.
func (p Processor) Movable() bool {
	return (p.Group == MessageFormatters || !p.Core) && p.Priority > PriorityTokenLimiter && p.Priority < PriorityAssetResolver
}

// ordered sorts the movable processors named in order among the positions that
// they occupy.
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
