// SPDX-License-Identifier: Apache-2.0

// Package plugin runs external programs as processors of the context pipeline:
// a command that reads a draft and writes an answer, or an HTTP endpoint that
// does the same.
//
// Begin with [Command] and [Endpoint]. A program gets a [Draft] in JSON and
// returns an [Answer]; [Schema] is the JSON Schema of both. They have a
// version, and later releases only add to it.
//
// A program sees the messages, the agent, service and user that they are for,
// and the values that plugins share in a [Board]. It sees no key, no owner, no bytes of media and no opaque state, and
// cannot refer to anything outside of the draft. Its answer is validated (see
// [Answer]); an answer that is invalid, too late or too large is a failure of
// the processor, which the build skips or ends with, depending on [Options].
package plugin

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

// Schema is the JSON Schema of [Draft] and [Answer], under $defs.
//
//go:embed schema.json
var schema []byte

// Schema returns the JSON Schema (draft 2020-12) of what plugins read and
// write: $defs/draft and $defs/answer. The caller owns the bytes.
func Schema() []byte { return bytes.Clone(schema) }

// The defaults and limits of [Options].
const (
	DefaultTimeout   = 10 * time.Second
	MaxTimeout       = 5 * time.Minute
	DefaultMaxAnswer = 8 << 20 // bytes
	MaxAnswer        = 256 << 20
	maxDraft         = 256 << 20
	maxCalls         = 4 // of one plugin at once
)

// Options configure a plugin. The zero value runs it after the formatters, and
// skips it if it fails.
type Options struct {
	Name        string          // shown to users; "": the id
	Description string          // shown to users
	After       string          // the built-in processor that it follows; "": the default position of plugins
	Required    bool            // its failure fails the build
	Timeout     time.Duration   // 0: DefaultTimeout
	MaxAnswer   int64           // bytes; 0: DefaultMaxAnswer
	Options     json.RawMessage // default options for the program; nil: none
}

// An askFunc sends a draft to a program and returns an answer of at most limit
// bytes. notes is other output of the program.
type askFunc func(ctx context.Context, draft []byte, limit int64) (answer []byte, notes string, err error)

// processor makes the processor of a program; origin shows users which program
// it is.
func processor(id, origin string, o Options, ask askFunc) (pipeline.Processor, error) {
	const op = "plugin.New"
	o.Timeout, o.MaxAnswer = cmp.Or(o.Timeout, DefaultTimeout), cmp.Or(o.MaxAnswer, DefaultMaxAnswer)
	switch {
	case o.Timeout < 0 || o.Timeout > MaxTimeout:
		return pipeline.Processor{}, artel.Errorf(artel.Invalid, op, id, "the timeout is %v: want up to %v", o.Timeout, MaxTimeout)
	case o.MaxAnswer < 0 || o.MaxAnswer > MaxAnswer:
		return pipeline.Processor{}, artel.Errorf(artel.Invalid, op, id, "the longest answer has %d bytes: want up to %d", o.MaxAnswer, MaxAnswer)
	case o.Options != nil && !json.Valid(o.Options):
		return pipeline.Processor{}, artel.Errorf(artel.Invalid, op, id, "the options are no JSON")
	}
	priority, err := priorityAfter(o.After)
	if err != nil {
		return pipeline.Processor{}, artel.Errorf(artel.Invalid, op, id, "%w", err)
	}
	p := &program{id: id, options: o, ask: ask, calls: semaphore.NewWeighted(maxCalls)}
	return pipeline.Processor{
		ID: id, Name: cmp.Or(o.Name, id), Description: cmp.Or(o.Description, "A processor in another program."), Icon: "🧩", Origin: origin,
		Priority: priority, Required: o.Required, Timeout: o.Timeout,
		Fields: []pipeline.Field{{
			Key: "options", Label: "Options for the program", Type: pipeline.FieldJSON, Placeholder: "the deployment's setting",
		}},
		Adds: pipeline.Turn, Process: p.process,
	}, nil
}

// priorityAfter returns the priority directly after a built-in processor.
func priorityAfter(id string) (int, error) {
	if id == "" {
		return pipeline.PriorityPlugin, nil
	}
	var ids []string
	for _, p := range pipeline.BuiltIn() {
		if p.ID == pipeline.AssetResolver {
			continue
		}
		if p.ID == id {
			return p.Priority + 1, nil
		}
		ids = append(ids, p.ID)
	}
	return 0, artel.Errorf(artel.Invalid, "plugin.New", "after", "%q is not a processor that a plugin can follow: want one of %s",
		artel.Shorten(id, 60), strings.Join(ids, ", "))
}

type program struct {
	id      string
	options Options
	ask     askFunc
	calls   *semaphore.Weighted
}

func (p *program) process(ctx context.Context, d *pipeline.Draft) error {
	var conf struct {
		Options json.RawMessage `json:"options"`
	}
	if err := d.Config(&conf); err != nil {
		return err
	}
	if conf.Options == nil {
		conf.Options = p.options.Options
	}
	draft, err := json.Marshal(draftOf(p.id, conf.Options, d))
	if err != nil {
		return artel.Errorf(artel.Internal, "plugin.Ask", p.id, "writing the draft: %w", err)
	}
	if len(draft) > maxDraft {
		return artel.Errorf(artel.TooLarge, "plugin.Ask", p.id, "the draft has %d bytes, and a plugin is given at most %d", len(draft), maxDraft)
	}
	if err := p.calls.Acquire(ctx, 1); err != nil {
		return artel.Errorf(artel.Unavailable, "plugin.Ask", p.id, "%d calls of the plugin are already running: %w", maxCalls, err)
	}
	defer p.calls.Release(1)
	b, notes, err := p.ask(ctx, draft, p.options.MaxAnswer)
	if notes != "" {
		d.Log(pipeline.Info, "the program has written notes beside its answer", map[string]any{"said": notes})
	}
	if err != nil {
		return err
	}
	a, err := readAnswer(b)
	if err != nil {
		return err
	}
	messages, err := a.apply(d.Messages)
	if err != nil {
		return err
	}
	if len(a.Board) > 0 {
		board, _ := pipeline.Value[Board](d)
		if board, err = board.with(a.Board); err != nil {
			return err
		}
		pipeline.Set(d, board)
		d.Log(pipeline.Info, "the program has changed shared values", map[string]any{"names": slices.Sorted(maps.Keys(a.Board))})
	}
	for _, l := range a.Logs {
		d.Log(l.Level, l.Message, l.Details)
	}
	if !slices.EqualFunc(d.Messages, messages, unchanged) {
		d.Messages = messages
	}
	return nil
}
