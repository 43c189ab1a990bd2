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

const (
	maxArguments = 16 << 20 // of all tool calls of one answer, in bytes
	maxCalls     = 1000     // in one answer
)

// reader reads an answer and yields its deltas.
type reader struct {
	failures    provider.Failures
	calls       []ToolCall // in order of arrival
	size        int        // of their arguments and state
	hasContent  bool       // text or reasoning was received
	inReasoning bool       // the last delta was reasoning
	field       string     // of the reasoning
	details     []detail   // of the reasoning, not yet yielded
	refused     bool
	reason      string
	usage       artel.Usage
	yield       func(model.Delta, error) bool
}

// read yields the deltas of body and a Finish. It returns [provider.ErrStopped]
// when the caller stops, an [*artel.Error], or the error of body.
func (r *reader) read(body io.Reader) error {
	return provider.Answer{Failures: r.failures, Whole: r.whole, Event: r.event}.Read(body)
}

func (r *reader) whole(b *bufio.Reader) error {
	var resp Response
	data, err := r.failures.ReadWhole(b, &resp)
	switch {
	case err != nil:
		return err
	case provider.Given(resp.Error):
		return r.failures.Reported(data)
	case len(resp.Choices) == 0 || resp.Choices[0].Message == nil:
		return r.failures.Broken("the answer has no message")
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
			return true, r.failures.Broken("the stream broke off: it ended without a finish reason")
		}
		return true, r.finish()
	}
	var chunk Response
	if err := r.failures.ReadEvent(data, &chunk); err != nil {
		return true, err
	}
	if provider.Given(chunk.Error) || name == "error" {
		return true, r.failures.Reported(data)
	}
	return false, r.chunk(chunk)
}

// chunk handles one chunk or a whole answer. Of several choices only the first
// counts.
func (r *reader) chunk(c Response) error {
	if u := c.Usage; u != nil {
		r.usage = artel.Usage{Calls: 1, InputTokens: u.PromptTokens, OutputTokens: u.CompletionTokens, CachedTokens: u.PromptCacheHitTokens}
		if d := u.PromptTokensDetails; d != nil {
			r.usage.CachedTokens, r.usage.StoredTokens = max(d.CachedTokens, r.usage.CachedTokens), d.CacheWriteTokens
		}
		if d := u.CompletionTokensDetails; d != nil {
			r.usage.ThoughtTokens = d.ReasoningTokens
		}
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
		if text := d.Content.String(); text != "" && !r.emit(model.TextDelta(text)) {
			return provider.ErrStopped
		}
	}
	if d.Refusal != nil && *d.Refusal != "" {
		r.refused = true
		if !r.emit(model.TextDelta(*d.Refusal)) {
			return provider.ErrStopped
		}
	}
	for _, c := range d.ToolCalls {
		r.call(c)
		if len(r.calls) > maxCalls {
			return r.failures.Wrong("the answer has more than 1000 tool calls")
		}
		if r.size += len(c.Function.Arguments) + len(c.ExtraContent); r.size > maxArguments {
			return r.failures.Wrong("the arguments of the tool calls are larger than 16 MiB")
		}
	}
	return nil
}

func (r *reader) emit(d model.Delta) bool {
	if r.hasContent = true; r.inReasoning && !r.endReasoning() {
		return false
	}
	return r.yield(d, nil)
}

// call appends a fragment to the call with the same index; without an index, to the
// last call; a new name and id begin a new call.
func (r *reader) call(c ToolCall) {
	at := len(r.calls) - 1
	if c.Index != nil {
		for at >= 0 && (r.calls[at].Index == nil || *r.calls[at].Index != *c.Index) {
			at--
		}
	}
	if at < 0 || c.Function.Name != "" && c.ID != "" && r.calls[at].ID != "" && c.ID != r.calls[at].ID {
		r.calls = append(r.calls, c)
		return
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
}

// finish yields the calls and the Finish.
func (r *reader) finish() error {
	if r.reason == "error" {
		return r.failures.Broken("the service ended the answer with an error")
	}
	stop := stopReason(r.reason)
	if r.refused {
		stop = model.StopRefusal
	}
	if !r.hasContent && len(r.calls) == 0 && (stop == model.StopEnd || stop == model.StopTools) {
		return r.failures.Broken("the service sent an empty answer")
	}
	if (r.inReasoning || len(r.details) > 0) && !r.endReasoning() {
		return provider.ErrStopped
	}
	for _, c := range r.calls {
		if stop == model.StopLength && !json.Valid([]byte(c.Function.Arguments)) {
			continue // the arguments are cut off: no call
		}
		if c.Function.Name == "" {
			return r.failures.Broken("the service sent a tool call without a name")
		}
		if c.ID == "" {
			c.ID = string(provider.NewCallID("call_"))
		}
		call := model.CallDelta{ID: artel.CallID(c.ID), Name: c.Function.Name, Arguments: provider.ReceivedArguments(string(c.Function.Arguments))}
		if provider.Given(c.ExtraContent) {
			call.Opaque, call.Service = c.ExtraContent, r.failures.Service.ID
		}
		if !r.yield(call, nil) {
			return provider.ErrStopped
		}
		if stop == model.StopEnd {
			stop = model.StopTools
		}
	}
	r.yield(model.Finish{Reason: stop, Usage: r.usage}, nil)
	return nil
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
			r.size += len(value)
		}
	}
	if r.size > maxArguments {
		return r.failures.Wrong("the details of the reasoning are larger than 16 MiB")
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
	r.hasContent, r.inReasoning, r.field = true, true, field
	if !r.yield(model.ReasoningDelta(text), nil) {
		return provider.ErrStopped
	}
	return nil
}

// endReasoning yields the end of a block of reasoning, with the state that the
// server needs back.
func (r *reader) endReasoning() bool {
	var state reasoningState
	switch r.failures.Service.Quirks().Reasoning {
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
		return true
	}
	opaque, err := json.Marshal(state)
	if err != nil { // it was JSON
		return true
	}
	return r.yield(model.ReasoningDone{Opaque: opaque}, nil)
}
