// SPDX-License-Identifier: Apache-2.0

package app

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Bounds on what is remembered of calls.
const (
	maxStates     = 20_000
	maxStateBytes = 32 << 20
)

// states remembers what services have signed their calls with, by the ids of
// the calls, for clients whose dialect has no place for it. The calls that were
// looked at longest ago go first. It is safe for concurrent use.
type states struct {
	mu    sync.Mutex
	of    map[stateKey]*list.Element // of *callState
	order *list.List                 // the last used in front
	bytes int
}

type stateKey struct {
	owner artel.Owner
	call  artel.CallID
}

type callState struct {
	key     stateKey
	service artel.ServiceID
	opaque  json.RawMessage
}

func newStates() *states { return &states{of: map[stateKey]*list.Element{}, order: list.New()} }

func (s *states) put(c *callState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.of[c.key]; ok {
		s.drop(e)
	}
	s.of[c.key] = s.order.PushFront(c)
	s.bytes += len(c.opaque)
	for s.order.Len() > maxStates || s.bytes > maxStateBytes && s.order.Len() > 1 {
		s.drop(s.order.Back())
	}
}

func (s *states) drop(e *list.Element) {
	c := s.order.Remove(e).(*callState)
	delete(s.of, c.key)
	s.bytes -= len(c.opaque)
}

func (s *states) get(k stateKey) (*callState, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e, ok := s.of[k]
	if !ok {
		return nil, false
	}
	s.order.MoveToFront(e)
	return e.Value.(*callState), true
}

// Remember keeps the state of a call that a service made.
func (p *Passage) Remember(_ context.Context, s artel.ServiceID, c artel.ToolCall) {
	if len(c.Opaque) > 0 {
		p.states.put(&callState{stateKey{p.owner, c.ID}, s, c.Opaque})
	}
}

// Recall gives the calls of a request the state that their services gave them,
// where the client could not.
func (p *Passage) Recall(_ context.Context, r *model.Request) {
	for _, m := range r.Messages {
		for i, part := range m.Parts {
			c, ok := part.(artel.ToolCall)
			if !ok || c.Service != "" {
				continue
			}
			if s, ok := p.states.get(stateKey{p.owner, c.ID}); ok {
				c.Service, c.Opaque = s.service, s.opaque
				m.Parts[i] = c
			}
		}
	}
}
