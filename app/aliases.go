// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/probe"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/run/record"
	"github.com/artelhq/artel/store"
)

// WithOwner returns a context in which o acts; see [artel.WithOwner].
func WithOwner(ctx context.Context, o artel.Owner) context.Context { return artel.WithOwner(ctx, o) }

// Of package run.
type (
	// Runs are the use cases of runs.
	Runs = run.Runs
	// Permissions are the use cases of questions that runs ask users.
	Permissions = run.Permissions
	// Previews build requests that are not sent.
	Previews = run.Previews
	// Input is a user message.
	Input = run.Input
	// An Edit replaces a message on a new branch.
	Edit = run.Edit
	// A Clock is what makes two builds of one draft the same.
	Clock = run.Clock
	// Waiting is what waits in a conversation, in the order in which it came.
	Waiting = run.Waiting
	// A QueuedMessage is a message that waits until the runs before it have ended.
	QueuedMessage = run.QueuedMessage
	// An Injection is a message to an active run that its model has not received yet.
	Injection = run.Injection
	// A Permission is a question of a run to its user.
	Permission = run.Permission
	// A Preview is the first request that a message would lead to if it were sent now.
	Preview = run.Preview
	// A Candidate is a file that a user may send.
	Candidate = run.Candidate
	// BackgroundTasks are small model calls beside those of agents.
	BackgroundTasks = run.BackgroundTasks
	// An InlineDraft is the whole input of a build, without a conversation.
	InlineDraft = run.InlineDraft
	// An InlineMessage is a message with the files that belong to it.
	InlineMessage = run.InlineMessage
	// An InlineService is a service that need not be configured.
	InlineService = run.InlineService
	// An InlineFile is an attachment.
	InlineFile = run.InlineFile
)

// Error codes, limits and names of package run.
const (
	CodeRunActive          = run.CodeRunActive
	CodeRunNotActive       = run.CodeRunNotActive
	CodePermissionResolved = run.CodePermissionResolved
	PreviewID              = run.PreviewID
	MaxHead                = run.MaxHead
	OwnService             = run.OwnService
	AutoService            = model.AutoService
)

// Of package record.
type (
	// A ContextKey names a model call.
	ContextKey = record.ContextKey
	// A ContextSummary is what a list says about the context of one model call.
	ContextSummary = record.ContextSummary
	// ContextFacts are what is known of a context when it is built.
	ContextFacts = record.ContextFacts
	// A ContextPrefix is the beginning that two requests share.
	ContextPrefix = record.ContextPrefix
	// A ContextError says why a context could not be built.
	ContextError = record.ContextError
	// CarriedMedia is how some bytes went to a model's API.
	CarriedMedia = record.CarriedMedia
	// A Block is one message of a request, with where it comes from.
	Block = record.Block
)

// Of package inspect.
type (
	// Contexts are the use cases of what models were sent.
	Contexts = inspect.Contexts
	// A BuiltContext is the whole record of one model call.
	BuiltContext = inspect.BuiltContext
	// A SentRequest is a request as it went to the model's API, with the digests of bytes in their place, and stars in that of what is signed in addresses.
	SentRequest = inspect.SentRequest
	// A ContextDiff is how the requests of two model calls differ.
	ContextDiff = inspect.ContextDiff
	// A MessageChange is what became of a message between two requests.
	MessageChange = inspect.MessageChange
	// A Change is what became of something.
	Change = inspect.Change
	// A FirstDiff is the first byte in which two requests differ, and who made it differ.
	FirstDiff = inspect.FirstDiff
	// A Cause says why two requests begin to differ.
	Cause = inspect.Cause
	// A MessagePass is what one processor made of a message, or one rule of it where several have worked on the message.
	MessagePass = inspect.MessagePass
	// A Why answers whether a model saw something in a call, and why, or why not.
	Why = inspect.Why
	// A WhyFinding is one thing that happened to what was asked about.
	WhyFinding = inspect.WhyFinding
	// A WhyCode is a kind of WhyFinding.
	WhyCode = inspect.WhyCode
)

// What became of a message between two requests, and why.
const (
	Same          = inspect.Same
	Added         = inspect.Added
	Removed       = inspect.Removed
	Changed       = inspect.Changed
	CauseTarget   = inspect.CauseTarget
	CauseTools    = inspect.CauseTools
	CauseInserted = inspect.CauseInserted
	CauseRemoved  = inspect.CauseRemoved
	CauseText     = inspect.CauseText
	CauseEnd      = inspect.CauseEnd
	WhySent       = inspect.WhySent
	WhyChanged    = inspect.WhyChanged
	WhyMerged     = inspect.WhyMerged
	WhyDropped    = inspect.WhyDropped
	WhyCut        = inspect.WhyCut
	WhyRemoved    = inspect.WhyRemoved
	WhyMuted      = inspect.WhyMuted
	WhyBranch     = inspect.WhyBranch
	WhyLater      = inspect.WhyLater
	WhySummarized = inspect.WhySummarized
	WhyAgent      = inspect.WhyAgent
	WhyBlank      = inspect.WhyBlank
	WhyFile       = inspect.WhyFile
	WhyUnattached = inspect.WhyUnattached
	WhyNotHere    = inspect.WhyNotHere
)

// Of package settings.
type (
	// Agents are the use cases of agents.
	Agents = settings.Agents
	// An Agent is a definition, and what is known about it.
	Agent = settings.Agent
	// An AgentSource says where an agent is from.
	AgentSource = settings.AgentSource
	// Pipeline is the use cases of the context pipeline.
	Pipeline = settings.Pipeline
	// A Level is the list of settings of one service or agent.
	Level = settings.Level
	// A LevelAt names a level that people may set.
	LevelAt = settings.LevelAt
	// An Order is that of the processors that people may order.
	Order = settings.Order
	// An Overview is how the pipeline is configured for an agent on a service, with all that it comes from, as it was at one moment.
	Overview = settings.Overview
	// A ProcessorState is a processor as it is configured for an agent on a service.
	ProcessorState = settings.ProcessorState
	// An UnknownSetting names an unknown or removed processor and has no effect.
	UnknownSetting = settings.UnknownSetting
	// A SettingLevel is where a setting comes from.
	SettingLevel = settings.SettingLevel
	// Profiles are the use cases of what people say about themselves.
	Profiles = settings.Profiles
	// A Profile is what a person has said, and which revision of it this is.
	Profile = settings.Profile
	// A SettingsFile is everything that a person has set, as one file.
	SettingsFile = settings.SettingsFile
	// A SettingsReport says what an import of a file changes.
	SettingsReport = settings.SettingsReport
	// A SettingsChange is one setting that another file has otherwise.
	SettingsChange = settings.SettingsChange
	// A SettingsArea is a part of a file of settings.
	SettingsArea = settings.SettingsArea
	// Rules are the use cases of the rules that find and replace.
	Rules = settings.Rules
	// A RuleLevel is one of the places where rules stand.
	RuleLevel = settings.RuleLevel
	// A RulePlace names one list of rules.
	RulePlace = settings.RulePlace
	// A RuleLayer is the rules of one place.
	RuleLayer = settings.RuleLayer
	// Rulebook is all rules that hold for an agent on a service.
	Rulebook = settings.Rulebook
	// A Trial is a text on which the rules of an agent on a service are tried out.
	Trial = settings.Trial
	// Tried is what came of a trial.
	Tried = settings.Tried
	// A KnownMacro is one of the macros that there are, with how it is written and what it gives now.
	KnownMacro = settings.KnownMacro
)

// Words and error codes of package settings.
const (
	AnyRevision       = settings.AnyRevision
	CodeAgentReadOnly = settings.CodeAgentReadOnly
	CodeAgentExists   = settings.CodeAgentExists
	AgentShipped      = settings.AgentShipped
	AgentFile         = settings.AgentFile
	AgentStored       = settings.AgentStored
	RulesOfDeployment = settings.RulesOfDeployment
	RulesOfService    = settings.RulesOfService
	RulesOfAgent      = settings.RulesOfAgent
	RulesOfUser       = settings.RulesOfUser
	AreaProfile       = settings.AreaProfile
	AreaOrder         = settings.AreaOrder
	AreaService       = settings.AreaService
	AreaAgent         = settings.AreaAgent
	SettingAdded      = settings.Added
	SettingRemoved    = settings.Removed
	SettingChanged    = settings.Changed
	ByDefault         = pipeline.ByDefault
	ByDeployment      = pipeline.ByDeployment
	ByModel           = pipeline.ByModel
	ByAgent           = pipeline.ByAgent
)

// ReadAgent reads the Markdown file of an agent; see [agent.Read].
func ReadAgent(file string, src []byte) (agent.Definition, error) { return agent.Read(file, src) }

// ParseSettingsFile reads a file of settings; see [settings.ParseSettingsFile].
func ParseSettingsFile(data []byte) (SettingsFile, error) { return settings.ParseSettingsFile(data) }

// KnownMacros returns all macros by name; see [settings.KnownMacros].
func KnownMacros(values map[string]string, now time.Time) []KnownMacro {
	return settings.KnownMacros(values, now)
}

// The faces see this package and the words below it, not the rooms between.
// These are the types of those rooms that use cases take and return.
type (
	// A Page asks for a part of a list.
	Page = store.Page
	// A ConversationQuery selects conversations.
	ConversationQuery = store.ConversationQuery
	// A Listed is a conversation in a list.
	Listed = store.Listed
	// FollowOptions are the settings of following a log.
	FollowOptions = event.FollowOptions
	// An Answer is a remembered response.
	Answer = store.Answer
	// Staged is an upload whose bytes are in, and which is not yet visible.
	Staged = artifact.Staged
	// A Draft is what a person wants an artifact to be.
	Draft = artifact.Draft
	// A Stale is why a draft was not saved.
	Stale = artifact.Stale
	// An Entry is one row of an artifact's history.
	Entry = artifact.Entry
	// A Scope says which states of an artifact a reader wants to see.
	Scope = artifact.Scope
	// A DiffQuery says which versions to compare.
	DiffQuery = artifact.DiffQuery
	// A Diff is what differs between two versions of a text.
	Diff = artifact.Diff
	// Derived is what there is to read of a version.
	Derived = artifact.Derived
	// An AgentDefinition is an agent as it is written.
	AgentDefinition = agent.Definition
	// AgentLimits end a run that goes too far.
	AgentLimits = agent.Limits
	// An AgentPermission says whether an agent may call a tool.
	AgentPermission = agent.Permission
	// AgentPermissions are those of tools by their names.
	AgentPermissions = agent.Permissions
	// An AgentFlaw is one thing that is wrong with an agent's definition.
	AgentFlaw = agent.Flaw
	// AgentFlaws are all that is wrong with an agent's definition.
	AgentFlaws = agent.Flaws
	// A Service is one configured model endpoint.
	Service = model.Service
	// A Finding is one place where models were looked for.
	Finding = model.Finding
	// Provenance says who stated a fact about a service.
	Provenance = model.Provenance
	// A Transport is a way in which media reach a service.
	Transport = model.Transport
	// A Mark is what an exchange with a service has shown.
	Mark = model.Mark
	// A Place is where in a request media stand.
	Place = model.Place
	// A Probed is what came of trying out a service.
	Probed = probe.Report
	// A ProbeOf is what came of one canary.
	ProbeOf = probe.Result
	// A Stated is a yes or no about a service, and who said it.
	Stated = model.Fact[bool]
	// Settled is what takes the place of a piece of media in a request.
	Settled = pipeline.PreparedMedia
	// A ProcessorSetting configures one processor at one level.
	ProcessorSetting = pipeline.Setting
	// A ProcessorField describes one value of a configuration.
	ProcessorField = pipeline.Field
	// A MacroProblem is a macro that was left as it is.
	MacroProblem = macro.Problem
	// UserProfile is what people say about themselves.
	UserProfile = pipeline.Profile
	// A BuildRecord tells how a request came to be.
	BuildRecord = pipeline.Record
	// A BuildResult is what a build gives.
	BuildResult = pipeline.Result
	// Resolved is how a processor is configured where the levels come together.
	Resolved = pipeline.Resolved
	// A Recipe says what a request was made of.
	Recipe = pipeline.Manifest
	// A PresetMessage is a message that an agent's author has written.
	PresetMessage = pipeline.Preset
	// InlineAgent is what a build knows about an agent.
	InlineAgent = pipeline.Agent
	// ContextLimits say how much of a conversation an agent is sent.
	ContextLimits = pipeline.Limits
	// A Dialect is a protocol of model APIs.
	Dialect = model.Dialect
	// A ToolSpec is what a tool says of itself.
	ToolSpec = model.ToolSpec
	// A ToolResult is the outcome of a tool call.
	ToolResult = tool.Result
	// ServerHealth is how a server of tools is doing.
	ServerHealth = tool.ServerHealth
	// A RouteResult says what a model would get of some content.
	RouteResult = route.Result
)

// SubagentTool is the name of the tool by which an agent gives work to another.
const SubagentTool = agent.SubagentTool

// ParseLocale returns the language of texts for people that is nearest to a
// tag; English where there is none.
func ParseLocale(tag string) phrase.Locale { return phrase.ParseLocale(tag) }

// The scopes.
const (
	Visible  = artifact.Visible
	WithLive = artifact.WithLive
	Journal  = artifact.Journal
)
