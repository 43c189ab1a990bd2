// SPDX-License-Identifier: Apache-2.0

// Package settings holds what users set: agents, the processors of the pipeline
// at the levels of services and agents, the rules of find and replace, and the
// user's profile, each with a revision, so that two writers do not undo each
// other's changes.
//
// Begin with [New]. [Reader] is for callers inside a transaction, as runs are.
package settings

import (
	"context"
	"log/slog"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/rule"
	"github.com/artelhq/artel/store"
)

// Config is what settings are kept in and checked against.
type Config struct {
	Store      store.Store
	Services   *model.Registry
	Agents     []agent.Definition // of files, the same for every user
	Pipeline   *pipeline.Registry
	Rules      *rule.Engine
	Tools      tool.Catalog
	Deployment pipeline.Settings
	Machine    map[string]string // values of the macros about the machine; nil: none
	Logger     *slog.Logger
	Now        func() time.Time

	cache *bookCache
}

// Settings are the use cases of settings by what is set.
type Settings struct {
	Agents *Agents
	Books  *Books

	Characters *Characters

	Pipeline *Pipeline
	Profiles *Profiles
	Rules    *Rules
	Reader   *Reader
}

// New returns the settings of a deployment. What the deployment has wrong about
// the pipeline is of kind Invalid.
func New(c Config) (*Settings, error) {
	if err := c.checkSettings(); err != nil {
		return nil, err
	}
	c.cache = &bookCache{}
	return &Settings{&Agents{&c}, &Books{&c}, &Characters{&c}, &Pipeline{&c}, &Profiles{&c}, &Rules{&c}, &Reader{&c}}, nil
}

// A Reader reads inside the caller's transaction what is set for agents and
// services.
type Reader struct{ config *Config }

// Agent returns the definition of an agent; "" is the lead. An unknown one is
// of kind Invalid.
func (r *Reader) Agent(tx store.Tx, name artel.AgentName) (agent.Definition, error) {
	return r.config.agent(tx, name)
}

// Pipeline returns what configures a build for an agent on a service.
func (r *Reader) Pipeline(tx store.Tx, d agent.Definition, s model.Service) (pipeline.Settings, error) {
	return r.config.settings(tx, d, s)
}

// Profile returns what the user has said about themselves.
func (r *Reader) Profile(tx store.Tx) (pipeline.Profile, error) {
	p, _, err := stored[pipeline.Profile](tx, profileSettings)
	return p, err
}

// OfFile returns the settings in a service's configuration entry.
func (r *Reader) OfFile(s model.Service) []pipeline.Setting { return r.config.ofFile(s) }

// Deployment returns the settings of the whole deployment.
func (r *Reader) Deployment() pipeline.Settings { return r.config.Deployment }

func (k *Config) view(ctx context.Context, fn func(store.Tx) error) error {
	return k.Store.View(ctx, artel.OwnerOf(ctx), fn)
}

func (k *Config) update(ctx context.Context, fn func(store.Tx) error) error {
	return k.Store.Update(ctx, artel.OwnerOf(ctx), fn)
}

func (k *Config) chooser() model.Chooser { return model.NewChooser(k.Services) }
