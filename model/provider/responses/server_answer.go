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

// An Answer writes the deltas of a model in the dialect.
type Answer struct {
	ID      string // "resp_…"; the ids of the items derive from it
	Model   string
	Created time.Time
	// Request is the request: the response repeats its settings, and uses its
	// custom tools. nil: defaults of the API.
	Request *Request
	// Service is the origin of opaque reasoning state of another dialect: it is
	// sent as encrypted content, which [Request.Neutral] of a later request
	// unwraps.
	Service artel.ServiceID
}

// Whole returns the answer in one piece, as JSON. The error is that of the deltas,
// or [provider.ErrNoFinish].
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

// Stream writes the answer to w as server-sent events, and calls flush after each.
// The last event is response.completed or response.incomplete. An error of the
// deltas is written as an error event and a response.failed, and returned.
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

// Fail returns the events that end a broken stream: an error event and a
// response.failed. before is the sequence number of the last event, -1 for none.
func (a Answer) Fail(before int, message string) []byte {
	var b bytes.Buffer
	s := streamer{answer: a, out: provider.EventWriter{W: &b}, sequence: before + 1, begun: true}
	_ = s.fail(message) // a buffer does not fail
	return b.Bytes()
}

// streamer builds the response from the deltas and writes an event for each step if
// it has a writer.
type streamer struct {
	answer   Answer
	out      provider.EventWriter // without a writer, no event is written
	sequence int
	begun    bool
	output   []any // complete items
	current  *item
	phase    string // of the next message
	final    map[string]any
}

// An item is a message or reasoning in progress.
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

// begin writes the first events once.
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

// id returns the id of the next item.
func (s *streamer) id(prefix string) string {
	return fmt.Sprintf("%s_%s_%d", prefix, strings.TrimPrefix(s.answer.ID, "resp_"), len(s.output))
}

// text extends the current message or reasoning, or starts one.
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

// close completes the current item. opaque is the state of reasoning.
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

// reasoning returns an item of reasoning: opaque itself, or a new one that wraps
// opaque.
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

// reasoningDone completes reasoning, or adds an item of state alone.
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

// wholeItem writes an item without fragments.
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

// callEvents writes a call with its text under field.
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

// customInput is the reverse of customArguments; other arguments are returned
// whole.
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

// fail writes the events of a broken answer.
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

// response returns the response object with its current output.
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

// echoedFields are the fields of a request that the response repeats.
func echoedFields() []string {
	return []string{
		"instructions", "max_output_tokens", "metadata", "parallel_tool_calls", "prompt_cache_key", "reasoning", "safety_identifier",
		"temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user",
	}
}
