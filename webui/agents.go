// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
)

// An AgentsPage lists the agents.
type AgentsPage struct {
	frame
	Agents []ShownAgent
}

// An AgentPage shows one agent, with a form to try it.
type AgentPage struct {
	frame
	Agent ShownAgent

	Character ShownCharacter

	Text    string // for the agent, kept after a failed try
	Problem string // of the failed try
}

// A ShownAgent is an agent as the page shows it.
type ShownAgent struct {
	settings.Agent
	Uses   []AgentTool
	Callee []artel.AgentName // existing agents it can delegate to
	UsedBy []artel.AgentName // agents that can delegate to it
	Model  string            // answering model; "": it does not exist
	Asked  artel.ServiceID   // configured service
}

// An AgentTool is a tool of an agent.
type AgentTool struct {
	Name       string
	Permission string
	Gone       bool // there is no such tool
}

// agentURL is the URL of an agent. The /a/ keeps names apart from words such as
// "new".
func agentURL(name artel.AgentName) string { return "/agents/a/" + url.PathEscape(string(name)) }

// URL is the address of the agent's page.
func (a ShownAgent) URL() string { return agentURL(a.Name) }

// EditURL is the address of its editor.
func (a ShownAgent) EditURL() string { return a.URL() + "/edit" }

// CopyURL is the address of an editor for a copy.
func (a ShownAgent) CopyURL() string {
	return "/agents/new?" + url.Values{"from": {string(a.Name)}}.Encode()
}

// ExportURL is the address of its Markdown file.
func (a ShownAgent) ExportURL() string {
	return "/api/v1/agents/" + url.PathEscape(string(a.Name)) + "/markdown"
}

// PipelineURL is the address of its pipeline settings.
func (a ShownAgent) PipelineURL() string { return pipelineURL(a.Name, "", "") }

// RulesURL is the address of its rules.
func (a ShownAgent) RulesURL() string { return "/rules?" + RuleScope{Agent: string(a.Name)}.Query() }

// Links returns the page links of agents.
func Links(names []artel.AgentName) []Link {
	out := make([]Link, len(names))
	for i, n := range names {
		out[i] = Link{string(n), agentURL(n)}
	}
	return out
}

// A Link is a name and its URL.
type Link struct{ Name, URL string }

// Callees are the agent's existing subagents.
func (a ShownAgent) Callees() []Link { return Links(a.Callee) }

// Callers are the agents that name it as a subagent.
func (a ShownAgent) Callers() []Link { return Links(a.UsedBy) }

// Bounds are the run limits in effect; unset ones are left out.
func (a ShownAgent) Bounds() (out []Bound) {
	l := a.Limits.Full()
	for _, b := range agentBounds {
		if v := b.value(l); v != "" {
			out = append(out, Bound{b.title, v, b.value(a.Limits) == ""})
		}
	}
	return out
}

// A Bound is a limit of an agent's runs.
type Bound struct {
	Title   phrase.Key
	Value   string
	Default bool
}

// shownAgents reads the agents with their callers and callees.
func (ui *handler) shownAgents(r *http.Request) ([]ShownAgent, error) {
	all, err := ui.app.Agents.List(r.Context())
	if err != nil {
		return nil, err
	}
	out := make([]ShownAgent, len(all))
	for i, a := range all {
		out[i] = ShownAgent{Agent: a, Asked: a.Service, Model: cmp.Or(a.Runs.Name, string(a.Runs.ID))}
		for _, t := range a.Tools {
			out[i].Uses = append(out[i].Uses, AgentTool{t, string(a.Permission(t)), slices.Contains(a.Missing, t)})
		}
		for _, b := range all {
			if slices.Contains(b.Subagents, a.Name) {
				out[i].UsedBy = append(out[i].UsedBy, b.Name)
			}
			if slices.Contains(a.Subagents, b.Name) {
				out[i].Callee = append(out[i].Callee, b.Name)
			}
		}
	}
	return out, nil
}

func (ui *handler) shownAgent(r *http.Request, name artel.AgentName) (ShownAgent, error) {
	all, err := ui.shownAgents(r)
	if err != nil {
		return ShownAgent{}, err
	}
	for _, a := range all {
		if a.Name == name {
			return a, nil
		}
	}
	return ShownAgent{}, artel.Errorf(artel.NotFound, "webui", "agent", "%s", locale(r).Say(phrase.PageAgentsMissing, nil))
}

func (ui *handler) agents(w http.ResponseWriter, r *http.Request) { ui.showAgents(w, r, nil) }

// showAgents renders the list, with a toast.
func (ui *handler) showAgents(w http.ResponseWriter, r *http.Request, t *Toast) {
	all, err := ui.shownAgents(r)
	if err == nil && wantsFragment(r) {
		parts := []part{{"agent list", all}}
		if t != nil {
			parts = append(parts, part{"toast", *t})
		}
		ui.fragments(w, r, http.StatusOK, parts...)
		return
	}
	p := AgentsPage{Agents: all}
	if err == nil {
		p.frame, err = ui.frame(r, "")
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	p.Title, p.Toast = locale(r).Say(phrase.PageAgents, nil), t
	ui.show(w, r, http.StatusOK, "agents.html", p)
}

func (ui *handler) agent(w http.ResponseWriter, r *http.Request) {
	p := AgentPage{Text: r.URL.Query().Get("text")}
	ui.showAgent(w, r, http.StatusOK, p)
}

func (ui *handler) showAgent(w http.ResponseWriter, r *http.Request, status int, p AgentPage) {
	var err error
	if p.Agent, err = ui.shownAgent(r, artel.AgentName(r.PathValue("name"))); err == nil {
		p.frame, err = ui.frame(r, "")
	}
	if err == nil {
		p.Character, err = ui.character(r, p.Agent.Agent)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	p.Title = string(p.Agent.Name)
	l, args := locale(r), map[string]any{"Name": p.Agent.Name}
	switch {
	case r.URL.Query().Has("saved"):
		p.Toast = &Toast{ID: agentToast, Text: l.Say(phrase.PageAgentsSaved, args)}
	case r.URL.Query().Has("restored"):
		p.Toast = &Toast{ID: agentToast, Text: l.Say(phrase.PageAgentsRestored, args)}
	}
	ui.show(w, r, status, "agent.html", p)
}

const agentToast = "toast-agent"

// A deletedAgent holds the state needed to restore an agent.
type deletedAgent struct {
	Agent    agent.Definition   `json:"agent"`
	Settings []pipeline.Setting `json:"settings,omitempty"` // of its processors
	Set      bool               `json:"set,omitempty"`
	Picture  *settings.Picture  `json:"picture,omitempty"`
}

// deleteAgent deletes an agent. The toast's undo form carries its whole
// definition.
func (ui *handler) deleteAgent(w http.ResponseWriter, r *http.Request) {
	ctx, name := r.Context(), artel.AgentName(r.PathValue("name"))
	was, err := ui.app.Agents.Find(ctx, name)
	var level settings.Level
	if err == nil {
		level, err = ui.app.Pipeline.Level(ctx, settings.LevelAt{Agent: name})
	}
	var picture settings.Picture
	if err == nil {
		if picture, err = ui.app.Characters.Picture(ctx, name); errors.Is(err, artel.NotFound) {
			err = nil
		}
	}
	if err == nil {
		err = ui.app.Agents.Delete(ctx, name, was.Revision)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	kept := deletedAgent{Agent: was.Definition, Set: level.Set}
	if level.Set {
		kept.Settings = level.Settings
	}
	if picture.Data != nil {
		kept.Picture = &picture
	}
	ui.showAgents(w, r, &Toast{
		ID: agentToast, Text: locale(r).Say(phrase.PageAgentsDeleted, map[string]any{"Name": name}), Undo: "/agents/restore", Keep: string(encoded(kept)),
	})
}

// restoreAgent restores a deleted agent from the toast's form.
func (ui *handler) restoreAgent(w http.ResponseWriter, r *http.Request) {
	v, err := settingsForm(w, r)
	var kept deletedAgent
	if err == nil {
		if err = json.Unmarshal([]byte(v.Get("keep")), &kept); err != nil {
			err = artel.Errorf(artel.Invalid, "webui", "keep", "the undo data cannot be read: %w", err)
		}
	}
	if err == nil {
		_, err = ui.app.Agents.Create(r.Context(), kept.Agent)
	}
	if err == nil && kept.Picture != nil {
		err = ui.app.Characters.SetPicture(r.Context(), kept.Agent.Name, kept.Picture.Data)
	}
	if err == nil && kept.Set {
		_, err = ui.app.Pipeline.SetLevel(r.Context(), settings.LevelAt{Agent: kept.Agent.Name}, append([]pipeline.Setting{}, kept.Settings...), settings.AnyRevision)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if !wantsFragment(r) {
		http.Redirect(w, r, agentURL(kept.Agent.Name)+"?restored", http.StatusSeeOther)
		return
	}
	all, err := ui.shownAgents(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.fragments(w, r, http.StatusOK, part{"agent list", all}, part{"gone", agentToast},
		said(locale(r), phrase.PageAgentsRestored, map[string]any{"Name": kept.Agent.Name}))
}

// beginWith starts a conversation with a greeting of an agent.
func (ui *handler) beginWith(w http.ResponseWriter, r *http.Request) {
	v, err := settingsForm(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	n := atoi(v.Get("greeting"))
	c, err := ui.app.Conversations.Create(r.Context(), app.NewConversation{Agent: artel.AgentName(r.PathValue("name")), Greeting: &n})
	if err != nil {
		status, problem := ui.explain(r, err)
		ui.showAgent(w, r, status, AgentPage{Problem: problem})
		return
	}
	redirect(w, r, conversationURL(c.ID))
}

// tryAgent starts a conversation with an agent.
func (ui *handler) tryAgent(w http.ResponseWriter, r *http.Request) {
	v, err := settingsForm(w, r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	text := strings.ReplaceAll(v.Get("text"), "\r\n", "\n")
	if strings.TrimSpace(text) == "" {
		err = artel.Errorf(artel.Invalid, "webui", "", "%s", locale(r).Say(phrase.PageEmpty, nil))
	}
	var c artel.Conversation
	if err == nil {
		c, err = ui.app.Conversations.Create(r.Context(), app.NewConversation{Agent: artel.AgentName(r.PathValue("name"))})
	}
	if err == nil {
		if _, err = ui.app.Runs.Send(r.Context(), c.ID, run.Input{Text: text}); err != nil {
			ui.abandon(r, c.ID)
		}
	}
	switch {
	case err == nil:
		redirect(w, r, conversationURL(c.ID))
	case errors.Is(err, artel.Internal):
		ui.fail(w, r, err)
	default:
		status, problem := ui.explain(r, err)
		ui.showAgent(w, r, status, AgentPage{Text: text, Problem: problem})
	}
}
