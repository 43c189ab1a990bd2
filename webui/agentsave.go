// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/url"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/agent/card"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/settings"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/internal/phrase"
)

func (ui *handler) newAgent(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	d := agent.Definition{Tools: []string{"list_artifacts", "read_artifact", "grep_artifacts", "create_artifact", "update_artifact"}}
	if from := q.Get("from"); from != "" {
		a, err := ui.app.Agents.Find(r.Context(), artel.AgentName(from))
		if err != nil {
			ui.fail(w, r, err)
			return
		}
		d = a.Definition
		d.Name = unusedName(a.Name, func(n artel.AgentName) bool {
			_, err := ui.app.Agents.Find(r.Context(), n)
			return errors.Is(err, artel.NotFound)
		})
	}
	ui.openAgent(w, r, d, url.Values{"from": {q.Get("from")}})
}

// unusedName returns an unused name derived from name.
func unusedName(name artel.AgentName, isFree func(artel.AgentName) bool) artel.AgentName {
	for i := 2; ; i++ {
		n := artel.AgentName(fmt.Sprintf("%s_%d", artel.Shorten(string(name), 200), i))
		if i > 1000 || isFree(n) {
			return n
		}
	}
}

func (ui *handler) editAgent(w http.ResponseWriter, r *http.Request) {
	a, err := ui.app.Agents.Find(r.Context(), artel.AgentName(r.PathValue("name")))
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if a.ReadOnly() {
		ui.fail(w, r, artel.Errorf(artel.Denied, "webui", "agent", "%s", locale(r).Say(phrase.PageAgentsReadOnly, nil)))
		return
	}
	ui.openAgent(w, r, a.Definition, url.Values{"revision": {itoa(a.Revision)}})
}

// openAgent shows an unchecked editor of a definition.
func (ui *handler) openAgent(w http.ResponseWriter, r *http.Request, d agent.Definition, more url.Values) {
	v := agentValues(d)
	if r.URL.Query().Get("as") == "file" {
		v = url.Values{"markdown": {string(d.Markdown())}}
	}
	for field, values := range more {
		v[field] = values
	}
	e, err := ui.agentEditor(r, v)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	e.Faults = AgentFaults{}
	ui.show(w, r, http.StatusOK, "agentedit.html", e)
}

// checkAgent returns the problems of an agent while the user types.
func (ui *handler) checkAgent(w http.ResponseWriter, r *http.Request) {
	v, err := settingsForm(w, r)
	var e AgentEditor
	if err == nil {
		e, err = ui.agentEditor(r, v)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.fragments(w, r, http.StatusOK, part{"agent faults", e})
}

// saveAgent saves the agent of a form, or switches between form and file. An
// agent with problems is shown again with them.
func (ui *handler) saveAgent(w http.ResponseWriter, r *http.Request) {
	v, err := settingsForm(w, r)
	var e AgentEditor
	if err == nil {
		v.Del("original") // the path has it
		e, err = ui.agentEditor(r, v)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if do := v.Get("do"); do == "as_file" || do == "as_form" {
		if !e.unread {
			e.convert(do == "as_file")
			if err := e.check(r, ui); err != nil {
				ui.fail(w, r, err)
				return
			}
		}
		ui.show(w, r, http.StatusOK, "agentedit.html", e)
		return
	}
	e.Faults.Tried = true
	if e.Faults.Count > 0 {
		ui.show(w, r, http.StatusUnprocessableEntity, "agentedit.html", e)
		return
	}
	var a settings.Agent
	if e.Original == "" {
		a, err = ui.app.Agents.Create(r.Context(), e.definition)
	} else {
		a, err = ui.app.Agents.Save(r.Context(), e.definition, atoi(v.Get("revision")))
	}
	if artel.CodeOf(err) == app.CodeStale {
		now, ferr := ui.app.Agents.Find(r.Context(), e.Original)
		if ferr != nil {
			ui.fail(w, r, ferr)
			return
		}
		e.Stale = true
		e.values.Set("revision", itoa(now.Revision))
		ui.show(w, r, http.StatusConflict, "agentedit.html", e)
		return
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	redirect(w, r, agentURL(a.Name)+"?saved")
}

// convert converts the values between form and file.
func (e *AgentEditor) convert(toFile bool) {
	v := agentValues(e.definition)
	if toFile {
		v = url.Values{"markdown": {string(e.definition.Markdown())}}
	}
	for _, field := range []string{"from", "revision", "filename"} {
		if e.values.Has(field) {
			v.Set(field, e.values.Get(field))
		}
	}
	e.values, e.AsFile = v, toFile
}

// importAgent saves the agent of an uploaded file, or shows the file with its
// problems.
func (ui *handler) importAgent(w http.ResponseWriter, r *http.Request) {
	v, err := agentFile(w, r)
	if raw := []byte(v.Get("markdown")); err == nil && isCard(raw) {
		ui.keepFile(w, r, v.Get("filename"), raw)
		return
	}
	var e AgentEditor
	if err == nil {
		e, err = ui.agentEditor(r, v)
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	e.Faults.Tried = true
	if e.Faults.Count > 0 {
		ui.show(w, r, http.StatusUnprocessableEntity, "agentedit.html", e)
		return
	}
	a, err := ui.app.Agents.Create(r.Context(), e.definition)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	redirect(w, r, agentURL(a.Name)+"?saved")
}

// agentFile reads the import form: an uploaded file, or a pasted text.
func agentFile(w http.ResponseWriter, r *http.Request) (url.Values, error) {
	r.Body = http.MaxBytesReader(w, r.Body, card.MaxFile)
	v := url.Values{"markdown": {""}}
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		var b bytes.Buffer
		if err == nil {
			_, err = b.ReadFrom(part)
		}
		if err != nil {
			return nil, brokenForm(r, err)
		}
		if b.Len() > 0 && (part.Name == "file" || part.Name == "markdown" && v.Get("markdown") == "") {
			v.Set("markdown", b.String())
			v.Set("filename", part.Filename)
		}
	}
	return v, nil
}
