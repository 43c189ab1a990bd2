// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
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
	Stored  *Stored // the response is stored; nil: it is not
}

// Stored is what a stored response says about itself. The sequence numbers of its events count the
// bytes of texts and the other events, so that they are the same however the texts were cut
// into pieces, and a client can follow them after any of them.
type Stored struct {
	Previous     string // id of the response that it continues; may be empty
	Conversation string // its id; empty: the client has named none
	Background   bool
	After        int // the sequence number that the client has; -1: none
}

// Whole returns the answer in one piece, as JSON. The error is that of the deltas,
// or [provider.ErrNoFinish].
func (a Answer) Whole(deltas iter.Seq2[model.Delta, error]) (json.RawMessage, error) {
	s := streamer{answer: a}
	if err := provider.WriteDeltas(provider.WithoutPieces(deltas), s.delta, nil); err != nil {
		return nil, err
	}
	return json.Marshal(s.final)
}

// Body implements [provider.Answerer].
func (a Answer) Body(deltas iter.Seq2[model.Delta, error]) ([]byte, error) { return a.Whole(deltas) }

// Stream writes the answer to w as server-sent events, and calls flush after each.
// The last event is response.completed or response.incomplete. An error of the
// deltas is written as an error event and a response.failed, and returned.
func (a Answer) Stream(w io.Writer, flush func() error, deltas iter.Seq2[model.Delta, error]) error {
	s := streamer{answer: a, out: provider.EventStream{EventWriter: provider.EventWriter{W: w, Flush: flush}}}
	return provider.WriteDeltas(provider.InOrder(deltas), s.delta, func(err error) error {
		e := provider.OpenAIErrorOf(err)
		s.fail(e.Status, e.Message)
		return s.out.Err
	})
}

// Unfinished returns the response as JSON while it has no answer: with the status queued,
// in_progress or cancelled.
func (a Answer) Unfinished(status string) (json.RawMessage, error) {
	s := streamer{answer: a}
	return json.Marshal(s.response(status))
}

// Failed returns a response that has failed, as JSON.
func (a Answer) Failed(httpStatus int, message string) (json.RawMessage, error) {
	s := streamer{answer: a}
	r := s.response("failed")
	r["error"] = object{"code": failureCode(httpStatus), "message": message}
	return json.Marshal(r)
}

func failureCode(status int) string {
	if status == http.StatusTooManyRequests {
		return "rate_limit_exceeded"
	}
	return "server_error"
}

// Fail returns the events that end a broken stream: an error event and a
// response.failed. before is the sequence number of the last event, -1 for none;
// status is the HTTP status of the error, which decides its code.
func (a Answer) Fail(before, status int, message string) []byte {
	var b bytes.Buffer
	s := streamer{answer: a, out: provider.EventStream{EventWriter: provider.EventWriter{W: &b}}, sequence: before + 1, begun: true}
	s.fail(status, message)
	return b.Bytes()
}

// streamer builds the response from the deltas and writes an event for each step if
// it has a writer.
type streamer struct {
	answer   Answer
	out      provider.EventStream // without a writer, no event is written
	sequence int
	begun    bool
	output   []any // complete items
	current  *item
	calling  *callItem
	phase    string   // of the next message
	tools    *toolbox // of the request; nil: not read yet
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
	s.begin()
	switch d := d.(type) {
	case model.TextDelta:
		s.text(false, string(d))
	case model.ReasoningDelta:
		s.text(true, string(d))
	case model.ReasoningDone:
		s.reasoningDone(d.Opaque)
	case model.CallPiece:
		s.callPiece(d)
	case model.CallDelta:
		s.call(d)
	case model.Finish:
		s.close(nil)
		s.finish(d)
	}
	return s.out.Err
}

// begin writes the first events once.
func (s *streamer) begin() {
	if s.begun {
		return
	}
	s.begun = true
	if s.out.W == nil {
		return
	}
	for _, name := range []string{"response.created", "response.in_progress"} {
		s.event(name, object{"response": s.response("in_progress")})
	}
}

// id returns the id of the next item.
func (s *streamer) id(prefix string) string {
	return fmt.Sprintf("%s_%s_%d", prefix, strings.TrimPrefix(s.answer.ID, "resp_"), len(s.output))
}

// text extends the current message or reasoning, or starts one.
func (s *streamer) text(reasoning bool, text string) {
	if s.current == nil || s.current.reasoning != reasoning {
		s.close(nil)
		s.start(reasoning)
	}
	s.current.text.WriteString(text)
	if reasoning {
		s.event("response.reasoning_summary_text.delta", object{
			"item_id": s.current.id, "output_index": len(s.output), "summary_index": 0, "delta": text,
		})
		return
	}
	s.event("response.output_text.delta", object{
		"item_id": s.current.id, "output_index": len(s.output), "content_index": 0, "delta": text, "logprobs": []any{},
	})
}

func (s *streamer) start(reasoning bool) {
	at := len(s.output)
	if reasoning {
		s.current = &item{reasoning: true, id: s.id("rs")}
		s.event("response.output_item.added", object{"output_index": at, "item": object{
			"type": "reasoning", "id": s.current.id, "summary": []any{},
		}})
		s.event("response.reasoning_summary_part.added", object{
			"item_id": s.current.id, "output_index": at, "summary_index": 0, "part": summary(""),
		})
		return
	}
	s.current = &item{id: s.id("msg"), phase: s.phase}
	s.phase = ""
	s.event("response.output_item.added", object{"output_index": at, "item": s.message("in_progress", []any{})})
	s.event("response.content_part.added", object{
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

// close completes the current item. opaque is the state of reasoning. A call that
// has no end was cut off.
func (s *streamer) close(opaque json.RawMessage) {
	if s.calling != nil {
		s.endCall("incomplete")
		return
	}
	o, at := s.current, len(s.output)
	if o == nil {
		return
	}
	text := o.text.String()
	if !o.reasoning {
		s.event("response.output_text.done", object{
			"item_id": o.id, "output_index": at, "content_index": 0, "text": text, "logprobs": []any{},
		})
		s.event("response.content_part.done", object{
			"item_id": o.id, "output_index": at, "content_index": 0, "part": outputText(text),
		})
		m := s.message("completed", []any{outputText(text)})
		s.current = nil
		s.done(m)
		return
	}
	s.current = nil
	s.event("response.reasoning_summary_text.done", object{
		"item_id": o.id, "output_index": at, "summary_index": 0, "text": text,
	})
	s.event("response.reasoning_summary_part.done", object{
		"item_id": o.id, "output_index": at, "summary_index": 0, "part": summary(text),
	})
	s.done(s.reasoning(o.id, []any{summary(text)}, opaque))
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
func (s *streamer) done(i any) {
	s.event("response.output_item.done", object{"output_index": len(s.output), "item": i})
	s.output = append(s.output, i)
}

// reasoningDone completes reasoning, or adds an item of state alone.
func (s *streamer) reasoningDone(opaque json.RawMessage) {
	if s.current != nil && s.current.reasoning {
		s.close(opaque)
		return
	}
	s.close(nil)
	kind, phase := stateOf(opaque)
	switch {
	case len(opaque) == 0:
	case kind == "message":
		s.phase = phase
	case slices.Contains(ServiceItems(), kind):
		s.wholeItem(opaque)
	default:
		s.wholeItem(s.reasoning(s.id("rs"), []any{}, opaque))
	}
}

// wholeItem writes an item without fragments.
func (s *streamer) wholeItem(i any) {
	s.event("response.output_item.added", object{"output_index": len(s.output), "item": i})
	s.done(i)
}

// A callItem is a call in progress.
type callItem struct {
	id    artel.CallID
	item  object // complete, but for the text under field
	field string // of the text; empty: the item is written as a whole
	event string // prefix of its events
	text  strings.Builder
	tool  *clientTool
	input provider.InputReader // of a custom tool
}

// newCall returns the item of a call without its text.
func (s *streamer) newCall(call artel.CallID, name string) *callItem {
	if s.tools == nil {
		s.tools = &toolbox{}
		if s.answer.Request != nil {
			s.tools = s.answer.Request.toolbox()
		}
	}
	item, prefix, field, tool := s.tools.call(name)
	item["id"], item["status"], item["call_id"] = s.id(prefix), "completed", provider.CallID(call, MaxCallID)
	event := map[string]string{"arguments": "response.function_call_arguments", "input": "response.custom_tool_call_input"}[field]
	return &callItem{id: call, item: item, field: field, event: event, tool: tool}
}

// callPiece begins a call, or writes more of its text.
func (s *streamer) callPiece(d model.CallPiece) {
	s.beginCall(d.ID, d.Name)
	switch s.calling.field {
	case "input":
		d.Text = s.calling.input.Read(d.Text)
	case "":
		return
	}
	s.callText(d.Text)
}

// beginCall begins a call unless it is in progress. Another one in progress was cut
// off.
func (s *streamer) beginCall(id artel.CallID, name string) {
	if s.calling != nil && s.calling.id == id {
		return
	}
	s.close(nil)
	c := s.newCall(id, name)
	s.calling = c
	if c.field == "" {
		return
	}
	begun := maps.Clone(c.item)
	begun["status"], begun[c.field] = "in_progress", ""
	s.event("response.output_item.added", object{"output_index": len(s.output), "item": begun})
}

func (s *streamer) callText(text string) {
	if text == "" {
		return
	}
	s.calling.text.WriteString(text)
	s.event(s.calling.event+".delta", object{"item_id": s.calling.item["id"], "output_index": len(s.output), "delta": text})
}

// call completes a call, which pieces may have begun.
func (s *streamer) call(d model.CallDelta) {
	s.beginCall(d.ID, d.Name)
	whole := provider.SentArguments(d.Arguments)
	switch c := s.calling; c.field {
	case "input":
		whole = provider.CustomInput(d.Arguments)
	case "":
		s.calling = nil
		wholeCall(c.item, c.tool.kind, d.Arguments)
		s.wholeItem(c.item)
		return
	}
	s.callText(provider.Rest(whole, s.calling.text.String()))
	s.endCall("completed")
}

// endCall completes the call in progress with the text that was written.
func (s *streamer) endCall(status string) {
	c := s.calling
	s.calling = nil
	if c.field == "" {
		return // it was cut off before its arguments were there
	}
	c.item[c.field], c.item["status"] = c.text.String(), status
	end := object{"item_id": c.item["id"], "output_index": len(s.output), c.field: c.text.String()}
	if c.field == "arguments" {
		end["name"] = c.item["name"]
	}
	s.event(c.event+".done", end)
	s.done(c.item)
}

func (s *streamer) finish(f model.Finish) {
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
	r["usage"] = wireUsage(f.Usage)
	s.final = r
	s.event("response."+status, object{"response": r})
}

// fail writes the events of a broken answer.
func (s *streamer) fail(status int, message string) {
	s.begin()
	s.current, s.calling = nil, nil
	code := failureCode(status)
	problem := object{"type": provider.OpenAIErrorType(status), "code": code, "message": message, "param": nil}
	s.event("error", object{"code": code, "message": message, "param": nil, "error": problem})
	r := s.response("failed")
	r["error"] = object{"code": code, "message": message}
	s.event("response.failed", object{"response": r})
}

// event writes one event.
func (s *streamer) event(name string, fields object) {
	if s.out.W == nil {
		return
	}
	from := s.sequence
	s.sequence++
	if k := s.answer.Stored; k != nil {
		text, isDelta := fields["delta"].(string)
		if isDelta {
			s.sequence = from + max(1, len(text))
		}
		if s.sequence-1 <= k.After {
			return
		}
		if isDelta && k.After >= from {
			fields["delta"] = text[k.After-from+1:]
		}
	}
	fields["type"], fields["sequence_number"] = name, s.sequence-1
	b, err := json.Marshal(fields)
	s.out.Send(name, b, err)
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
	if k := s.answer.Stored; k != nil {
		r["store"], r["background"] = true, k.Background
		if k.Previous != "" {
			r["previous_response_id"] = k.Previous
		}
		if k.Conversation != "" {
			r["conversation"] = object{"id": k.Conversation}
		}
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
