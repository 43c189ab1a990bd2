// SPDX-License-Identifier: Apache-2.0

// Package record stores what each model call was sent, and reads it again.
//
// Begin with [New], which makes a [Call] of a request that was built, and
// [Load]. The record of a call is a row with its facts and its manifest; bodies
// that calls share are segments, stored once. A request can be made again from
// the record byte for byte, as long as its messages are stored.
package record

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/store"
)

// A ContextKey names a model call: the run, and its number in that, from 1.
type ContextKey struct {
	Run    artel.RunID `json:"run_id"`
	Number int         `json:"number"`
}

// A ContextSummary is what a list says about the context of one model call.
type ContextSummary struct {
	ContextKey
	Conversation artel.ConversationID `json:"conversation_id"`
	CreatedAt    time.Time            `json:"created_at"`
	ContextFacts
	Usage *artel.Usage `json:"usage,omitempty"` // as the provider has reported it
}

// ContextFacts are what is known of a context when it is built.
type ContextFacts struct {
	Agent       artel.AgentName `json:"agent"`
	Service     artel.ServiceID `json:"service"`
	Model       string          `json:"model,omitempty"`
	Clock       time.Time       `json:"clock"` // when it was built
	Seed        uint64          `json:"seed"`  // of what is random in it
	RequestHash string          `json:"request_sha256,omitempty"`
	Bytes       int             `json:"bytes"`    // of the request in its canonical form
	Messages    int             `json:"messages"` // in the request
	Tokens      pipeline.Tokens `json:"tokens"`
	Media       []CarriedMedia  `json:"media,omitempty"`    // in the request, in their order
	Previous    *ContextKey     `json:"previous,omitempty"` // the call before it in the conversation
	Prefix      *ContextPrefix  `json:"prefix,omitempty"`   // what it has in common with that
	Error       *ContextError   `json:"error,omitempty"`    // why no request was built
}

// A ContextPrefix is the beginning that two requests share.
type ContextPrefix struct {
	pipeline.Prefix
	Ratio float64 `json:"ratio"` // the part of the earlier request that it is
}

// A ContextError says why a context could not be built.
type ContextError struct {
	Kind      artel.Kind `json:"kind"`
	Message   string     `json:"message"`
	Processor string     `json:"processor,omitempty"` // that failed
}

// ErrorOf returns err as users see it; nil for nil.
func ErrorOf(err error) *ContextError {
	if err == nil {
		return nil
	}
	out := &ContextError{Kind: artel.KindOf(err), Message: scrub.Line(err.Error())}
	if e, ok := errors.AsType[*artel.Error](err); ok && e.Op == "pipeline.Build" {
		out.Processor = e.Subject
	}
	return out
}

// Content is what is stored of a context beside its facts.
type Content struct {
	pipeline.Record
	Manifest pipeline.Manifest
}

// A Call is the context of a model call.
type Call struct {
	Key     ContextKey
	Facts   ContextFacts
	Content Content
	lines   map[artel.Digest][]byte // of its segments
	sent    []pipeline.Message      // one for each of the manifest; nil if it was read from the store

	blocks map[string]*keptBlock // of its row; nil where it was read from the store
}

// linesOf returns the lines of one of its messages; nil if they are gone.
func (c *Call) linesOf(tx store.Tx, x pipeline.ManifestMessage) ([]byte, error) {
	for i := range c.sent {
		if m := &c.sent[i]; x.Stored && c.Content.Manifest.Messages[i].ID == x.ID { // else they are among the segments
			return pipeline.Lines(model.Message{Role: m.Role, Parts: m.Parts})
		}
	}
	if lines, ok := c.lines[x.Digest]; ok && !x.Stored {
		return lines, nil
	}
	_, lines, err := x.Message(c.Facts.Service, c.Contents(tx))
	if errors.Is(err, artel.NotFound) {
		return nil, nil
	}
	return lines, err
}

// New returns the call of a request that agent a is about to send; failed is
// why it could not be built.
func New(a artel.AgentName, b agent.Built, failed error) *Call {
	b.Record.Tokens = shorter(b.Record.Tokens)
	c := &Call{
		Facts: ContextFacts{
			Agent: a, Service: b.Service.ID, Model: b.Service.Model, Clock: b.Now, Seed: b.Seed,
			RequestHash: b.Record.RequestHash, Messages: len(b.Manifest.Messages), Tokens: b.Record.Tokens, Error: ErrorOf(failed),
		},
		Content: Content{b.Record, b.Manifest},
		lines:   make(map[artel.Digest][]byte, len(b.Segments)),
	}
	if failed == nil {
		c.Facts.Bytes, c.sent = b.Manifest.Bytes(), b.Messages
		c.Facts.Media = carriedIn(b.Request)
	}
	for _, s := range b.Segments {
		c.lines[s.Digest] = s.Body
	}
	return c
}

// namedDropped is how many dropped messages a record names, the newest.
const namedDropped = 200

func shorter(t pipeline.Tokens) pipeline.Tokens {
	if t.Older = max(0, len(t.Dropped)-namedDropped); t.Older > 0 {
		t.Dropped = slices.Clone(t.Dropped[t.Older:])
	}
	return t
}

// mostLatest is how many calls are kept in memory, with what was sent.
const mostLatest = 16

// Recent are the newest calls of this process, so that the next one need
// not read what it is compared with.
type Recent struct {
	mu   sync.Mutex
	list []*Call // newest last
}

// Keep adds a call, in place of the one before it of the same run.
func (l *Recent) Keep(c *Call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(o *Call) bool { return o.Key.Run == c.Key.Run })
	if l.list = append(l.list, c); len(l.list) > mostLatest {
		l.list = slices.Delete(l.list, 0, len(l.list)-mostLatest)
	}
}

// Find returns a call; nil: it is not kept.
func (l *Recent) Find(key ContextKey) *Call {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.list {
		if c.Key == key {
			return c
		}
	}
	return nil
}

// Prefix returns the beginning that the request of c shares with that of an
// earlier call of the conversation.
func (c *Call) Prefix(tx store.Tx, before *Call) (pipeline.Prefix, error) {
	return c.Content.Manifest.Prefix(before.Content.Manifest, func(earlier bool, x pipeline.ManifestMessage) ([]byte, error) {
		if earlier {
			return before.linesOf(tx, x)
		}
		return c.linesOf(tx, x)
	})
}

// Contents has what the call was made of.
func (c *Call) Contents(tx store.Tx) pipeline.Contents {
	return pipeline.Contents{
		Stored: tx.Messages.Get,
		Segment: func(d artel.Digest) ([]byte, error) {
			if b, ok := c.lines[d]; ok {
				return b, nil
			}
			return nil, artel.Errorf(artel.NotFound, "record.Contexts", string(d), "a piece of the request is not kept any more")
		},
	}
}

// Messages returns the messages of the request. One that is no longer stored is of kind
// NotFound.
func (c *Call) Messages(tx store.Tx) ([]model.Message, error) {
	out := make([]model.Message, len(c.Content.Manifest.Messages))
	for i, x := range c.Content.Manifest.Messages {
		m, _, err := x.Message(c.Facts.Service, c.Contents(tx))
		if err != nil {
			return nil, err
		}
		out[i] = m
	}
	return out, nil
}

// ErrDamaged is in the chain of errors about a record that cannot be read.
var ErrDamaged = errors.New("the record is damaged")

// Load reads the record of a call and the segments that it names.
func Load(tx store.Tx, key ContextKey) (*Call, error) {
	row, err := tx.Contexts.Get(key.Run, key.Number)
	if err != nil {
		return nil, err
	}
	c := &Call{Key: key, lines: map[artel.Digest][]byte{}}
	damaged := func(err error) error {
		return artel.Errorf(artel.Internal, "record.Contexts", string(key.Run), "%w: %w", ErrDamaged, err)
	}
	if err := json.Unmarshal(row.Summary, &c.Facts); err != nil {
		return nil, damaged(err)
	}
	var lost error // of the store, which is no fault of the record
	c.Content, err = unpack(row.Record, func(want []artel.Digest) (map[artel.Digest][]byte, error) {
		var segments []store.Segment
		segments, lost = tx.Contexts.Segments(row.Conversation, want)
		bodies := make(map[artel.Digest][]byte, len(segments))
		for _, s := range segments {
			bodies[s.Digest] = s.Body
		}
		return bodies, lost
	})
	if lost != nil {
		return nil, lost
	}
	if err != nil {
		return nil, damaged(err)
	}
	var want []artel.Digest
	if d := c.Content.Manifest.Tools; d != "" {
		want = append(want, d)
	}
	for _, m := range c.Content.Manifest.Messages {
		if !m.Stored {
			want = append(want, m.Digest)
		}
	}
	for _, s := range c.Content.Processors {
		for _, d := range s.Before {
			want = append(want, d)
		}
		for _, states := range s.Rules {
			for _, x := range states {
				want = append(want, x.After)
			}
		}
	}
	segments, err := tx.Contexts.Segments(row.Conversation, want)
	for _, s := range segments {
		c.lines[s.Digest] = s.Body
	}
	return c, err
}

// SummaryOf reads the row of a model call.
func SummaryOf(row store.Context) (ContextSummary, error) {
	s := ContextSummary{ContextKey: ContextKey{row.Run, row.Number}, Conversation: row.Conversation, CreatedAt: row.CreatedAt, Usage: row.Usage}
	if err := json.Unmarshal(row.Summary, &s.ContextFacts); err != nil {
		return s, artel.Errorf(artel.Internal, "record.Contexts", string(row.Run), "the record is damaged: %w", err)
	}
	return s, nil
}

// A Block is one message of a request, with where it comes from.
type Block struct {
	pipeline.ManifestMessage
	Parts      artel.Parts `json:"parts"`
	Processor  string      `json:"processor"`         // that added it
	Changed    []string    `json:"changed,omitempty"` // the processors that changed it, in their order
	Incomplete bool        `json:"incomplete,omitempty"`
}

// Authors are the processor that added a message and those that changed it.
func Authors(r pipeline.Record, id string) (added string, changed []string) {
	for _, s := range r.Processors {
		if slices.Contains(s.Added, id) {
			added, changed = s.ID, nil
		}
		if slices.Contains(s.Changed, id) {
			changed = append(changed, s.ID)
		}
	}
	return added, changed
}
