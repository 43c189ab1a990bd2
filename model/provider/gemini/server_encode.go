// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"errors"
	"io"
	"iter"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// An Answer writes the deltas of a model in the dialect.
type Answer struct {
	ID    string // of the response; may be empty
	Model string // the version that answered
	// Sign returns the signature of a call without one, by its index in the answer;
	// nil or "": none.
	Sign func(c artel.ToolCall, place int) string
}

// Whole returns the answer in one piece. The error is that of the deltas, or
// [provider.ErrNoFinish].
func (a Answer) Whole(deltas iter.Seq2[model.Delta, error]) (*Response, error) {
	w := writer{answer: a}
	c := Content{Role: "model", Parts: []Part{}}
	r := a.frame()
	err := provider.WriteDeltas(deltas, func(d model.Delta) error {
		if f, ok := d.(model.Finish); ok {
			r.Candidates = []Candidate{{Content: &c, FinishReason: finishReason(f.Reason)}}
			r.UsageMetadata = wireUsage(f.Usage)
		}
		for _, p := range w.parts(d) {
			// Fragments of one text become one part; a signature ends it.
			if n := len(c.Parts); n > 0 && p.Text != nil && c.Parts[n-1].Text != nil && c.Parts[n-1].Thought == p.Thought && c.Parts[n-1].ThoughtSignature == "" {
				text := *c.Parts[n-1].Text + *p.Text
				c.Parts[n-1].Text, c.Parts[n-1].ThoughtSignature = &text, p.ThoughtSignature
				continue
			}
			c.Parts = append(c.Parts, p)
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
// The last event has the finish reason. An error of the deltas is written as an
// error object, and returned.
func (a Answer) Stream(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	out := provider.EventWriter{W: w, Flush: flush}
	return a.stream(deltas, func(piece []byte) error { return out.Raw([]byte("data: "), piece, []byte("\r\n\r\n")) })
}

// StreamList writes the answer as a JSON list of chunks, as the API streams without
// alt=sse.
func (a Answer) StreamList(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	out := provider.EventWriter{W: w, Flush: flush}
	before := "["
	err := a.stream(deltas, func(piece []byte) error {
		defer func() { before = ",\r\n" }()
		return out.Raw([]byte(before), piece)
	})
	if errors.Is(err, provider.ErrNoFinish) || before == "[" {
		return err
	}
	return errors.Join(err, out.Raw([]byte("]")))
}

func (a Answer) stream(deltas iter.Seq2[model.Delta, error], emit func([]byte) error) error {
	w := writer{answer: a}
	return provider.WriteDeltas(deltas, func(d model.Delta) error {
		r, c := a.frame(), Candidate{Content: &Content{Role: "model", Parts: w.parts(d)}}
		if f, ok := d.(model.Finish); ok {
			empty := ""
			c.Content.Parts, c.FinishReason = []Part{{Text: &empty}}, finishReason(f.Reason)
			r.UsageMetadata = wireUsage(f.Usage)
		}
		if len(c.Content.Parts) == 0 {
			return nil
		}
		r.Candidates = []Candidate{c}
		b, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return emit(b)
	}, func(err error) error { return emit(failure(err).MarshalBody()) })
}

// writer turns deltas into parts.
type writer struct {
	answer Answer
	calls  int
}

func (w *writer) parts(d model.Delta) []Part {
	switch d := d.(type) {
	case model.TextDelta:
		text := string(d)
		return []Part{{Text: &text}}
	case model.ReasoningDelta:
		text := string(d)
		return []Part{{Text: &text, Thought: true}}
	case model.ReasoningDone:
		s := stateOf(d.Opaque)
		if s.ThoughtSignature == "" {
			return nil // absent, or state of another dialect
		}
		empty := ""
		return []Part{{Text: &empty, Thought: s.Thought, ThoughtSignature: s.ThoughtSignature}}
	case model.CallDelta:
		p := Part{
			FunctionCall:     &FunctionCall{ID: string(d.ID), Name: d.Name, Args: json.RawMessage(provider.SentArguments(d.Arguments))},
			ThoughtSignature: stateOf(d.Opaque).ThoughtSignature,
		}
		if p.ThoughtSignature == "" && w.answer.Sign != nil {
			p.ThoughtSignature = w.answer.Sign(artel.ToolCall(d), w.calls)
		}
		w.calls++
		return []Part{p}
	}
	return nil
}

func (a Answer) frame() *Response { return &Response{ResponseID: a.ID, ModelVersion: a.Model} }

func finishReason(s model.StopReason) string {
	switch s {
	case model.StopLength:
		return "MAX_TOKENS"
	case model.StopRefusal:
		return "SAFETY"
	}
	return "STOP"
}
