// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"container/list"
	"context"
	"encoding/json"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Bounds of callStates.
const (
	maxCallStates     = 20_000
	maxCallStateBytes = 32 << 20
)

// callStates caches the opaque state of tool calls (thought signatures) by call
// id, for clients whose dialect cannot return it. The least recently used goes
// first. It is safe for concurrent use.
type callStates struct {
	mu    sync.Mutex
	of    map[callKey]*list.Element // of *callState
	order *list.List                // most recently used first
	bytes int
}

type callKey struct {
	owner artel.Owner
	call  artel.CallID
}

type callState struct {
	key     callKey
	service artel.ServiceID
	opaque  json.RawMessage
}

func newCallStates() *callStates {
	return &callStates{of: map[callKey]*list.Element{}, order: list.New()}
}

func (s *callStates) put(c *callState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e, ok := s.of[c.key]; ok {
		s.drop(e)
	}
	s.of[c.key] = s.order.PushFront(c)
	s.bytes += len(c.opaque)
	for s.order.Len() > maxCallStates || s.bytes > maxCallStateBytes && s.order.Len() > 1 {
		s.drop(s.order.Back())
	}
}

func (s *callStates) drop(e *list.Element) {
	c := s.order.Remove(e).(*callState)
	delete(s.of, c.key)
	s.bytes -= len(c.opaque)
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

// RememberCall caches the state of a call by a service's model.
func (r *Request) RememberCall(_ context.Context, s artel.ServiceID, c artel.ToolCall) {
	if len(c.Opaque) > 0 {
		r.b.calls.put(&callState{callKey{r.owner, c.ID}, s, c.Opaque})
	}
}

// RestoreCalls adds the cached states to calls that have none.
func (r *Request) RestoreCalls(_ context.Context, to *model.Request) {
	for _, m := range to.Messages {
		for i, part := range m.Parts {
			c, ok := part.(artel.ToolCall)
			if !ok || c.Service != "" {
				continue
			}
			if s, ok := r.b.calls.get(callKey{r.owner, c.ID}); ok {
				c.Service, c.Opaque = s.service, s.opaque
				m.Parts[i] = c
			}
		}
	}
}
