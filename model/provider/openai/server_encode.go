// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"io"
	"iter"
	"slices"
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
	// Request is the request: calls of its custom tools have their text, and with
	// functions instead of tools the answer has a function_call, the first one of the
	// model. nil: all calls are of functions among tools.
	Request *Request
}

// Whole returns the answer in one piece. The error is that of the deltas, or
// [provider.ErrNoFinish].
func (a Answer) Whole(deltas iter.Seq2[model.Delta, error]) (*Response, error) {
	var text, thought strings.Builder
	m := &Message{Role: "assistant"}
	r := a.frame("chat.completion")
	err := provider.WriteDeltas(deltas, func(d model.Delta) error {
		switch d := d.(type) {
		case model.TextDelta:
			text.WriteString(string(d))
		case model.ReasoningDelta:
			thought.WriteString(string(d))
		case model.CallDelta:
			if c := a.wireCall(d); !a.Request.legacy() {
				m.ToolCalls = append(m.ToolCalls, c)
			} else if m.FunctionCall == nil {
				m.FunctionCall = &c.Function
			}
		case model.Finish:
			if s := text.String(); s != "" || len(m.ToolCalls) == 0 && m.FunctionCall == nil {
				m.Content.Text = &s
			}
			m.ReasoningContent = thought.String()
			if d.Reason == model.StopRefusal {
				m.Refusal, m.Content = m.Content.Text, Content{}
			}
			word := a.finishReason(d.Reason)
			r.Choices, r.Usage = []Choice{{Message: m, FinishReason: &word}}, wireUsage(d.Usage)
		}
		return nil
	}, nil)
	if err != nil {
		return nil, err
	}
	return r, nil
}

// Body implements [provider.Answerer].
func (a Answer) Body(deltas iter.Seq2[model.Delta, error]) ([]byte, error) {
	return provider.MarshalAnswer(a.Whole(deltas))
}

// Stream writes the answer to w as server-sent events, and calls flush after each.
// The last event is "[DONE]"; an error of the deltas is written as an error object,
// and returned.
func (a Answer) Stream(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	s := streamer{answer: a, out: provider.EventWriter{W: w, Flush: flush}}
	err := provider.WriteDeltas(deltas, s.delta, func(err error) error { return s.out.Event("", provider.OpenAIErrorOf(err).MarshalBody()) })
	if err != nil {
		return err
	}
	return s.out.Event("", []byte("[DONE]"))
}

type streamer struct {
	answer Answer
	out    provider.EventWriter
	begun  bool
	calls  []*openCall
}

// An openCall is a call that the stream has begun; its place is its index.
type openCall struct {
	id     artel.CallID
	custom bool
	input  provider.InputReader // of a custom tool
	sent   strings.Builder      // its arguments or its text so far
}

// begin returns the index of a call; the first time it writes the beginning of the
// call, without arguments.
func (s *streamer) begin(d model.CallDelta) (n int, err error) {
	for n := range s.calls {
		if s.calls[n].id == d.ID {
			return n, nil
		}
	}
	n = len(s.calls)
	c := s.answer.wireCall(d)
	s.calls = append(s.calls, &openCall{id: d.ID, custom: c.Custom != nil})
	if c.Custom != nil {
		c.Custom.Input = ""
	}
	c.Index, c.Function.Arguments = &n, ""
	return n, s.callChunk(n, c)
}

// arguments writes a piece of the arguments of call n.
func (s *streamer) arguments(n int, text string) error {
	if text == "" {
		return nil
	}
	s.calls[n].sent.WriteString(text)
	c := ToolCall{Index: &n, Function: CalledByName{Arguments: Arguments(text)}}
	if s.calls[n].custom {
		c = ToolCall{Index: &n, Custom: &CalledText{Input: text}}
	}
	return s.callChunk(n, c)
}

// callChunk writes a piece of call n.
func (s *streamer) callChunk(n int, c ToolCall) error {
	switch {
	case !s.answer.Request.legacy():
		return s.chunk(Delta{ToolCalls: []ToolCall{c}}, nil)
	case n == 0:
		return s.chunk(Delta{FunctionCall: &c.Function}, nil)
	}
	return nil
}

func (s *streamer) delta(d model.Delta) error {
	switch d := d.(type) {
	case model.TextDelta:
		text := string(d)
		return s.chunk(Delta{Content: &Content{Text: &text}}, nil)
	case model.ReasoningDelta:
		return s.chunk(Delta{ReasoningContent: string(d)}, nil)
	case model.CallPiece:
		n, err := s.begin(model.CallDelta{ID: d.ID, Name: d.Name})
		if err != nil {
			return err
		}
		if s.calls[n].custom {
			d.Text = s.calls[n].input.Read(d.Text)
		}
		return s.arguments(n, d.Text)
	case model.CallDelta:
		isNew := !slices.ContainsFunc(s.calls, func(c *openCall) bool { return c.id == d.ID })
		n, err := s.begin(d)
		if err != nil {
			return err
		}
		if !isNew && d.Opaque != nil {
			if err := s.callChunk(n, ToolCall{Index: &n, ExtraContent: d.Opaque}); err != nil {
				return err
			}
		}
		whole := provider.SentArguments(d.Arguments)
		if s.calls[n].custom {
			whole = provider.CustomInput(d.Arguments)
		}
		return s.arguments(n, provider.Rest(whole, s.calls[n].sent.String()))
	case model.Finish:
		word := s.answer.finishReason(d.Reason)
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

func (a Answer) wireCall(d model.CallDelta) ToolCall {
	c := ToolCall{
		ID: provider.CallID(d.ID, MaxCallID), Type: "function", Function: CalledByName{Name: d.Name, Arguments: Arguments(provider.SentArguments(d.Arguments))},
		ExtraContent: d.Opaque,
	}
	if a.Request != nil && a.Request.custom(d.Name) {
		c.Type, c.Function, c.Custom = "custom", CalledByName{}, &CalledText{Name: d.Name, Input: provider.CustomInput(d.Arguments)}
	}
	return c
}

func (a Answer) finishReason(s model.StopReason) string {
	switch s {
	case model.StopTools:
		if a.Request.legacy() {
			return "function_call"
		}
		return "tool_calls"
	case model.StopLength:
		return "length"
	case model.StopRefusal:
		return "content_filter"
	}
	return "stop"
}
