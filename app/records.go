// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
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

// keptContexts is how many records a conversation has at most; the oldest go.
const keptContexts = 200

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
	Error       *ContextError   `json:"error,omitempty"`    // why there was no request
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

// contextError is err as people see it.
func contextError(err error) *ContextError {
	if err == nil {
		return nil
	}
	out := &ContextError{Kind: artel.KindOf(err), Message: scrub.Line(err.Error())}
	if e, ok := errors.AsType[*artel.Error](err); ok && e.Op == "pipeline.Build" {
		out.Processor = e.Subject
	}
	return out
}

// made is what is kept of a context beside its facts.
type made struct {
	pipeline.Record
	Recipe pipeline.Manifest
}

// A call is the context of a model call while its run is at work.
type call struct {
	key   ContextKey
	facts ContextFacts
	made  made
	lines map[artel.Digest][]byte // of its segments
	sent  []pipeline.Message      // one for each of the recipe; nil where it was read from the store

	blocks map[string]*keptBlock // of its row; nil where it was read from the store
}

// linesOf returns those of one of its messages; nil where they are gone.
func (c *call) linesOf(tx store.Tx, x pipeline.ManifestMessage) ([]byte, error) {
	for i := range c.sent {
		if m := &c.sent[i]; x.Stored && c.made.Recipe.Messages[i].ID == x.ID { // else they are among the segments
			return pipeline.Lines(model.Message{Role: m.Role, Parts: m.Parts})
		}
	}
	if lines, ok := c.lines[x.Digest]; ok && !x.Stored {
		return lines, nil
	}
	_, lines, err := x.Message(c.facts.Service, c.pantry(tx))
	if errors.Is(err, artel.NotFound) {
		return nil, nil
	}
	return lines, err
}

func newCall(a artel.AgentName, b agent.Built, failed error) *call {
	b.Record.Tokens = shorter(b.Record.Tokens)
	c := &call{
		facts: ContextFacts{
			Agent: a, Service: b.Service.ID, Model: b.Service.Model, Clock: b.Now, Seed: b.Seed,
			RequestHash: b.Record.RequestHash, Messages: len(b.Manifest.Messages), Tokens: b.Record.Tokens, Error: contextError(failed),
		},
		made:  made{b.Record, b.Manifest},
		lines: make(map[artel.Digest][]byte, len(b.Segments)),
	}
	if failed == nil {
		c.facts.Bytes, c.sent = b.Manifest.Bytes(), b.Messages
		c.facts.Media = carriedIn(b.Request)
	}
	for _, s := range b.Segments {
		c.lines[s.Digest] = s.Body
	}
	return c
}

// namedDropped is how many dropped messages a record names: the newest.
const namedDropped = 200

func shorter(t pipeline.Tokens) pipeline.Tokens {
	if t.Older = max(0, len(t.Dropped)-namedDropped); t.Older > 0 {
		t.Dropped = slices.Clone(t.Dropped[t.Older:])
	}
	return t
}

// Record implements [agent.Host]: it stores the context of a model call before
// the call is made.
func (x *execution) Record(ctx context.Context, b agent.Built, failed error) error {
	c := newCall(x.agent.Name, b, failed)
	ctx, stop := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer stop()
	err := x.commit(ctx, func(tx store.Tx) error {
		if err := x.hold(tx); err != nil { // before anybody is paid
			return err
		}
		if len(x.begun) > 0 {
			if err := x.write(tx, x.begun...); err != nil {
				return err
			}
		}
		before, err := x.compare(tx, c)
		if err != nil {
			return err
		}
		summary, err := json.Marshal(c.facts)
		if err != nil {
			return err
		}
		record, err := c.pack(before)
		if err != nil {
			return err
		}
		c.key.Run = x.run.ID
		c.key.Number, err = tx.Contexts.Add(store.Context{
			Conversation: x.run.Conversation, Run: x.run.ID, Summary: summary, Record: record, CreatedAt: x.runs.core.now(),
		}, c.segments(b.Segments))
		if err != nil {
			return err
		}
		if failed == nil && x.within == "" {
			if err := x.keepVariables(tx, b.Variables); err != nil {
				return err
			}
		}
		if c.key.Number == 1 { // once in a run is often enough
			if err := tx.Contexts.Trim(x.run.Conversation, keptContexts); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	x.carry(ctx, c, b)
	x.call = c
	x.runs.latest.keep(c)
	if len(x.begun) > 0 {
		x.begun = nil
		x.runs.core.log.Notifier().Notify(x.run.Conversation)
	}
	return nil
}

// mostLatest is how many calls are kept in memory, with what was sent.
const mostLatest = 16

// latestCalls are the newest calls of this process, so that the next one need
// not read what it is compared with.
type latestCalls struct {
	mu   sync.Mutex
	list []*call // newest last
}

func (l *latestCalls) keep(c *call) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.list = slices.DeleteFunc(l.list, func(o *call) bool { return o.key.Run == c.key.Run })
	if l.list = append(l.list, c); len(l.list) > mostLatest {
		l.list = slices.Delete(l.list, 0, len(l.list)-mostLatest)
	}
}

func (l *latestCalls) find(key ContextKey) *call {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.list {
		if c.key == key {
			return c
		}
	}
	return nil
}

// report keeps what the newest model call took.
func (x *execution) report(tx store.Tx, u artel.Usage) error {
	if x.call == nil {
		return nil
	}
	err := tx.Contexts.Report(x.call.key.Run, x.call.key.Number, store.ContextReport{Usage: &u})
	if errors.Is(err, artel.NotFound) { // it is so long ago that its record is gone
		return nil
	}
	return err
}

// compare notes what c has in common with the call before it, which it
// returns; nil: there was none.
func (x *execution) compare(tx store.Tx, c *call) (before *call, err error) {
	if before = x.call; before == nil {
		list, err := tx.Contexts.List(store.ContextQuery{Conversation: x.run.Conversation, Limit: 1})
		if err != nil || len(list) == 0 {
			return nil, err
		}
		key := ContextKey{list[0].Run, list[0].Number}
		if before = x.runs.latest.find(key); before == nil {
			before, err = loadCall(tx, key)
		}
		switch {
		case errors.Is(err, errDamaged): // the run has nothing to do with that
			x.runs.core.logger.Warn("the record of an earlier model call cannot be read", "run", key.Run, "number", key.Number, "err", err)
			return nil, nil
		case err != nil:
			return nil, err
		}
	}
	c.facts.Previous = &before.key
	if c.facts.Error != nil || before.facts.Error != nil {
		return before, nil
	}
	p, err := x.runs.core.prefix(tx, before, c)
	c.facts.Prefix = &ContextPrefix{p, p.Ratio()}
	return before, err
}

// prefix compares two calls of one conversation.
func (k *core) prefix(tx store.Tx, before, after *call) (pipeline.Prefix, error) {
	return after.made.Recipe.Prefix(before.made.Recipe, func(earlier bool, x pipeline.ManifestMessage) ([]byte, error) {
		c := after
		if earlier {
			c = before
		}
		return c.linesOf(tx, x)
	})
}

// pantry has what the call was made of.
func (c *call) pantry(tx store.Tx) pipeline.Contents {
	return pipeline.Contents{
		Stored: tx.Messages.Get,
		Segment: func(d artel.Digest) ([]byte, error) {
			if b, ok := c.lines[d]; ok {
				return b, nil
			}
			return nil, artel.Errorf(artel.NotFound, "app.Contexts", string(d), "a piece of the request is not kept any more")
		},
	}
}

var errDamaged = errors.New("the record is damaged")

// loadCall reads the record of a call and the segments that it names.
func loadCall(tx store.Tx, key ContextKey) (*call, error) {
	row, err := tx.Contexts.Get(key.Run, key.Number)
	if err != nil {
		return nil, err
	}
	c := &call{key: key, lines: map[artel.Digest][]byte{}}
	damaged := func(err error) error {
		return artel.Errorf(artel.Internal, "app.Contexts", string(key.Run), "%w: %w", errDamaged, err)
	}
	if err := json.Unmarshal(row.Summary, &c.facts); err != nil {
		return nil, damaged(err)
	}
	var lost error // of the store, which is no fault of the record
	c.made, err = unpack(row.Record, func(want []artel.Digest) (map[artel.Digest][]byte, error) {
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
	if d := c.made.Recipe.Tools; d != "" {
		want = append(want, d)
	}
	for _, m := range c.made.Recipe.Messages {
		if !m.Stored {
			want = append(want, m.Digest)
		}
	}
	for _, s := range c.made.Processors {
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
