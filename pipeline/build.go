// SPDX-License-Identifier: Apache-2.0

// Package pipeline assembles what a model sees.
//
// A build runs a [Draft] through the processors of a [Registry] in the order
// of their priorities: it loads the branch, decides the form of every
// attachment, adds what the agent is told, drops what does not fit, and puts
// the digests of the bytes in the place of refs. Begin with [NewRegistry] and
// [Registry.Build]; a new processor is one file that returns a [Processor] and
// one line in [BuiltIn].
//
// The package promises that the same [Input] over the same [Sources] gives the
// same request, byte for byte; that no bytes of binary content are in any text
// of it; that a tool call and its result are sent together or not at all; and
// that every build leaves a [Record] that says what each processor did. It
// calls no model and stores nothing. How a part is written on the wire is for
// the provider's wing.
package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/route"
)

// Result is what a build gives. Where it failed, Request is nil and Record
// tells how far it came.
type Result struct {
	Request  *model.Request
	Messages []Message // as the last processor left them; one for each of Request
	Record   Record
}

// A Setting configures one processor for one build.
type Setting struct {
	Enabled *bool           `json:"enabled,omitempty"` // nil: the processor's default
	Config  json.RawMessage `json:"config,omitempty"`  // an object of the processor's fields; absent: their defaults
}

// Build makes the request for in. The error names the processor in its
// Subject: of kind TooLarge where the budget cannot be kept, Invalid where the
// input or a setting is wrong, Canceled where ctx ended, Internal where a
// processor panicked, else of the kind that the processor gave.
func (r *Registry) Build(ctx context.Context, in Input) (Result, error) {
	list := r.Processors()
	d := &Draft{
		Input:  in,
		target: route.Target{Service: in.Service.ID, Capabilities: in.Service.Capabilities, Suggest: in.Suggest, Forms: forms(in)},
		meter:  newMeter(r.counter, in.Service),
		found:  make(map[artel.Ref]source),
		sent:   make(map[artel.Ref]artel.Digest),
	}
	var rec Record
	d.warnUnknown(list)
	for _, p := range list {
		on, err := in.enabled(p)
		if err != nil {
			return Result{Record: rec}, failed(p.ID, err)
		}
		if !on {
			continue
		}
		step, err := d.run(ctx, p)
		rec.Processors = append(rec.Processors, step)
		rec.Tokens = d.tokens()
		rec.Decisions = d.decided(rec.Tokens.Dropped)
		if err != nil {
			return Result{Messages: d.Messages, Record: rec}, failed(p.ID, err)
		}
	}
	req := d.request()
	hash, err := hashRequest(req)
	if err != nil {
		return Result{Messages: d.Messages, Record: rec}, artel.Errorf(artel.Invalid, "pipeline.Build", "", "hash the request: %w", err)
	}
	rec.RequestHash = hash
	return Result{Request: req, Messages: d.Messages, Record: rec}, nil
}

// enabled says whether p runs in this build.
func (in Input) enabled(p Processor) (bool, error) {
	s, ok := in.Settings[p.ID]
	if !ok || s.Enabled == nil {
		return !p.DefaultOff, nil
	}
	if !*s.Enabled && p.Always {
		return false, artel.Errorf(artel.Invalid, "pipeline.Build", "", "the processor cannot be disabled")
	}
	return *s.Enabled, nil
}

// warnUnknown notes settings that name no processor; the first step carries it.
func (d *Draft) warnUnknown(list []Processor) {
	for _, id := range slices.Sorted(maps.Keys(d.Settings)) {
		if !slices.ContainsFunc(list, func(p Processor) bool { return p.ID == id }) {
			d.Log(Warn, "a setting names no processor", map[string]any{"id": artel.Shorten(id, 80)})
		}
	}
}

// Config reads the running processor's configuration into dst, a pointer to a
// struct that holds the defaults. An unknown key is of kind Invalid.
func (d *Draft) Config(dst any) error {
	if len(d.config) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(d.config))
	dec.DisallowUnknownFields()
	if err := dec.Decode(dst); err != nil {
		return artel.Errorf(artel.Invalid, "pipeline.Config", "config", "%w", err)
	}
	return nil
}

// run runs one processor and says what it did. Only an error that ends the
// build is returned.
func (d *Draft) run(ctx context.Context, p Processor) (Step, error) {
	before := slices.Clone(d.Messages)
	step := Step{ID: p.ID, TokensBefore: d.meter.all(before)}
	d.config = d.Settings[p.ID].Config
	start := time.Now()
	err := d.process(ctx, p)
	step.Millis = float64(time.Since(start).Microseconds()) / 1000
	if err != nil && !p.Required && ctx.Err() == nil {
		d.Messages = before
		d.Log(Error, "the processor failed and was passed over", map[string]any{"error": err.Error()})
		err = nil
	}
	if err == nil {
		err = unique(d.Messages)
	}
	step.Added, step.Removed, step.Changed = diff(before, d.Messages)
	step.TokensAfter = d.meter.all(d.Messages)
	step.Logs, d.logs = d.logs, nil
	if d.meter.err != nil && err == nil {
		err = d.meter.err
	}
	return step, err
}

func (d *Draft) process(ctx context.Context, p Processor) (err error) {
	if err := ctx.Err(); err != nil {
		return err
	}
	limit := p.Timeout
	if limit == 0 {
		limit = DefaultTimeout
	}
	cause := artel.Errorf(artel.Unavailable, "pipeline.Build", "", "the processor took longer than its limit of %v", limit)
	pctx, cancel := context.WithTimeoutCause(ctx, limit, cause)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			err = artel.Errorf(artel.Internal, "pipeline.Build", "", "the processor panicked: %v\n%s", v, debug.Stack())
		}
	}()
	err = p.Process(pctx, d)
	if err != nil && ctx.Err() == nil && pctx.Err() != nil {
		return cause
	}
	return err
}

func unique(ms []Message) error {
	seen := make(map[string]bool, len(ms))
	for _, m := range ms {
		if seen[m.ID] {
			return artel.Errorf(artel.Invalid, "pipeline.Build", "", "two messages have the id %q", artel.Shorten(m.ID, 80))
		}
		seen[m.ID] = true
	}
	return nil
}

// diff compares two states of a draft by message id.
func diff(before, after []Message) (added, removed, changed []string) {
	n := 0
	for n < len(before) && n < len(after) && before[n].ID == after[n].ID {
		if !same(before[n], after[n]) {
			changed = append(changed, after[n].ID)
		}
		n++
	}
	before, after = before[n:], after[n:]
	old := make(map[string]Message, len(before))
	for _, m := range before {
		old[m.ID] = m
	}
	for _, m := range after {
		o, ok := old[m.ID]
		switch {
		case !ok:
			added = append(added, m.ID)
		case !same(o, m):
			changed = append(changed, m.ID)
		}
		delete(old, m.ID)
	}
	for _, m := range before {
		if _, gone := old[m.ID]; gone {
			removed = append(removed, m.ID)
		}
	}
	return added, removed, changed
}

// same relies on parts being replaced and never written into.
func same(a, b Message) bool {
	return a.Role == b.Role && a.Origin == b.Origin && sameParts(a.Parts, b.Parts)
}

func sameParts(a, b artel.Parts) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

// tokens sums up the draft as it is.
func (d *Draft) tokens() Tokens {
	t := Tokens{Fixed: d.meter.tools(d.Tools)}
	for _, m := range d.Messages {
		if n := d.meter.message(m); m.Origin == OriginHistory {
			t.History += n
		} else {
			t.Fixed += n
		}
	}
	t.Total = t.Fixed + t.History
	if cut, ok := Value[limited](d); ok {
		t.Budget, t.Dropped = cut.budget, cut.dropped
	}
	return t
}

// decided returns the decisions, in the order of the parts, and marks those of
// messages that are not sent.
func (d *Draft) decided(dropped []string) []Decision {
	gone := make(map[artel.MessageID]bool, len(dropped))
	for _, id := range dropped {
		gone[artel.MessageID(id)] = true
	}
	for i, x := range d.decisions {
		d.decisions[i].Dropped = gone[x.Message]
	}
	return d.decisions
}

// stage wraps a failure of the store or the blobs with what was being done.
func stage(what string, err error) error {
	return &artel.Error{Op: "pipeline.Build", Kind: artel.KindOf(err), Err: fmt.Errorf("%s: %w", what, err)}
}
