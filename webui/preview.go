// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/internal/form"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/run/record"
)

// A Gauge shows how full the context window would be with the message in the
// composer. The zero Gauge is hidden.
type Gauge struct {
	Shown   bool
	Shares  []Share
	Total   int
	Budget  int // 0: unknown
	Percent int
	Level   string // "", "warn" or "bad"
	Left    int    // messages that do not fit
	Pending []string
	Problem string // why there is no estimate
}

// Large reports whether a request of this size may exceed a window.
func (g Gauge) Large() bool { return g.Total > largeRequest }

// largeRequest is the size, in tokens, from which an unknown window matters.
const largeRequest = 50_000

// A RequestPreview previews the request for the message in the composer.
type RequestPreview struct {
	Gauge
	Model  string
	Blocks []InspectedBlock
	Hidden int
	Steps  []InspectedStep
}

// Thresholds of the gauge, in percent, and the number of messages on display.
const (
	nearlyFull    = 80
	glancedBlocks = 60
)

// preview previews the request for the message in the composer: the gauge, and
// with "whole" all messages. The form has the fields of a message, and for its
// files those of [handler.fit].
func (ui *handler) preview(w http.ResponseWriter, r *http.Request) {
	id := artel.ConversationID(r.PathValue("cid"))
	var in run.Input
	var files []run.Candidate
	whole := false
	for part, err := range form.Parts(r.Body, r.Header.Get("Content-Type")) {
		if err == nil {
			switch part.Name {
			case "text":
				in.Text, err = field(part)
			case "agent":
				var s string
				s, err = field(part)
				in.Agent = artel.AgentName(s)
			case "whole":
				whole = true
			default:
				err = takeHead(part, &in.Service, &files)
			}
		}
		if err != nil {
			ui.fail(w, r, brokenForm(r, err))
			return
		}
	}
	if !whole && strings.TrimSpace(in.Text) == "" && len(files) == 0 {
		ui.fragments(w, r, http.StatusOK, part{"window", Gauge{}})
		return
	}
	p, err := ui.app.Previews.Estimate(r.Context(), id, in, files...)
	if r.Context().Err() != nil {
		return // a newer request is on its way
	}
	g := RequestPreview{}
	if err != nil {
		_, text := ui.explain(r, err)
		g.Gauge = Gauge{Shown: true, Problem: text}
	} else if g, err = ui.fillPreview(r, id, in, p, whole); err != nil {
		ui.fail(w, r, err)
		return
	}
	parts := []part{{"window", g.Gauge}}
	if whole {
		parts = append(parts, part{"glance", g})
	}
	ui.fragments(w, r, http.StatusOK, parts...)
}

// fillPreview fills in a preview.
func (ui *handler) fillPreview(r *http.Request, id artel.ConversationID, in run.Input, p run.Preview, whole bool) (g RequestPreview, err error) {
	ctx := r.Context()
	call := &inspect.BuiltContext{}
	call.ContextFacts = p.ContextFacts
	b, err := json.Marshal(p.Record) // the form in which records are stored
	if err == nil {
		err = json.Unmarshal(b, &call.Record)
	}
	if err != nil {
		return g, err
	}
	v := inspector{view: view{handler: ui, conversation: id, locale: locale(r)}, call: call, blocks: p.Blocks}
	g.Gauge = Gauge{Shown: true, Shares: v.shares(), Total: p.Tokens.Total, Budget: p.Tokens.Budget, Left: len(p.Tokens.Dropped)}
	if g.Budget > 0 {
		g.Percent = (100*g.Total + g.Budget - 1) / g.Budget
	}
	switch {
	case p.Error != nil:
		g.Level, g.Problem = "bad", p.Error.Message
	case g.Budget > 0 && g.Total > g.Budget:
		g.Level = "bad"
	case g.Left > 0 || g.Percent > nearlyFull:
		g.Level = "warn"
	}
	for _, x := range p.Pending {
		g.Pending = append(g.Pending, artel.Visible(cmp.Or(nameOf(p, x.Ref), string(x.Ref.Artifact))))
	}
	if !whole {
		return g, nil
	}
	g.Model = cmp.Or(p.Model, string(p.Service))
	if v.stored, err = ui.storedBefore(ctx, id); err != nil {
		return g, err
	}
	v.stored[string(run.PreviewID)] = artel.Message{ID: run.PreviewID, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: in.Text}}}
	if g.Hidden = max(0, len(v.blocks)-glancedBlocks); g.Hidden > 0 {
		v.blocks = v.blocks[g.Hidden:]
	}
	if g.Blocks, err = v.shown(ctx); err != nil {
		return g, err
	}
	for i := range g.Blocks {
		g.Blocks[i].Number += g.Hidden
	}
	g.Steps, err = v.steps(ctx)
	g.Steps = slices.DeleteFunc(g.Steps, InspectedStep.Quiet)
	return g, err
}

// A LastCall shows how full the window was in the last call of a run. The zero
// LastCall is hidden.
type LastCall struct {
	URL     string // of the inspector
	Total   int
	Counted bool // Total is the provider's count, not an estimate
	Budget  int
	Percent int
	Level   string // "", "warn" or "bad"
	Width   string // of the bar, of 1,000
}

// tokensOf is the size of the request of a call: as the provider has counted it,
// otherwise as it was estimated.
func tokensOf(c record.ContextSummary) (tokens int, counted bool) {
	if c.Usage != nil && c.Usage.InputTokens > 0 {
		return int(c.Usage.InputTokens), true
	}
	return c.Tokens.Total, false
}

// Tokens is Total with a sign if it is an estimate.
func (l LastCall) Tokens() string {
	if l.Counted {
		return thousands(l.Total)
	}
	return estimate(l.Total)
}

// lastCall reads the record of a run's last call. There is none before the
// first call, and after the record was deleted.
func (ui *handler) lastCall(ctx context.Context, run artel.RunID) (l LastCall, err error) {
	list, err := ui.app.Contexts.List(ctx, run)
	if err != nil || len(list) == 0 {
		return l, err
	}
	c := list[len(list)-1]
	l = LastCall{URL: "/r/" + string(run) + "/context/" + itoa(c.Number), Budget: c.Tokens.Budget}
	l.Total, l.Counted = tokensOf(c)
	if l.Budget > 0 {
		l.Percent = (100*l.Total + l.Budget - 1) / l.Budget
		l.Width = itoa(min(1000, 1000*l.Total/l.Budget))
	}
	switch {
	case c.Error != nil:
		l.Level = "bad"
	case len(c.Tokens.Dropped) > 0 || l.Percent > nearlyFull:
		l.Level = "warn"
	}
	return l, nil
}

// storedBefore returns the newest stored messages of a conversation.
func (ui *handler) storedBefore(ctx context.Context, id artel.ConversationID) (map[string]artel.Message, error) {
	out := map[string]artel.Message{}
	if id == "" {
		return out, nil
	}
	c, err := ui.app.Conversations.Find(ctx, id)
	if err != nil || c.Leaf == "" {
		return out, err
	}
	branch, err := ui.app.Messages.Branch(ctx, id, c.Leaf, 2*glancedBlocks)
	for _, m := range branch {
		out[string(m.ID)] = m
	}
	return out, err
}

// nameOf is the file name of a routing decision.
func nameOf(p run.Preview, ref artel.Ref) string {
	for _, b := range p.Blocks {
		for _, m := range artel.MediaOf(b.Parts) {
			if m.Ref.Artifact == ref.Artifact {
				return m.Filename
			}
		}
	}
	return ""
}
