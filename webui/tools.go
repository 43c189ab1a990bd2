// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/url"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/accounts"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// The kinds of tools in addresses of the page.
const (
	mcpTools  = "mcp"
	httpTools = "http"
)

// A ToolCard is an MCP server or an HTTP tool in the list.
type ToolCard struct {
	ID, Kind   string
	Address    string // or the program
	About      string // for models
	Origin     string // the file; "": stored
	Badge      string
	BadgeClass string
	Why        string // it is off or not connected
	Detail     string // in the words of the server
	Disabled   bool
	Tools      []model.ToolSpec // of a server
}

// entriesOf returns the entries of a kind. The error is of kind NotFound if there is no
// such kind.
func (ui *handler) entriesOf(kind string) (*entries.ToolEntries, error) {
	switch kind {
	case mcpTools:
		return ui.app.Toolbox.MCP, nil
	case httpTools:
		return ui.app.Toolbox.HTTP, nil
	}
	return nil, artel.Errorf(artel.NotFound, "webui", artel.Shorten(kind, 40), "there is no such page")
}

// tools shows MCP servers and HTTP tools, and where each comes from.
func (ui *handler) tools(w http.ResponseWriter, r *http.Request) {
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	l := locale(r)
	f.Title = l.Say(phrase.PageToolbox, nil)
	if id := r.URL.Query().Get("kept"); id != "" {
		f.Toast = &Toast{ID: "toast-tool", Text: l.Say(phrase.PageToolboxKept, map[string]any{"Name": id})}
	}
	if toast := accountToast(r); toast != nil {
		f.Toast = toast
	}
	list := struct {
		frame
		Accounts  []AccountCard
		MCP, HTTP []ToolCard
	}{frame: f}
	if list.Accounts, err = ui.accountCards(r); err != nil {
		ui.fail(w, r, err)
		return
	}
	if !f.Admin {
		ui.show(w, r, http.StatusOK, "tools.html", list)
		return
	}
	for kind, into := range map[string]*[]ToolCard{mcpTools: &list.MCP, httpTools: &list.HTTP} {
		all, err := ui.entriesOf(kind)
		var found []entries.ToolEntry
		if err == nil {
			found, err = all.List(r.Context())
		}
		if err != nil {
			ui.fail(w, r, err)
			return
		}
		for _, e := range found {
			*into = append(*into, toolCard(kind, e, l))
		}
	}
	ui.show(w, r, http.StatusOK, "tools.html", list)
}

func toolCard(kind string, e entries.ToolEntry, l phrase.Locale) ToolCard {
	text := func(key string) string { v, _ := e.Fields[key].(string); return v }
	c := ToolCard{ID: e.ID, Kind: kind, Address: text("url"), About: text("description"), Disabled: e.Disabled, Badge: l.Say(phrase.PageServiceReady, nil), BadgeClass: "good"}
	if c.Address == "" {
		c.Address = text("command")
	}
	if e.ReadOnly {
		c.Origin = e.Origin
	}
	if kind == mcpTools {
		c.Tools = e.Tools
	}
	switch {
	case e.Disabled:
		c.Badge, c.BadgeClass = l.Say(phrase.PageServiceIsOff, nil), "warn"
	case e.Problem != "":
		c.Badge, c.BadgeClass = l.Say(phrase.PageServiceIsOff, nil), "bad"
		c.Why = l.Say(phrase.Key("page.why_"+string(e.Problem)), map[string]any{"Detail": e.Detail})
	case e.State == tool.ServerPerUser:
		c.Badge, c.BadgeClass = l.Say(phrase.PageToolboxPerUser, nil), ""
	case e.State == tool.ServerConnecting:
		c.Badge, c.BadgeClass = l.Say(phrase.PageToolboxConnecting, nil), ""
	case e.State == tool.ServerFailed:
		c.Badge, c.BadgeClass = l.Say(phrase.PageToolboxFailed, nil), "bad"
		c.Why, c.Detail = l.Say(phrase.PageToolboxTriedAgain, nil), e.Detail
	}
	return c
}

// newTool shows the form of a new server or tool.
func (ui *handler) newTool(w http.ResponseWriter, r *http.Request) {
	kind := r.PathValue("kind")
	if _, err := ui.entriesOf(kind); err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.toolForm(w, r, http.StatusOK, emptyToolForm(kind))
}

// editTool shows the form of a stored one.
func (ui *handler) editTool(w http.ResponseWriter, r *http.Request) {
	e, err := ui.storedTool(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.toolForm(w, r, http.StatusOK, toolFormOf(r.PathValue("kind"), e))
}

// storedTool reads the entry that the path names.
func (ui *handler) storedTool(r *http.Request) (entries.ToolEntry, error) {
	all, err := ui.entriesOf(r.PathValue("kind"))
	if err != nil {
		return entries.ToolEntry{}, err
	}
	e, err := all.Get(r.Context(), r.PathValue("id"))
	if err == nil && e.ReadOnly {
		err = &artel.Error{Op: "webui", Kind: artel.Denied, Code: entries.CodeToolReadOnly, Err: artel.Errorf(artel.Denied, "webui", e.ID, "it can only be changed where it comes from: %s", e.Origin)}
	}
	return e, err
}

func (ui *handler) toolForm(w http.ResponseWriter, r *http.Request, status int, form ToolForm) {
	if err := access.Require(r.Context(), store.ScopeAdmin); err != nil {
		ui.fail(w, r, err)
		return
	}
	f, err := ui.frame(r, "")
	if err == nil {
		err = ui.chooseAgents(r, &form)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	form.Callback = peer.Of(r).URL() + accounts.CallbackPath
	f.Title = locale(r).Say(phrase.PageToolboxAdd, nil)
	if form.Stored != "" {
		f.Title = locale(r).Say(phrase.PageToolboxChange, map[string]any{"Name": form.Stored})
	}
	ui.show(w, r, status, "tool.html", struct {
		frame
		Form ToolForm
	}{f, form})
}

// chooseAgents lists the agents that can be given the tools: those that are the same for
// all users, and others that the entry names.
func (ui *handler) chooseAgents(r *http.Request, form *ToolForm) error {
	all, err := ui.app.Agents.List(r.Context())
	if err != nil {
		return err
	}
	chosen := form.chosen
	form.Agents = nil
	for _, a := range all {
		if a.ReadOnly() {
			form.Agents = append(form.Agents, ModelChoice{string(a.Name), slices.Contains(chosen, string(a.Name))})
			chosen = slices.DeleteFunc(slices.Clone(chosen), func(n string) bool { return n == string(a.Name) })
		}
	}
	for _, n := range chosen {
		form.Agents = append(form.Agents, ModelChoice{n, true})
	}
	return nil
}

// saveTool stores the entry of the form.
func (ui *handler) saveTool(w http.ResponseWriter, r *http.Request) {
	all, err := ui.entriesOf(r.PathValue("kind"))
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	form, fields, err := ui.readTool(w, r)
	if err != nil {
		ui.refuseTool(w, r, form, err)
		return
	}
	id := form.Stored
	if id != "" {
		_, err = all.Update(r.Context(), id, fields)
	} else {
		var made entries.ToolEntry
		made, err = all.Create(r.Context(), fields)
		id = made.ID
	}
	if err != nil {
		ui.refuseTool(w, r, form, err)
		return
	}
	http.Redirect(w, r, "/tools?kept="+url.QueryEscape(id), http.StatusSeeOther)
}

// refuseTool shows the form again with an error.
func (ui *handler) refuseTool(w http.ResponseWriter, r *http.Request, form ToolForm, err error) {
	status, text := ui.explain(r, err)
	if form.Kind == "" { // it was not read
		ui.fail(w, r, err)
		return
	}
	form.Error = text
	ui.toolForm(w, r, status, form)
}

// switchTool switches a stored one on or off.
func (ui *handler) switchTool(w http.ResponseWriter, r *http.Request) {
	e, err := ui.storedTool(r)
	to := r.FormValue("to")
	if err == nil && to != "on" && to != "off" {
		err = artel.Errorf(artel.Invalid, "webui", artel.Shorten(to, 40), "want on or off")
	}
	if err == nil {
		e.Fields["disabled"] = to == "off"
		all, _ := ui.entriesOf(r.PathValue("kind"))
		_, err = all.Update(r.Context(), e.ID, e.Fields)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/tools", http.StatusSeeOther)
}

// deleteTool deletes a stored one.
func (ui *handler) deleteTool(w http.ResponseWriter, r *http.Request) {
	all, err := ui.entriesOf(r.PathValue("kind"))
	if err == nil {
		err = all.Delete(r.Context(), r.PathValue("id"))
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	http.Redirect(w, r, "/tools", http.StatusSeeOther)
}
