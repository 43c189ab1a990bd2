// SPDX-License-Identifier: Apache-2.0

// Package pipeline builds the request that a model receives.
//
// A build passes a [Draft] through the processors of a [Registry], in ascending
// order of priority: load the branch, choose a form for every attachment,
// insert prompts and the reminder, drop what exceeds the token budget, and
// replace refs by the digests of the bytes. Begin with [NewRegistry] and
// [Registry.Build]. A new processor is one file that returns a [Processor], and
// one line in [BuiltIn].
//
// Invariants: the same [Input] over the same [Sources] gives the same request,
// byte for byte; no text of the request holds bytes of binary content; a tool
// call and its result are sent together or not at all; every build returns a
// [Record] of what each processor did. The package calls no model and stores
// nothing. The wire format of a part belongs to the provider packages.
package pipeline

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
	"github.com/artelhq/artel/pipeline/macro"
)

// Result is the outcome of a build. If the build failed, Request is nil and
// Record covers the processors that ran.
type Result struct {
	Request  *model.Request
	Messages []Message // of the draft after the last processor; one for each message of Request
	Record   Record
	Manifest Manifest  // of Request
	Segments []Segment // named by Manifest

	// Variables are the input's variables with the changes made by macros in
	// prompts.
	Variables macro.Variables
}

// Build makes the request for in. The Subject of the error names the processor.
// The error's kind is TooLarge if the budget cannot be kept, Invalid if the
// input or a setting is wrong, Canceled if ctx ended, Internal if a processor
// panicked; otherwise it is the kind that the processor returned.
func (r *Registry) Build(ctx context.Context, in Input) (Result, error) {
	list, last, err := r.plan(in)
	if err != nil {
		return Result{}, err
	}
	out, again, err := r.build(ctx, in, list, last, false)
	if again && err == nil {
		out, _, err = r.build(ctx, in, list, last, true)
	}
	return out, err
}

// build runs one build, over the end of the history if lookback allows it, or
// over all of it if full is set. again reports that the end was not long enough
// and the build has to be repeated with full set.
func (r *Registry) build(ctx context.Context, in Input, list []plannedStep, last int, full bool) (out Result, again bool, err error) {
	d := &Draft{
		Input:       in,
		target:      route.Target{Service: in.Service.ID, Capabilities: in.Service.Capabilities, Suggest: in.Suggest, Forms: forms(in)},
		counter:     newMessageCounter(r.counter, in.Service, vocabulary(list)),
		steps:       list,
		sources:     make(map[artel.Ref]source),
		sentDigests: make(map[artel.Ref]artel.Digest),
	}
	d.lookback.full = full
	if spare, ok := r.buffers.Get().(*[]Message); ok {
		d.before = *spare
	}
	defer func() {
		spare := d.before[:0]
		clear(spare[:cap(spare)]) // release the texts
		r.buffers.Put(&spare)
	}()
	d.counter.cached = r.cache.counts(d.counter.key(), len(in.History), func(i int) artel.Parts { return in.History[i].Parts })
	d.toolTokens = r.cache.tools.count(in.Tools, d.counter)
	var rec Record
	d.warnUnknown(r.Processors())
	for _, p := range list[:last] {
		var step Step
		step, err = r.run(ctx, d, p)
		d.noteChanges(len(rec.Processors), step)
		rec.Processors = append(rec.Processors, step)
		if err != nil {
			err = processorError(p.ID, err)
			break
		}
		if p.ID == TokenLimiter && d.lookbackTooShort() {
			return out, true, nil
		}
	}
	rec.Tokens = d.tokens()
	rec.Decisions = d.finalDecisions()
	if err != nil {
		return Result{Messages: d.Messages, Record: rec}, false, err
	}
	req := d.request()
	out = Result{Request: req, Messages: d.Messages, Record: rec, Variables: macro.Variables{Local: in.Variables, Global: in.Globals}}
	if set, ok := Value[*macro.Variables](d); ok {
		out.Variables = *set
	}
	if out.Manifest, out.Segments, out.Record.RequestHash, err = d.encode(req, &r.cache); err != nil {
		return Result{Messages: d.Messages, Record: rec}, false, artel.Errorf(artel.Invalid, "pipeline.Build", "", "hash the request: %w", err)
	}
	if out.Segments, err = d.recordChanges(rec.Processors, out.Segments); err != nil {
		return Result{Messages: d.Messages, Record: rec}, false, artel.Errorf(artel.Invalid, "pipeline.Build", "", "keep the changes: %w", err)
	}
	return out, false, nil
}

// plan returns the processors in the order in which they run, each with its
// configuration, and how many of them run before the build ends.
func (r *Registry) plan(in Input) (out []plannedStep, last int, err error) {
	list := ordered(r.Processors(), in.Settings.Order)
	if in.Until != "" && !slices.ContainsFunc(list, func(p Processor) bool { return p.ID == in.Until }) {
		return nil, 0, artel.Errorf(artel.Invalid, "pipeline.Build", "until", "there is no processor %q", artel.Shorten(in.Until, maxProcessorID))
	}
	for _, p := range list {
		s := in.Settings.Resolve(p)
		if p.Always && !s.Enabled {
			return nil, 0, processorError(p.ID, artel.Errorf(artel.Invalid, "pipeline.Build", "", "the processor cannot be disabled"))
		}
		if s.Enabled || p.ID == in.Until {
			out = append(out, plannedStep{p, s, unknownKeys(s.configs, append(groupFields(list, p), p.Fields...))})
		}
		if p.ID == in.Until {
			last = len(out)
		}
	}
	if in.Until == "" {
		last = len(out)
	}
	return out, last, nil
}

// vocabulary returns the vocabulary that the token limiter is configured to
// count in; "": none.
func vocabulary(list []plannedStep) string {
	for _, p := range list {
		if p.ID == TokenLimiter {
			return vocabularyOf(p.setting.Config)
		}
	}
	return ""
}

type plannedStep struct {
	Processor
	setting Resolved
	unknown []string // keys of its configuration that name no field
}

func unknownKeys(configs []json.RawMessage, fields []Field) []string {
	var out []string
	for _, c := range configs {
		keys, _ := keysOf(c) // the processor reports the error
		for _, k := range keys {
			if !slices.ContainsFunc(fields, func(f Field) bool { return f.Key == k.key }) {
				out = append(out, artel.Shorten(k.key, 60))
			}
		}
	}
	return out
}

// warnUnknown logs settings that name no processor. The log belongs to the
// first step.
func (d *Draft) warnUnknown(list []Processor) {
	var ids []string
	for _, l := range []SettingLevel{ByDeployment, ByModel, ByAgent} {
		for _, s := range d.Settings.at(l) {
			known := slices.ContainsFunc(list, func(p Processor) bool { return p.ID == s.ID || p.Group == s.ID })
			if !known && !slices.Contains(ids, s.ID) {
				ids = append(ids, s.ID)
				d.Log(Warn, "a setting names no processor", map[string]any{"id": artel.Shorten(s.ID, 80), "level": string(l)})
			}
		}
	}
}

// Config decodes the running processor's configuration into dst, a pointer to a
// struct that holds the defaults. A value of the wrong type is of kind Invalid.
func (d *Draft) Config(dst any) error { return readConfig(d.config, dst) }

// ConfigAt decodes the configuration that one level gives the running processor
// into dst, and reports whether the level has a setting for it. It is for
// processors that combine the levels. Of [ByModel] and [ByAgent], only the
// effective one has a setting.
func (d *Draft) ConfigAt(l SettingLevel, dst any) (bool, error) {
	s, ok := Find(d.Settings.at(l), d.running)
	if _, agents := Find(d.Settings.Agent, d.running); l == ByModel && agents {
		ok = false
	}
	if !ok {
		return false, nil
	}
	return true, readConfig(mergedConfig([]json.RawMessage{s.Config}, d.running.Fields), dst)
}

func readConfig(config json.RawMessage, dst any) error {
	if len(config) == 0 {
		return nil
	}
	dec := json.NewDecoder(bytes.NewReader(config))
	dec.DisallowUnknownFields()
	if err := dec.Decode(dst); err != nil {
		return artel.Errorf(artel.Invalid, "pipeline.Config", "config", "%w", err)
	}
	return nil
}

// run runs one processor and returns its step. It returns an error only if that
// ends the build.
func (r *Registry) run(ctx context.Context, d *Draft, p plannedStep) (Step, error) {
	if !d.beforeCurrent {
		d.before = append(d.before[:0], d.Messages...)
	}
	before := d.before
	step := Step{ID: p.ID, Settings: p.setting.Winner, TokensBefore: d.total}
	d.config, d.running, d.unchanged = p.setting.Config, p.Processor, false
	start := time.Now()
	if len(p.unknown) > 0 {
		d.Log(Warn, "the configuration has fields that the processor does not know; they do nothing", map[string]any{"fields": p.unknown})
	}
	err := checkConfig(d.config, p.Fields, nil)
	if err == nil {
		err = r.process(ctx, d, p.Processor)
	}
	d.beforeCurrent = err == nil && (d.unchanged || sameDraft(before, d.Messages))
	if err == nil && !d.beforeCurrent {
		err = checkStability(p.Processor, before, d.Messages)
	}
	if err == nil && !p.Core {
		err = d.withinBudget()
	}
	step.Millis = float64(time.Since(start).Microseconds()) / 1000
	if err != nil && !p.Required && ctx.Err() == nil {
		d.Messages = slices.Clone(before)
		d.Log(Error, "the processor failed and was skipped", map[string]any{"error": err.Error()})
		err = nil
	}
	if !d.beforeCurrent {
		step.Added, step.Removed, step.Changed = diff(before, d.Messages)
		d.total = d.counter.all(d.Messages)
	}
	if err == nil && len(step.Added)+len(step.Changed) > 0 {
		err = checkUniqueIDs(d.Messages)
	}
	step.TokensAfter = d.total
	step.Logs, d.logs = d.logs, nil
	if d.counter.err != nil && err == nil {
		err = d.counter.err
	}
	return step, err
}

// sameDraft reports whether a processor left all messages unchanged.
func sameDraft(before, after []Message) bool {
	if len(before) != len(after) {
		return false
	}
	for i := range before {
		b, a := &before[i], &after[i]
		if b.ID != a.ID || b.Stability != a.Stability || b.Agent != a.Agent || b.history != a.history || !same(b, a) {
			return false
		}
	}
	return true
}

// checkUniqueIDs refuses two stored messages with the same id. Other messages
// carry the name of the preset or processor that made them, which may occur
// several times.
func checkUniqueIDs(ms []Message) error {
	stored := func(i int) bool { return ms[i].Origin == OriginHistory || ms[i].Origin == OriginSummary }
	at := func(i int) string { return ms[i].ID }
	if surelyDistinct(len(ms), func(i int) (string, bool) { return at(i), stored(i) }) {
		return nil
	}
	seen := newIndex(len(ms))
	for i := range ms {
		if stored(i) && !seen.add(at(i), i, at) {
			return artel.Errorf(artel.Invalid, "pipeline.Build", "", "two messages have the id %q", artel.Shorten(at(i), 80))
		}
	}
	return nil
}

// checkStability refuses messages that are less stable than the processor
// declares in Adds, and a reminder before the history. Either would end the
// provider's cached prefix early.
func checkStability(p Processor, before, after []Message) error {
	limit := p.Adds.rank()
	if p.Adds == Turn || p.Adds == "" {
		return checkReminders(after)
	}
	var old map[string]Message // built on demand
	for i := range after {
		m := &after[i]
		if m.Stability.rank() <= limit || len(m.MergedFrom) > 0 {
			continue
		}
		if old == nil {
			old = make(map[string]Message, len(before))
			for _, b := range before {
				old[b.ID] = b
			}
		}
		if o, known := old[m.ID]; !known || m.Stability.rank() > o.Stability.rank() {
			return artel.Errorf(artel.Internal, "pipeline.Build", "", "the message %q is for this call only, but the processor declares its messages %s", artel.Shorten(m.ID, 80), p.Adds)
		}
	}
	return checkReminders(after)
}

func checkReminders(ms []Message) error {
	last := len(ms) - 1
	for last >= 0 && ms[last].Origin != OriginHistory {
		last--
	}
	for i := range ms[:last+1] {
		if m := &ms[i]; m.Origin == OriginReminder {
			return artel.Errorf(artel.Internal, "pipeline.Build", "", "the reminder %q, which changes with every call, is placed before the history", artel.Shorten(m.ID, 80))
		}
	}
	return nil
}

// tokens sums up the tokens of the draft.
func (d *Draft) tokens() Tokens {
	t := Tokens{Total: d.toolTokens}
	for i := range d.Messages {
		t.Total += d.counter.count(&d.Messages[i])
		t.History += d.historyTokens(&d.Messages[i])
	}
	if cut, ok := Value[limited](d); ok {
		t.Budget, t.Dropped, t.Cut = cut.budget, cut.dropped, cut.cut
		if len(d.lookback.older) > 0 {
			t.Dropped = append(d.lookback.older, cut.dropped...) // the draft has no other reference to older
		}
		t.Total = max(t.Total, cut.minimum)
	}
	t.Fixed = t.Total - t.History
	return t
}

// finalDecisions returns the decisions in the order of the parts, and marks
// those of messages that are not sent. Messages outside the lookback have none.
func (d *Draft) finalDecisions() []Decision {
	cut, _ := Value[limited](d)
	gone := make(map[artel.MessageID]bool, len(cut.dropped))
	for _, id := range cut.dropped {
		gone[artel.MessageID(id)] = true
	}
	for i, x := range d.decisions {
		d.decisions[i].Dropped = gone[x.Message]
	}
	return d.decisions
}

// storeError wraps a failure of the store or the blobs with the action that
// failed.
func storeError(action string, err error) error {
	return &artel.Error{Op: "pipeline.Build", Kind: artel.KindOf(err), Err: fmt.Errorf("%s: %w", action, err)}
}
