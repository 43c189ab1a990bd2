// SPDX-License-Identifier: Apache-2.0

// Package run does the work of runs: it starts them, renews their leases, ends
// them, continues those of a process that died, and takes what users send
// meanwhile: messages for the queue, injections, answers to questions of
// permission, requests for a compaction.
//
// Begin with [New] and [Runs.Send]. A run works in a goroutine of [Runs]. It
// stores what the agent yields before it asks for more, and ends the run in
// one transaction: the folded versions, the reply, the last events and the
// state. So a run that is recovered ([Runs.Recover]) continues from its last
// completed step. Only the holder of a run's lease writes for it.
//
// [Previews] build the request that a message would lead to, without a run.
package run

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/lore"
	"github.com/artelhq/artel/store"
)

// Config is what runs work with. All of it is needed, if not said otherwise.
type Config struct {
	Store       store.Store
	Blobs       blob.Store
	PDF         *pdf.Engine // opens the PDFs of drafts; nil: an engine is started for each
	Events      EventWriter
	Artifacts   *artifact.Collection
	Renditions  *rendition.Maker
	Services    *model.Registry
	Caller      *model.Caller
	Engine      *agent.Engine
	Pipeline    *pipeline.Registry
	Settings    Settings
	Tools       tool.Catalog
	Env         tool.Env // of every tool call, but for what is of the call and its run
	Skills      Skills   // nil: none
	Permissions agent.Permissions
	Background  BackgroundTasks
	Placement   pipeline.Placement // of plan and inventory; "": at the tail
	Machine     map[string]string  // values of the macros about the machine; nil: none
	Locale      phrase.Locale      // of texts for models
	Logger      *slog.Logger
	Now         func() time.Time
	// MayWork returns why no run may be started or resumed for an owner, of kind Denied;
	// nil: all may.
	MayWork func(context.Context, artel.Owner) error
	// MostRuns is how many runs of an owner this process works on at once; 0: any number.
	// More are refused with [CodeRunLimit], and queued ones wait. Subagents belong to the
	// run that asked them. Runs that this process takes over continue in any case.
	MostRuns int
	// OnRun is called when work on a run begins in this process. It returns the context
	// of the work and a function that is called with the run at its end. nil: not called.
	OnRun func(context.Context, artel.Run) (context.Context, func(artel.Run))
}

// Settings are what users and the deployment have set for agents and services.
type Settings interface {
	// Agent returns the definition of an agent; "" is the lead.
	Agent(tx store.Tx, name artel.AgentName) (agent.Definition, error)
	// Pipeline returns what configures a build for an agent on a service.
	Pipeline(tx store.Tx, d agent.Definition, s model.Service) (pipeline.Settings, error)
	// Profile returns what the user has said about themselves.
	Profile(tx store.Tx) (pipeline.Profile, error)
	// Books returns the world books of these names; missing ones are left out.
	Books(tx store.Tx, names []string) ([]lore.Book, error)
	// OfFile returns the settings in a service's configuration entry.
	OfFile(s model.Service) []pipeline.Setting
	// Deployment returns the settings of the whole deployment.
	Deployment() pipeline.Settings
}

func (k *Config) view(ctx context.Context, fn func(store.Tx) error) error {
	return k.Store.View(ctx, artel.OwnerOf(ctx), fn)
}

func (k *Config) update(ctx context.Context, fn func(store.Tx) error) error {
	return k.Store.Update(ctx, artel.OwnerOf(ctx), fn)
}

func (k *Config) chooser() model.Chooser { return model.NewChooser(k.Services) }

func (k *Config) notifier() event.Notifier { return k.Events.Log.Notifier() }

// OnBranch returns a message of a conversation that can be on a branch. The
// messages of subagents cannot; for those the error is of kind Invalid.
func OnBranch(tx store.Tx, c artel.ConversationID, id artel.MessageID) (artel.Message, error) {
	m, err := MessageOf(tx, c, id)
	if err == nil && m.Within != "" {
		err = artel.Errorf(artel.Invalid, "app", string(id), "the message is in the thread of a subagent, which is on no branch; name a message of the conversation itself")
	}
	return m, err
}

// MessageOf returns a message of a conversation.
func MessageOf(tx store.Tx, c artel.ConversationID, id artel.MessageID) (artel.Message, error) {
	m, err := tx.Messages.Get(id)
	if errors.Is(err, artel.NotFound) || err == nil && m.Conversation != c {
		err = artel.Errorf(artel.NotFound, "app", string(id), "there is no such message in the conversation")
	}
	return m, err
}

// localeFor returns the locale of texts for models: the user's language if it is
// available, otherwise that of the deployment.
func (k *Config) localeFor(p pipeline.Profile) phrase.Locale {
	base, _, _ := strings.Cut(strings.ToLower(p.Language), "-")
	if l := phrase.Locale(base); slices.Contains(phrase.Locales(), l) {
		return l
	}
	return k.Locale
}
