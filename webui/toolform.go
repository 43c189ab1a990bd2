// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/sse"
	"github.com/artelhq/artel/store"
)

// A ToolForm is the form by which an MCP server or an HTTP tool is added or changed.
type ToolForm struct {
	Kind                   string
	Stored                 string // the name of the entry that is changed; "": a new one
	Name, Address, Timeout string
	Headers                []HeaderField
	Agents                 []ModelChoice
	Disabled               bool
	Check                  *ServiceCheck
	Error                  string
	chosen                 []string // agents

	// Of an MCP server.
	Offers []ToolOffer // after a check
	Only   []string    // tools by the server's names; none: all
	// Each user connects it with an account (OAuth).
	OAuth                          bool
	ClientID, ClientSecret, Scopes string // the secret is one that was sent, never a stored one
	HasSecret                      bool   // one is stored
	Callback                       string // the address at which access ends here

	// Of an HTTP tool.
	About, Method, Parameters, Body string
	Private                         bool
	Arguments                       string // of the call of a check
	Result                          string // of that call
	Methods                         []string
}

// A HeaderField is a header of a ToolForm.
type HeaderField struct {
	Number int
	Name   string
	Value  string // that was sent, for a browser without script; it is never a stored one
	Stored bool
	Ends   string // how the stored value ends; "": unknown
}

// A ToolOffer is a tool of a server in a ToolForm.
type ToolOffer struct {
	mcp.Offer
	Chosen bool
}

// Server reports whether the form is of an MCP server.
func (f ToolForm) Server() bool { return f.Kind == mcpTools }

// AllChosen reports whether agents get all tools of the server, also later ones.
func (f ToolForm) AllChosen() bool { return len(f.Only) == 0 }

func emptyToolForm(kind string) ToolForm {
	return ToolForm{
		Kind: kind, Headers: []HeaderField{{Name: "Authorization"}}, chosen: []string{"lead_agent"},
		Method: http.MethodGet, Methods: []string{http.MethodGet, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
	}
}

// toolFormOf returns the form of a stored entry.
func toolFormOf(kind string, e entries.ToolEntry) ToolForm {
	f := emptyToolForm(kind)
	text := func(key string) string { v, _ := e.Fields[key].(string); return v }
	texts := func(key string) (out []string) {
		list, _ := e.Fields[key].([]any)
		for _, v := range list {
			if s, ok := v.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	f.Stored, f.Name, f.Address, f.Timeout, f.Disabled = e.ID, e.ID, text("url"), text("timeout"), e.Disabled
	f.About, f.Method = text("description"), text("method")
	f.Private, _ = e.Fields["allow_private"].(bool)
	f.Parameters, f.Body = jsonText(e.Fields["parameters"]), jsonText(e.Fields["body"])
	f.chosen, f.Only, f.Headers = texts("agents"), texts("tools"), nil
	f.OAuth, f.ClientID, f.Scopes = text("auth") != "", text("client_id"), strings.Join(texts("scopes"), " ")
	_, f.HasSecret = e.Fields["client_secret"]
	headers, _ := e.Fields["headers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		h := HeaderField{Number: len(f.Headers), Name: name, Stored: true}
		if shown, ok := headers[name].(map[string]any); ok {
			h.Ends, _ = shown["ends_with"].(string)
		}
		f.Headers = append(f.Headers, h)
	}
	f.Headers = append(f.Headers, HeaderField{Number: len(f.Headers)})
	return f
}

// jsonText returns a value as indented JSON; "" if there is none.
func jsonText(v any) string {
	if v == nil {
		return ""
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// readTool reads the form, and returns the fields of the entry with it. With an error about
// a field, the form is there.
func (ui *handler) readTool(w http.ResponseWriter, r *http.Request) (form ToolForm, fields map[string]any, err error) {
	if err := access.Require(r.Context(), store.ScopeAdmin); err != nil {
		return form, nil, err
	}
	kind := r.PathValue("kind")
	all, err := ui.entriesOf(kind)
	if err != nil {
		return form, nil, err
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxServiceForm)
	if err := r.ParseForm(); err != nil {
		return form, nil, brokenForm(r, err)
	}
	get := func(name string) string { return strings.TrimSpace(r.PostForm.Get(name)) }
	form, fields = emptyToolForm(kind), map[string]any{}
	form.Headers = nil
	stored := map[string]any{}
	if id := get("stored"); id != "" {
		e, err := all.Get(r.Context(), id)
		if err != nil {
			return ToolForm{}, nil, err
		}
		form, fields = toolFormOf(kind, e), e.Fields
		stored, _ = e.Fields["headers"].(map[string]any)
		form.Headers = nil
		if form.Disabled {
			fields["disabled"] = true
		}
	} else {
		form.Name = get("name")
	}
	fields["name"] = form.Name
	form.Address, form.Timeout, form.chosen = get("address"), get("timeout"), r.PostForm["agent"]
	set := func(key string, value any, there bool) {
		if delete(fields, key); there {
			fields[key] = value
		}
	}
	fields["url"] = form.Address
	set("timeout", form.Timeout, form.Timeout != "")
	set("agents", asAny(form.chosen), len(form.chosen) > 0)
	headers := form.readHeaders(r, stored)
	set("headers", headers, len(headers) > 0)
	if kind == mcpTools {
		if _, asked := r.PostForm["tool"]; asked { // otherwise they are not in the form
			form.Only = slices.DeleteFunc(slices.Clone(r.PostForm["tool"]), func(t string) bool { return t == "*" })
			if slices.Contains(r.PostForm["tool"], "*") {
				form.Only = nil
			}
		}
		set("tools", asAny(form.Only), len(form.Only) > 0)
		form.OAuth, form.ClientID, form.ClientSecret, form.Scopes = get("oauth") != "", get("client-id"), get("client-secret"), get("scopes")
		set("auth", "oauth", form.OAuth)
		set("client_id", form.ClientID, form.ClientID != "")
		set("scopes", asAny(strings.Fields(form.Scopes)), form.Scopes != "")
		switch {
		case form.ClientSecret != "":
			fields["client_secret"] = form.ClientSecret
		case form.ClientID == "":
			fields["client_secret"] = nil // it goes with its client
		}
		return form, fields, nil
	}
	form.About, form.Method, form.Private = get("description"), get("method"), get("private") != ""
	form.Parameters, form.Body, form.Arguments = get("parameters"), get("body"), get("arguments")
	set("description", form.About, form.About != "")
	set("method", form.Method, form.Method != "")
	set("allow_private", true, form.Private)
	for key, text := range map[string]string{"parameters": form.Parameters, "body": form.Body} {
		var v any
		if text != "" {
			if err := json.Unmarshal([]byte(text), &v); err != nil {
				return form, nil, notJSON(r, key, err)
			}
		}
		set(key, v, v != nil)
	}
	return form, fields, nil
}

// notJSON says that a field of the form has no JSON.
func notJSON(r *http.Request, field string, err error) error {
	label := map[string]phrase.Key{"parameters": phrase.PageToolboxParameters, "body": phrase.PageToolboxBody, "arguments": phrase.PageToolboxArguments}[field]
	l := locale(r)
	return artel.Errorf(artel.Invalid, "webui", "", "%s", l.Say(phrase.PageToolboxNotJSON, map[string]any{"Field": l.Say(label, nil), "Problem": artel.Shorten(err.Error(), 200)}))
}

// readHeaders reads the headers of the form. stored has those of the entry as they are
// read.
func (f *ToolForm) readHeaders(r *http.Request, stored map[string]any) map[string]any {
	out := map[string]any{}
	for n := range 20 {
		at := func(name string) string { return strings.TrimSpace(r.PostForm.Get(fmt.Sprintf("%s-%d", name, n))) }
		h := HeaderField{Number: len(f.Headers), Name: at("header"), Value: at("value")}
		before, known := stored[h.Name]
		switch {
		case h.Name == "", h.Value == "" && !known, at("drop") != "":
			continue
		case h.Value == "":
			out[h.Name] = before
		default:
			out[h.Name] = h.Value
		}
		if shown, ok := before.(map[string]any); ok {
			h.Stored = true
			h.Ends, _ = shown["ends_with"].(string)
		}
		f.Headers = append(f.Headers, h)
	}
	blank := HeaderField{Number: len(f.Headers)}
	if len(f.Headers) == 0 {
		blank.Name = "Authorization"
	}
	f.Headers = append(f.Headers, blank)
	return out
}

func asAny(texts []string) []any {
	out := make([]any, len(texts))
	for i, s := range texts {
		out[i] = s
	}
	return out
}

// checkTool tries the entry of the form and shows the result on the next page.
func (ui *handler) checkTool(w http.ResponseWriter, r *http.Request) {
	form, fields, err := ui.readTool(w, r)
	if err == nil {
		err = ui.tryTool(r, &form, fields, nil)
	}
	if err != nil {
		ui.refuseTool(w, r, form, err)
		return
	}
	ui.toolForm(w, r, http.StatusOK, form)
}

// checkToolLive is checkTool that sends each step as it ends.
func (ui *handler) checkToolLive(w http.ResponseWriter, r *http.Request) {
	form, fields, err := ui.readTool(w, r)
	if err != nil && form.Kind == "" {
		ui.fail(w, r, err)
		return
	}
	out, broken := sse.NewWriter(w)
	if broken != nil {
		ui.fail(w, r, broken)
		return
	}
	l := locale(r)
	send := func() {
		var buf bytes.Buffer
		if err := ui.render(&buf, l, "tool check", form); err != nil {
			ui.o.Log.ErrorContext(r.Context(), "a page could not be rendered", "page", "tool check", "err", err)
			return
		}
		_ = out.Send(sse.Event{Data: buf.String()}) // the end of the connection ends the check
	}
	if err == nil {
		err = ui.tryTool(r, &form, fields, send)
	}
	if err != nil {
		form.Check = nil
		_, form.Error = ui.explain(r, err)
	}
	send()
}

// tryTool puts the result of a check into the form. progress is called when a step begins;
// nil: not.
func (ui *handler) tryTool(r *http.Request, form *ToolForm, fields map[string]any, progress func()) error {
	l := locale(r)
	names := []entries.StepName{entries.StepReach, entries.StepKey, entries.StepProtocol, entries.StepTools}
	var arguments json.RawMessage
	if form.Kind == httpTools {
		names = nil
		if form.Arguments != "" {
			if err := json.Unmarshal([]byte(form.Arguments), &arguments); err != nil {
				return notJSON(r, "arguments", err)
			}
			names = []entries.StepName{entries.StepReach, entries.StepKey, entries.StepCall}
		}
	}
	var ended []entries.CheckStep
	show := func(done, ok bool) {
		form.Check = &ServiceCheck{Steps: checkSteps(names, ended, done, l), Done: done, OK: ok}
		if progress != nil && !done {
			progress()
		}
	}
	show(false, false)
	on := func(s entries.ToolStep) {
		ended = append(ended, entries.CheckStep{Name: s.Name, State: s.State, Cause: s.Cause, Detail: s.Detail, Try: s.Try, Millis: s.Millis})
		show(false, false)
	}
	if form.Kind == httpTools {
		report, err := ui.app.Toolbox.CheckTool(r.Context(), fields, arguments, on)
		if err != nil {
			return err
		}
		form.Result = report.Content
		show(true, report.OK)
		return nil
	}
	report, err := ui.app.Toolbox.CheckServer(r.Context(), fields, on)
	if err != nil {
		return err
	}
	show(true, report.OK)
	for _, o := range report.Tools {
		form.Offers = append(form.Offers, ToolOffer{o, slices.Contains(form.Only, o.Own)})
	}
	for _, own := range form.Only { // that the server does not list now
		if !slices.ContainsFunc(form.Offers, func(o ToolOffer) bool { return o.Own == own }) {
			form.Offers = append(form.Offers, ToolOffer{mcp.Offer{Own: own}, true})
		}
	}
	return nil
}
