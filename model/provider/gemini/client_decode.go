// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// reader reads an answer and yields its deltas.
type reader struct {
	provider.DeltaWriter

	thinking bool            // the last delta was a thought
	signed   json.RawMessage // the state of a text, until the text ends
	reason   string
	message  string // about the reason
	blocked  bool   // the prompt was refused
	usage    artel.Usage
}

// read yields the deltas of body and a Finish. It returns [provider.ErrStopped]
// when the caller stops, an [*artel.Error], or the error of body.
func (r *reader) read(body io.Reader) error {
	err := provider.Answer{Failures: r.Failures, Whole: r.json, Event: r.event, Open: true}.Read(body)
	if err != nil {
		return err
	}
	return r.finish()
}

func (r *reader) event(_ string, data []byte) (done bool, err error) {
	if string(data) == "[DONE]" { // of some proxies
		return false, nil
	}
	return false, r.piece(data, "stream")
}

// json reads one response, or a list of chunks incrementally.
func (r *reader) json(b *bufio.Reader) error {
	limited := &io.LimitedReader{R: b, N: provider.MaxAnswer}
	d := json.NewDecoder(limited)
	first, _ := b.Peek(1) // available: Read has looked at it
	list := string(first) == "["
	if list {
		if _, err := d.Token(); err != nil {
			return r.unreadable(err, limited)
		}
	}
	for {
		if list && !d.More() {
			if _, err := d.Token(); err != nil {
				return r.unreadable(err, limited)
			}
			return nil
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return r.unreadable(err, limited)
		}
		if err := r.piece(raw, "answer"); err != nil || !list {
			return err
		}
	}
}

// unreadable distinguishes a broken answer from a lost connection.
func (r *reader) unreadable(err error, from *io.LimitedReader) error {
	_, isSyntax := errors.AsType[*json.SyntaxError](err)
	switch {
	case from.N <= 0:
		return r.Failures.Wrong("the answer is larger than 64 MiB")
	case isSyntax, errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return r.Failures.Broken("the answer is not valid JSON: " + err.Error())
	}
	return err
}

// piece handles one response.
func (r *reader) piece(raw json.RawMessage, where string) error {
	var c Response
	if err := provider.IgnoreUsageError(json.Unmarshal(raw, &c)); err != nil {
		return r.Failures.Broken("the " + where + " has a piece that is no response: " + err.Error())
	}
	if provider.Given(c.Error) {
		return r.Failures.Reported(raw)
	}
	if u := c.UsageMetadata; u != nil {
		r.usage = u.neutral()
	}
	if f := c.PromptFeedback; f != nil && f.BlockReason != "" {
		r.blocked = true
	}
	for _, candidate := range c.Candidates {
		if candidate.Index != 0 {
			continue
		}
		if candidate.Content != nil {
			for _, p := range candidate.Content.Parts {
				if err := r.part(p); err != nil {
					return err
				}
			}
		}
		if candidate.FinishReason != "" && candidate.FinishReason != "FINISH_REASON_UNSPECIFIED" {
			r.reason, r.message = candidate.FinishReason, candidate.FinishMessage
		}
	}
	return nil
}

func (r *reader) part(p Part) error {
	switch {
	case p.FunctionCall != nil:
		return r.call(p)
	case p.Thought:
		return r.thought(p)
	case p.InlineData != nil:
		// A generated picture becomes Markdown with a data URL, as models write
		// pictures; the agent turns it into a file.
		text := fmt.Sprintf("![](data:%s;base64,%s)", p.InlineData.MimeType, p.InlineData.Data)
		return r.text(text, p.ThoughtSignature)
	case p.Text != nil:
		return r.text(*p.Text, p.ThoughtSignature)
	case p.ThoughtSignature != "":
		return r.text("", p.ThoughtSignature)
	}
	return nil
}

// text yields a fragment of the answer. Its signature is yielded after the whole
// text.
func (r *reader) text(text, signature string) error {
	if text != "" {
		if err := r.endThought(nil); err != nil {
			return err
		}
		if err := r.Emit(model.TextDelta(text)); err != nil {
			return err
		}
	}
	if signature != "" {
		if err := r.endThought(nil); err != nil {
			return err
		}
		r.signed = provider.MustMarshal(state{ThoughtSignature: signature})
	}
	return nil
}

func (r *reader) thought(p Part) error {
	if err := r.emitSignature(); err != nil {
		return err
	}
	if p.Text != nil && *p.Text != "" {
		r.thinking = true
		if err := r.Emit(model.ReasoningDelta(*p.Text)); err != nil {
			return err
		}
	}
	if p.ThoughtSignature != "" {
		r.thinking = true
		return r.endThought(provider.MustMarshal(state{ThoughtSignature: p.ThoughtSignature, Thought: true}))
	}
	return nil
}

// endThought ends a thought, if there is one.
func (r *reader) endThought(opaque json.RawMessage) error {
	if !r.thinking {
		return nil
	}
	r.thinking = false
	return r.Send(model.ReasoningDone{Opaque: opaque})
}

// endBlock ends a thought or a text.
func (r *reader) endBlock() error {
	if err := r.endThought(nil); err != nil {
		return err
	}
	return r.emitSignature()
}

// emitSignature yields the state of a finished text.
func (r *reader) emitSignature() error {
	if r.signed == nil {
		return nil
	}
	opaque := r.signed
	r.signed = nil
	return r.Send(model.ReasoningDone{Opaque: opaque})
}

func (r *reader) call(p Part) error {
	if err := r.endBlock(); err != nil {
		return err
	}
	c := p.FunctionCall
	if c.Name == "" {
		return r.Unnamed()
	}
	if err := r.Keep(len(c.Args)+len(p.ThoughtSignature), "the arguments of the tool calls are"); err != nil {
		return err
	}
	d := model.CallDelta{ID: artel.CallID(c.ID), Name: c.Name, Arguments: c.Args}
	if d.ID == "" {
		d.ID = provider.NewCallID("call_")
	}
	if len(d.Arguments) == 0 || string(d.Arguments) == "null" {
		d.Arguments = json.RawMessage("{}")
	}
	if p.ThoughtSignature != "" {
		d.Opaque, d.Service = provider.MustMarshal(state{ThoughtSignature: p.ThoughtSignature}), r.Failures.Service.ID
	}
	return r.Emit(d)
}

// finish yields the Finish.
func (r *reader) finish() error {
	stop := model.StopEnd
	switch {
	case r.blocked && !r.HasContent:
		stop = model.StopRefusal
	case r.reason == "":
		return r.Failures.Broken("the stream broke off: it ended without a finish reason")
	default:
		var err error
		if stop, err = r.stopReason(); err != nil {
			return err
		}
	}
	if err := r.endBlock(); err != nil {
		return err
	}
	if err := r.CheckContent(stop); err != nil {
		return err
	}
	return r.Finish(stop, r.usage)
}

// stopReason reads the finish reason. Mistakes of the model are errors, because a
// retry may succeed.
func (r *reader) stopReason() (model.StopReason, error) {
	switch r.reason {
	case "STOP":
		return model.StopEnd, nil
	case "MAX_TOKENS", "CONTINUATION":
		return model.StopLength, nil
	case "SAFETY", "RECITATION", "LANGUAGE", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return model.StopRefusal, nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MISSING_THOUGHT_SIGNATURE", "MALFORMED_RESPONSE":
		text := "the model ended the answer with " + r.reason
		if r.message != "" {
			text += ": " + r.message
		}
		return "", r.Failures.Broken(text)
	}
	return model.StopEnd, nil
}
