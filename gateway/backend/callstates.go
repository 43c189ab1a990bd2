// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"container/list"
	"context"
	"crypto/sha256"
	"encoding/json"
	"reflect"
	"slices"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
)

// Bounds of callStates.
const (
	maxCallStates     = 40_000
	maxCallStateBytes = 32 << 20
)

// callStates caches the opaque state of tool calls (thought signatures), and the
// reasoning before them, by call id, for clients that do not return it. The least
// recently used goes first. It is safe for concurrent use. Each process has its own: what
// another one remembers is missing as after a restart, and the model answers without it.
type callStates struct {
	mu    sync.Mutex
	of    map[callKey]*list.Element // of *callState
	order *list.List                // most recently used first
	bytes int
}

type callKey struct {
	client       string // see [Key.Holder]
	call         artel.CallID
	content      [sha256.Size]byte // of the name and the arguments; zero: of any
	conversation [sha256.Size]byte // of its beginning, for reasoning; zero: of any, for states
	finds        bool              // for what was found before it
}

// contentOf returns the content of a key; zero if c has no name. Clients may write the
// arguments with other white space and order.
func contentOf(c artel.ToolCall) (sum [sha256.Size]byte) {
	var arguments any
	if c.Name == "" || json.Unmarshal(c.Arguments, &arguments) != nil {
		return sum
	}
	sorted, _ := json.Marshal(arguments) // it was JSON
	return sha256.Sum256(append([]byte(c.Name+" "), sorted...))
}

type callState struct {
	key      callKey
	name     string // of the tool
	service  artel.ServiceID
	opaque   json.RawMessage
	thoughts artel.Parts // since the call before; none: it is not certain which
	finds    []model.Message
}

func (c *callState) bytes() int {
	n := len(c.opaque)
	for _, p := range c.thoughts {
		if r, ok := p.(artel.Reasoning); ok {
			n += len(r.Text) + len(r.Opaque)
		}
	}
	for _, m := range c.finds {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				n += len(p.Text)
			case artel.Reasoning:
				n += len(p.Text) + len(p.Opaque)
			case artel.ToolCall:
				n += len(p.Arguments)
			case artel.ToolResult:
				n += len(p.Content)
			}
		}
	}
	return n
}

func newCallStates() *callStates {
	return &callStates{of: map[callKey]*list.Element{}, order: list.New()}
}

func (s *callStates) put(c *callState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.replace(c)
}

// putThoughts caches the reasoning before a call. Ids repeat with some services: if
// a call with the same key had other reasoning, or this one has none, it is not
// certain later which of the two a client means, and neither is given.
func (s *callStates) putThoughts(c *callState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.of[c.key]
	if !ok && len(c.thoughts) == 0 {
		return
	}
	if ok && !reflect.DeepEqual(e.Value.(*callState).thoughts, c.thoughts) {
		c.thoughts = nil
	}
	s.replace(c)
}

func (s *callStates) replace(c *callState) {
	if e, ok := s.of[c.key]; ok {
		s.drop(e)
	}
	s.of[c.key] = s.order.PushFront(c)
	s.bytes += c.bytes()
	for s.order.Len() > maxCallStates || s.bytes > maxCallStateBytes && s.order.Len() > 1 {
		s.drop(s.order.Back())
	}
}

func (s *callStates) drop(e *list.Element) {
	c := s.order.Remove(e).(*callState)
	delete(s.of, c.key)
	s.bytes -= c.bytes()
}

func (s *callStates) get(k callKey) (*callState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.of[k]
	if !ok {
		return nil, false
	}
	s.order.MoveToFront(e)
	return e.Value.(*callState), true
}

// RememberCall caches the state of a call by a service's model, and the signed
// reasoning since the call before it, also under the id that clients of OpenAI's
// dialects get for a long one.
func (r *Request) RememberCall(_ context.Context, s artel.ServiceID, c artel.ToolCall, thoughts ...artel.Part) {
	client, conversation, content := r.key.Holder(r.owner), r.conversation(), contentOf(c)
	ids := []artel.CallID{c.ID}
	if short := artel.CallID(provider.CallID(c.ID, openai.MaxCallID)); short != c.ID {
		ids = append(ids, short)
	}
	for _, id := range ids {
		if conversation != ([sha256.Size]byte{}) {
			r.b.calls.putThoughts(&callState{key: callKey{client: client, call: id, content: content, conversation: conversation}, service: s, thoughts: thoughts})
		}
		if len(c.Opaque) > 0 {
			for _, of := range [][sha256.Size]byte{{}, content} {
				r.b.calls.put(&callState{key: callKey{client: client, call: id, content: of}, name: c.Name, service: s, opaque: c.Opaque})
			}
		}
	}
}

// conversation returns a hash of the beginning of the conversation; zero: not known.
func (r *Request) conversation() (sum [sha256.Size]byte) {
	if r.begun == sum && r.Beginning != nil {
		r.begun = sha256.Sum256([]byte(r.Beginning()))
	}
	return r.begun
}

// thoughtsBefore returns the cached reasoning of a service before a call with this
// id, name and arguments in the same conversation.
func (r *Request) thoughtsBefore(c artel.ToolCall, by artel.ServiceID) artel.Parts {
	s, ok := r.b.calls.get(callKey{client: r.key.Holder(r.owner), call: c.ID, content: contentOf(c), conversation: r.conversation()})
	if !ok || s.service != by {
		return nil
	}
	return s.thoughts
}

// stateOf returns the cached state of a call: that of the call with the same id, name
// and arguments, or else of the newest with the same id and name.
func (r *Request) stateOf(c artel.ToolCall) (*callState, bool) {
	client := r.key.Holder(r.owner)
	if s, ok := r.b.calls.get(callKey{client: client, call: c.ID, content: contentOf(c)}); ok {
		return s, true
	}
	s, ok := r.b.calls.get(callKey{client: client, call: c.ID})
	return s, ok && s.name == c.Name
}

// RestoreCalls adds the cached states to calls that have none, and to messages without
// signed reasoning that of the service of the request.
func (r *Request) RestoreCalls(_ context.Context, to *model.Request) {
	for n, m := range to.Messages {
		var before, parts artel.Parts // before the message's first part
		signed := slices.ContainsFunc(m.Parts, isSigned)
		called := false
		for _, part := range m.Parts {
			if c, ok := part.(artel.ToolCall); ok {
				switch {
				case signed:
				case called:
					parts = append(parts, r.thoughtsBefore(c, to.Service.ID)...)
				default:
					before = r.thoughtsBefore(c, to.Service.ID)
				}
				s, known := r.stateOf(c)
				if known && c.Service == "" && len(s.opaque) > 0 {
					c.Service, c.Opaque = s.service, s.opaque
					part = c
				}
				called = true
			}
			parts = append(parts, part)
		}
		if called {
			to.Messages[n].Parts = append(slices.Clip(before), parts...)
		}
	}
}

func isSigned(p artel.Part) bool {
	r, ok := p.(artel.Reasoning)
	return ok && len(r.Opaque) > 0
}
