// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"io"
	"iter"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/responses"
)

// beginKeeping reads what a request of Responses names of stored responses, and completes its input
// with what came before. From then on it is answered like one that has sent everything.
func (x *exchange) beginKeeping(ctx context.Context) error {
	if err := x.rewrite(ctx); err != nil {
		return err
	}
	if err := x.fetchMedia(ctx); err != nil {
		return err
	}
	q := &storedRequest{stored: responses.Stored{After: -1}, id: x.gw.backend.Turns.NewID()}
	body := withoutInput(x.text)
	_, neutral, err := x.readStored(ctx, q)
	if err != nil {
		return err
	}
	if err := x.place(ctx, q, neutral); err != nil {
		return err
	}
	if q.start.Conversation != "" && !q.whole {
		if q.history, err = x.gw.backend.Conversations.Branch(ctx, q.start.Conversation, q.parent()); err != nil {
			return err
		}
		if q.start.Parent == nil && len(q.history) > 0 {
			last := q.history[len(q.history)-1].ID
			q.start.Parent = &last
		}
	}
	q.body = body
	x.keep, x.conversation = q, q.start.Conversation
	if err := x.completeInput(q); err != nil {
		return err
	}
	return x.rewrite(ctx) // the refs in what came before
}

// parent returns the message that the request follows; "": the newest of the branch, or none.
func (q *storedRequest) parent() artel.MessageID {
	if q.start.Parent == nil {
		return ""
	}
	return *q.start.Parent
}

// completeInput puts what came before in front of the input, and takes out what names it.
func (x *exchange) completeInput(q *storedRequest) error {
	var before []model.Message
	muted := map[artel.CallID]bool{} // calls, whose results are left out with them
	for _, m := range q.history {
		results := artel.ResultsOf(m.Parts)
		switch {
		case len(results) > 0 && muted[results[0].CallID]:
		case m.Muted && len(results) == 0: // a result stays with its call
			for _, c := range artel.CallsOf(m.Parts) {
				muted[c.ID] = true
			}
		case m.Summary: // it stands for what came before it
			before = []model.Message{{Role: artel.RoleUser, Parts: m.Parts}}
		default:
			before = append(before, model.Message{Role: m.Role, Parts: m.Parts})
		}
	}
	edits := x.unnamed()
	if len(before) > 0 {
		items, err := json.Marshal(responses.InputItems(before, "before"))
		if err != nil {
			return artel.Errorf(artel.Internal, "gateway", x.entry.Endpoint, "%w", err)
		}
		input := gjson.Get(x.text, "input")
		at := provider.SpanOf(input)
		items = items[:len(items)-1] // without the bracket at its end
		switch {
		case input.Type == gjson.String:
			edits = append(edits, provider.Edit{Span: at, With: string(items) + `,{"type":"message","role":"user","content":` + input.Raw + "}]"})
		case len(input.Array()) > 0:
			edits = append(edits, provider.Edit{Span: provider.Span{From: at.From, To: at.From + 1}, With: string(items) + ","})
		}
	}
	x.text, x.call = provider.ApplyEdits(x.text, edits), nil
	return nil
}

// unnamed returns the edits after which a request of Responses names nothing that is stored.
func (x *exchange) unnamed() (edits []provider.Edit) {
	body := gjson.Parse(x.text)
	for name, neutral := range map[string]string{"previous_response_id": "null", "conversation": "null", "background": "false"} {
		if v := body.Get(name); v.Exists() {
			edits = append(edits, provider.Edit{Span: provider.SpanOf(v), With: neutral})
		}
	}
	return edits
}

// note takes the next delta of the answer. With the last one it stores the answer, so that the
// client can refer to it as soon as it knows its end.
func (x *exchange) note(ctx context.Context, d model.Delta) error {
	q := x.keep
	if q == nil {
		return nil
	}
	q.said.Add(x.entry.Service, d)
	end, is := d.(model.Finish)
	if !is {
		return nil
	}
	usage := end.Usage
	usage.Cost = x.service.Cost(usage)
	q.start.Service = x.entry.Service
	t, err := x.gw.backend.Turns.Keep(context.WithoutCancel(ctx), backend.KeptAnswer{
		ID: q.id, Start: q.start, Usage: usage, Began: x.began, Parts: q.said.Parts(), Partial: end.Reason == model.StopLength, Body: q.body,
	})
	if err != nil {
		return artel.Errorf(artel.KindOf(err), "gateway", string(q.id), "the answer could not be stored; with 'store' set to false it is not: %w", err)
	}
	if q.whole {
		if err := x.gw.backend.Turns.Remember(context.WithoutCancel(ctx), q.prefix, &q.said, t); err != nil {
			x.gw.o.Log.WarnContext(ctx, "a conversation will not be recognised", "conversation", t.Run.Conversation, "err", err)
		}
	}
	return nil
}

// keptCall is the call of a request whose answer is stored.
type keptCall struct {
	x   *exchange
	req *responses.Request
}

// Neutral implements [provider.ServerCall].
func (c keptCall) Neutral() *model.Request { return c.req.Neutral() }

func (c keptCall) answer(name string, by artel.ServiceID) responses.Answer {
	q := c.x.keep
	return responses.Answer{ID: responseID(q.id), Model: name, Created: c.x.began, Request: c.req, Service: by, Stored: &q.stored}
}

// Body implements [provider.ServerCall].
func (c keptCall) Body(name string, by artel.ServiceID, deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	return c.answer(name, by).Body(deltas)
}

// Stream implements [provider.ServerCall].
func (c keptCall) Stream(name string, by artel.ServiceID, w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	return c.answer(name, by).Stream(w, flush, deltas)
}

// decodeKept reads a request whose answer is stored.
func (x *exchange) decodeKept(ctx context.Context) (provider.ServerCall, error) {
	req, err := responses.Decode(ctx, x.extraction.Reader([]byte(x.text)), provider.DecodeOptions{})
	if err == nil {
		err = req.Check()
	}
	if err != nil {
		return nil, provider.OpenAIFault(err)
	}
	return keptCall{x, req}, nil
}
