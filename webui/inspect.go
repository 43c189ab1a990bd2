// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/internal/render"
	"github.com/artelhq/artel/run/record"
)

// An Inspection is the page that shows the request of one model call.
type Inspection struct {
	frame
	Run     artel.Run
	Back    string // URL of the conversation
	Self    string // URL of the call, without the view
	Calls   []InspectedCall
	Call    *inspect.BuiltContext // nil: the run has no record
	Model   string
	Shares  []Share
	Free    int // unused tokens of the budget
	Asked   string
	Answer  *Answer // of the form "why"; nil: nothing was asked
	Files   []Answer
	Left    []Answer // dropped or cut messages
	Tabs    []Tab
	Blocks  []InspectedBlock
	Hidden  int    // number of earlier blocks
	AllURL  string // URL of all blocks
	Steps   []InspectedStep
	Diff    *inspect.ContextDiff
	Request template.HTML
	Cut     string // size of the shown beginning of the request; "": all
	RawURL  string // URL of the request in the API
	Problem string // why the view cannot be shown; "": it can
}

// An InspectedCall is one of the calls of a run.
type InspectedCall struct {
	Number  int
	URL     string
	Current bool
}

// An Answer says how a file or a message was sent, and why.
type Answer struct {
	Name      string
	Seen      bool
	Described bool // only a description was sent
	Texts     []string
	Ways      []string // how it was transported
}

// Tokens is the size of the request, with a sign if it is an estimate.
func (p Inspection) Tokens() string {
	n, counted := tokensOf(p.Call.ContextSummary)
	return LastCall{Total: n, Counted: counted}.Tokens()
}

// The views of a call.
const (
	inspectMessages = "messages"
	inspectSteps    = "steps"
	inspectDiff     = "diff"
	inspectRequest  = "request"
)

// inspectURL is the URL of the inspector for the call that produced a message.
func inspectURL(run artel.RunID, m artel.MessageID) string {
	return "/r/" + string(run) + "/context?of=" + string(m)
}

// inspect shows a call: the one in the path, otherwise the one that produced
// the message in the query, otherwise the first.
func (ui *handler) inspect(w http.ResponseWriter, r *http.Request) {
	p, err := ui.inspection(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, http.StatusOK, "inspect.html", p)
}

func (ui *handler) inspection(r *http.Request) (p Inspection, err error) {
	ctx, l := r.Context(), locale(r)
	id, err := artel.ParseRunID(r.PathValue("rid"))
	if err != nil {
		return p, err
	}
	if p.Run, err = ui.app.Runs.Find(ctx, id); err != nil {
		return p, err
	}
	if p.frame, err = ui.frame(r, p.Run.Conversation); err != nil {
		return p, err
	}
	p.Title = l.Say(phrase.PageInspect, nil)
	p.Back = conversationURL(p.Run.Conversation)
	list, err := ui.app.Contexts.List(ctx, id)
	if err != nil || len(list) == 0 {
		return p, err
	}
	key := list[0].ContextKey
	if s := r.PathValue("n"); s != "" {
		key.Number = atoi(s)
	} else if of := artel.MessageID(r.URL.Query().Get("of")); of != "" {
		if key, err = ui.callOf(ctx, p.Run, of, list); err != nil {
			return p, err
		}
	}
	call, err := ui.app.Contexts.Find(ctx, key)
	if err != nil {
		return p, err
	}
	at := "/r/" + string(id) + "/context/"
	for _, c := range list {
		p.Calls = append(p.Calls, InspectedCall{c.Number, at + itoa(c.Number), c.Number == key.Number})
	}
	p.Call, p.Self, p.Model = &call, at+itoa(key.Number), cmp.Or(call.Model, string(call.Service))
	return p, ui.fill(r, &p)
}

// callOf returns the call that produced a message: the last one before it.
func (ui *handler) callOf(ctx context.Context, run artel.Run, of artel.MessageID, list []record.ContextSummary) (record.ContextKey, error) {
	found, err := ui.app.Messages.Branch(ctx, run.Conversation, of, 1)
	key := list[0].ContextKey
	if err != nil || len(found) == 0 {
		return key, err
	}
	for _, c := range list {
		if !c.CreatedAt.After(found[0].CreatedAt) {
			key = c.ContextKey
		}
	}
	return key, nil
}

// fill fills in the data of a call and of the requested view.
func (ui *handler) fill(r *http.Request, p *Inspection) error {
	ctx, key := r.Context(), p.Call.ContextKey
	v := inspector{view: view{handler: ui, conversation: p.Run.Conversation, locale: locale(r)}, call: p.Call}
	if err := v.read(ctx, p.Run); err != nil {
		return err
	}
	p.Shares, p.Free = v.shares(), max(0, p.Call.Tokens.Budget-p.Call.Tokens.Total)
	var err error
	if p.Files, err = v.files(ctx, p.Run.Message); err != nil {
		return err
	}
	if p.Left, err = v.left(ctx); err != nil {
		return err
	}
	if p.Asked = strings.TrimSpace(r.URL.Query().Get("about")); p.Asked != "" {
		a, err := v.why(ctx, p.Asked, p.Asked)
		if err != nil {
			return err
		}
		p.Answer = &a
	}
	shown := r.URL.Query().Get("view")
	switch shown {
	case inspectSteps, inspectDiff, inspectRequest:
	default:
		shown = inspectMessages
	}
	for _, name := range []string{inspectMessages, inspectSteps, inspectDiff, inspectRequest} {
		p.Tabs = append(p.Tabs, Tab{phrase.Key("page.inspect_view_" + name), p.Self + "?view=" + name + "#view", name == shown})
	}
	switch shown {
	case inspectSteps:
		p.Steps, err = v.steps(ctx)
	case inspectDiff:
		var d inspect.ContextDiff
		d, err = ui.app.Contexts.Diff(ctx, key, record.ContextKey{})
		if p.Diff = &d; err != nil {
			p.Diff = nil
		}
		if errors.Is(err, artel.NotFound) {
			p.Problem, err = v.locale.Say(phrase.PageInspectFirst, nil), nil
		}
	case inspectRequest:
		p.RawURL = "/api/v1/runs/" + string(key.Run) + "/contexts/" + itoa(key.Number) + "/request"
		var req inspect.SentRequest
		if req, err = ui.app.Contexts.Request(ctx, key); err == nil {
			p.Request, p.Cut = v.request(req)
		}
	default:
		p.Blocks, err = v.shown(ctx)
		if p.Hidden = len(p.Blocks) - inspectedBlocks; p.Hidden > 0 && r.URL.Query().Get("all") == "" {
			p.Blocks, p.AllURL = p.Blocks[p.Hidden:], p.Self+"?all=1#view"
		} else {
			p.Hidden = 0
		}
	}
	if errors.Is(err, artel.Conflict) { // the record is incomplete
		_, p.Problem = ui.explain(r, err)
		err = nil
	}
	return err
}

// inspectedBlocks is the maximum number of messages on a page.
const inspectedBlocks = 200

// request renders the body of a request, indented.
func (v inspector) request(req inspect.SentRequest) (template.HTML, string) {
	var out bytes.Buffer
	if json.Indent(&out, req.Body, "", "  ") != nil {
		out.Reset()
		out.Write(req.Body)
	}
	text, cut := shorten(out.String())
	return v.withCopyButtons([]template.HTML{render.Code(text, "json")})[0], cut
}

// why explains why a model saw something, or did not.
func (v inspector) why(ctx context.Context, about, name string) (Answer, error) {
	found, err := v.app.Contexts.Why(ctx, v.call.ContextKey, about, v.locale)
	if errors.Is(err, artel.Invalid) {
		return Answer{Name: name, Texts: []string{v.locale.Say(phrase.Key("why."+string(inspect.WhyNotHere)), nil)}}, nil
	}
	a := Answer{Name: name, Seen: found.Seen}
	for _, f := range found.Findings {
		if f.Route != nil && !f.Route.Dropped {
			a.Described = f.Route.Step == artel.StepDescribed
		}
		a.Texts = append(a.Texts, f.Text)
	}
	return a, err
}

// askedFiles and askedMessages are the maximum numbers of files and left-out
// messages in the overview.
const askedFiles, askedMessages = 50, 20

// files explains how each artifact that existed at the start of the run was
// sent.
func (v inspector) files(ctx context.Context, at artel.MessageID) (out []Answer, err error) {
	list, err := v.app.Artifacts.List(ctx, v.conversation, at)
	for _, a := range list[:min(len(list), askedFiles)] {
		if a.ID == artel.TaskPlan {
			continue
		}
		name := artel.Visible(cmp.Or(a.Filename, a.Title))
		answer, err := v.why(ctx, artel.Ref{Artifact: a.ID}.String(), name)
		if err != nil {
			return nil, err
		}
		for _, m := range v.call.Media {
			if way := v.way(m); m.Artifact.Artifact == a.ID && !slices.Contains(answer.Ways, way) {
				answer.Ways = append(answer.Ways, way)
			}
		}
		out = append(out, answer)
	}
	return out, err
}

// way describes how media were transported.
func (v inspector) way(m record.CarriedMedia) string {
	return v.locale.Say(phrase.Key("page.inspect_way_"+string(m.Transport)), map[string]any{"Name": m.Name})
}

// left explains the messages that did not fit.
func (v inspector) left(ctx context.Context) (out []Answer, err error) {
	ids := append(append([]string{}, v.call.Tokens.Dropped...), v.call.Tokens.Cut...)
	for _, id := range ids[:min(len(ids), askedMessages)] {
		a, err := v.why(ctx, id, v.label(id))
		if err != nil {
			return nil, err
		}
		out = append(out, a)
	}
	if more := len(ids) - askedMessages; more > 0 {
		out = append(out, Answer{Name: v.locale.Say(phrase.PageInspectMore, map[string]any{"Count": more})})
	}
	return out, err
}

// percent formats a ratio.
func percent(ratio float64) string { return fmt.Sprintf("%.0f %%", 100*ratio) }
