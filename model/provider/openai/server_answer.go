// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"errors"
	"io"
	"iter"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// An Answer writes the deltas of a model in the dialect.
type Answer struct {
	ID           string // "chatcmpl-…"
	Model        string
	Created      time.Time
	IncludeUsage bool // of a stream: stream_options.include_usage
}

// Whole returns the answer in one piece. The error is that of the deltas, or
// [provider.ErrNoFinish].
func (a Answer) Whole(deltas iter.Seq2[model.Delta, error]) (*Response, error) {
	var text, thought strings.Builder
	m := &Message{Role: "assistant"}
	for d, err := range deltas {
		if err != nil {
			return nil, err
		}
		switch d := d.(type) {
		case model.TextDelta:
			text.WriteString(string(d))
		case model.ReasoningDelta:
			thought.WriteString(string(d))
		case model.CallDelta:
			m.ToolCalls = append(m.ToolCalls, wireCall(d))
		case model.Finish:
			if s := text.String(); s != "" || len(m.ToolCalls) == 0 {
				m.Content.Text = &s
			}
			m.ReasoningContent = thought.String()
			if d.Reason == model.StopRefusal {
				m.Refusal, m.Content = m.Content.Text, Content{}
			}
			word := finishReason(d.Reason)
			r := a.frame("chat.completion")
			r.Choices = []Choice{{Message: m, FinishReason: &word}}
			r.Usage = wireUsage(d.Usage)
			return r, nil
		}
	}
	return nil, provider.ErrNoFinish
}

// Stream writes the answer to w as server-sent events, and calls flush after each.
// The last event is "[DONE]"; an error of the deltas is written as an error object,
// and returned.
func (a Answer) Stream(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	s := streamer{answer: a, out: provider.EventWriter{W: w, Flush: flush}}
	for d, err := range deltas {
		if err != nil {
			return errors.Join(err, s.event(map[string]any{"error": map[string]any{
				"message": err.Error(), "type": "server_error", "param": nil, "code": nil,
			}}))
		}
		if err := s.delta(d); err != nil {
			return err
		}
	}
	if !s.finished {
		return provider.ErrNoFinish
	}
	return s.out.Event("", []byte("[DONE]"))
}

type streamer struct {
	answer   Answer
	out      provider.EventWriter
	begun    bool
	finished bool
	calls    int
}

func (s *streamer) delta(d model.Delta) error {
	switch d := d.(type) {
	case model.TextDelta:
		text := string(d)
		return s.chunk(Delta{Content: &Content{Text: &text}}, nil)
	case model.ReasoningDelta:
		return s.chunk(Delta{ReasoningContent: string(d)}, nil)
	case model.CallDelta:
		c := wireCall(d)
		n := s.calls
		c.Index = &n
		s.calls++
		args := c.Function.Arguments
		c.Function.Arguments = ""
		if err := s.chunk(Delta{ToolCalls: []ToolCall{c}}, nil); err != nil {
			return err
		}
		for _, piece := range provider.Halves(string(args)) {
			if err := s.chunk(Delta{ToolCalls: []ToolCall{{Index: &n, Function: CalledByName{Arguments: Arguments(piece)}}}}, nil); err != nil {
				return err
			}
		}
	case model.Finish:
		s.finished = true
		word := finishReason(d.Reason)
		if err := s.chunk(Delta{}, &word); err != nil {
			return err
		}
		if s.answer.IncludeUsage {
			r := s.answer.frame("chat.completion.chunk")
			r.Choices, r.Usage = []Choice{}, wireUsage(d.Usage)
			return s.event(r)
		}
	}
	return nil
}

func (s *streamer) chunk(d Delta, finish *string) error {
	if !s.begun {
		s.begun = true
		d.Role = "assistant"
	}
	r := s.answer.frame("chat.completion.chunk")
	r.Choices = []Choice{{Delta: &d, FinishReason: finish}}
	return s.event(r)
}

func (s *streamer) event(v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.out.Event("", b)
}

func (a Answer) frame(object string) *Response {
	return &Response{ID: a.ID, Object: object, Created: a.Created.Unix(), Model: a.Model}
}

func wireCall(d model.CallDelta) ToolCall {
	return ToolCall{
		ID: provider.CallID(d.ID, MaxCallID), Type: "function", Function: CalledByName{Name: d.Name, Arguments: Arguments(provider.SentArguments(d.Arguments))},
		ExtraContent: d.Opaque,
	}
}

func wireUsage(u artel.Usage) *Usage {
	return &Usage{
		PromptTokens: u.InputTokens, CompletionTokens: u.OutputTokens, TotalTokens: u.InputTokens + u.OutputTokens,
		PromptTokensDetails:     &PromptDetails{CachedTokens: u.CachedTokens, CacheWriteTokens: u.StoredTokens},
		CompletionTokensDetails: &CompletionDetails{ReasoningTokens: u.ThoughtTokens},
	}
}

func finishReason(s model.StopReason) string {
	switch s {
	case model.StopTools:
		return "tool_calls"
	case model.StopLength:
		return "length"
	case model.StopRefusal:
		return "content_filter"
	}
	return "stop"
}
