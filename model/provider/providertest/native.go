// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// A Native is what a dialect supports beyond plain chat. A dialect meets the
// clauses about unsupported features trivially.
type Native struct {
	// Service changes the called service, whose base URL is the server's root with
	// "/v1"; nil: unchanged.
	Service func(s model.Service) model.Service
	// Decode reads the body of a request, as the server side of the dialect does;
	// nil: the clauses about settings are skipped.
	Decode func(body []byte) (*model.Request, error)
	// ToolTypes are the media types that tool results can hold.
	ToolTypes []string
	// CallState and ThoughtState are samples of the opaque state of a call and of
	// reasoning; nil: the dialect has none.
	CallState, ThoughtState json.RawMessage
}

// nativeMedia: media that tool results can hold are in the result, and only there.
func nativeMedia(c *check) {
	for _, mediaType := range c.Native.ToolTypes {
		c.nativeMedia(mediaType)
	}
}

func (c *check) nativeMedia(mediaType string) {
	s := c.answers(model.StopEnd, model.TextDelta("nice"))
	m := s.media(mediaType, artel.KindOther, "a.bin", picture(4))
	yes := model.Fact[bool]{Value: true, Source: model.FromDialect}
	s.service.Capabilities.ToolImage, s.service.Capabilities.ToolFile = yes, yes
	a := s.ask(s.request(
		hello(),
		say(artel.RoleAssistant, artel.ToolCall{ID: "a", Name: "look"}, artel.ToolCall{ID: "b", Name: "look"}),
		say(artel.RoleTool, artel.ToolResult{CallID: "b", Content: "second", Parts: artel.Parts{m}}),
		say(artel.RoleTool, artel.ToolResult{CallID: "a", Content: "first"}),
		say(artel.RoleUser, artel.Text{Text: "well?"}),
	))
	s.answered(a, "nice", model.StopEnd)
	s.sentOnce(picture(4))
	got, err := c.Native.Decode(s.requests()[0])
	c.Must("Decode", err)
	for _, message := range got.Messages {
		for _, r := range artel.ResultsOf(message.Parts) {
			if r.CallID == "b" && len(artel.MediaOf(r.Parts)) == 1 {
				return
			}
		}
	}
	c.Stopf("the result of the call with %s does not hold the media", mediaType)
}

// foreign is another service, whose state must not be sent.
const foreign = "another"

// sameJSON compares two values without regard to spaces and order.
func sameJSON(a, b json.RawMessage) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// callState: the state of a call is yielded with it, sent back with it, and not
// sent to another service.
func callState(c *check) {
	if c.Native.CallState == nil {
		return
	}
	call := artel.ToolCall{ID: "call_1", Name: "look", Arguments: json.RawMessage(`{"q":"x"}`), Opaque: c.Native.CallState}
	s := c.answers(model.StopTools, model.CallDelta(call))
	a := s.ask(s.request(hello()))
	s.answered(a, "", model.StopTools)
	if len(a.calls) != 1 || !sameJSON(a.calls[0].Opaque, call.Opaque) || a.calls[0].Service != s.service.ID {
		c.Stopf("the call came as %+v, want it with its state and the service that it is of", a.calls)
	}
	theirs := call
	theirs.ID, theirs.Service = "call_2", foreign
	got := s.replay(hello(), say(artel.RoleAssistant, a.calls[0]), say(artel.RoleUser, artel.Text{Text: "and?"}), say(artel.RoleAssistant, theirs))
	mine, others := 0, 0
	for _, sent := range artel.CallsOf(got) {
		if sameJSON(sent.Opaque, call.Opaque) {
			if sent.ID == call.ID {
				mine++
			} else {
				others++
			}
		}
	}
	if mine != 1 || others != 0 {
		c.Stopf("the state goes back with %d of 1 calls of the service, and with %d of others", mine, others)
	}
}

// thoughtState: the state of reasoning is yielded at its end, and sent back at its
// place.
func thoughtState(c *check) {
	if c.Native.ThoughtState == nil {
		return
	}
	state := c.Native.ThoughtState
	s := c.answers(model.StopEnd,
		model.ReasoningDelta("I "), model.ReasoningDelta("think."), model.ReasoningDone{Opaque: state}, model.TextDelta("So: "), model.TextDelta("yes."),
	)
	a := s.ask(s.request(hello()))
	s.answered(a, "So: yes.", model.StopEnd)
	c.Want(a.thought == "I think.", "the thought is %q, want %q", a.thought, "I think.")
	if at := indexOfState(a.parts, state); at < 0 || at+1 >= len(a.parts) {
		c.Stopf("the parts are %+v, want the state of the reasoning before the text", a.parts)
	}
	theirs := artel.Reasoning{Text: "elsewhere", Opaque: state, Service: foreign}
	got := s.replay(
		hello(), say(artel.RoleAssistant, a.parts...), say(artel.RoleUser, artel.Text{Text: "and?"}),
		say(artel.RoleAssistant, theirs, artel.Text{Text: "no."}), say(artel.RoleUser, artel.Text{Text: "why?"}),
	)
	at := indexOfState(got, state)
	text := slices.IndexFunc(got, func(p artel.Part) bool { return p == artel.Part(artel.Text{Text: "So: yes."}) })
	if at < 0 || text != at+1 {
		c.Stopf("the state is part %d and the text part %d, want it right before", at, text)
	}
	if indexOfState(got[at+1:], state) >= 0 {
		c.Stopf("the state of another service's reasoning was sent")
	}
}

// indexOfState returns the index of the reasoning with a state; -1: none.
func indexOfState(parts artel.Parts, state json.RawMessage) int {
	return slices.IndexFunc(parts, func(p artel.Part) bool {
		r, ok := p.(artel.Reasoning)
		return ok && sameJSON(r.Opaque, state)
	})
}

// replay sends a history and returns all parts of the request as the server reads
// it.
func (s session) replay(messages ...model.Message) artel.Parts {
	before := len(s.requests())
	s.Must("Generate", s.ask(s.request(messages...)).err)
	body := slices.Concat(s.requests()[before:]...)
	s.Must("the API's rules", s.Validate(body))
	s.Want(!bytes.Contains(body, []byte(foreign)), "the request names another service")
	got, err := s.Native.Decode(body)
	s.Must("Decode", err)
	var parts artel.Parts
	for _, m := range got.Messages {
		parts = append(parts, m.Parts...)
	}
	return parts
}

// toolChoice: the server reads the choice of tools of the request.
func toolChoice(c *check) {
	if c.Native.Decode == nil {
		return
	}
	for _, want := range []model.ToolChoice{
		{}, {Mode: model.ChooseNone}, {Mode: model.ChooseAny}, {Mode: model.ChooseNamed, Name: "look"},
	} {
		got := c.sent(func(r *model.Request) { r.Choice = want })
		if got.Choice != want || len(got.Tools) != 1 {
			c.Stopf("the choice %+v of 1 tool is read as %+v of %d", want, got.Choice, len(got.Tools))
		}
	}
}

// settings: the server reads the settings of the request, as far as the dialect has
// them.
func settings(c *check) {
	if c.Native.Decode == nil {
		return
	}
	temperature, topP := 0.5, 0.75
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	got := c.sent(func(r *model.Request) {
		r.Tools = nil
		r.MaxOutput = 4321
		r.Sampling = model.Sampling{Temperature: &temperature, Stop: []string{"END"}}
		r.Format = model.Format{JSON: true, Schema: schema, Name: "answer", Strict: true}
	})
	s := got.Sampling
	switch {
	case got.MaxOutput != 4321:
		c.Stopf("the limit of the output is read as %d", got.MaxOutput)
	case s.Temperature != nil && *s.Temperature != temperature:
		c.Stopf("the temperature is read as %v", *s.Temperature)
	case s.Stop != nil && !slices.Equal(s.Stop, []string{"END"}):
		c.Stopf("the stop texts are read as %q", s.Stop)
	case got.Format.JSON && !bytes.Contains(got.Format.Schema, []byte(`"n"`)):
		c.Stopf("the format is read with the schema %s", got.Format.Schema)
	}
	got = c.sent(func(r *model.Request) { r.Sampling = model.Sampling{TopP: &topP} })
	if s := got.Sampling; s.TopP != nil && *s.TopP != topP || s.Temperature != nil {
		c.Stopf("the top-p is read as %+v", s)
	}
}

// sent makes a legal call with a changed request, and returns the request as the
// server reads it.
func (c *check) sent(change func(*model.Request)) *model.Request {
	s := c.answers(model.StopEnd, model.TextDelta("ok"))
	r := s.request(hello())
	change(r)
	a := s.ask(r)
	s.answered(a, "ok", model.StopEnd)
	s.sentOnce()
	got, err := c.Native.Decode(s.requests()[0])
	c.Must("Decode", err)
	return got
}
