// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/provider"
	"github.com/artelhq/artel/sse"
)

const (
	maxAnswer    = 64 << 20 // of an answer that is not streamed, in bytes
	maxArguments = 16 << 20 // of all tool calls of one answer, in bytes
)

// reader turns an answer into deltas.
type reader struct {
	failures provider.Failures
	calls    []ToolCall // by arrival
	size     int        // of their arguments and state
	said     bool       // text or reasoning has come
	thinking bool       // what came last was reasoning
	field    string     // in which it was told
	details  []detail   // that were given of it and are not told yet
	refused  bool
	reason   string
	usage    artel.Usage
	yield    func(model.Delta, error) bool
}

var errStopped = errors.New("the caller has stopped reading") // never leaves the package

// read yields the deltas of body and a Finish. It returns errStopped when the
// caller wants no more, an [*artel.Error], or the error of body.
func (r *reader) read(body io.Reader) error {
	b := bufio.NewReader(body)
	first, err := firstByte(b)
	if errors.Is(err, io.EOF) {
		return r.failures.Broken("the service sent an empty answer")
	}
	if err != nil {
		return err
	}
	switch first {
	case '{', '[':
		// Servers that cannot stream answer at once.
		return r.whole(b)
	case '<':
		return r.failures.Wrong("the answer is a web page, not the API's; check the base URL")
	}
	return r.stream(b)
}

// firstByte returns the first byte that is no white space or BOM, unread.
func firstByte(b *bufio.Reader) (byte, error) {
	for {
		c, err := b.ReadByte()
		if err != nil {
			return 0, err
		}
		switch c {
		case ' ', '\t', '\r', '\n', 0xef, 0xbb, 0xbf:
			continue
		}
		return c, b.UnreadByte()
	}
}

func (r *reader) whole(b io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(b, maxAnswer+1))
	if err != nil {
		return err
	}
	if len(data) > maxAnswer {
		return r.failures.Wrong("the answer is larger than 64 MiB")
	}
	var resp Response
	if err := json.Unmarshal(data, &resp); err != nil {
		return r.failures.Broken("the answer is not valid JSON: " + err.Error())
	}
	if reported(resp.Error) {
		return r.failures.Reported(data)
	}
	if len(resp.Choices) == 0 || resp.Choices[0].Message == nil {
		return r.failures.Broken("the answer has no message")
	}
	if err := r.take(resp); err != nil {
		return err
	}
	if r.reason == "" {
		r.reason = "stop"
	}
	return r.finish()
}

func (r *reader) stream(b io.Reader) error {
	events := false
	for e, err := range sse.Events(b, 0) {
		if err != nil {
			if artel.KindOf(err) == artel.TooLarge {
				return r.failures.Wrong(err.Error())
			}
			return err
		}
		events = true
		data := strings.TrimSpace(e.Data)
		if data == "[DONE]" {
			if r.reason == "" {
				return r.failures.Broken("the stream broke off: it ended without a finish reason")
			}
			return r.finish()
		}
		if data == "" {
			continue // a keep-alive of some servers
		}
		var chunk Response
		if err := json.Unmarshal([]byte(data), &chunk); err != nil {
			return r.failures.Broken("the stream has an event that is not valid JSON: " + err.Error())
		}
		if reported(chunk.Error) || e.Name == "error" {
			return r.failures.Reported([]byte(data))
		}
		if err := r.take(chunk); err != nil {
			return err
		}
	}
	if !events {
		return r.failures.Broken("the answer is neither JSON nor an event stream")
	}
	return r.failures.Broken("the stream broke off")
}

// reported tells an error object from fields that are there but empty.
func reported(raw json.RawMessage) bool {
	switch string(bytes.TrimSpace(raw)) {
	case "", "null", "{}", `""`, "false":
		return false
	}
	return true
}

// take interprets one chunk or whole answer. Of several choices the first
// counts.
func (r *reader) take(c Response) error {
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
	if err := r.think(d); err != nil {
		return err
	}
	if d.Content != nil {
		if text := d.Content.String(); text != "" && !r.say(model.TextDelta(text)) {
			return errStopped
		}
	}
	if d.Refusal != nil && *d.Refusal != "" {
		r.refused = true
		if !r.say(model.TextDelta(*d.Refusal)) {
			return errStopped
		}
	}
	for _, c := range d.ToolCalls {
		r.call(c)
		if r.size += len(c.Function.Arguments) + len(c.ExtraContent); r.size > maxArguments {
			return r.failures.Wrong("the arguments of the tool calls are larger than 16 MiB")
		}
	}
	return nil
}

func (r *reader) say(d model.Delta) bool {
	if r.said = true; r.thinking && !r.reasoned() {
		return false
	}
	return r.yield(d, nil)
}

// call joins a fragment to the call that it belongs to: the one with its

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
	if reported(c.ExtraContent) {
		have.ExtraContent = c.ExtraContent
	}
}

// finish yields the calls and the end.
func (r *reader) finish() error {
	if r.reason == "error" {
		return r.failures.Broken("the service ended the answer with an error")
	}
	stop := stopReason(r.reason)
	if r.refused {
		stop = model.StopRefusal
	}
	if !r.said && len(r.calls) == 0 && (stop == model.StopEnd || stop == model.StopTools) {
		return r.failures.Broken("the service sent an empty answer")
	}
	if (r.thinking || len(r.details) > 0) && !r.reasoned() {
		return errStopped
	}
	for _, c := range r.calls {
		if stop == model.StopLength && !json.Valid([]byte(c.Function.Arguments)) {
			continue // cut off in the middle: not a call
		}
		if c.Function.Name == "" {
			return r.failures.Broken("the service sent a tool call without a name")
		}
		if c.ID == "" {
			c.ID = provider.NewCallID()
		}
		call := model.CallDelta{ID: artel.CallID(c.ID), Name: c.Function.Name, Arguments: provider.ReceivedArguments(string(c.Function.Arguments))}
		if reported(c.ExtraContent) {
			call.Opaque, call.Service = c.ExtraContent, r.failures.Service.ID
		}
		if !r.yield(call, nil) {
			return errStopped
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
