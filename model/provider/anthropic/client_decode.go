// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

const errPaused = provider.Signal("the service paused its answer")

// A reader reads an answer and yields its deltas. It can read several answers, each
// the continuation of a paused one.
type reader struct {
	provider.DeltaWriter

	paused  paused      // blocks of the answers before this one
	before  artel.Usage // usage of those
	hasText bool        // text was yielded

	blocks       []*blockBuilder
	invalidCalls []model.CallDelta // whose arguments are not JSON
	usage        Usage
	reason       string
	stopDetails  *StopDetails
}

// A blockBuilder collects the fragments of a block.
type blockBuilder struct {
	index     int
	start     json.RawMessage // unchanged, from content_block_start
	block     Block
	text      strings.Builder // of text, thinking or arguments
	citations []json.RawMessage
	ended     bool
}

// event is an event of the stream.
type event struct {
	Type    string          `json:"type"`
	Message *Response       `json:"message"`
	Index   int             `json:"index"`
	Block   json.RawMessage `json:"content_block"`
	Delta   struct {
		Type        string          `json:"type"`
		Text        string          `json:"text"`
		Thinking    string          `json:"thinking"`
		Signature   string          `json:"signature"`
		PartialJSON string          `json:"partial_json"`
		Citation    json.RawMessage `json:"citation"`
		StopReason  string          `json:"stop_reason"`
		StopDetails *StopDetails    `json:"stop_details"`
	} `json:"delta"`
	Usage json.RawMessage `json:"usage"`
	Error json.RawMessage `json:"error"`
}

// read reads one answer, streamed or not. The error is [provider.ErrStopped] when
// the caller stops, errPaused, an [*artel.Error], or the error of body.
func (r *reader) read(body io.Reader) error {
	r.blocks, r.invalidCalls, r.Called, r.usage, r.reason, r.stopDetails = nil, nil, false, Usage{}, "", nil
	return provider.Answer{Failures: r.Failures, Whole: r.whole, Event: r.event}.Read(body)
}

func (r *reader) whole(b *bufio.Reader) error {
	var m struct {
		Content     []json.RawMessage `json:"content"`
		StopReason  string            `json:"stop_reason"`
		StopDetails *StopDetails      `json:"stop_details"`
		Usage       Usage             `json:"usage"`
		Error       json.RawMessage   `json:"error"`
	}
	data, err := r.Failures.ReadWhole(b, &m)
	switch {
	case err != nil:
		return err
	case provider.Given(m.Error):
		return r.Failures.Reported(data)
	case m.Content == nil:
		return r.Failures.Broken("the answer has no content")
	}
	for i, raw := range m.Content {
		if err := r.begin(i, raw); err != nil {
			return err
		}
		if err := r.end(i); err != nil {
			return err
		}
	}
	r.usage, r.reason, r.stopDetails = m.Usage, m.StopReason, m.StopDetails
	return r.finish()
}

func (r *reader) event(name string, data []byte) (done bool, err error) {
	var ev event
	if err := r.Failures.ReadEvent(data, &ev); err != nil {
		return true, err
	}
	switch {
	case name == "error", ev.Type == "error", provider.Given(ev.Error):
		return true, r.Failures.Reported(data)
	case ev.Type == "message_stop":
		return true, r.finish()
	}
	return false, r.take(ev)
}

func (r *reader) take(ev event) error {
	switch ev.Type {
	case "message_start":
		if ev.Message != nil {
			r.usage = ev.Message.Usage
		}
	case "content_block_start":
		return r.begin(ev.Index, ev.Block)
	case "content_block_delta":
		return r.delta(ev)
	case "content_block_stop":
		return r.end(ev.Index)
	case "message_delta":
		r.usage.take(ev.Usage)
		if ev.Delta.StopReason != "" {
			r.reason, r.stopDetails = ev.Delta.StopReason, ev.Delta.StopDetails
		}
	}
	return nil // ping, and unknown events
}

// begin starts a block with its first content.
func (r *reader) begin(index int, raw json.RawMessage) error {
	b := &blockBuilder{index: index, start: bytes.Clone(raw)}
	if err := json.Unmarshal(raw, &b.block); err != nil {
		return r.Failures.Broken("the answer has a block that cannot be read: " + err.Error())
	}
	r.blocks = append(r.blocks, b)
	switch b.block.Type {
	case "text":
		return r.emit(b, b.block.Text)
	case "thinking":
		return r.emit(b, b.block.Thinking)
	case "tool_use":
		if err := r.piece(b, ""); err != nil {
			return err
		}
	}
	return r.limit(len(raw))
}

// piece yields a piece of the arguments of a call, which it names.
func (r *reader) piece(b *blockBuilder, text string) error {
	if b.block.Type != "tool_use" || b.block.Name == "" {
		return nil
	}
	if b.block.ID == "" {
		b.block.ID = string(provider.NewCallID("toolu_"))
	}
	return r.Send(model.CallPiece{ID: artel.CallID(b.block.ID), Name: b.block.Name, Text: text})
}

func (r *reader) delta(ev event) error {
	b := r.block(ev.Index)
	if b == nil {
		// Some servers send no content_block_start.
		kind := map[string]string{"thinking_delta": "thinking", "signature_delta": "thinking", "input_json_delta": "tool_use"}[ev.Delta.Type]
		if kind == "" {
			kind = "text"
		}
		b = &blockBuilder{index: ev.Index, block: Block{Type: kind}}
		r.blocks = append(r.blocks, b)
	}
	switch ev.Delta.Type {
	case "text_delta":
		return r.emit(b, ev.Delta.Text)
	case "thinking_delta":
		return r.emit(b, ev.Delta.Thinking)
	case "signature_delta":
		b.block.Signature += ev.Delta.Signature
		return r.limit(len(ev.Delta.Signature))
	case "input_json_delta":
		b.text.WriteString(ev.Delta.PartialJSON)
		if err := r.limit(len(ev.Delta.PartialJSON)); err != nil || ev.Delta.PartialJSON == "" {
			return err
		}
		return r.piece(b, ev.Delta.PartialJSON)
	case "citations_delta":
		b.citations = append(b.citations, ev.Delta.Citation)
		return r.limit(len(ev.Delta.Citation))
	}
	return nil
}

// block returns the unfinished block at an index, or nil.
func (r *reader) block(index int) *blockBuilder {
	for i := len(r.blocks) - 1; i >= 0; i-- {
		if b := r.blocks[i]; b.index == index && !b.ended {
			return b
		}
	}
	return nil
}

// limit bounds the data kept of the answer.
func (r *reader) limit(n int) error {
	return r.Keep(n, "the answer is")
}

// emit yields a fragment of text or thinking.
func (r *reader) emit(b *blockBuilder, piece string) error {
	if piece == "" {
		return nil
	}
	b.text.WriteString(piece)
	if err := r.limit(len(piece)); err != nil {
		return err
	}
	var d model.Delta = model.TextDelta(piece)
	if b.block.Type == "thinking" {
		d = model.ReasoningDelta(piece)
	} else {
		r.hasText = true
	}
	return r.Send(d)
}

// end yields what is known at the end of a block.
func (r *reader) end(index int) error {
	b := r.block(index)
	if b == nil {
		return nil
	}
	b.ended = true
	var d model.Delta
	switch b.block.Type {
	case "text":
		return nil
	case "thinking":
		d = model.ReasoningDone{Opaque: thinkingState(b.block.Signature)}
	case "tool_use":
		call := b.call(r.Failures.Service.ID)
		if call.Name == "" {
			return r.Unnamed()
		}
		if !json.Valid(call.Arguments) {
			r.invalidCalls = append(r.invalidCalls, call)
			return nil
		}
		d = call
	default:
		d = model.ReasoningDone{Opaque: b.raw()}
	}
	return r.Send(d)
}

// call returns the call of a block. Its arguments may not be JSON.
func (b *blockBuilder) call(service artel.ServiceID) model.CallDelta {
	c := model.CallDelta{ID: artel.CallID(b.block.ID), Name: b.block.Name, Arguments: json.RawMessage(b.text.String())}
	if b.text.Len() == 0 {
		c.Arguments = b.block.Input
	}
	if len(bytes.TrimSpace(c.Arguments)) == 0 || string(c.Arguments) == "null" {
		c.Arguments = json.RawMessage("{}")
	}
	if c.ID == "" {
		c.ID = provider.NewCallID("toolu_")
	}
	if c.Opaque = b.block.caller(); c.Opaque != nil {
		c.Service = service
	}
	return c
}

// raw returns the whole block, as in an answer that is not streamed.
func (b *blockBuilder) raw() json.RawMessage {
	made := b.block
	switch made.Type {
	case "thinking":
		made.Thinking = b.text.String()
	case "tool_use":
		made.Input = arguments(json.RawMessage(b.text.String()))
		if b.text.Len() == 0 {
			made.Input = arguments(made.Input)
		}
	case "text":
		made.Text = b.text.String()
		if len(b.citations) == 0 {
			break
		}
		return with(provider.MustMarshal(made), "citations", provider.MustMarshal(b.citations))
	case "redacted_thinking":
	default:
		if b.text.Len() > 0 {
			return with(b.start, "input", arguments(json.RawMessage(b.text.String())))
		}
		return b.start
	}
	return provider.MustMarshal(made)
}

// with returns object with a field set.
func with(object json.RawMessage, field string, value json.RawMessage) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(object, &fields) != nil || fields == nil {
		return object
	}
	fields[field] = value
	return provider.MustMarshal(fields)
}

// finish yields the Finish, or returns errPaused.
func (r *reader) finish() error {
	for _, b := range r.blocks {
		if err := r.end(b.index); err != nil { // some servers send no content_block_stop
			return err
		}
	}
	stop := stopReason(r.reason)
	usage := r.before.Add(r.usage.neutral())
	switch r.reason {
	case "":
		return r.Failures.Broken("the stream broke off: it ended without a stop reason")
	case "pause_turn":
		for i, b := range r.blocks {
			if said := b.text.String(); b.block.Type == "text" && i == len(r.blocks)-1 {
				// The API refuses white space at the end of the assistant's text.
				b.text.Reset()
				b.text.WriteString(strings.TrimRight(said, " \t\r\n"))
			}
			if b.block.Type != "text" || !Blank(b.text.String()) {
				r.paused = append(r.paused, b.raw())
			}
		}
		r.before = usage
		return errPaused
	}
	for _, call := range r.invalidCalls {
		if stop == model.StopLength {
			continue // the arguments are cut off: no call
		}
		call.Arguments = provider.MustMarshal(string(call.Arguments))
		if err := r.Send(call); err != nil {
			return err
		}
	}
	if w := r.stopDetails; stop == model.StopRefusal && w != nil && w.Explanation != nil && *w.Explanation != "" && !r.hasText {
		if err := r.Send(model.TextDelta(*w.Explanation)); err != nil {
			return err
		}
	}
	return r.Finish(stop, usage)
}

func stopReason(word string) model.StopReason {
	switch word {
	case "tool_use":
		return model.StopTools
	case "max_tokens", "model_context_window_exceeded":
		return model.StopLength
	case "refusal":
		return model.StopRefusal
	}
	return model.StopEnd
}
