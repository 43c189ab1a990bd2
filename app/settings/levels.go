// SPDX-License-Identifier: Apache-2.0

package settings

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// Pipeline are the use cases of the configuration of the context pipeline.
//
// Settings exist at two levels, that of a service and that of an agent. What a
// user sets there replaces the whole list of the service's entry or the agent's
// file, until it is reset.
type Pipeline struct{ config *Config }

// Names under which settings are stored.
const (
	serviceSettings = "service/"
	agentSettings   = "agent/"
	orderSettings   = "order"
	profileSettings = "profile"
)

var errStaleSettings = errors.New("it was changed since it was read; read it again")

// A Level is the list of settings of one service or agent.
type Level struct {
	Settings []pipeline.Setting
	File     []pipeline.Setting // of the file, restored by a reset
	Revision int                // 0: not set, Settings are those of the file
	Set      bool               // by a user
}

// A Level's limits.
const maxSettings = 200

// stored reads the value that a user has set under a name; revision 0: none.
func stored[T any](tx store.Tx, name string) (v T, revision int, err error) {
	s, err := tx.Settings.Get(name)
	if errors.Is(err, artel.NotFound) {
		return v, 0, nil
	}
	if err != nil {
		return v, 0, err
	}
	v, err = decoded[T](s)
	return v, s.Revision, err
}

func decoded[T any](s store.Setting) (v T, err error) {
	if err := json.Unmarshal(s.Value, &v); err != nil {
		return v, artel.Errorf(artel.Internal, "settings.Pipeline", artel.Shorten(s.Name, 80), "the setting is damaged: %w", err)
	}
	return v, nil
}

// AnyRevision replaces any revision.
const AnyRevision = -1

// put stores v under a name in place of a revision; a nil v removes it.
func (k *Config) put(ctx context.Context, name string, v any, revision int) (next int, err error) {
	for {
		err = k.update(ctx, func(tx store.Tx) (err error) {
			next, err = k.putTx(tx, name, v, revision)
			return err
		})
		// Another call has replaced the revision that this one found, at the same time.
		if revision != AnyRevision || !errors.Is(err, artel.Conflict) || ctx.Err() != nil {
			return next, err
		}
	}
}

func (k *Config) putTx(tx store.Tx, name string, v any, revision int) (int, error) {
	var err error
	next := 0
	if revision == AnyRevision {
		now, err := tx.Settings.Get(name)
		if err != nil && !errors.Is(err, artel.NotFound) {
			return 0, err
		}
		if revision = now.Revision; revision == 0 && v == nil {
			return 0, nil
		}
	}
	if v == nil {
		err = tx.Settings.Delete(name, revision, k.Now())
	} else {
		var b []byte
		if b, err = json.Marshal(v); err != nil {
			return 0, artel.Errorf(artel.Invalid, "settings.Pipeline", name, "%w", err)
		}
		next, err = tx.Settings.Put(store.Setting{Name: name, Value: b, Revision: revision, UpdatedAt: k.Now()})
	}
	if errors.Is(err, artel.Conflict) {
		err = &artel.Error{
			Op: "settings.Pipeline", Subject: name, Kind: artel.Conflict, Code: artifact.CodeStale,
			Err: errStaleSettings,
		}
	}
	return next, err
}

// ofFile returns the settings of a service's entry; none if they are invalid, which
// was reported when the entry was read.
func (k *Config) ofFile(s model.Service) []pipeline.Setting {
	list, err := pipeline.ParseSettings(s.Processors)
	if err == nil {
		_, err = k.Pipeline.Processors().Check(list)
	}
	if err != nil {
		k.Logger.Warn("the processors of a service's entry are ignored", "service", s.ID, "err", err)
		return nil
	}
	return list
}

// settings returns what configures a build for an agent on a service.
func (k *Config) settings(tx store.Tx, d agent.Definition, s model.Service) (pipeline.Settings, error) {
	out := k.Deployment
	var err error
	if out.Model, err = k.level(tx, serviceSettings+string(s.ID), func() []pipeline.Setting { return k.ofFile(s) }); err != nil {
		return out, err
	}
	if out.Agent, err = k.level(tx, agentSettings+string(d.Name), func() []pipeline.Setting { return d.Processors }); err != nil {
		return out, err
	}
	order, revision, err := stored[[]string](tx, orderSettings)
	if revision > 0 {
		out.Order = order
	}
	return out, err
}

func (k *Config) level(tx store.Tx, name string, file func() []pipeline.Setting) ([]pipeline.Setting, error) {
	list, revision, err := stored[[]pipeline.Setting](tx, name)
	if err != nil || revision > 0 {
		return list, err
	}
	return file(), nil
}

// Level returns the settings at a level; kind NotFound if there is no such
// service or agent.
func (p *Pipeline) Level(ctx context.Context, at LevelAt) (l Level, err error) {
	err = p.config.view(ctx, func(tx store.Tx) error {
		name, file, err := p.at(tx, at)
		if err != nil {
			return err
		}
		l, err = findTx(tx, name, file)
		return err
	})
	return l, err
}

// SetLevel replaces the settings at a level; nil resets them to those of the
// file. revision is that of the Level that it replaces, or [AnyRevision];
// another one is of kind Conflict, code [artifact.CodeStale]. See
// [pipeline.Processors.Check] for the settings that are of kind Invalid.
func (p *Pipeline) SetLevel(ctx context.Context, at LevelAt, settings []pipeline.Setting, revision int) (l Level, err error) {
	var value any
	if settings != nil {
		value = settings
	}
	err = p.config.update(ctx, func(tx store.Tx) error {
		name, file, err := p.at(tx, at)
		if err != nil {
			return err
		}
		if err := p.config.check(settings); err != nil {
			return err
		}
		if _, err := p.config.putTx(tx, name, value, revision); err != nil {
			return err
		}
		l, err = findTx(tx, name, file)
		return err
	})
	return l, err
}

// at returns the name under which the settings of a level are stored, and the
// settings of its file.
func (p *Pipeline) at(tx store.Tx, at LevelAt) (name string, file []pipeline.Setting, err error) {
	if at.Agent != "" {
		a, err := p.config.findAgent(tx, at.Agent)
		return agentSettings + string(a.Name), a.Processors, err
	}
	s, err := p.known(at.Service)
	if err != nil {
		return "", nil, err
	}
	return serviceSettings + string(at.Service), p.config.ofFile(s), nil
}

func (p *Pipeline) known(id artel.ServiceID) (model.Service, error) {
	s, ok := p.config.Services.Lookup(id)
	if !ok || id == "" {
		return s, artel.Errorf(artel.NotFound, "settings.Pipeline", "service "+artel.Shorten(string(id), 80), "there is no such service")
	}
	return s, nil
}

func findTx(tx store.Tx, name string, file []pipeline.Setting) (l Level, err error) {
	l.File = file
	l.Settings, l.Revision, err = stored[[]pipeline.Setting](tx, name)
	if l.Set = l.Revision > 0; !l.Set {
		l.Settings = file
	}
	return l, err
}

// check refuses invalid settings. An unknown processor is a warning in the log: it
// may be a plugin that is not loaded now.
func (k *Config) check(settings []pipeline.Setting) error {
	if len(settings) > maxSettings {
		return artel.Errorf(artel.TooLarge, "settings.Pipeline", "processors", "%d settings, and at most %d are taken", len(settings), maxSettings)
	}
	unknown, err := k.Pipeline.Processors().Check(settings)
	for _, id := range unknown {
		k.Logger.Warn("a setting names no processor", "processor", artel.Shorten(id, 80))
	}
	return err
}

// An Order is the order of the movable processors.
type Order struct {
	IDs      []string
	Revision int // 0: not set
}

// Order returns the order of formatters and plugins. Those that it does not name
// keep their places.
func (p *Pipeline) Order(ctx context.Context) (o Order, err error) {
	err = p.config.view(ctx, func(tx store.Tx) error {
		o, err = p.orderTx(tx)
		return err
	})
	return o, err
}

func (p *Pipeline) orderTx(tx store.Tx) (o Order, err error) {
	o.IDs, o.Revision, err = stored[[]string](tx, orderSettings)
	if o.Revision == 0 {
		o.IDs = p.config.Deployment.Order
	}
	return o, err
}

// SetOrder replaces the order; nil resets it to that of the file. See
// [pipeline.Processors.CheckOrder] for what is of kind Invalid.
func (p *Pipeline) SetOrder(ctx context.Context, ids []string, revision int) (Order, error) {
	var v any
	if ids != nil {
		if len(ids) > maxSettings {
			return Order{}, artel.Errorf(artel.TooLarge, "settings.Pipeline", "order", "%d names, and at most %d are taken", len(ids), maxSettings)
		}
		if _, err := p.config.Pipeline.Processors().CheckOrder(ids); err != nil {
			return Order{}, err
		}
		v = ids
	}
	if _, err := p.config.put(ctx, orderSettings, v, revision); err != nil {
		return Order{}, err
	}
	return p.Order(ctx)
}

// A ProcessorState is the configuration of a processor for an agent on a service:
// the setting of each level, and the result.
type ProcessorState struct {
	pipeline.Processor
	Deployment, Model, Agent *pipeline.Setting // nil: not set at the level
	Resolved                 pipeline.Resolved
}

func entry(list []pipeline.Setting, p pipeline.Processor) *pipeline.Setting {
	if s, ok := pipeline.Find(list, p); ok {
		return &s
	}
	return nil
}

// checkSettings refuses invalid settings of the deployment and its agents.
func (k *Config) checkSettings() error {
	s := k.Deployment
	if err := k.check(s.Deployment); err != nil {
		return err
	}
	disabled, err := k.Pipeline.Processors().CheckDisabled(s.Disabled)
	if err != nil {
		return err
	}
	unordered, err := k.Pipeline.Processors().CheckOrder(s.Order)
	if err != nil {
		return err
	}
	for _, id := range slices.Concat(disabled, unordered) {
		k.Logger.Warn("configuration: pipeline names an unknown processor", "processor", artel.Shorten(id, 80))
	}
	for _, d := range k.Agents {
		if err := k.check(d.Processors); err != nil {
			return artel.Errorf(artel.Invalid, "settings.New", "agent "+string(d.Name), "%s", strings.TrimSpace(err.Error()))
		}
	}
	return nil
}
