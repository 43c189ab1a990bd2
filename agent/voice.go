// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/media/scrub"
)

// A voice is a text that the model is writing. It tells each piece as soon as
// that is certain to be no media: those become artifacts, and their refs are
// told in their place.
type voice struct {
	r      *run
	stream *scrub.Stream
	delta  func(string) artel.MessageDelta
	text   strings.Builder // what was told
	came   strings.Builder // what the model wrote
	gap    string          // told before the first piece
}

func (r *run) voice(ctx context.Context, delta func(string) artel.MessageDelta) *voice {
	env := r.in.Env
	// What had come is kept also where ctx has ended.
	return &voice{r: r, stream: scrub.NewStream(context.WithoutCancel(ctx), tool.NewKeeper(&env).Keep), delta: delta}
}

// say takes the next piece.
func (v *voice) say(piece string) error {
	v.came.WriteString(piece)
	s, err := v.stream.Write(piece)
	return v.tell(s, err)
}

// end tells what was held back. It may be called again.
func (v *voice) end() error {
	s, err := v.stream.Close()
	return v.tell(s, err)
}

func (v *voice) tell(s string, err error) error {
	if s != "" {
		v.text.WriteString(s)
		gap := v.gap
		v.gap = ""
		if told := v.r.tell(v.delta(gap + s)); told != nil {
			return told
		}
	}
	return err
}

// changed reports whether what was told is not what the model wrote.
func (v *voice) changed() bool { return v.text.String() != v.came.String() }

// told returns a call as it may be told of. What its tool is to get is kept
// beside it, where that is something else.
func (r *run) told(ctx context.Context, c artel.ToolCall) (artel.ToolCall, error) {
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
		r.given[c.ID] = given
	}
	return c, nil
}

// arguments is what the tool of a call is to get.
func (r *run) arguments(c artel.ToolCall) json.RawMessage {
	if given, ok := r.given[c.ID]; ok {
		return given
	}
	return c.Arguments
}
