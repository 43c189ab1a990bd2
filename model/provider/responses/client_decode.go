// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"bufio"
	"encoding/json"
	"io"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// reader reads an answer and yields its deltas: the text of messages and of
// reasoning immediately, other items when they are complete.
type reader struct {
	provider.DeltaWriter

	items   map[string]*itemState // by index in the output, and by id
	refused bool
}

// itemState is the received part of one item.
type itemState struct {
	done      bool
	phased    bool   // its phase was yielded
	said      bool   // its text was yielded
	thought   string // the type of event with its reasoning; other types repeat it
	arguments strings.Builder
	name, id  string // of a call, from the first event
	isCall    bool
	custom    bool // a call of a custom tool
}

// event is an event of the stream.
type event struct {
	Type         string    `json:"type"`
	Index        *int      `json:"output_index"` // some servers leave it out
	ItemID       string    `json:"item_id"`
	SummaryIndex int       `json:"summary_index"`
	Delta        string    `json:"delta"`
	Item         *Item     `json:"item"`
	Response     *Response `json:"response"`
}

// read yields the deltas of body and a Finish. It returns [provider.ErrStopped]
// when the caller stops, an [*artel.Error], or the error of body.
func (r *reader) read(body io.Reader) error {
	r.items = map[string]*itemState{}
	return provider.Answer{Failures: r.Failures, Whole: r.whole, Event: r.event}.Read(body)
}

func (r *reader) whole(b *bufio.Reader) error {
	var resp Response
	data, err := r.Failures.ReadWhole(b, &resp)
	switch {
	case err != nil:
		return err
	case provider.Given(resp.Error):
		return r.Failures.Reported(data)
	case resp.Object != "response" && resp.Output == nil:
		return r.Failures.Broken("the answer is no response")
	}
	return r.finish(&resp)
}

func (r *reader) event(name string, data []byte) (done bool, err error) {
	if string(data) == "[DONE]" { // some servers end as Chat Completions do; here the response is missing
		return true, r.Failures.Broken("the stream broke off")
	}
	var ev event
	if err := r.Failures.ReadEvent(data, &ev); err != nil {
		return true, err
	}
	if ev.Type == "" {
		ev.Type = name
	}
	return r.take(ev, data)
}

// take handles one event, and reports whether it was the last.
func (r *reader) take(e event, data []byte) (done bool, err error) {
	switch e.Type {
	case "error":
		return false, r.Failures.Reported(data)
	case "response.failed":
		if e.Response != nil && provider.Given(e.Response.Error) {
			return false, r.Failures.Reported([]byte(`{"error":` + string(e.Response.Error) + `}`))
		}
		return false, r.Failures.Broken("the service ended the answer with an error")
	case "response.cancelled":
		return false, r.Failures.Broken("the service cancelled the answer")
	case "response.completed", "response.incomplete":
		if e.Response == nil {
			return false, r.Failures.Broken("the stream ended without its response")
		}
		return true, r.finish(e.Response)
	case "response.output_item.added":
		return false, r.added(e)
	case "response.output_item.done":
		if e.Item != nil {
			return false, r.done(r.at(e), e.Item)
		}
	default:
		return false, r.piece(e)
	}
	return false, nil
}

// at returns the state of the item of an event.
func (r *reader) at(e event) *itemState {
	id := e.ItemID
	if e.Item != nil {
		id = e.Item.ID
	}
	place := ""
	if e.Index != nil {
		place = "#" + strconv.Itoa(*e.Index)
	}
	return r.find(id, place)
}

// find returns the state of an item by id or by place, and records it under both.
func (r *reader) find(id, place string) *itemState {
	var p *itemState
	if id != "" {
		p = r.items[id]
	}
	if p == nil && (place != "" || id == "") {
		p = r.items[place]
	}
	if p == nil || p.done && id == "" && place == "" {
		p = &itemState{}
	}
	if id != "" {
		r.items[id] = p
	}
	if place != "" || id == "" {
		r.items[place] = p
	}
	return p
}

func (r *reader) added(e event) error {
	if e.Item == nil {
		return nil
	}
	p := r.at(e)
	p.name, p.id, p.custom = e.Item.Name, e.Item.CallID, e.Item.Kind() == "custom_tool_call"
	if p.isCall = p.custom || e.Item.Kind() == "function_call"; p.isCall {
		return r.callPiece(p, "")
	}
	return r.phase(p, e.Item)
}

// phase yields the phase of work in which the model writes a message, which it
// needs back with the message.
func (r *reader) phase(p *itemState, i *Item) error {
	if i.Phase == "" || p.phased || p.said {
		return nil
	}
	p.phased = true
	head, err := json.Marshal(map[string]string{"type": "message", "phase": i.Phase})
	if err != nil { // of strings
		return nil
	}
	return r.Emit(model.ReasoningDone{Opaque: head})
}

// piece handles an event with a fragment of an item.
func (r *reader) piece(e event) error {
	p := r.at(e)
	switch e.Type {
	case "response.output_text.delta":
		return r.text(p, e.Delta)
	case "response.refusal.delta":
		r.refused = true
		return r.text(p, e.Delta)
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta", "response.reasoning.delta":
		return r.reasoningText(p, e.Type, e.Delta)
	case "response.reasoning_summary_part.added":
		if e.SummaryIndex > 0 && p.thought != "" {
			return r.reasoningText(p, "response.reasoning_summary_text.delta", "\n\n")
		}
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		p.arguments.WriteString(e.Delta)
		if err := r.limit(len(e.Delta)); err != nil || e.Delta == "" {
			return err
		}
		return r.callPiece(p, e.Delta)
	}
	return nil
}

// callPiece yields a piece of a call. The text of a custom tool is its only
// argument.
func (r *reader) callPiece(p *itemState, text string) error {
	if !p.isCall || p.done || p.id == "" || p.name == "" {
		return nil
	}
	if p.custom {
		text = inputPiece(text, p.arguments.Len() == len(text) && text != "")
	}
	return r.Emit(model.CallPiece{ID: artel.CallID(p.id), Name: p.name, Text: text})
}

// inputPiece returns a piece of the text of a custom tool as a piece of the object
// that [provider.CustomArguments] makes of the whole.
func inputPiece(text string, first bool) string {
	if text == "" {
		return ""
	}
	b := provider.MustMarshal(text)
	text = string(b[1 : len(b)-1])
	if first {
		text = `{"input":"` + text
	}
	return text
}

func (r *reader) text(p *itemState, s string) error {
	if s == "" {
		return nil
	}
	p.said = true
	return r.Emit(model.TextDelta(s))
}

// reasoningText yields reasoning. Some servers send it twice, in full and as a
// summary: only the first type of event counts.
func (r *reader) reasoningText(p *itemState, kind, s string) error {
	if s == "" || p.thought != "" && p.thought != kind {
		return nil
	}
	p.thought = kind
	return r.Emit(model.ReasoningDelta(s))
}

// limit bounds the data kept of an answer.
func (r *reader) limit(n int) error {
	return r.Keep(n, "the calls and the state of the answer are")
}

// done yields what a complete item adds.
func (r *reader) done(p *itemState, i *Item) error {
	if p.done {
		return nil
	}
	p.done = true
	if err := r.limit(len(i.Raw)); err != nil {
		return err
	}
	switch i.Kind() {
	case "message":
		return r.message(p, i)
	case "reasoning":
		return r.reasoning(p, i)
	case "function_call", "custom_tool_call":
		return r.call(p, i)
	case "":
		return nil
	}
	// An action of the service itself, passed back in its place.
	return r.Emit(model.ReasoningDone{Opaque: i.Raw})
}

func (r *reader) message(p *itemState, i *Item) error {
	if i.Content == nil {
		return nil
	}
	for _, part := range i.Content.Parts {
		if part.Type == "refusal" {
			r.refused = true
		}
	}
	if p.said {
		return nil
	}
	if err := r.phase(p, i); err != nil {
		return err
	}
	return r.text(p, i.Content.String())
}

func (r *reader) reasoning(p *itemState, i *Item) error {
	text := ""
	for n, s := range i.Summary {
		if n > 0 {
			text += "\n\n"
		}
		text += s.Text
	}
	if text == "" {
		text = i.Content.String()
	}
	if p.thought == "" && text != "" {
		if err := r.reasoningText(p, "done", text); err != nil {
			return err
		}
	}
	// The service stores nothing: an item without its state or its whole text cannot
	// be passed back.
	var opaque json.RawMessage
	if i.Encrypted != nil && *i.Encrypted != "" || i.Content.String() != "" {
		opaque = i.Raw
	}
	if p.thought == "" && opaque == nil {
		return nil
	}
	return r.Emit(model.ReasoningDone{Opaque: opaque})
}

func (r *reader) call(p *itemState, i *Item) error {
	c := model.CallDelta{ID: artel.CallID(i.CallID), Name: i.Name}
	if c.Name == "" {
		c.Name = p.name
	}
	if c.ID == "" {
		c.ID = artel.CallID(p.id)
	}
	text := i.arguments()
	if text == "" {
		text = p.arguments.String()
	}
	if i.Type == "custom_tool_call" {
		if i.Input != nil {
			text = *i.Input
		}
		c.Arguments = provider.CustomArguments(text)
	} else {
		if i.Status == "incomplete" && !json.Valid([]byte(text)) {
			return nil // the arguments are cut off: no call
		}
		c.Arguments = provider.ReceivedArguments(text)
	}
	if c.Name == "" {
		return r.Unnamed()
	}
	if c.ID == "" {
		c.ID = provider.NewCallID("call_")
	}
	return r.Emit(c)
}

// finish yields the items that the events left out, and the Finish.
func (r *reader) finish(resp *Response) error {
	switch resp.Status {
	case "failed", "cancelled":
		if provider.Given(resp.Error) {
			return r.Failures.Reported([]byte(`{"error":` + string(resp.Error) + `}`))
		}
		return r.Failures.Broken("the service ended the answer with the status " + resp.Status)
	}
	stop := model.StopEnd
	if resp.Incomplete != nil {
		switch resp.Incomplete.Reason {
		case "max_output_tokens", "max_tokens":
			stop = model.StopLength
		case "content_filter":
			stop = model.StopRefusal
		}
	}
	for n := range resp.Output {
		i := &resp.Output[n]
		if stop == model.StopLength && i.Status == "" {
			i.Status = "incomplete"
		}
		if err := r.done(r.find(i.ID, "#"+strconv.Itoa(n)), i); err != nil {
			return err
		}
	}
	if r.refused {
		stop = model.StopRefusal
	}
	var usage artel.Usage
	if u := resp.Usage; u != nil {
		usage = u.neutral()
	}
	if err := r.CheckContent(stop); err != nil {
		return err
	}
	return r.Finish(stop, usage)
}
