// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// Turns are the requests of clients whose conversations are kept here: a turn is a run that
// answers the new messages of a request after those that the conversation has. So it is on the
// page, it is recorded and resumed as runs are, and the next request may come in another dialect.
type Turns struct{ a *app.App }

// Conversations are those that the requests of clients are stored in. They are the conversations of
// the page.
type Conversations struct{ a *app.App }

// A TurnStart is what a turn begins with.
type TurnStart struct {
	Conversation artel.ConversationID // "": a new one
	Parent       *artel.MessageID     // that the messages follow; nil: the newest of the active branch
	Service      artel.ServiceID
	Agent        artel.AgentName // "": that of the conversation, and one without prompt and tools if it has none

	Messages     []model.Message // new ones; see [run.Client]
	Instructions string
	Tools        []model.ToolSpec // of the client
	Settings     pipeline.ClientSettings
}

// A Turn is a run that a client's request has started.
type Turn struct {
	Run    artel.Run
	Client run.Client
	after  artel.Seq // the newest event of the conversation before it
}

// sent is what a turn keeps of its request.
type sent struct {
	After artel.Seq       `json:"after"`
	Body  json.RawMessage `json:"body,omitempty"`
}

// Client returns what the client brings.
func (s *TurnStart) Client() run.Client {
	return run.Client{Messages: s.Messages, Request: agent.ClientRequest{Instructions: s.Instructions, Tools: s.Tools, Settings: s.Settings}}
}

// Start begins a turn. While another run works in the conversation, the turn waits for its end.
// body is kept for [Turn.Body].
func (ts *Turns) Start(ctx context.Context, s TurnStart, body json.RawMessage) (t Turn, err error) {
	if s.Conversation == "" {
		c, err := ts.a.Conversations.Create(ctx, app.NewConversation{})
		if err != nil {
			return t, err
		}
		s.Conversation = c.ID
	}
	if t.after, err = ts.a.Events.Last(ctx, s.Conversation); err != nil {
		return t, err
	}
	t.Client = s.Client()
	if t.Client.Sent, err = json.Marshal(sent{After: t.after, Body: body}); err != nil {
		return t, artel.Errorf(artel.Internal, "backend.Turns.Start", "", "%w", err)
	}
	t.Run, err = ts.a.Runs.Send(ctx, s.Conversation, run.Input{Parent: s.Parent, Agent: s.Agent, Service: s.Service, Queue: true, Client: &t.Client})
	return t, err
}

// NewID returns the id of a turn that [Turns.Keep] will store.
func (ts *Turns) NewID() artel.RunID { return artel.NewRunID(ts.a.Parts().Now()) }

// A KeptAnswer is an answer that a service has given to a client's request without a run.
type KeptAnswer struct {
	ID      artel.RunID
	Start   TurnStart // Parent is the newest message of the conversation where it has messages
	Usage   artel.Usage
	Began   time.Time
	Parts   artel.Parts
	Partial bool            // it was cut at the output limit
	Body    json.RawMessage // for [Turn.Body]
}

// Keep stores a turn that was answered without a run, in a new conversation if it names none; see
// [run.Clients.Keep].
func (ts *Turns) Keep(ctx context.Context, k KeptAnswer) (t Turn, err error) {
	a := run.Answered{
		Run:    artel.Run{ID: k.ID, Conversation: k.Start.Conversation, Service: k.Start.Service, Usage: k.Usage, StartedAt: k.Began.UTC()},
		Client: k.Start.Client(), Answer: k.Parts, Partial: k.Partial,
	}
	if k.Start.Parent != nil {
		a.Parent = *k.Start.Parent
	}
	if a.Run.Conversation == "" {
		c, err := ts.a.Conversations.Create(ctx, app.NewConversation{})
		if err != nil {
			return t, err
		}
		a.Run.Conversation = c.ID
	}
	if t.after, err = ts.a.Events.Last(ctx, a.Run.Conversation); err != nil {
		return t, err
	}
	if a.Client.Sent, err = json.Marshal(sent{After: t.after, Body: k.Body}); err != nil {
		return t, artel.Errorf(artel.Internal, "backend.Turns.Keep", "", "%w", err)
	}
	t.Client = a.Client
	t.Run, err = ts.a.Clients.Keep(ctx, a)
	return t, err
}

// Find returns the turn of a run. A run that no client of the gateway has asked for is of kind
// NotFound.
func (ts *Turns) Find(ctx context.Context, id artel.RunID) (t Turn, err error) {
	if t.Run, err = ts.a.Runs.Find(ctx, id); err != nil {
		return t, err
	}
	if t.Client, err = ts.a.Clients.Of(ctx, id); err != nil {
		return t, err
	}
	var s sent
	if err := json.Unmarshal(t.Client.Sent, &s); err != nil {
		return t, artel.Errorf(artel.Internal, "backend.Turns.Find", string(id), "what was sent cannot be read: %w", err)
	}
	t.after = s.After
	return t, nil
}

// Body returns what was given to [Turns.Start].
func (t Turn) Body() json.RawMessage {
	var s sent
	_ = json.Unmarshal(t.Client.Sent, &s) // Find has read it
	return s.Body
}

// Cancel ends a turn that has not ended, and returns its run.
func (ts *Turns) Cancel(ctx context.Context, t Turn) (artel.Run, error) {
	return ts.a.Runs.Cancel(ctx, t.Run.ID)
}

// Last returns the newest message of a turn: its answer, or what it answers while there is none.
func (t Turn) Last() artel.MessageID { return cmp.Or(t.Run.Reply, t.Run.Message) }

// Begin makes a conversation.
func (cs *Conversations) Begin(ctx context.Context, n app.NewConversation) (artel.Conversation, error) {
	return cs.a.Conversations.Create(ctx, n)
}

// Forget deletes the conversation of a turn if it has nothing else; otherwise the turn is not found
// any more, and its messages stay.
func (ts *Turns) Forget(ctx context.Context, t Turn) error {
	list, more, err := ts.a.Messages.List(ctx, t.Run.Conversation, store.Page{Limit: 500})
	if err != nil {
		return err
	}
	others := slices.ContainsFunc(list, func(m artel.Message) bool { return m.Run != t.Run.ID && m.Run != "" })
	if more == "" && !others {
		return ts.a.Conversations.Delete(ctx, t.Run.Conversation)
	}
	return ts.a.Clients.Forget(ctx, t.Run.ID)
}

// Find returns a conversation.
func (cs *Conversations) Find(ctx context.Context, id artel.ConversationID) (artel.Conversation, error) {
	return cs.a.Conversations.Find(ctx, id)
}

// Delete deletes a conversation with everything in it.
func (cs *Conversations) Delete(ctx context.Context, id artel.ConversationID) error {
	return cs.a.Conversations.Delete(ctx, id)
}

// Branch returns the messages up to one; of a conversation's active branch for "".
func (cs *Conversations) Branch(ctx context.Context, c artel.ConversationID, leaf artel.MessageID) ([]artel.Message, error) {
	if leaf == "" {
		found, err := cs.a.Conversations.Find(ctx, c)
		if err != nil || found.Leaf == "" {
			return nil, err
		}
		leaf = found.Leaf
	}
	return cs.a.Messages.Branch(ctx, c, leaf, 0)
}

// Deltas yields the answer of a turn as it is written, from its beginning: the texts of all its
// messages, and the calls that the client makes. It follows the turn until it has ended. The error
// of a failed run has its kind and code.
func (ts *Turns) Deltas(ctx context.Context, t Turn) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		f := fold{yield: yield, tools: t.Client.Request.Tools, written: map[artel.MessageID]written{}}
		for e, err := range ts.a.Events.Follow(ctx, t.Run.Conversation, t.after, 0) {
			if err != nil {
				yield(nil, err)
				return
			}
			if e.Run != t.Run.ID || e.Within != "" {
				continue
			}
			if err := f.add(e); err != nil {
				yield(nil, err)
				return
			}
			if f.ended {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(nil, artel.Errorf(artel.Canceled, "backend.Turns.Deltas", string(t.Run.ID), "%w", context.Cause(ctx)))
		}
	}
}

// A fold makes the deltas of an answer from the events of its run. What it has yielded of a message
// is a beginning of the message's text, however the pieces were cut.
type fold struct {
	yield   func(model.Delta, error) bool
	tools   []model.ToolSpec // of the client
	written map[artel.MessageID]written
	texts   bool // an earlier message has text
	thought bool // an earlier message has reasoning
	calls   int
	cut     bool // the newest message was cut at the output limit
	ended   bool // nothing follows
}

// written is what was yielded of a message, in bytes.
type written struct{ text, reasoning int }

// add takes the next event of the run. The error is that of the run.
func (f *fold) add(e artel.Event) error {
	switch e.Type {
	case artel.EventMessageDelta:
		var p artel.MessageDelta
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return err
		}
		w := f.written[p.Message]
		if p.Reset {
			p.Text, p.Reasoning = p.Text[min(len(p.Text), w.text):], p.Reasoning[min(len(p.Reasoning), w.reasoning):]
		}
		f.write(p.Message, p.Reasoning, p.Text)
	case artel.EventMessageCompleted:
		var p artel.MessageCompleted
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return err
		}
		f.complete(p)
	case artel.EventRunFinished:
		var p artel.RunFinished
		if err := json.Unmarshal(e.Data, &p); err != nil {
			return err
		}
		return f.finish(p)
	}
	return nil
}

// write yields more of a message.
func (f *fold) write(id artel.MessageID, reasoning, text string) {
	w := f.written[id]
	if reasoning != "" && !f.ended {
		if w.reasoning == 0 && f.thought {
			f.send(model.ReasoningDelta("\n\n"))
		}
		w.reasoning += len(reasoning)
		f.send(model.ReasoningDelta(reasoning))
	}
	if text != "" && !f.ended {
		if w.text == 0 && f.texts {
			f.send(model.TextDelta("\n\n"))
		}
		w.text += len(text)
		f.send(model.TextDelta(text))
	}
	f.written[id] = w
}

func (f *fold) send(d model.Delta) { f.ended = f.ended || !f.yield(d, nil) }

// complete yields the rest of a message, and its calls of tools of the client.
func (f *fold) complete(p artel.MessageCompleted) {
	var texts, thoughts []string
	for _, part := range p.Message.Parts {
		switch part := part.(type) {
		case artel.Text:
			texts = append(texts, part.Text)
		case artel.Reasoning:
			if part.Text != "" {
				thoughts = append(thoughts, part.Text)
			}
		}
	}
	text, thought := strings.Join(texts, "\n\n"), strings.Join(thoughts, "\n\n")
	w, known := f.written[p.Message.ID]
	if !known {
		f.whole(p.Message)
		f.texts, f.thought, f.cut = f.texts || text != "", f.thought || thought != "", p.Partial
		return
	}
	f.write(p.Message.ID, thought[min(len(thought), w.reasoning):], text[min(len(text), w.text):])
	f.texts, f.thought = f.texts || text != "", f.thought || thought != ""
	for _, call := range artel.CallsOf(p.Message.Parts) {
		f.call(call)
	}
	f.cut = p.Partial
}

// whole yields a message of which nothing was yielded, in the order of its parts.
func (f *fold) whole(m artel.Message) {
	for _, part := range m.Parts {
		switch part := part.(type) {
		case artel.Text:
			f.write(m.ID, "", part.Text)
		case artel.Reasoning:
			f.write(m.ID, part.Text, "")
			if !f.ended {
				f.send(model.ReasoningDone{Opaque: part.Opaque})
			}
		case artel.ToolCall:
			f.call(part)
		}
	}
}

// call yields a call that the client makes.
func (f *fold) call(call artel.ToolCall) {
	if !f.ended && slices.ContainsFunc(f.tools, func(t model.ToolSpec) bool { return t.Name == call.Name }) {
		f.calls++
		f.send(model.CallDelta(call))
	}
}

// finish yields the end.
func (f *fold) finish(p artel.RunFinished) error {
	if p.State != artel.RunDone {
		if p.Error != nil {
			return ErrorOf(p.Error)
		}
		return artel.Errorf(artel.Canceled, "backend.Turns.Deltas", "", "the answer ended as %s", p.State)
	}
	reason := model.StopEnd
	switch {
	case f.calls > 0:
		reason = model.StopTools
	case f.cut:
		reason = model.StopLength
	}
	f.send(model.Finish{Reason: reason, Usage: p.Usage})
	f.ended = true
	return nil
}

// CodeRunLimit is the code of the error that a user has as many runs at work as may be.
const CodeRunLimit = run.CodeRunLimit

// ErrorOf returns the error of a failed run: a [*model.CallError] if a service has refused its call.
func ErrorOf(e *artel.RunError) error {
	out := &artel.Error{Op: "backend.Turns.Deltas", Kind: e.Kind, Code: e.Code, Err: errors.New(e.Message)}
	if e.Status != 0 {
		out.Err = &model.CallError{Status: e.Status, Code: e.Code, Message: e.Message}
	}
	return out
}
