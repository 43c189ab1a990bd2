// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
func nativeMedia(ctx context.Context, d Dialect) error {
	for _, mediaType := range d.Native.ToolTypes {
		s := open(d, play(d.Stream(model.TextDelta("nice"), end(model.StopEnd))))
		err := s.nativeMedia(ctx, d, mediaType)
		s.close()
		if err != nil {
			return fmt.Errorf("%s: %w", mediaType, err)
		}
	}
	return nil
}

func (s *harness) nativeMedia(ctx context.Context, d Dialect, mediaType string) error {
	m, err := s.media(ctx, mediaType, artel.KindOther, "a.bin", picture(4))
	if err != nil {
		return err
	}
	yes := model.Fact[bool]{Value: true, Source: model.FromDialect}
	s.service.Capabilities.ToolImage, s.service.Capabilities.ToolFile = yes, yes
	a, err := s.ask(ctx, s.request(
		hello(),
		say(artel.RoleAssistant, artel.ToolCall{ID: "a", Name: "look"}, artel.ToolCall{ID: "b", Name: "look"}),
		say(artel.RoleTool, artel.ToolResult{CallID: "b", Content: "second", Parts: artel.Parts{m}}),
		say(artel.RoleTool, artel.ToolResult{CallID: "a", Content: "first"}),
		say(artel.RoleUser, artel.Text{Text: "well?"}),
	))
	if err := errors.Join(err, wantAnswer(a, "nice", model.StopEnd), s.wantSent(d, picture(4))); err != nil {
		return err
	}
	got, err := d.Native.Decode(s.requests()[0])
	if err != nil {
		return err
	}
	for _, message := range got.Messages {
		for _, r := range artel.ResultsOf(message.Parts) {
			if r.CallID == "b" && len(artel.MediaOf(r.Parts)) == 1 {
				return nil
			}
		}
	}
	return errors.New("the result of the call does not hold the media")
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
func callState(ctx context.Context, d Dialect) error {
	if d.Native.CallState == nil {
		return nil
	}
	call := artel.ToolCall{ID: "call_1", Name: "look", Arguments: json.RawMessage(`{"q":"x"}`), Opaque: d.Native.CallState}
	s := open(d, play(d.Stream(model.CallDelta(call), end(model.StopTools))))
	defer s.close()
	a, err := s.ask(ctx, s.request(hello()))
	if err = errors.Join(err, wantAnswer(a, "", model.StopTools)); err != nil {
		return err
	}
	if len(a.calls) != 1 || !sameJSON(a.calls[0].Opaque, call.Opaque) || a.calls[0].Service != s.service.ID {
		return fmt.Errorf("the call came as %+v, want it with its state and the service that it is of", a.calls)
	}
	theirs := call
	theirs.ID, theirs.Service = "call_2", foreign
	got, err := s.replay(ctx, d, hello(), say(artel.RoleAssistant, a.calls[0]), say(artel.RoleUser, artel.Text{Text: "and?"}), say(artel.RoleAssistant, theirs))
	if err != nil {
		return err
	}
	mine, others := 0, 0
	for _, c := range artel.CallsOf(got) {
		if sameJSON(c.Opaque, call.Opaque) {
			if c.ID == call.ID {
				mine++
			} else {
				others++
			}
		}
	}
	if mine != 1 || others != 0 {
		return fmt.Errorf("the state goes back with %d of 1 calls of the service, and with %d of others", mine, others)
	}
	return nil
}

// thoughtState: the state of reasoning is yielded at its end, and sent back at its
// place.
func thoughtState(ctx context.Context, d Dialect) error {
	if d.Native.ThoughtState == nil {
		return nil
	}
	state := d.Native.ThoughtState
	s := open(d, play(d.Stream(
		model.ReasoningDelta("I "), model.ReasoningDelta("think."), model.ReasoningDone{Opaque: state}, model.TextDelta("So: "), model.TextDelta("yes."), end(model.StopEnd),
	)))
	defer s.close()
	a, err := s.ask(ctx, s.request(hello()))
	if err = errors.Join(err, wantAnswer(a, "So: yes.", model.StopEnd)); err != nil {
		return err
	}
	if a.thought != "I think." {
		return fmt.Errorf("the thought is %q, want %q", a.thought, "I think.")
	}
	if at := indexOfState(a.parts, state); at < 0 || at+1 >= len(a.parts) {
		return fmt.Errorf("the parts are %+v, want the state of the reasoning before the text", a.parts)
	}
	theirs := artel.Reasoning{Text: "elsewhere", Opaque: state, Service: foreign}
	got, err := s.replay(
		ctx, d, hello(), say(artel.RoleAssistant, a.parts...), say(artel.RoleUser, artel.Text{Text: "and?"}),
		say(artel.RoleAssistant, theirs, artel.Text{Text: "no."}), say(artel.RoleUser, artel.Text{Text: "why?"}),
	)
	if err != nil {
		return err
	}
	at := indexOfState(got, state)
	text := slices.IndexFunc(got, func(p artel.Part) bool { return p == artel.Part(artel.Text{Text: "So: yes."}) })
	if at < 0 || text != at+1 {
		return fmt.Errorf("the state is part %d and the text part %d, want it right before", at, text)
	}
	if indexOfState(got[at+1:], state) >= 0 {
		return errors.New("the state of another service's reasoning was sent")
	}
	return nil
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
func (s *harness) replay(ctx context.Context, d Dialect, messages ...model.Message) (artel.Parts, error) {
	before := len(s.requests())
	a, err := s.ask(ctx, s.request(messages...))
	if err = errors.Join(err, a.err); err != nil {
		return nil, err
	}
	body := slices.Concat(s.requests()[before:]...)
	if err := d.Validate(body); err != nil {
		return nil, fmt.Errorf("the API refuses the request: %w", err)
	}
	if bytes.Contains(body, []byte(foreign)) {
		return nil, errors.New("the request names another service")
	}
	got, err := d.Native.Decode(body)
	if err != nil {
		return nil, err
	}
	var parts artel.Parts
	for _, m := range got.Messages {
		parts = append(parts, m.Parts...)
	}
	return parts, nil
}

// toolChoice: the server reads the choice of tools of the request.
func toolChoice(ctx context.Context, d Dialect) error {
	if d.Native.Decode == nil {
		return nil
	}
	for _, want := range []model.ToolChoice{
		{}, {Mode: model.ChooseNone}, {Mode: model.ChooseAny}, {Mode: model.ChooseNamed, Name: "look"},
	} {
		got, err := sent(ctx, d, func(r *model.Request) { r.Choice = want })
		if err != nil {
			return fmt.Errorf("%q: %w", want.Mode, err)
		}
		if got.Choice != want || len(got.Tools) != 1 {
			return fmt.Errorf("the choice %+v of 1 tool is read as %+v of %d", want, got.Choice, len(got.Tools))
		}
	}
	return nil
}

// settings: the server reads the settings of the request, as far as the dialect has
// them.
func settings(ctx context.Context, d Dialect) error {
	if d.Native.Decode == nil {
		return nil
	}
	temperature, topP := 0.5, 0.75
	schema := json.RawMessage(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"],"additionalProperties":false}`)
	got, err := sent(ctx, d, func(r *model.Request) {
		r.Tools = nil
		r.MaxOutput = 4321
		r.Sampling = model.Sampling{Temperature: &temperature, Stop: []string{"END"}}
		r.Format = model.Format{JSON: true, Schema: schema, Name: "answer", Strict: true}
	})
	if err != nil {
		return err
	}
	s := got.Sampling
	switch {
	case got.MaxOutput != 4321:
		return fmt.Errorf("the limit of the output is read as %d", got.MaxOutput)
	case s.Temperature != nil && *s.Temperature != temperature:
		return fmt.Errorf("the temperature is read as %v", *s.Temperature)
	case s.Stop != nil && !slices.Equal(s.Stop, []string{"END"}):
		return fmt.Errorf("the stop texts are read as %q", s.Stop)
	case got.Format.JSON && !bytes.Contains(got.Format.Schema, []byte(`"n"`)):
		return fmt.Errorf("the format is read with the schema %s", got.Format.Schema)
	}
	if got, err = sent(ctx, d, func(r *model.Request) { r.Sampling = model.Sampling{TopP: &topP} }); err != nil {
		return err
	}
	if s := got.Sampling; s.TopP != nil && *s.TopP != topP || s.Temperature != nil {
		return fmt.Errorf("the top-p is read as %+v", s)
	}
	return nil
}

// sent makes a legal call with a changed request, and returns the request as the
// server reads it.
func sent(ctx context.Context, d Dialect, change func(*model.Request)) (*model.Request, error) {
	s := open(d, play(d.Stream(model.TextDelta("ok"), end(model.StopEnd))))
	defer s.close()
	r := s.request(hello())
	change(r)
	a, err := s.ask(ctx, r)
	if err := errors.Join(err, wantAnswer(a, "ok", model.StopEnd), s.wantSent(d)); err != nil {
		return nil, err
	}
	return d.Native.Decode(s.requests()[0])
}
