// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
)

// AgentFields are the definition of an agent in JSON: the keys of its file's
// front matter, and its prompt.
type AgentFields struct {
	Name        artel.AgentName   `json:"name"`
	Description string            `json:"description,omitempty" doc:"what it is for; other agents read it"`
	Service     artel.ServiceID   `json:"service,omitempty" doc:"absent: the default"`
	Fallbacks   []artel.ServiceID `json:"fallbacks,omitempty" doc:"asked in this order where the service cannot be reached"`
	Tools       []string          `json:"tools,omitempty" doc:"it can call no others"`
	Subagents   []artel.AgentName `json:"subagents,omitempty" doc:"agents that it can delegate to"`
	Skills      agent.SkillNames  `json:"skills,omitempty" doc:"that it can open; * for all"`
	Permissions agent.Permissions `json:"permissions,omitempty" doc:"of tools by their names, and of all others by *: auto, ask or deny"`
	Limits      AgentLimits       `json:"limits,omitzero"`

	PresetMessages []pipeline.Preset  `json:"preset_messages,omitempty"`
	Context        AgentContext       `json:"context,omitzero"`
	Clock          AgentClock         `json:"clock,omitzero" doc:"the time that it is given"`
	Processors     []pipeline.Setting `json:"processors,omitempty" doc:"of its file; what is set at /agents/{id}/processors goes before them"`
	Compaction     AgentCompaction    `json:"compaction,omitzero"`
	Sampling       pipeline.Sampling  `json:"sampling,omitzero" doc:"of every answer: temperature, top_p and stop; absent: the service's default"`

	Character pipeline.Character `json:"character,omitzero" doc:"whom it plays: values of macros"`
	Greetings []string           `json:"greetings,omitempty" doc:"first messages to choose from, with macros"`

	Prompt string `json:"prompt,omitempty" doc:"the role prompt, with macros"`
}

// AgentLimits end a run that exceeds them.
type AgentLimits struct {
	Turns     int     `json:"turns,omitempty" doc:"model calls; 0: 40"`
	ToolCalls int     `json:"tool_calls,omitempty" doc:"0: 200"`
	Seconds   int     `json:"seconds,omitempty" doc:"wall clock; 0: 3600"`
	Tokens    int     `json:"tokens,omitempty" doc:"in and out, of all model calls; 0: no limit"`
	Cost      float64 `json:"cost,omitempty" doc:"in US dollars, as far as it is known; 0: no limit"`
	Depth     int     `json:"depth,omitempty" doc:"how deep subagents may have subagents; 0: 2"`
	Answer    int     `json:"answer,omitempty" doc:"seconds in which people answer whether a tool may be called; 0: 300"`
}

// AgentContext limits how much of a conversation an agent is sent.
type AgentContext struct {
	MaxTokens    int  `json:"max_tokens,omitempty" doc:"request and reply together; 0: the service's window alone limits"`
	ReplyReserve *int `json:"reply_reserve,omitempty" doc:"tokens kept free for the reply; absent: the model's longest reply, at most a quarter of the window"`
	KeepChars    int  `json:"keep_chars,omitempty" doc:"code points that are kept of the first message that does not fit"`
}

// An AgentClock is a time of its own: virtual at the moment real, running scale
// times as fast.
type AgentClock struct {
	Virtual time.Time `json:"virtual,omitzero"`
	Real    time.Time `json:"real,omitzero"`
	Scale   float64   `json:"scale,omitempty" doc:"0: 1"`
}

// AgentCompaction says when the history of an agent is summarised.
type AgentCompaction struct {
	Threshold int  `json:"threshold,omitempty" doc:"in percent of what fits into a request; 0: 80"`
	Off       bool `json:"off,omitempty" doc:"the oldest messages are left out instead"`
}

// AgentFieldsOf converts a definition.
func AgentFieldsOf(d agent.Definition) AgentFields {
	return AgentFields{
		Name: d.Name, Description: d.Description, Service: d.Service, Fallbacks: d.Fallbacks, Tools: d.Tools, Subagents: d.Subagents, Skills: d.Skills,
		Permissions: d.Permissions, Limits: AgentLimits(d.Limits), PresetMessages: d.Presets, Context: AgentContext(d.Context),
		Clock: AgentClock(d.Clock), Processors: d.Processors, Compaction: AgentCompaction(d.Compaction), Prompt: d.Prompt,
		Sampling: d.Sampling, Character: d.Character, Greetings: d.Greetings,
	}
}

// Definition is the inverse of [AgentFieldsOf].
func (a AgentFields) Definition() agent.Definition {
	d := agent.Definition{
		Name: a.Name, Description: a.Description, Service: a.Service, Fallbacks: a.Fallbacks, Tools: a.Tools, Subagents: a.Subagents, Skills: a.Skills,
		Permissions: a.Permissions, Limits: agent.Limits(a.Limits), Presets: a.PresetMessages, Context: pipeline.Limits(a.Context),
		Processors: a.Processors, Prompt: a.Prompt, Sampling: a.Sampling, Character: a.Character, Greetings: a.Greetings,
	}
	d.Clock.Virtual, d.Clock.Real, d.Clock.Scale = a.Clock.Virtual, a.Clock.Real, a.Clock.Scale
	d.Compaction.Threshold, d.Compaction.Off = a.Compaction.Threshold, a.Compaction.Off
	return d
}

// An AgentView is an agent.
type AgentView struct {
	AgentFields
	Source       settings.AgentSource `json:"source" enum:"shipped,file,stored" doc:"it comes with Artel, it is a file of the operator, or it was created through the API or the page"`
	File         string               `json:"file,omitempty" doc:"that it is read from"`
	ReadOnly     bool                 `json:"read_only"`
	UpdatedAt    *time.Time           `json:"updated_at,omitempty"`
	RunsOn       artel.ServiceID      `json:"runs_on,omitempty" doc:"the service that answers where a message names none; absent: its service is not there"`
	Capabilities []artel.Capability   `json:"capabilities" nullable:"false" doc:"what that service takes"`
	MissingTools []string             `json:"missing_tools,omitempty" doc:"that it names and that do not exist now"`
}

// AgentViewOf converts an agent.
func AgentViewOf(a settings.Agent) AgentView {
	v := AgentView{
		AgentFields: AgentFieldsOf(a.Definition), Source: a.Source, File: a.File, ReadOnly: a.ReadOnly(),
		RunsOn: a.Runs.ID, Capabilities: nonNil(a.Runs.Capabilities.Input.Value), MissingTools: a.Missing,
	}
	if !a.UpdatedAt.IsZero() {
		v.UpdatedAt = &a.UpdatedAt
	}
	return v
}

// An AgentCheck is the answer of POST /agents/check.
type AgentCheck struct {
	OK     bool         `json:"ok"`
	Errors []FieldError `json:"errors" nullable:"false"`
}

func flawViews(flaws agent.Flaws, language string) []FieldError {
	l := phrase.ParseLocale(language)
	return mapSlice(flaws, func(f agent.Flaw) FieldError {
		escape := strings.NewReplacer("~", "~0", "/", "~1")
		field, rest, nested := strings.Cut(f.Field, ".")
		pointer := "/" + escape.Replace(field)
		if nested {
			pointer += "/" + escape.Replace(rest)
		}
		return FieldError{Pointer: pointer, Detail: f.In(l)}
	})
}

func answerAgent(a settings.Agent, err error) (*revised[AgentView], error) {
	return answerRevision(a.Revision, AgentViewOf(a), err)
}

// An AgentPath names an agent.
type AgentPath struct {
	Name string `path:"name" maxLength:"256"`
}

func (f *server) agents() {
	register(f, f.op(http.MethodGet, "/agents", "list-agents", "List the agents: those of files, which cannot be changed here, and those that you have made", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[AgentView]], error) {
			all, err := f.app.Agents.List(ctx)
			return answer(listOf(mapSlice(all, AgentViewOf), ""), err)
		})
	register(f, f.op(http.MethodGet, "/agents/{name}", "read-agent", "Read an agent", http.StatusOK),
		func(ctx context.Context, in *AgentPath) (*revised[AgentView], error) {
			return answerAgent(f.app.Agents.Find(ctx, artel.AgentName(in.Name)))
		})
	register(f, f.op(http.MethodPost, "/agents", "create-agent", "Make an agent", http.StatusCreated),
		func(ctx context.Context, in *struct{ Body AgentFields }) (*revised[AgentView], error) {
			return answerAgent(f.app.Agents.Create(ctx, in.Body.Definition()))
		})
	register(f, f.op(http.MethodPut, "/agents/{name}", "save-agent", "Replace an agent that you have made", http.StatusOK),
		func(ctx context.Context, in *struct {
			AgentPath
			SettingMatch
			Body AgentFields
		},
		) (*revised[AgentView], error) {
			n, err := in.revision()
			if err == nil && in.Body.Name != artel.AgentName(in.Name) {
				err = artel.Errorf(artel.Invalid, "httpapi.Agents", "name", "the body says %q and the path another name; an agent keeps its name", artel.Shorten(string(in.Body.Name), 80))
			}
			if err != nil {
				return nil, err
			}
			return answerAgent(f.app.Agents.Save(ctx, in.Body.Definition(), n))
		})
	register(f, f.op(http.MethodDelete, "/agents/{name}", "delete-agent", "Delete an agent that you have made", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			AgentPath
			SettingMatch
		},
		) (*none, error) {
			n, err := in.revision()
			if err == nil {
				err = f.app.Agents.Delete(ctx, artel.AgentName(in.Name), n)
			}
			return nil, err
		})
	register(f, f.op(http.MethodPost, "/agents/check", "check-agent", "Say what is wrong with an agent, and keep nothing", http.StatusOK),
		func(ctx context.Context, in *struct {
			Language string `query:"language" maxLength:"100" doc:"of the texts, as a BCP 47 tag; English or Chinese, English where it is absent"`
			Body     AgentFields
		},
		) (*body[AgentCheck], error) {
			flaws, err := f.app.Agents.Check(ctx, in.Body.Definition())
			return answer(AgentCheck{len(flaws) == 0, flawViews(flaws, in.Language)}, err)
		})
	f.agentFiles()
}

// agentFiles registers the import and export of agents as Markdown files.
func (f *server) agentFiles() {
	const markdown = "text/markdown; charset=utf-8"
	register(f, f.op(http.MethodGet, "/agents/{name}/markdown", "export-agent", "Export an agent as the Markdown file that agents_dir takes", http.StatusOK),
		func(ctx context.Context, in *AgentPath) (*struct {
			Type        string `header:"Content-Type"`
			Disposition string `header:"Content-Disposition"`
			Body        []byte
		}, error,
		) {
			a, err := f.app.Agents.Find(ctx, artel.AgentName(in.Name))
			if err != nil {
				return nil, err
			}
			return &struct {
				Type        string `header:"Content-Type"`
				Disposition string `header:"Content-Disposition"`
				Body        []byte
			}{markdown, dispositionOf("attachment", string(a.Name)+".md"), a.Markdown()}, nil
		})
	register(f, f.op(http.MethodPost, "/agents/import", "import-agent", "Make an agent of a Markdown file; with replace, also in the place of one that you have made", http.StatusOK),
		func(ctx context.Context, in *struct {
			Name    string `query:"name" maxLength:"256" doc:"that the agent gets where its file names none"`
			Replace bool   `query:"replace"`
			RawBody []byte `contentType:"text/markdown"`
		},
		) (*revised[AgentView], error) {
			d, err := agent.Read(in.Name+".md", in.RawBody)
			if err != nil {
				return nil, err
			}
			if in.Replace {
				if _, err := f.app.Agents.Find(ctx, d.Name); err == nil {
					return answerAgent(f.app.Agents.Save(ctx, d, settings.AnyRevision))
				}
			}
			return answerAgent(f.app.Agents.Create(ctx, d))
		})
}
