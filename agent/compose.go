// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/model"
)

// A composer builds the parts of an answer from its deltas, in their order:
// some services refuse an answer whose reasoning has moved. The emitted text,
// of all blocks of one kind, equals that of the message, with a blank line
// between blocks.
type composer struct {
	r       *run
	ctx     context.Context // of the call
	message artel.MessageID

	parts    artel.Parts
	block    *textStream // currently received; nil: none
	thinking bool        // block is reasoning
	texts    int         // nonempty blocks of text
	thoughts int         // nonempty blocks of reasoning
}

// take processes the next delta, which is not a [model.Finish].
func (c *composer) take(d model.Delta) error {
	switch d := d.(type) {
	case model.TextDelta:
		return c.write(false, string(d))
	case model.ReasoningDelta:
		return c.write(true, string(d))
	case model.ReasoningDone:
		if c.block == nil || !c.thinking {
			if len(d.Opaque) == 0 {
				return nil
			}
			if err := c.begin(true); err != nil {
				return err
			}
		}
		return c.end(d.Opaque)
	case model.CallDelta:
		if err := c.end(nil); err != nil {
			return err
		}
		c.parts = append(c.parts, c.r.withUniqueID(c.r.direct(artel.ToolCall(d))))
	}
	return nil
}

func (c *composer) write(thinking bool, piece string) error {
	if c.block == nil || c.thinking != thinking {
		if err := c.begin(thinking); err != nil {
			return err
		}
	}
	return c.block.write(piece)
}

// begin ends the current block and begins another.
func (c *composer) begin(thinking bool) error {
	if err := c.end(nil); err != nil {
		return err
	}
	c.thinking = thinking
	delta := func(s string) artel.MessageDelta { return artel.MessageDelta{Message: c.message, Text: s} }
	before := c.texts
	if thinking {
		delta = func(s string) artel.MessageDelta { return artel.MessageDelta{Message: c.message, Reasoning: s} }
		before = c.thoughts
	}
	c.block = c.r.newTextStream(c.ctx, delta)
	if before > 0 {
		c.block.gap = "\n\n"
	}
	return nil
}

// end ends the current block and appends its part. opaque is the service's
// state of a reasoning block, which is only valid for the unchanged text. end
// may be called again.
func (c *composer) end(opaque json.RawMessage) error {
	v := c.block
	if v == nil {
		return nil
	}
	c.block = nil
	err := v.end()
	v.stream.Stop()
	text := v.text.String()
	if c.thinking {
		if v.changed() || len(opaque) == 0 {
			opaque = nil
		}
		if text != "" {
			c.thoughts++
		}
		if text != "" || opaque != nil {
			c.parts = append(c.parts, artel.Reasoning{Text: text, Opaque: opaque, Service: c.r.in.Service.ID})
		}
	} else if text != "" {
		c.texts++
		c.parts = append(c.parts, artel.Text{Text: text})
	}
	return err
}

// dropCalls removes the calls of a broken answer, because the list of calls may
// be incomplete.
func (c *composer) dropCalls() {
	kept := c.parts[:0]
	for _, p := range c.parts {
		if _, ok := p.(artel.ToolCall); !ok {
			kept = append(kept, p)
		}
	}
	c.parts = kept
}

// recordCalls replaces the calls by their storable form, and returns them.
func (c *composer) recordCalls() (calls []artel.ToolCall, err error) {
	for i, p := range c.parts {
		call, ok := p.(artel.ToolCall)
		if !ok {
			continue
		}
		if call, err = c.r.recordCall(c.ctx, call); err != nil {
			return calls, err
		}
		c.parts[i] = call
		calls = append(calls, call)
	}
	return calls, nil
}

// stop releases a block that was not ended.
func (c *composer) stop() {
	if c.block != nil {
		c.block.stream.Stop()
	}
}

// asStored returns ps as a store would return them, with compact JSON, so that
// later requests equal those of this run byte for byte.
func asStored(ps artel.Parts) artel.Parts {
	b, err := ps.MarshalJSON()
	var out artel.Parts
	if err != nil || out.UnmarshalJSON(b) != nil {
		return ps // emitting it fails with the reason
	}
	return out
}

// A textStream is a text that the model is writing. It emits each piece once
// the piece surely contains no media; media become artifacts, and their refs
// are emitted instead.
type textStream struct {
	r        *run
	stream   *scrub.Stream
	delta    func(string) artel.MessageDelta
	text     strings.Builder // emitted
	received strings.Builder // written by the model
	gap      string          // emitted before the first piece
}

func (r *run) newTextStream(ctx context.Context, delta func(string) artel.MessageDelta) *textStream {
	env := r.in.Env
	// Received text is stored even if ctx has ended.
	return &textStream{r: r, stream: scrub.NewStream(context.WithoutCancel(ctx), tool.NewKeeper(&env).Keep), delta: delta}
}

// write processes the next piece.
func (v *textStream) write(piece string) error {
	v.received.WriteString(piece)
	s, err := v.stream.Write(piece)
	return v.emit(s, err)
}

// end emits the rest. It may be called again.
func (v *textStream) end() error {
	s, err := v.stream.Close()
	return v.emit(s, err)
}

func (v *textStream) emit(s string, err error) error {
	if s != "" {
		v.text.WriteString(s)
		gap := v.gap
		v.gap = ""
		if told := v.r.emit(v.delta(gap + s)); told != nil {
			return told
		}
	}
	return err
}

// changed reports whether the emitted text differs from the model's.
func (v *textStream) changed() bool { return v.text.String() != v.received.String() }

// recordCall returns the storable form of a call. If its tool has to get
// different arguments, they are kept in toolArguments.
func (r *run) recordCall(ctx context.Context, c artel.ToolCall) (artel.ToolCall, error) {
	env := r.in.Env
	told, given, err := r.tools.Arguments(ctx, &env, c.Name, c.Arguments)
	if err != nil {
		return c, err
	}
	if string(told) != string(c.Arguments) {
		c.Opaque, c.Service = nil, "" // it is only valid for the original arguments
	}
	c.Arguments = told
	if string(given) != string(told) {
		r.toolArguments[c.ID] = given
	}
	return c, nil
}

// arguments returns the arguments to pass to the tool of a call.
func (r *run) arguments(c artel.ToolCall) json.RawMessage {
	if given, ok := r.toolArguments[c.ID]; ok {
		return given
	}
	return c.Arguments
}
