// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"

	"github.com/artelhq/artel"
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
	block    *voice // that is being written; nil: none
	thinking bool   // it is reasoning
	texts    int    // blocks of text that have any
	thoughts int    // blocks of reasoning that have any
}

// take takes the next delta, which is no [model.Finish].
func (c *composer) take(d model.Delta) error {
	switch d := d.(type) {
	case model.TextDelta:
		return c.say(false, string(d))
	case model.ReasoningDelta:
		return c.say(true, string(d))
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
		c.parts = append(c.parts, c.r.named(artel.ToolCall(d)))
	}
	return nil
}

func (c *composer) say(thinking bool, piece string) error {
	if c.block == nil || c.thinking != thinking {
		if err := c.begin(thinking); err != nil {
			return err
		}
	}
	return c.block.say(piece)
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
	c.block = c.r.voice(c.ctx, delta)
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
func (c *composer) broken() {
	kept := c.parts[:0]
	for _, p := range c.parts {
		if _, ok := p.(artel.ToolCall); !ok {
			kept = append(kept, p)
		}
	}
	c.parts = kept
}

// told replaces the calls by what may be told of them, and returns them.
func (c *composer) told() (calls []artel.ToolCall, err error) {
	for i, p := range c.parts {
		call, ok := p.(artel.ToolCall)
		if !ok {
			continue
		}
		if call, err = c.r.told(c.ctx, call); err != nil {
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
