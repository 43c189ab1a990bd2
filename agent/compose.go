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

// A composer makes the parts of an answer out of its deltas, in the order in
// which they come: some services refuse an answer whose reasoning is no longer
// where it was. What is told on the way, the texts of all blocks of one kind,
// reads as the message does: with a blank line between two.
type composer struct {
	r       *run
	ctx     context.Context // of the call
	message artel.MessageID

	parts    artel.Parts
	block    *textStream // that is being written; nil: none
	thinking bool        // it is reasoning
	texts    int         // blocks of text that have any
	thoughts int         // blocks of reasoning that have any
}

// take takes the next delta, which is no [model.Finish].
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
		c.parts = append(c.parts, c.r.withUniqueID(artel.ToolCall(d)))
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

// begin ends the block that is being written and begins another.
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

// end ends the block that is being written, and keeps it. opaque is the
// service's state of a block of reasoning, which holds only for the text that
// it wrote. end may be called again.
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

// broken ends the answer early: calls are dropped, since nobody knows whether
// more of them were to come.
func (c *composer) dropCalls() {
	kept := c.parts[:0]
	for _, p := range c.parts {
		if _, ok := p.(artel.ToolCall); !ok {
			kept = append(kept, p)
		}
	}
	c.parts = kept
}

// told replaces the calls by what may be told of them, and returns them.
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

// stop lets go of a block that was not ended.
func (c *composer) stop() {
	if c.block != nil {
		c.block.stream.Stop()
	}
}

// asStored returns parts as they come back from a store, which keeps JSON
// without white space: so the requests of this run and of later ones are the
// same byte for byte.
func asStored(ps artel.Parts) artel.Parts {
	b, err := ps.MarshalJSON()
	var out artel.Parts
	if err != nil || out.UnmarshalJSON(b) != nil {
		return ps // telling it fails, and says why
	}
	return out
}

// A voice is a text that the model is writing. It tells each piece as soon as
// that is certain to be no media: those become artifacts, and their refs are
// told in their place.
type textStream struct {
	r        *run
	stream   *scrub.Stream
	delta    func(string) artel.MessageDelta
	text     strings.Builder // what was told
	received strings.Builder // what the model wrote
	gap      string          // told before the first piece
}

func (r *run) newTextStream(ctx context.Context, delta func(string) artel.MessageDelta) *textStream {
	env := r.in.Env
	// What had come is kept also where ctx has ended.
	return &textStream{r: r, stream: scrub.NewStream(context.WithoutCancel(ctx), tool.NewKeeper(&env).Keep), delta: delta}
}

// say takes the next piece.
func (v *textStream) write(piece string) error {
	v.received.WriteString(piece)
	s, err := v.stream.Write(piece)
	return v.emit(s, err)
}

// end tells what was held back. It may be called again.
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

// changed reports whether what was told is not what the model wrote.
func (v *textStream) changed() bool { return v.text.String() != v.received.String() }

// told returns a call as it may be told of. What its tool is to get is kept
// beside it, where that is something else.
func (r *run) recordCall(ctx context.Context, c artel.ToolCall) (artel.ToolCall, error) {
	env := r.in.Env
	told, given, err := r.tools.Arguments(ctx, &env, c.Name, c.Arguments)
	if err != nil {
		return c, err
	}
	if string(told) != string(c.Arguments) {
		c.Opaque, c.Service = nil, "" // it holds for what the service wrote
	}
	c.Arguments = told
	if string(given) != string(told) {
		r.toolArguments[c.ID] = given
	}
	return c, nil
}

// arguments is what the tool of a call is to get.
func (r *run) arguments(c artel.ToolCall) json.RawMessage {
	if given, ok := r.toolArguments[c.ID]; ok {
		return given
	}
	return c.Arguments
}
