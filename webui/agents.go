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
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/phrase"
)

// An AgentsPage lists the agents.
type AgentsPage struct {
	frame
	Agents []ShownAgent
}

// An AgentPage is all there is to see of one agent, and a place to try it.
type AgentPage struct {
	frame
	Agent   ShownAgent
	Text    string // for the agent, kept from a try that failed
	Problem string // why it failed
}

// A ShownAgent is an agent with what its page says of it.
type ShownAgent struct {
	app.Agent
	Uses   []AgentTool
	Callee []artel.AgentName // whom it can give work to, and who is there
	UsedBy []artel.AgentName // who can give it work
	Model  string            // that answers; "": it is not there
	Asked  artel.ServiceID   // that it wants
}

// An AgentTool is a tool of an agent.
type AgentTool struct {
	Name       string
	Permission string
}

// agentURL is where an agent is shown. Names may be words of the page.
func agentURL(name artel.AgentName) string { return "/agents/a/" + url.PathEscape(string(name)) }

// URL is where the agent is shown.
func (a ShownAgent) URL() string { return agentURL(a.Name) }

// EditURL is where it is changed.
func (a ShownAgent) EditURL() string { return a.URL() + "/edit" }

// CopyURL is where another one is made of it.
func (a ShownAgent) CopyURL() string {
	return "/agents/new?" + url.Values{"from": {string(a.Name)}}.Encode()
}

// ExportURL is where it is as a file.
func (a ShownAgent) ExportURL() string {
	return "/api/v1/agents/" + url.PathEscape(string(a.Name)) + "/markdown"
}

// PipelineURL is where its contexts are set.
func (a ShownAgent) PipelineURL() string { return pipelineURL(a.Name, "", "") }

// RulesURL is where the rules of its messages are.
func (a ShownAgent) RulesURL() string { return "/rules?" + RuleScope{Agent: string(a.Name)}.Query() }

// Links are agents with where they are shown.
func Links(names []artel.AgentName) []Link {
	out := make([]Link, len(names))
	for i, n := range names {
		out[i] = Link{string(n), agentURL(n)}
	}
	return out
}

// A Link is a name and where it leads.
type Link struct{ Name, URL string }

// Callees are those of the agent's subagents that are there.
func (a ShownAgent) Callees() []Link { return Links(a.Callee) }

// Callers are the agents that name it.
func (a ShownAgent) Callers() []Link { return Links(a.UsedBy) }

// Bounds are the limits of its runs that hold; those without a value are left
// out.
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

// shownAgents reads the agents, with who names whom.
func (ui *face) shownAgents(r *http.Request) ([]ShownAgent, error) {
	all, err := ui.app.Agents.List(r.Context())
	if err != nil {
		return nil, err
	}
	out := make([]ShownAgent, len(all))
	for i, a := range all {
		out[i] = ShownAgent{Agent: a, Asked: a.Service, Model: cmp.Or(a.Runs.Name, string(a.Runs.ID))}
		for _, t := range a.Tools {
			out[i].Uses = append(out[i].Uses, AgentTool{t, string(a.Permission(t))})
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

func (ui *face) shownAgent(r *http.Request, name artel.AgentName) (ShownAgent, error) {
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

func (ui *face) agents(w http.ResponseWriter, r *http.Request) { ui.showAgents(w, r, nil) }

// showAgents answers with the list, and with a toast beside it.
func (ui *face) showAgents(w http.ResponseWriter, r *http.Request, t *Toast) {
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

func (ui *face) agent(w http.ResponseWriter, r *http.Request) {
	p := AgentPage{Text: r.URL.Query().Get("text")}
	ui.showAgent(w, r, http.StatusOK, p)
}

func (ui *face) showAgent(w http.ResponseWriter, r *http.Request, status int, p AgentPage) {
	var err error
	if p.Agent, err = ui.shownAgent(r, artel.AgentName(r.PathValue("name"))); err == nil {
		p.frame, err = ui.frame(r, "")
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

// A deletedAgent is what it takes to bring an agent back.
type deletedAgent struct {
	Agent    app.AgentDefinition    `json:"agent"`
	Settings []app.ProcessorSetting `json:"settings,omitempty"` // of its processors
	Set      bool                   `json:"set,omitempty"`
}

// deleteAgent takes an agent away. The toast that says so carries all of it.
func (ui *face) deleteAgent(w http.ResponseWriter, r *http.Request) {
	ctx, name := r.Context(), artel.AgentName(r.PathValue("name"))
	was, err := ui.app.Agents.Find(ctx, name)
	var level app.Level
	if err == nil {
		level, err = ui.app.Pipeline.Agent(ctx, name)
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
	ui.showAgents(w, r, &Toast{
		ID: agentToast, Text: locale(r).Say(phrase.PageAgentsDeleted, map[string]any{"Name": name}), Undo: "/agents/restore", Keep: string(encoded(kept)),
	})
}

// restoreAgent brings an agent back that was deleted.
func (ui *face) restoreAgent(w http.ResponseWriter, r *http.Request) {
	v, err := settingsForm(w, r)
	var kept deletedAgent
	if err == nil {
		if err = json.Unmarshal([]byte(v.Get("keep")), &kept); err != nil {
			err = artel.Errorf(artel.Invalid, "webui", "keep", "what is to be brought back cannot be read: %w", err)
		}
	}
	if err == nil {
		_, err = ui.app.Agents.Create(r.Context(), kept.Agent)
	}
	if err == nil && kept.Set {
		_, err = ui.app.Pipeline.SetAgent(r.Context(), kept.Agent.Name, append([]app.ProcessorSetting{}, kept.Settings...), app.AnyRevision)
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

// tryAgent starts a conversation that an agent answers.
func (ui *face) tryAgent(w http.ResponseWriter, r *http.Request) {
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
		if _, err = ui.app.Runs.Send(r.Context(), c.ID, app.Input{Text: text}); err != nil {
			ui.abandon(r, c.ID)
		}
	}
	switch {
	case err == nil:
		lead(w, r, conversationURL(c.ID))
	case errors.Is(err, artel.Internal):
		ui.fail(w, r, err)
	default:
		status, problem := ui.explain(r, err)
		ui.showAgent(w, r, status, AgentPage{Text: text, Problem: problem})
	}
}
