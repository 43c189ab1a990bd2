// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// An Answer writes the deltas of a model in the dialect.
type Answer struct {
	ID    string // "msg_…"
	Model string
	// InputTokens is the count of the input at the beginning of a stream, before
	// the model has counted it. The end of the stream has the model's own count.
	InputTokens int64
	// Service is the origin of the reasoning. Its state of another dialect is
	// wrapped in a signature beside Service; [Request.Neutral] unwraps it.
	Service artel.ServiceID
}

// Whole returns the answer in one piece. The error is that of the deltas, or
// [provider.ErrNoFinish].
func (a Answer) Whole(deltas iter.Seq2[model.Delta, error]) (*Response, error) {
	out := &collected{response: a.frame()}
	finish, err := a.write(provider.WithoutPieces(deltas), out)
	if err != nil {
		return nil, err
	}
	word := stopWord(finish.Reason)
	out.response.StopReason, out.response.Usage = &word, wireUsage(finish.Usage)
	return out.response, nil
}

// Body implements [provider.Answerer].
func (a Answer) Body(deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	return provider.MarshalAnswer(a.Whole(deltas))
}

// Stream writes the answer to w as server-sent events, and calls flush, which may
// be nil, after each. The last event is message_stop; an error of the deltas is
// written as an error event, and returned.
func (a Answer) Stream(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	s := &stream{EventStream: provider.EventStream{EventWriter: provider.EventWriter{W: w, Flush: flush}}}
	start := a.frame()
	start.Usage.InputTokens = a.InputTokens
	s.event("message_start", map[string]any{"type": "message_start", "message": start})
	finish, err := a.write(provider.InOrder(deltas), s)
	if s.Err != nil {
		return s.Err // the client has left
	}
	if err != nil {
		s.Send("error", ErrorOf(err).MarshalBody(""), nil)
		return errors.Join(err, s.Err)
	}
	word := stopWord(finish.Reason)
	s.event("message_delta", map[string]any{
		"type": "message_delta", "delta": map[string]any{"stop_reason": word, "stop_sequence": nil}, "usage": wireUsage(finish.Usage),
	})
	s.event("message_stop", map[string]any{"type": "message_stop"})
	return s.Err
}

func (a Answer) frame() *Response {
	return &Response{ID: a.ID, Type: "message", Role: "assistant", Model: a.Model, Content: []Block{}}
}

// blocks receives an answer block by block.
type blocks interface {
	begin(b Block)
	text(piece string)         // of the current block: text, thinking or arguments
	sign(signature string)     // of a thinking block, before its end
	end()                      //
	whole(raw json.RawMessage) // a block in one piece
	failed() (stopped bool)    // further blocks are useless
}

// write turns deltas into blocks.
func (a Answer) write(deltas iter.Seq2[model.Delta, error], to blocks) (model.Finish, error) {
	open := "" // the type of the current block
	closed := func() {
		if open == "thinking" {
			to.sign(wrap(a.Service, nil))
		}
		if open != "" {
			to.end()
		}
		open = ""
	}
	say := func(kind, piece string) {
		if piece == "" {
			return
		}
		if open != kind {
			closed()
			to.begin(Block{Type: kind})
			open = kind
		}
		to.text(piece)
	}
	var calling artel.CallID // the call that is open
	var sent strings.Builder // of its arguments
	call := func(id artel.CallID, b Block) {
		if open == "tool_use" && calling == id {
			return
		}
		closed()
		sent.Reset()
		to.begin(b)
		open, calling = "tool_use", id
	}
	for d, err := range deltas {
		if err != nil {
			return model.Finish{}, err
		}
		switch d := d.(type) {
		case model.TextDelta:
			say("text", string(d))
		case model.ReasoningDelta:
			say("thinking", string(d))
		case model.ReasoningDone:
			state, native := readState(d.Opaque)
			switch {
			case len(d.Opaque) == 0:
				if open == "thinking" {
					closed()
				}
			case native && state.Type != "thinking":
				closed()
				to.whole(d.Opaque)
			default:
				if open != "thinking" {
					closed()
					to.begin(Block{Type: "thinking"})
				}
				open = ""
				if native {
					to.sign(*state.Signature)
				} else {
					to.sign(wrap(a.Service, d.Opaque))
				}
				to.end()
			}
		case model.CallPiece:
			call(d.ID, Block{Type: "tool_use", ID: string(d.ID), Name: d.Name})
			if d.Text != "" {
				to.text(d.Text)
				sent.WriteString(d.Text)
			}
		case model.CallDelta:
			b := Block{Type: "tool_use", ID: string(d.ID), Name: d.Name}
			b.setCaller(d.Opaque)
			call(d.ID, b)
			if rest := provider.Rest(string(arguments(d.Arguments)), sent.String()); rest != "" {
				to.text(rest)
			}
			closed()
		case model.Finish:
			closed()
			return d, nil
		}
		if to.failed() {
			return model.Finish{}, provider.ErrNoFinish
		}
	}
	return model.Finish{}, provider.ErrNoFinish
}

// collected builds an answer in one piece.
type collected struct {
	response *Response
	said     strings.Builder
}

func (w *collected) last() *Block { return &w.response.Content[len(w.response.Content)-1] }

func (w *collected) begin(b Block) { w.response.Content = append(w.response.Content, b) }

func (w *collected) text(piece string) { w.said.WriteString(piece) }

func (w *collected) sign(signature string) { w.last().Signature = signature }

func (w *collected) end() {
	b, said := w.last(), w.said.String()
	w.said.Reset()
	switch b.Type {
	case "text":
		b.Text = said
	case "thinking":
		b.Thinking = said
	case "tool_use":
		b.Input = json.RawMessage(said)
	}
}

func (w *collected) whole(raw json.RawMessage) {
	w.response.Content = append(w.response.Content, Block{Raw: raw})
}

func (w *collected) failed() bool { return false }

// stream writes events.
type stream struct {
	provider.EventStream

	index int
	kind  string // of the current block
}

func (s *stream) failed() bool { return s.Err != nil }

func (s *stream) begin(b Block) {
	s.kind = b.Type
	s.start(b)
	if s.kind == "tool_use" {
		s.text("") // as the API does
	}
}

func (s *stream) start(block any) {
	s.event("content_block_start", map[string]any{"type": "content_block_start", "index": s.index, "content_block": block})
	if s.index == 0 {
		s.event("ping", map[string]any{"type": "ping"})
	}
}

func (s *stream) text(piece string) {
	switch s.kind {
	case "thinking":
		s.delta(map[string]any{"type": "thinking_delta", "thinking": piece})
	case "tool_use":
		s.delta(map[string]any{"type": "input_json_delta", "partial_json": piece})
	default:
		s.delta(map[string]any{"type": "text_delta", "text": piece})
	}
}

func (s *stream) sign(signature string) {
	s.delta(map[string]any{"type": "signature_delta", "signature": signature})
}

func (s *stream) end() {
	s.event("content_block_stop", map[string]any{"type": "content_block_stop", "index": s.index})
	s.index++
}

func (s *stream) whole(raw json.RawMessage) {
	s.start(raw)
	s.end()
}

func (s *stream) delta(delta map[string]any) {
	s.event("content_block_delta", map[string]any{"type": "content_block_delta", "index": s.index, "delta": delta})
}

func (s *stream) event(name string, data any) {
	b, err := provider.Marshal(data)
	s.Send(name, b, err)
}

// Paused is the reason of an answer that the service wants to continue in another
// call. Callers never receive it: [Provider.Generate] continues the answer.
const Paused model.StopReason = "paused"

func stopWord(s model.StopReason) string {
	switch s {
	case Paused:
		return "pause_turn"
	case model.StopTools:
		return "tool_use"
	case model.StopLength:
		return "max_tokens"
	case model.StopRefusal:
		return "refusal"
	}
	return "end_turn"
}
