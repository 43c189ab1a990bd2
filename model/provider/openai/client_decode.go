// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bufio"
	"encoding/json"
	"io"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

const maxCalls = 1000 // in one answer

// reader reads an answer and yields its deltas.
type reader struct {
	provider.DeltaWriter

	calls       []call   // in order of arrival
	yielded     int      // how many of them
	inReasoning bool     // the last delta was reasoning
	field       string   // of the reasoning
	details     []detail // of the reasoning, not yet yielded
	refused     bool
	reason      string
	finished    bool
	usage       artel.Usage
}

// A call is a tool call whose arguments arrive in pieces.
type call struct {
	ToolCall
	sent int // bytes of the arguments that were yielded as pieces
}

// read yields the deltas of body and a Finish. It returns [provider.ErrStopped]
// when the caller stops, an [*artel.Error], or the error of body.
func (r *reader) read(body io.Reader) error {
	err := provider.Answer{Failures: r.Failures, Whole: r.whole, Event: r.event, Open: true}.Read(body)
	if err != nil || r.finished {
		return err
	}
	if r.reason == "" {
		return r.Failures.Broken("the stream broke off")
	}
	return r.finish() // some servers send no [DONE]
}

func (r *reader) whole(b *bufio.Reader) error {
	var resp Response
	data, err := r.Failures.ReadWhole(b, &resp)
	switch {
	case err != nil:
		return err
	case provider.Given(resp.Error):
		return r.Failures.Reported(data)
	case len(resp.Choices) == 0 || resp.Choices[0].Message == nil:
		return r.Failures.Broken("the answer has no message")
	}
	if err := r.chunk(resp); err != nil {
		return err
	}
	if r.reason == "" {
		r.reason = "stop"
	}
	return r.finish()
}

func (r *reader) event(name string, data []byte) (done bool, err error) {
	if string(data) == "[DONE]" {
		if r.reason == "" {
			return true, r.Failures.Broken("the stream broke off: it ended without a finish reason")
		}
		return true, r.finish()
	}
	var chunk Response
	if err := r.Failures.ReadEvent(data, &chunk); err != nil {
		return true, err
	}
	if provider.Given(chunk.Error) || name == "error" {
		return true, r.Failures.Reported(data)
	}
	return false, r.chunk(chunk)
}

// chunk handles one chunk or a whole answer. Of several choices only the first
// counts.
func (r *reader) chunk(c Response) error {
	if u := c.Usage; u != nil {
		r.usage = u.neutral()
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue
		}
		d := choice.Delta
		if m := choice.Message; m != nil {
			d = &Delta{
				Content: &m.Content, Refusal: m.Refusal, ToolCalls: m.ToolCalls,
				ReasoningContent: m.ReasoningContent, Reasoning: m.Reasoning, Details: m.Details,
			}
			for i := range d.ToolCalls {
				d.ToolCalls[i].Index = &i
			}
		}
		if d != nil {
			if err := r.delta(d); err != nil {
				return err
			}
		}
		if choice.FinishReason != nil && *choice.FinishReason != "" {
			r.reason = *choice.FinishReason
		}
	}
	return nil
}

func (r *reader) delta(d *Delta) error {
	if err := r.reasoning(d); err != nil {
		return err
	}
	if d.Content != nil {
		if err := r.text(d.Content.String()); err != nil {
			return err
		}
	}
	if d.Refusal != nil && *d.Refusal != "" {
		r.refused = true
		if err := r.text(*d.Refusal); err != nil {
			return err
		}
	}
	for _, c := range d.ToolCalls {
		if err := r.call(c); err != nil {
			return err
		}
		if len(r.calls) > maxCalls {
			return r.Failures.Wrong("the answer has more than 1000 tool calls")
		}
		if err := r.Keep(len(c.Function.Arguments)+len(c.ExtraContent), "the arguments of the tool calls are"); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) text(s string) error {
	if s == "" {
		return nil
	}
	if r.inReasoning {
		if err := r.endReasoning(); err != nil {
			return err
		}
	}
	return r.Emit(model.TextDelta(s))
}

// call appends a fragment to the call with the same index; without an index, to the
// last call; a new name and id begin a new call.
func (r *reader) call(c ToolCall) error {
	at := len(r.calls) - 1
	if c.Index != nil {
		for at >= 0 && (r.calls[at].Index == nil || *r.calls[at].Index != *c.Index) {
			at--
		}
	}
	if at < 0 || c.Function.Name != "" && c.ID != "" && r.calls[at].ID != "" && c.ID != r.calls[at].ID {
		if err := r.sendWhole(); err != nil {
			return err
		}
		r.calls = append(r.calls, call{ToolCall: c})
		return r.piece(&r.calls[len(r.calls)-1])
	}
	have := &r.calls[at]
	if have.ID == "" {
		have.ID = c.ID
	}
	if have.Function.Name == "" {
		have.Function.Name = c.Function.Name
	}
	have.Function.Arguments += c.Function.Arguments
	if provider.Given(c.ExtraContent) {
		have.ExtraContent = c.ExtraContent
	}
	return r.piece(have)
}

// piece yields what has arrived of a call since the last piece. Reasoning with
// details may still grow and comes before the calls, so then there are no pieces.
func (r *reader) piece(c *call) error {
	if c.ID == "" || c.Function.Name == "" || len(r.details) > 0 {
		return nil
	}
	if err := r.endReasoning(); err != nil {
		return err
	}
	text := string(c.Function.Arguments[c.sent:])
	c.sent = len(c.Function.Arguments)
	return r.Send(model.CallPiece{ID: artel.CallID(c.ID), Name: c.Function.Name, Text: text})
}

// sendWhole yields the calls that are surely whole when another one begins: those
// of which pieces were yielded, and whose arguments are an object.
func (r *reader) sendWhole() error {
	for ; r.yielded < len(r.calls); r.yielded++ {
		c := r.calls[r.yielded]
		if args := []byte(c.Function.Arguments); c.sent == 0 || args[0] != '{' || !json.Valid(args) {
			return nil
		}
		if err := r.Send(r.wholeCall(c)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) wholeCall(c call) model.CallDelta {
	d := model.CallDelta{ID: artel.CallID(c.ID), Name: c.Function.Name, Arguments: provider.ReceivedArguments(string(c.Function.Arguments))}
	if provider.Given(c.ExtraContent) {
		d.Opaque, d.Service = c.ExtraContent, r.Failures.Service.ID
	}
	return d
}

// finish yields the calls and the Finish.
func (r *reader) finish() error {
	r.finished = true
	if r.reason == "error" {
		return r.Failures.Broken("the service ended the answer with an error")
	}
	stop := stopReason(r.reason)
	if r.refused {
		stop = model.StopRefusal
	}
	r.HasContent = r.HasContent || len(r.calls) > 0
	if err := r.CheckContent(stop); err != nil {
		return err
	}
	if err := r.endReasoning(); err != nil {
		return err
	}
	for _, c := range r.calls[r.yielded:] {
		if stop == model.StopLength && !json.Valid([]byte(c.Function.Arguments)) {
			continue // the arguments are cut off: no call
		}
		if c.Function.Name == "" {
			return r.Unnamed()
		}
		if c.ID == "" {
			c.ID = string(provider.NewCallID("call_"))
		}
		if err := r.Send(r.wholeCall(c)); err != nil {
			return err
		}
	}
	return r.Finish(stop, r.usage)
}

func stopReason(word string) model.StopReason {
	switch word {
	case "tool_calls", "function_call":
		return model.StopTools
	case "length", "max_tokens":
		return model.StopLength
	case "content_filter":
		return model.StopRefusal
	}
	return model.StopEnd
}

// A detail is one entry of a list of reasoning details in OpenRouter's form: text,
// a summary, or encrypted data.
type detail map[string]json.RawMessage

// joins reports whether d continues before: fragments of one entry have the same
// type and index.
func (d detail) joins(before detail) bool {
	return string(d["type"]) == string(before["type"]) && string(d["index"]) == string(before["index"])
}

// join appends the texts of d to before, and copies its other fields.
func (d detail) join(before detail) {
	for name, value := range d {
		var more, text string
		grows := slices.Contains([]string{"text", "summary", "data"}, name) && json.Unmarshal(value, &more) == nil
		if grows && json.Unmarshal(before[name], &text) == nil {
			if joined, err := json.Marshal(text + more); err == nil {
				value = joined
			}
		}
		if string(value) != "null" || before[name] == nil {
			before[name] = value
		}
	}
}

// reasoning yields the reasoning of a chunk.
func (r *reader) reasoning(d *Delta) error {
	for _, one := range d.Details {
		if n := len(r.details); n > 0 && one.joins(r.details[n-1]) {
			one.join(r.details[n-1])
		} else if one != nil {
			r.details = append(r.details, one)
		}
		for _, value := range one {
			if err := r.Keep(len(value), "the details of the reasoning are"); err != nil {
				return err
			}
		}
	}
	text, field := d.ReasoningContent, "reasoning_content"
	if text == "" {
		text, field = d.Reasoning, "reasoning" // another name of the same field; some servers send both
	}
	if d.Content != nil {
		for _, p := range d.Content.Parts {
			for _, thinking := range p.Thinking {
				text, field = text+thinking.Text, ""
			}
		}
	}
	if text == "" {
		return nil
	}
	r.inReasoning, r.field = true, field
	return r.Emit(model.ReasoningDelta(text))
}

// endReasoning yields the end of a block of reasoning, with the state that the
// server needs back, unless there is none.
func (r *reader) endReasoning() error {
	if !r.inReasoning && len(r.details) == 0 {
		return nil
	}
	var state reasoningState
	switch r.Failures.Service.Quirks().Reasoning {
	case model.ReplayDetails:
		if len(r.details) > 0 {
			if list, err := json.Marshal(r.details); err == nil {
				state.Details = list
			}
		}
	case model.ReplayCalls, model.ReplayAlways:
		if r.inReasoning {
			state.Field = r.field
		}
	}
	r.inReasoning, r.details = false, nil
	if state.Field == "" && state.Details == nil {
		return nil
	}
	return r.Send(model.ReasoningDone{Opaque: provider.MustMarshal(state)})
}
