// SPDX-License-Identifier: Apache-2.0

package app

import (
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/probe"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/macro"
	"github.com/artelhq/artel/store"
)

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
