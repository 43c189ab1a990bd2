// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// A LevelAt names a level: that of a service or that of an agent, exactly one of
// both.
type LevelAt struct {
	Service artel.ServiceID `json:"service,omitempty"`
	Agent   artel.AgentName `json:"agent,omitempty"`
}

// An Overview is the configuration of the pipeline for an agent on a service,
// with the settings of each level, read in one transaction.
type Overview struct {
	AgentName  artel.AgentName
	Service    model.Service
	Processors []ProcessorState // in the order of execution
	Unknown    []UnknownSetting
	Model      Level // of the service
	Agent      Level
	Order      Order
}

// An UnknownSetting names an unknown or removed processor and has no effect.
type UnknownSetting struct {
	Level pipeline.SettingLevel
	pipeline.Setting
}

// Overview returns how the pipeline is configured for an agent on a service. ""
// is the lead, and the service that the agent has. Kind Invalid or NotFound
// where there is no such agent or service.
func (p *Pipeline) Overview(ctx context.Context, name artel.AgentName, id artel.ServiceID) (o Overview, err error) {
	var d agent.Definition
	err = p.config.view(ctx, func(tx store.Tx) error {
		d, err = p.config.agent(tx, name)
		return err
	})
	if err != nil {
		return o, err
	}
	o.AgentName, o.Service = d.Name, p.config.Services.Default()
	if id = cmp.Or(id, d.Service); id != "" {
		if o.Service, err = p.known(id); err != nil {
			return o, err
		}
	}
	var settings pipeline.Settings
	err = p.config.view(ctx, func(tx store.Tx) error {
		if settings, err = p.config.settings(tx, d, o.Service); err != nil {
			return err
		}
		if o.Model, err = findTx(tx, serviceSettings+string(o.Service.ID), p.config.ofFile(o.Service)); err != nil {
			return err
		}
		if o.Agent, err = findTx(tx, agentSettings+string(d.Name), d.Processors); err != nil {
			return err
		}
		o.Order, err = p.orderTx(tx)
		return err
	})
	if err != nil {
		return o, err
	}
	list := p.config.Pipeline.Processors().Ordered(settings.Order)
	for _, x := range list {
		o.Processors = append(o.Processors, ProcessorState{
			Processor: x, Resolved: settings.Resolve(x),
			Deployment: entry(settings.Deployment, x), Model: entry(settings.Model, x), Agent: entry(settings.Agent, x),
		})
	}
	for level, settings := range map[pipeline.SettingLevel][]pipeline.Setting{pipeline.ByDeployment: settings.Deployment, pipeline.ByModel: settings.Model, pipeline.ByAgent: settings.Agent} {
		for _, s := range settings {
			if !slices.ContainsFunc(list, func(x pipeline.Processor) bool { return x.ID == s.ID || x.Group == s.ID }) {
				o.Unknown = append(o.Unknown, UnknownSetting{level, s})
			}
		}
	}
	slices.SortFunc(o.Unknown, func(a, b UnknownSetting) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Level, b.Level))
	})
	return o, nil
}

// SetEntry replaces the setting of one processor at a level.
func (p *Pipeline) SetEntry(ctx context.Context, at LevelAt, s pipeline.Setting, revision int) (Level, error) {
	return p.amend(ctx, at, revision, func(now, _ []pipeline.Setting) []pipeline.Setting {
		return replaced(now, s.ID, &s)
	})
}

// DropEntry removes the setting of a processor, or of a group, from a level.
func (p *Pipeline) DropEntry(ctx context.Context, at LevelAt, id string, revision int) (Level, error) {
	return p.amend(ctx, at, revision, func(now, _ []pipeline.Setting) []pipeline.Setting {
		return replaced(now, id, nil)
	})
}

// ResetEntry restores the file's setting of a processor, or of a group, at a
// level.
func (p *Pipeline) ResetEntry(ctx context.Context, at LevelAt, id string, revision int) (Level, error) {
	return p.amend(ctx, at, revision, func(now, file []pipeline.Setting) []pipeline.Setting {
		if i := slices.IndexFunc(file, func(s pipeline.Setting) bool { return s.ID == id }); i >= 0 {
			return replaced(now, id, &file[i])
		}
		return replaced(now, id, nil)
	})
}

// amend changes the list of a level. A list that becomes equal to that of the file
// is reset, so that later changes of the file take effect.
func (p *Pipeline) amend(ctx context.Context, at LevelAt, revision int, change func(now, file []pipeline.Setting) []pipeline.Setting) (Level, error) {
	l, err := p.Level(ctx, at)
	if err != nil {
		return l, err
	}
	if revision == AnyRevision {
		revision = l.Revision
	}
	next := change(l.Settings, l.File)
	if sameSettings(next, l.File) {
		next = nil
		if !l.Set && revision == l.Revision {
			return l, nil
		}
	}
	return p.SetLevel(ctx, at, next, revision)
}

// replaced returns a list with another setting of an id, or without it; never nil.
func replaced(list []pipeline.Setting, id string, s *pipeline.Setting) []pipeline.Setting {
	out := []pipeline.Setting{}
	for _, o := range list {
		switch {
		case o.ID != id:
			out = append(out, o)
		case s != nil:
			out = append(out, *s)
			s = nil
		}
	}
	if s != nil {
		out = append(out, *s)
	}
	return out
}

// sameSettings reports whether two lists have the same settings in any order. No
// list has two settings of one processor.
func sameSettings(a, b []pipeline.Setting) bool {
	if len(a) != len(b) {
		return false
	}
	for _, s := range a {
		i := slices.IndexFunc(b, func(o pipeline.Setting) bool { return o.ID == s.ID })
		if i < 0 || !sameSetting(s, b[i]) {
			return false
		}
	}
	return true
}

func sameSetting(a, b pipeline.Setting) bool {
	if (a.Enabled == nil) != (b.Enabled == nil) || a.Enabled != nil && *a.Enabled != *b.Enabled {
		return false
	}
	return bytes.Equal(canonical(a.Config), canonical(b.Config))
}

// canonical returns JSON with sorted keys and without white space; invalid JSON is
// returned unchanged.
func canonical(raw json.RawMessage) []byte {
	var v any
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	if len(raw) == 0 || dec.Decode(&v) != nil {
		return raw
	}
	b, err := json.Marshal(v)
	if err != nil {
		return raw
	}
	return b
}

// Move moves a processor to another place among the movable ones, counted from
// 0, and stores the whole order. A processor with a fixed place is of kind
// Invalid.
func (p *Pipeline) Move(ctx context.Context, id string, to, revision int) (Order, error) {
	if _, err := p.config.Pipeline.Processors().CheckOrder([]string{id}); err != nil {
		return Order{}, err
	}
	now, err := p.Order(ctx)
	if err != nil {
		return now, err
	}
	var ids []string
	for _, x := range p.config.Pipeline.Processors().Ordered(now.IDs) {
		if x.Movable() && x.ID != id {
			ids = append(ids, x.ID)
		}
	}
	ids = slices.Insert(ids, min(max(to, 0), len(ids)), id)
	for _, known := range now.IDs { // plugins that are not loaded keep their relative order
		if !slices.Contains(ids, known) {
			ids = append(ids, known)
		}
	}
	return p.SetOrder(ctx, ids, revision)
}

// Agents returns the names of all agents, in their order.
func (p *Pipeline) Agents(ctx context.Context) (names []artel.AgentName, err error) {
	err = p.config.view(ctx, func(tx store.Tx) error {
		all, err := p.config.allAgents(tx)
		names = nil
		for _, a := range all {
			names = append(names, a.Name)
		}
		return err
	})
	return names, err
}

// Begin returns the initial setting for an editor of a processor at a level: that
// of the level or, for an agent without one, that of the service, which the
// agent's replaces as a whole. It has only the fields of the processor.
func (o Overview) Begin(id string, level pipeline.SettingLevel) pipeline.Setting {
	s := pipeline.Setting{ID: id}
	i := slices.IndexFunc(o.Processors, func(p ProcessorState) bool { return p.ID == id })
	if i < 0 {
		return s
	}
	p := o.Processors[i]
	from := p.Agent
	if level == pipeline.ByModel || from == nil {
		from = p.Model
	}
	if from == nil {
		return s
	}
	s.Enabled, s.Config = from.Enabled, nil
	if known, _ := pipeline.KnownFields(from.Config, p.Fields); len(known) > 0 {
		s.Config = jsonOf(known)
	}
	return s
}
