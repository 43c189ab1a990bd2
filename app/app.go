// SPDX-License-Identifier: Apache-2.0

// Package app has every use case of Artel once: the rules, the rights and the
// transactions. The API and the page decode a request, call one method here, and
// encode the answer; the gateway does so through gateway/backend.
//
// Begin with [New], which makes an [App] out of its parts. The context has the
// owner who acts ([artel.WithOwner]); what belongs to another owner is not found.
//
// Runs are in package run, what users set in app/settings, the records of model
// calls in app/inspect, the gateway's log in app/gatewaylog; an [App] has them all.
// [App.Recover] continues the runs of a process that died, and [App.Close]
// leaves those of this process to the next.
package app

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/accounts"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/app/meter"
	"github.com/artelhq/artel/app/schedules"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/app/skills"
	"github.com/artelhq/artel/app/webhooks"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/media/pdf"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/rendition"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/rule"
	"github.com/artelhq/artel/pipeline/token"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/outcome"
)

// Config is what an App is made of. Store, Blobs, Notifier, Services and
// Providers are needed; the rest has defaults.
type Config struct {
	Store     store.Store
	Blobs     blob.Store
	Notifier  event.Notifier
	Services  *model.Registry
	Providers map[model.Dialect]model.Provider
	Agents    []agent.Definition // nil: the shipped ones
	Skills    []skills.Folder    // of the deployment
	Tools     []tool.Tool        // beside those of the product
	Servers   tool.Servers       // servers of more tools; nil: none
	// Permissions are those of tools in the whole deployment; agents may be
	// stricter.
	Permissions agent.Permissions
	Files       FileOptions
	Access      access.Options // who may use the deployment
	UserLimits  meter.UserLimits
	UserRuns    int                // how many runs of a user are at work at once; 0: any number
	OnUsage     func(meter.Record) // is called for each paid call; may be nil
	FileKeys    []store.GatewayKey // keys of the gateway that the configuration has
	Background  run.BackgroundTasks
	Web         *http.Client                                                        // for addresses that models name, guarded by package fetch; nil: nothing is fetched
	OnRun       func(context.Context, artel.Run) (context.Context, func(artel.Run)) // see [run.Config]; nil: not called
	// Reload reads the services again and replaces them in Services; nil: they
	// cannot be reloaded.
	Reload   func(context.Context) error
	Webhooks webhooks.Options
	Stored   Stored
	Options  Options
}

// Stored configures the services and tools that administrators add at run time. The zero
// Stored keeps none with a key, and asks no service for its models.
type Stored struct {
	Secrets   *secret.Box
	HTTP      *http.Client       // to the services
	OnSecrets func(error)        // see [entries.Options]
	Files     []entries.FileTool // MCP servers and HTTP tools of the configuration
}

// Options are what may be left out.
type Options struct {
	Artifacts artifact.Options
	Caller    model.CallerOptions
	Context   Context
	Locale    phrase.Locale    // of texts for models; "": English
	SpoolDir  string           // for request bodies that are looked at and dropped; "": the system's
	Log       *slog.Logger     // nil: slog.Default
	Now       func() time.Time // nil: time.Now
}

// Context configures how contexts are built.
type Context struct {
	Placement     pipeline.Placement      // of plan and inventory; "": at the tail
	Machine       map[string]string       // values of the macros os, osVersion, arch, platform and hostname; nil: none
	Settings      pipeline.Settings       // of the whole deployment; zero: the processors' defaults
	Transcription rendition.Transcription // the service that transcribes recordings; zero: none
	Caption       rendition.Caption       // the service that captions pictures; zero: none
	Processors    []pipeline.Processor    // beside those of the product
}

// An App is the application core. Its parts are safe for concurrent use.
type App struct {
	Access        *access.Access
	Keys          *Keys
	Usage         *Usage
	Conversations *Conversations
	Runs          *run.Runs
	Permissions   *run.Permissions
	Elicitations  *run.Elicitations
	Clients       *run.Clients
	Library       *Library
	Previews      *run.Previews
	Summaries     *run.Summaries
	Replays       *run.Replays
	Events        *Events
	Messages      *Messages
	Artifacts     *Artifacts
	Versions      *Versions
	Edits         *Edits
	Files         *Files
	Tools         *Tools
	Apps          *Apps
	Models        *Models
	Services      *entries.Services  // that administrators added
	Toolbox       *entries.Toolbox   // tools that administrators added
	Accounts      *accounts.Accounts // of users at MCP servers
	Webhooks      *webhooks.Webhooks
	Schedules     *schedules.Schedules
	Agents        *settings.Agents
	Books         *settings.Books
	Skills        *skills.Skills
	Characters    *settings.Characters
	Mechanisms    *Mechanisms
	Answers       *Answers
	Imports       *Imports
	Storage       *Storage
	GatewayLog    *gatewaylog.Log
	Audit         *audit.Log
	Pipeline      *settings.Pipeline
	Profiles      *settings.Profiles
	Contexts      *inspect.Contexts
	Rules         *settings.Rules
}

// New makes an App. An error of kind Invalid is a mistake of the configuration: an
// agent that names an unknown tool, two tools of one name.
func New(c Config) (*App, error) {
	k, err := newCore(c)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(c.FileKeys))
	for i, f := range c.FileKeys {
		names[i] = f.Name
	}
	return &App{
		Access:        k.access,
		Keys:          &Keys{Keys: k.access.Keys, file: c.FileKeys},
		Usage:         &Usage{k},
		Conversations: &Conversations{k},
		Runs:          k.runs,
		Permissions:   run.NewPermissions(k.runs),
		Elicitations:  run.NewElicitations(k.runs),
		Clients:       run.NewClients(k.runs),
		Library:       &Library{k.library, k},
		Previews:      run.NewPreviews(k.runs),
		Summaries:     run.NewSummaries(k.runs),
		Replays:       run.NewReplays(k.runs),
		Events:        &Events{k},
		Messages:      &Messages{k},
		Artifacts:     &Artifacts{k},
		Versions:      &Versions{k},
		Edits:         &Edits{k},
		Files:         &Files{core: k, signer: newSigner(c.Files.Key), publicBase: strings.TrimRight(c.Files.PublicBase, "/"), presign: c.Files.Presign},
		Tools:         &Tools{k},
		Apps:          &Apps{k},
		Models:        &Models{core: k},
		Services:      k.stored,
		Toolbox:       k.toolbox,
		Accounts:      k.accounts,
		Webhooks:      k.webhooks,
		Schedules:     schedules.New(k.store, starter{k}, schedules.Options{Log: k.logger, Now: k.now}),
		Agents:        k.settings.Agents,
		Books:         k.settings.Books, Characters: k.settings.Characters, Skills: k.skills,
		Mechanisms: &Mechanisms{
			k, c.Options.SpoolDir, cmp.Or(c.Options.Artifacts.MaxBytes, artifact.DefaultMaxBytes), c.Options.Artifacts.Limits,
			semaphore.NewWeighted(maxWork),
		},
		Answers:    &Answers{k},
		Imports:    newImports(k, c.Options.SpoolDir, c.Options.Artifacts),
		Storage:    &Storage{core: k, alone: c.Files.Alone, retention: cmp.Or(c.Files.Retention, DefaultRetention)},
		GatewayLog: gatewaylog.New(gatewaylog.Config{Store: k.store, Blobs: k.blobs, Keys: names, Log: k.logger, Now: k.now}),
		Audit:      k.audit,
		Pipeline:   k.settings.Pipeline,
		Profiles:   k.settings.Profiles,
		Contexts:   inspect.New(k.store, k.services, k.caller),
		Rules:      k.settings.Rules,
	}, nil
}

// Recover continues the runs without a process, each from its last completed
// step, and returns how many there were. With exclusive set, no other process
// works on this data, and every unfinished run that is not active here is taken
// over; otherwise only those whose lease has ended. A run whose agent or service
// is gone, or that was resumed repeatedly without completing a step, ends as
// interrupted. An error of one run does not stop the others.
func (a *App) Recover(ctx context.Context, exclusive bool) (int, error) {
	return a.Runs.Recover(ctx, exclusive)
}

// Purge removes the conversations of all owners that were deleted more than an
// hour ago, and returns how many. It is called periodically.
func (a *App) Purge(ctx context.Context) (int, error) {
	k := a.Conversations.core
	return k.store.Purge(ctx, k.now().Add(-keptDeleted))
}

// condenseAtOnce is how many artifacts are condensed in one step.
const condenseAtOnce = 500

// Condense takes edits out of the journals of every owner that were made longer
// ago than age, and returns how many; see [artifact.Collection.CompactJournal]. An
// error of one artifact does not stop the others.
func (a *App) Condense(ctx context.Context, age time.Duration) (int, error) {
	k := a.Artifacts.core
	before := k.now().Add(-age)
	total := 0
	var after store.JournalKey
	var errs []error
	for {
		found, last, err := k.store.Journals(ctx, before, after, condenseAtOnce)
		if err != nil {
			return total, errors.Join(append(errs, err)...)
		}
		for _, j := range found {
			n, err := k.artifacts.CompactJournal(ctx, j, before)
			total += n
			if errs = append(errs, err); ctx.Err() != nil {
				return total, errors.Join(errs...)
			}
		}
		if last == (store.JournalKey{}) {
			return total, errors.Join(errs...)
		}
		after = last
	}
}

// ReplaceProcessors replaces processors of the pipeline that are not part of the
// product: those with the ids in old by those of next. It changes nothing if it
// returns an error; see [pipeline.Registry.Replace]. Running builds keep the
// processors that they started with.
func (a *App) ReplaceProcessors(old []string, next []pipeline.Processor) error {
	return a.Tools.core.contexts.Replace(old, next)
}

// Close stops the runs of this process, which the next [App.Recover] continues
// from their last completed step, and waits until ctx ends. No run can be started
// afterwards. The entries of the gateway's log are written; later ones
// need another [gatewaylog.Log.Flush]. It does not close what Config
// brought in.
func (a *App) Close(ctx context.Context) error {
	err := errors.Join(a.Runs.Close(ctx), a.GatewayLog.Flush(ctx))
	a.Toolbox.Close()
	a.Accounts.Close()
	a.Access.Close()
	return errors.Join(err, a.Usage.Flush(ctx))
}

// core is what the parts share.
type core struct {
	store         store.Store
	blobs         blob.Store
	log           *event.Log
	events        run.EventWriter
	audit         *audit.Log
	artifacts     *artifact.Collection
	renditions    *rendition.Maker
	services      *model.Registry
	tools         tool.Catalog
	pools         mcp.Apps          // the MCP servers among them
	permissions   agent.Permissions // of tools in the whole deployment
	caller        *model.Caller
	meter         *meter.Meter
	callerOptions model.CallerOptions
	reload        func(context.Context) error
	counter       *token.Counter
	rules         *rule.Engine
	contexts      *pipeline.Registry
	settings      *settings.Settings
	skills        *skills.Skills
	runs          *run.Runs
	stored        *entries.Services
	toolbox       *entries.Toolbox
	library       *mcp.Library
	accounts      *accounts.Accounts
	webhooks      *webhooks.Webhooks
	access        *access.Access
	web           *http.Client
	pdf           *pdf.Engine
	serviceFiles  ServiceFiles
	shown         tool.Shown
	maxText       int // bytes of the text of an artifact
	locale        phrase.Locale
	logger        *slog.Logger
	now           func() time.Time
}

func newCore(c Config) (*core, error) {
	c.Store = outcome.Resolve(c.Store)
	k := &core{
		store: c.Store, blobs: c.Blobs, log: event.NewLog(c.Store, c.Notifier), services: c.Services,
		pdf: c.Options.Artifacts.PDF, permissions: c.Permissions, web: c.Web, reload: c.Reload, serviceFiles: c.Files.ServiceFiles, shown: c.Files.Shown,
		maxText: cmp.Or(c.Options.Artifacts.MaxText, artifact.DefaultMaxText), locale: cmp.Or(c.Options.Locale, phrase.English), logger: cmp.Or(c.Options.Log, slog.Default()),
	}
	if k.serviceFiles == nil {
		k.serviceFiles = noServiceFiles{}
	}
	clock := c.Options.Now
	if clock == nil {
		clock = time.Now
	}
	k.now = func() time.Time { return clock().UTC().Truncate(time.Microsecond) } // as rows keep it
	if c.Options.Artifacts.Now == nil {
		c.Options.Artifacts.Now = k.now
	}
	k.artifacts = artifact.New(c.Store, c.Blobs, c.Options.Artifacts)
	k.audit = audit.New(c.Store, k.now)
	k.events = run.EventWriter{Log: k.log, Limit: k.shown.Bytes, Now: k.now}
	agents := c.Agents
	var err error
	if agents == nil {
		if agents, err = agent.Shipped(); err != nil {
			return nil, err
		}
	}
	k.tools.Servers = c.Servers
	if k.tools.BuiltIn, err = tool.NewSet(append(tool.BuiltIn(), c.Tools...)...); err != nil {
		return nil, err
	}
	known := agent.Known{Tools: append(k.tools.BuiltIn.Names(), agent.SubagentTool, tool.OpenSkill), Prefixes: k.tools.Prefixes(), Agents: make([]artel.AgentName, len(agents))}
	for i, d := range agents {
		known.Agents[i] = d.Name
	}
	vault := entries.NewVault(c.Store, c.Stored.Secrets, entries.Options{OnSecrets: c.Stored.OnSecrets, Log: k.logger, Now: k.now})
	k.toolbox = entries.NewToolbox(vault, entries.ToolsConfig{Fixed: k.tools, Files: c.Stored.Files, Agents: known.Agents, Reserved: []string{agent.SubagentTool, tool.OpenSkill}})
	k.tools.Granted = k.toolbox.Granted
	k.tools.Servers = k.toolbox
	withAccounts, pools := []accounts.Servers{k.toolbox.Pool()}, []*mcp.Pool{}
	if c.Servers != nil {
		k.tools.Servers = tool.ServerList{c.Servers, k.toolbox}
		if p, ok := c.Servers.(*mcp.Pool); ok {
			withAccounts, pools = append(withAccounts, p), append(pools, p)
		}
	}
	k.pools = append(mcp.Apps{k.toolbox.Pool()}, pools...)
	k.library = mcp.NewLibrary(append(pools, k.toolbox.Pool())...)
	k.accounts = accounts.New(c.Store, c.Stored.Secrets, withAccounts, accounts.Options{Log: k.logger, Now: k.now})
	for _, s := range withAccounts {
		s.Use(k.accounts)
	}
	c.Webhooks.Log, c.Webhooks.Now = k.logger, k.now
	k.webhooks = webhooks.New(c.Store, c.Stored.Secrets, c.Webhooks)
	for _, d := range agents {
		if flaws := d.Check(known); len(flaws) > 0 {
			return nil, artel.Errorf(artel.Invalid, "app.New", "agent "+string(d.Name), "%w", flaws)
		}
	}
	if err := c.Permissions.Check(); err != nil {
		return nil, err
	}
	k.counter, k.rules = token.NewCounter(), rule.New()
	if k.contexts, err = pipeline.NewRegistry(k.counter, append(pipeline.BuiltIn(), c.Options.Context.Processors...)...); err != nil {
		return nil, err
	}
	k.contexts.Log = k.logger
	k.settings, err = settings.New(settings.Config{
		Store: k.store, Services: k.services, Agents: agents, Pipeline: k.contexts, Rules: k.rules, Tools: k.tools,
		Deployment: c.Options.Context.Settings, Machine: c.Options.Context.Machine, Logger: k.logger, Now: k.now,
	})
	if err != nil {
		return nil, err
	}
	if k.skills, err = skills.New(skills.Config{Store: c.Store, Blobs: c.Blobs, Artifacts: k.artifacts, Folders: c.Skills, SpoolDir: c.Options.SpoolDir, Logger: k.logger, Now: k.now}); err != nil {
		return nil, err
	}
	k.meter = meter.New(meter.Config{People: c.Store.People(), User: c.UserLimits, Count: k.contexts.Count, OnRecord: c.OnUsage, Log: k.logger, Now: k.now, Shared: c.Access.SetupKey != ""})
	c.Options.Caller.Charge = k.meter.Charge
	k.caller, k.callerOptions = model.NewCaller(c.Providers, c.Options.Caller), c.Options.Caller
	k.stored = entries.New(entries.Config{Vault: vault, Registry: k.services, Caller: k.caller, Blobs: k.blobs, HTTP: c.Stored.HTTP})
	k.renditions = rendition.New(rendition.Config{
		Store: c.Store, Blobs: c.Blobs, Caller: k.caller, Services: c.Services, PDF: k.pdf,
		Options: rendition.Options{Transcription: c.Options.Context.Transcription, Caption: c.Options.Context.Caption, Log: k.logger, Now: k.now},
	})
	k.runs = run.New(run.Config{
		Store: k.store, Blobs: k.blobs, PDF: k.pdf, Events: k.events, Artifacts: k.artifacts, Renditions: k.renditions, Services: k.services, Caller: k.caller,
		Engine:   agent.New(k.contexts, k.tools.BuiltIn, k.caller, k.now),
		Pipeline: k.contexts, Settings: k.settings.Reader, Tools: k.tools, Env: k.env(), Skills: k.skills.For, Permissions: c.Permissions, Background: c.Background,
		Placement: c.Options.Context.Placement, Machine: c.Options.Context.Machine, Locale: k.locale, Logger: k.logger, Now: k.now, OnRun: c.OnRun, MostRuns: c.UserRuns,
		MayWork: func(ctx context.Context, o artel.Owner) error { return k.access.MayWork(ctx, o) },
	})
	k.access = access.New(access.Config{
		Store: k.store, Options: c.Access, Log: k.logger, Now: k.now, CheckKey: k.checkKey,
		Stop:    func(ctx context.Context, o artel.Owner, why string) error { return run.Stop(ctx, k.runs, o, why) },
		Removed: k.accounts.Remove,
	})
	return k, nil
}

func (k *core) view(ctx context.Context, fn func(store.Tx) error) error {
	return k.store.View(ctx, artel.OwnerOf(ctx), fn)
}

// recordAct adds an act without a transaction to the audit log. An error is only
// logged: a full disk must not keep users from their own data.
func (k *core) recordAct(ctx context.Context, a audit.Act) {
	if err := k.audit.Add(ctx, a); err != nil && ctx.Err() == nil {
		k.logger.ErrorContext(ctx, "an act is missing in the audit log", "action", a.Action, "target", a.Target, "err", err)
	}
}

func (k *core) update(ctx context.Context, fn func(store.Tx) error) error {
	return k.store.Update(ctx, artel.OwnerOf(ctx), fn)
}
