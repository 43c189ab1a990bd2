// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// An Answer writes what a model says in the dialect's form.
type Answer struct {
	ID      string // "resp_…"; the ids of its items are made of it
	Model   string
	Created time.Time
	// Request is what was asked; the response repeats its settings, and calls
	// its custom tools as such. Nil: all has the API's defaults.
	Request *Request
	// Service is whose the opaque state of the reasoning is, where that is not
	// of this dialect: it is carried as encrypted content, and [Request.Neutral]
	// of a later request gives it back as it was.
	Service artel.ServiceID
}

// Whole returns the answer that is not streamed, as JSON. The error is that of
// the deltas, or says that they end without a [model.Finish].
func (a Answer) Whole(deltas iter.Seq2[model.Delta, error]) (json.RawMessage, error) {
	s := streamer{answer: a}
	for d, err := range deltas {
		if err != nil {
			return nil, err
		}
		if err := s.delta(d); err != nil {
			return nil, err
		}
	}
	if s.final == nil {
		return nil, provider.ErrNoFinish
	}
	return json.Marshal(s.final)
}

// Stream writes the answer to w as server-sent events, and calls flush after
// each. The last is response.completed or response.incomplete if the deltas
// end well. An error among them is written as an error event and a
// response.failed, and returned.
func (a Answer) Stream(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	s := streamer{answer: a, out: provider.EventWriter{W: w, Flush: flush}}
	for d, err := range deltas {
		if err != nil {
			return errors.Join(err, s.fail(err.Error()))
		}
		if err := s.delta(d); err != nil {
			return err
		}
	}
	if s.final == nil {
		return provider.ErrNoFinish
	}
	return nil
}

// Fail returns the events that end a stream whose last event had the sequence
// number before, -1 for none: an error event and a response.failed.
func (a Answer) Fail(before int, message string) []byte {
	var b bytes.Buffer
	s := streamer{answer: a, out: provider.EventWriter{W: &b}, sequence: before + 1, begun: true}
	_ = s.fail(message) // a buffer takes all
	return b.Bytes()
}

// streamer follows the deltas, and writes an event for each step if it has a
// writer.
type streamer struct {
	answer   Answer
	out      provider.EventWriter // without a writer, no event is written
	sequence int
	begun    bool
	output   []any // items that are done
	current  *item
	phase    string // of the next message
	final    map[string]any
}

// An item is a message or reasoning that is being written.
type item struct {
	reasoning bool
	id        string
	phase     string
	text      strings.Builder
}

type object = map[string]any

func (s *streamer) delta(d model.Delta) error {
	if err := s.begin(); err != nil {
		return err
	}
	switch d := d.(type) {
	case model.TextDelta:
		return s.text(false, string(d))
	case model.ReasoningDelta:
		return s.text(true, string(d))
	case model.ReasoningDone:
		return s.reasoningDone(d.Opaque)
	case model.CallDelta:
		if err := s.close(nil); err != nil {
			return err
		}
		return s.call(d)
	case model.Finish:
		if err := s.close(nil); err != nil {
			return err
		}
		return s.finish(d)
	}
	return nil
}

// begin tells once that there is a response.
func (s *streamer) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	if s.out.W == nil {
		return nil
	}
	for _, name := range []string{"response.created", "response.in_progress"} {
		if err := s.event(name, object{"response": s.response("in_progress")}); err != nil {
			return err
		}
	}
	return nil
}

// id makes the id of the next item.
func (s *streamer) id(prefix string) string {
	return fmt.Sprintf("%s_%s_%d", prefix, strings.TrimPrefix(s.answer.ID, "resp_"), len(s.output))
}

// text adds to the message or the reasoning at hand, or opens one.
func (s *streamer) text(reasoning bool, text string) error {
	if s.current == nil || s.current.reasoning != reasoning {
		if err := s.close(nil); err != nil {
			return err
		}
		if err := s.start(reasoning); err != nil {
			return err
		}
	}
	s.current.text.WriteString(text)
	if reasoning {
		return s.event("response.reasoning_summary_text.delta", object{
			"item_id": s.current.id, "output_index": len(s.output), "summary_index": 0, "delta": text,
		})
	}
	return s.event("response.output_text.delta", object{
		"item_id": s.current.id, "output_index": len(s.output), "content_index": 0, "delta": text, "logprobs": []any{},
	})
}

func (s *streamer) start(reasoning bool) error {
	at := len(s.output)
	if reasoning {
		s.current = &item{reasoning: true, id: s.id("rs")}
		if err := s.event("response.output_item.added", object{"output_index": at, "item": object{
			"type": "reasoning", "id": s.current.id, "summary": []any{},
		}}); err != nil {
			return err
		}
		return s.event("response.reasoning_summary_part.added", object{
			"item_id": s.current.id, "output_index": at, "summary_index": 0, "part": summary(""),
		})
	}
	s.current = &item{id: s.id("msg"), phase: s.phase}
	s.phase = ""
	if err := s.event("response.output_item.added", object{"output_index": at, "item": s.message("in_progress", []any{})}); err != nil {
		return err
	}
	return s.event("response.content_part.added", object{
		"item_id": s.current.id, "output_index": at, "content_index": 0, "part": outputText(""),
	})
}

func summary(text string) object { return object{"type": "summary_text", "text": text} }

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

func (s *streamer) message(status string, content []any) object {
	m := object{"type": "message", "id": s.current.id, "status": status, "role": "assistant", "content": content}
	if s.current.phase != "" {
		m["phase"] = s.current.phase
	}
	return m
}

// close ends what is being written. opaque is the state of reasoning.
func (s *streamer) close(opaque json.RawMessage) error {
	o, at := s.current, len(s.output)
	if o == nil {
		return nil
	}
	text := o.text.String()
	if !o.reasoning {
		if err := s.event("response.output_text.done", object{
			"item_id": o.id, "output_index": at, "content_index": 0, "text": text, "logprobs": []any{},
		}); err != nil {
			return err
		}
		if err := s.event("response.content_part.done", object{
			"item_id": o.id, "output_index": at, "content_index": 0, "part": outputText(text),
		}); err != nil {
			return err
		}
		m := s.message("completed", []any{outputText(text)})
		s.current = nil
		return s.done(m)
	}
	s.current = nil
	if err := s.event("response.reasoning_summary_text.done", object{
		"item_id": o.id, "output_index": at, "summary_index": 0, "text": text,
	}); err != nil {
		return err
	}
	if err := s.event("response.reasoning_summary_part.done", object{
		"item_id": o.id, "output_index": at, "summary_index": 0, "part": summary(text),
	}); err != nil {
		return err
	}
	return s.done(s.reasoning(o.id, []any{summary(text)}, opaque))
}

// reasoning returns an item of reasoning: the one that opaque is, or a new one
// with opaque in it.
func (s *streamer) reasoning(id string, texts []any, opaque json.RawMessage) any {
	if kind, _ := stateOf(opaque); kind == "reasoning" {
		return opaque
	}
	i := object{"type": "reasoning", "id": id, "summary": texts}
	if len(opaque) > 0 {
		i["encrypted_content"] = wrap(foreignState{Service: s.answer.Service, Opaque: opaque})
	}
	return i
}

// done adds an item to the output.
func (s *streamer) done(i any) error {
	err := s.event("response.output_item.done", object{"output_index": len(s.output), "item": i})
	s.output = append(s.output, i)
	return err
}

// reasoned closes reasoning, or adds an item that is nothing but state.
func (s *streamer) reasoningDone(opaque json.RawMessage) error {
	if s.current != nil && s.current.reasoning {
		return s.close(opaque)
	}
	if err := s.close(nil); err != nil {
		return err
	}
	kind, phase := stateOf(opaque)
	switch {
	case len(opaque) == 0:
		return nil
	case kind == "message":
		s.phase = phase
		return nil
	case slices.Contains(ServiceItems(), kind):
		return s.wholeItem(opaque)
	}
	return s.wholeItem(s.reasoning(s.id("rs"), []any{}, opaque))
}

// whole tells an item that has no pieces.
func (s *streamer) wholeItem(i any) error {
	if err := s.event("response.output_item.added", object{"output_index": len(s.output), "item": i}); err != nil {
		return err
	}
	return s.done(i)
}

func (s *streamer) call(d model.CallDelta) error {
	id := provider.CallID(d.ID, MaxCallID)
	if r := s.answer.Request; r != nil && r.custom(d.Name) {
		input := customInput(d.Arguments)
		i := object{"type": "custom_tool_call", "id": s.id("ctc"), "status": "completed", "call_id": id, "name": d.Name, "input": input}
		return s.callEvents(i, "input", "response.custom_tool_call_input", input)
	}
	arguments := provider.SentArguments(d.Arguments)
	i := object{"type": "function_call", "id": s.id("fc"), "status": "completed", "call_id": id, "name": d.Name, "arguments": arguments}
	return s.callEvents(i, "arguments", "response.function_call_arguments", arguments)
}

// called tells a call, whose text stands under field.
func (s *streamer) callEvents(i object, field, event, text string) error {
	at := len(s.output)
	begun := object{}
	for k, v := range i {
		begun[k] = v
	}
	begun["status"], begun[field] = "in_progress", ""
	if err := s.event("response.output_item.added", object{"output_index": at, "item": begun}); err != nil {
		return err
	}
	for _, piece := range provider.Halves(text) {
		if err := s.event(event+".delta", object{"item_id": i["id"], "output_index": at, "delta": piece}); err != nil {
			return err
		}
	}
	end := object{"item_id": i["id"], "output_index": at, field: text}
	if field == "arguments" {
		end["name"] = i["name"]
	}
	if err := s.event(event+".done", end); err != nil {
		return err
	}
	return s.done(i)
}

// custom reports whether name is a custom tool of the request.
func (r *Request) custom(name string) bool {
	for _, t := range r.Tools {
		if t.Type == "custom" && t.Name == name {
			return true
		}
	}
	return false
}

// customInput is the reverse of customArguments; of other arguments it is all.
func customInput(arguments json.RawMessage) string {
	var o struct {
		Input *string `json:"input"`
	}
	if json.Unmarshal(arguments, &o) == nil && o.Input != nil {
		return *o.Input
	}
	return string(arguments)
}

func (s *streamer) finish(f model.Finish) error {
	status, reason := "completed", ""
	switch f.Reason {
	case model.StopLength:
		status, reason = "incomplete", "max_output_tokens"
	case model.StopRefusal:
		status, reason = "incomplete", "content_filter"
	}
	r := s.response(status)
	if reason != "" {
		r["incomplete_details"] = object{"reason": reason}
	} else {
		r["completed_at"] = s.answer.Created.Unix()
	}
	r["usage"] = Usage{
		InputTokens: f.Usage.InputTokens, OutputTokens: f.Usage.OutputTokens, TotalTokens: f.Usage.InputTokens + f.Usage.OutputTokens,
		InputTokensDetails:  InputDetails{CachedTokens: f.Usage.CachedTokens, CacheWriteTokens: f.Usage.StoredTokens},
		OutputTokensDetails: OutputDetails{ReasoningTokens: f.Usage.ThoughtTokens},
	}
	s.final = r
	return s.event("response."+status, object{"response": r})
}

// fail tells that the answer broke off.
func (s *streamer) fail(message string) error {
	if err := s.begin(); err != nil {
		return err
	}
	s.current = nil
	problem := object{"type": "server_error", "code": "server_error", "message": message, "param": nil}
	if err := s.event("error", object{"code": "server_error", "message": message, "param": nil, "error": problem}); err != nil {
		return err
	}
	r := s.response("failed")
	r["error"] = object{"code": "server_error", "message": message}
	return s.event("response.failed", object{"response": r})
}

// event writes one event.
func (s *streamer) event(name string, fields object) error {
	if s.out.W == nil {
		return nil
	}
	fields["type"], fields["sequence_number"] = name, s.sequence
	s.sequence++
	b, err := json.Marshal(fields)
	if err != nil {
		return err
	}
	return s.out.Event(name, b)
}

// response returns the object as it stands.
func (s *streamer) response(status string) object {
	output := s.output
	if output == nil {
		output = []any{}
	}
	r := object{
		"id": s.answer.ID, "object": "response", "created_at": s.answer.Created.Unix(), "status": status, "model": s.answer.Model,
		"output": output, "error": nil, "incomplete_details": nil, "usage": nil, "background": false, "store": false,
		"previous_response_id": nil, "instructions": nil, "max_output_tokens": nil, "metadata": object{}, "parallel_tool_calls": true,
		"reasoning": object{"effort": nil, "summary": nil}, "temperature": 1, "text": object{"format": object{"type": "text"}},
		"tool_choice": "auto", "tools": []any{}, "top_p": 1, "truncation": "disabled", "user": nil,
	}
	if s.answer.Request == nil {
		return r
	}
	var asked map[string]json.RawMessage
	if json.Unmarshal(s.answer.Request.Extraction().JSON(), &asked) != nil {
		return r
	}
	for _, name := range echoedFields() {
		if v, ok := asked[name]; ok && string(v) != "null" {
			r[name] = v
		}
	}
	return r
}

// repeated are the fields of a request that the response has again.
func echoedFields() []string {
	return []string{
		"instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "prompt_cache_key", "reasoning", "safety_identifier",
		"temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
	}
}
