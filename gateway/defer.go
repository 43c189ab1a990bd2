// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"iter"
	"slices"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/model"
)

// The tools in the place of deferred ones. The model's calls of the first are answered
// here, with further calls of the service; a call of the second reaches the client as
// one of the tool that it names. So the client sees neither.
const (
	findTool = "artel_find_tools"
	callTool = "artel_call"
)

// maxFinds is how many answers of one request may look for tools.
const maxFinds = 10

// deferral returns what a service gets in place of the request's tools; nil: the tools.
// A request that says which tool to call gets them.
func (x *exchange) deferral(ctx context.Context, s *model.Service) (*toolindex.Deferral, error) {
	if !x.request.Texts.Defers() {
		return nil, nil
	}
	if err := x.decode(ctx); err != nil {
		return nil, err
	}
	r := x.call.Neutral()
	if r.Choice.Mode != model.ChooseAuto {
		return nil, nil
	}
	tools := make([]toolindex.Tool, len(r.Tools))
	for i, t := range r.Tools {
		if t.Name == findTool || t.Name == callTool {
			return nil, nil
		}
		tools[i] = toolindex.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema}
	}
	return x.gw.deferrals.Defer(string(s.ID)+" "+s.Model, tools, findTool, callTool, func(tools []toolindex.Tool) int {
		size := 0
		for _, t := range tools {
			size += len(t.Name) + len(t.Description) + len(t.Schema)
		}
		n, err := x.gw.backend.Count(ctx, &model.Request{Service: *s, Tools: specsOf(tools)})
		if err != nil {
			return size / 4
		}
		return n
	}), nil
}

func specsOf(tools []toolindex.Tool) []model.ToolSpec {
	specs := make([]model.ToolSpec, len(tools))
	for i, t := range tools {
		specs[i] = model.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema}
	}
	return specs
}

// deferTools takes the tools out of a request, and returns what the log says of it.
func (x *exchange) deferTools(r *model.Request, d *toolindex.Deferral) Change {
	c := Change{Did: DidDefer, Field: strconv.Itoa(len(r.Tools)), Service: r.Service.ID}
	r.Tools = specsOf([]toolindex.Tool{d.Find, d.Call})
	x.request.Finds.Restore(r)
	return c
}

// deltas makes the call of a request. What the model finds among deferred tools goes back
// to it.
func (x *exchange) deltas(ctx context.Context, r *model.Request, d *toolindex.Deferral) iter.Seq2[model.Delta, error] {
	if d == nil {
		return x.caller().Call(ctx, r)
	}
	return func(yield func(model.Delta, error) bool) {
		f := finder{x: x, d: d, request: r, yield: yield}
		for range maxFinds {
			if !f.answer(ctx) {
				return
			}
		}
		yield(nil, artel.Errorf(artel.Unavailable, "gateway", string(r.Service.ID), "the model looked for tools in %d answers and did nothing else", maxFinds))
	}
}

// A finder reads the answers of a model with deferred tools.
type finder struct {
	x       *exchange
	d       *toolindex.Deferral
	request *model.Request
	yield   func(model.Delta, error) bool
	finds   []model.Message // that followed the request's, until the model called another tool
	usage   artel.Usage

	// Of the answer.
	said  artel.Parts      // for the model itself
	held  []model.Delta    // reasoning before a call that may stay here
	calls []artel.ToolCall // answered here
	sent  bool             // a call reached the client
}

// answer reads one answer; it returns whether another has to be asked for.
func (f *finder) answer(ctx context.Context) bool {
	f.said, f.held, f.calls, f.sent = nil, nil, nil, false
	again := *f.request
	again.Messages = slices.Concat(f.request.Messages, f.finds)
	var end *model.Finish
	for d, err := range f.x.caller().Call(ctx, &again) {
		if err != nil {
			f.yield(nil, err)
			return false
		}
		if e, ok := d.(model.Finish); ok {
			f.usage = f.usage.Add(e.Usage)
			end = &e
			continue
		}
		if !f.take(d) {
			return false
		}
	}
	if end == nil {
		return false // the reader of the answer says what is missing
	}
	if len(f.calls) > 0 && !f.sent && end.Reason == model.StopTools {
		f.answerCalls()
		return true
	}
	end.Usage = f.usage
	if f.flush() {
		f.yield(*end, nil)
	}
	return false
}

// take passes a delta on, unless it belongs to a call that is answered here.
func (f *finder) take(d model.Delta) bool {
	switch v := d.(type) {
	case model.ReasoningDelta:
		f.think(string(v), nil)
		f.held = append(f.held, d)
		return true
	case model.ReasoningDone:
		f.think("", v.Opaque)
		f.held = append(f.held, d)
		return true
	case model.TextDelta:
		if n := len(f.said); n > 0 {
			if t, ok := f.said[n-1].(artel.Text); ok {
				f.said[n-1] = artel.Text{Text: t.Text + string(v)}
				return f.flush() && f.yield(d, nil)
			}
		}
		f.said = append(f.said, artel.Text{Text: string(v)})
	case model.CallPiece:
		if v.Name == f.d.Find.Name || v.Name == f.d.Call.Name {
			return true
		}
	case model.CallDelta:
		call := artel.ToolCall(v)
		f.said = append(f.said, call)
		direct, here := f.direct(call)
		if here {
			f.calls = append(f.calls, call)
			return true
		}
		f.x.request.Finds.Remember(direct, f.finds)
		f.finds, f.sent = nil, true
		d = model.CallDelta(direct)
	}
	return f.flush() && f.yield(d, nil)
}

// think adds reasoning to what was said; opaque ends a block.
func (f *finder) think(text string, opaque []byte) {
	n := len(f.said)
	if n > 0 {
		if r, ok := f.said[n-1].(artel.Reasoning); ok && r.Service == "" {
			r.Text += text
			if text == "" {
				r.Opaque, r.Service = opaque, f.request.Service.ID
			}
			f.said[n-1] = r
			return
		}
	}
	r := artel.Reasoning{Text: text, Opaque: opaque}
	if text == "" {
		r.Service = f.request.Service.ID
	}
	f.said = append(f.said, r)
}

func (f *finder) flush() bool {
	for _, d := range f.held {
		if !f.yield(d, nil) {
			return false
		}
	}
	f.held = nil
	return true
}

// direct returns a call as the client gets it, or whether it is answered here.
func (f *finder) direct(c artel.ToolCall) (direct artel.ToolCall, here bool) {
	if c.Name == f.d.Find.Name {
		return c, true
	}
	if c.Name != f.d.Call.Name {
		return c, false
	}
	t, arguments, ok := f.d.Direct(c.Arguments)
	if !ok || t.Check(arguments) != "" {
		return c, true
	}
	// The state of a service is only valid for the call that its model has made.
	return artel.ToolCall{ID: c.ID, Name: t.Name, Arguments: arguments}, false
}

// answerCalls appends the answer and the results of its calls to the finds.
func (f *finder) answerCalls() {
	f.finds = append(f.finds, model.Message{Role: artel.RoleAssistant, Parts: f.said})
	for _, c := range f.calls {
		text, ok := "", false
		if t, arguments, known := f.d.Direct(c.Arguments); known && c.Name == f.d.Call.Name {
			text = t.Check(arguments)
		} else {
			text, ok = f.d.Result(c.Name, c.Arguments)
		}
		f.finds = append(f.finds, model.Message{Role: artel.RoleTool, Parts: artel.Parts{artel.ToolResult{CallID: c.ID, Content: text, IsError: !ok}}})
	}
}
