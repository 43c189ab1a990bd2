// SPDX-License-Identifier: Apache-2.0

package providertest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// Histories draws conversations as they may come from any service: parallel calls;
// late, missing, repeated and unmatched results; media anywhere; repeated ids;
// reasoning and state of other services. Each request must be legal, deterministic,
// and complete: every text, call and piece of media is read back once, and the
// texts of one role stay in order, with the user's media between them. The dialect
// needs [Native]'s Decode.
func Histories(t *testing.T, d Dialect) {
	t.Helper()
	s := open(d, play(d.streamed(model.StopEnd, model.TextDelta("ok"))))
	defer s.close()
	var pictures []artel.Media
	for i := range byte(3) {
		m, err := s.media(t.Context(), "image/png", artel.KindImage, fmt.Sprintf("p%d.png", i), []byte{i, 1, 2, 3})
		if err != nil {
			t.Fatal(err)
		}
		pictures = append(pictures, m)
	}
	rapid.Check(t, func(rt *rapid.T) {
		h := conversation{t: rt, d: d, pictures: pictures, shown: map[artel.Digest]bool{}, service: s.service.ID}
		messages := h.draw()
		fact := func(name string) model.Fact[bool] {
			return model.Fact[bool]{Value: rapid.Bool().Draw(rt, name), Source: model.FromProbe}
		}
		r := s.request(messages...)
		if len(d.Native.ToolTypes) > 0 {
			r.Service.Capabilities.ToolImage = fact("tool image")
		}
		var bodies [2][]byte
		for i := range bodies {
			before := len(s.requests())
			a, err := s.ask(t.Context(), r)
			if err != nil || a.err != nil {
				rt.Fatal(err, a.err)
			}
			bodies[i] = s.requests()[before]
		}
		if string(bodies[0]) != string(bodies[1]) {
			rt.Fatalf("sent again, it is another request:\n%s\n%s", bodies[0], bodies[1])
		}
		if err := d.Validate(bodies[0]); err != nil {
			rt.Fatalf("%v\n%s", err, bodies[0])
		}
		got, err := d.Native.Decode(bodies[0])
		if err != nil {
			rt.Fatal(err)
		}
		if err := h.kept(got.Messages); err != nil {
			rt.Fatalf("%v\n%s", err, bodies[0])
		}
	})
}

// conversation is a drawn conversation and its content.
type conversation struct {
	t        *rapid.T
	d        Dialect
	service  artel.ServiceID
	pictures []artel.Media
	shown    map[artel.Digest]bool
	drawn    map[artel.Digest]int // how often
	n        int
	said     map[artel.Role][]string // texts in order
	user     []string                // texts and digests of a user, in order
	calls    []string                // their marks in order
}

func (h *conversation) mark() string {
	h.n++
	return fmt.Sprintf("(%d)", h.n)
}

func (h *conversation) picture() artel.Media {
	m := rapid.SampledFrom(h.pictures).Draw(h.t, "picture")
	h.shown[m.Ref.Digest] = true
	h.drawn[m.Ref.Digest]++
	return m
}

func (h *conversation) draw() []model.Message {
	h.said, h.drawn = map[artel.Role][]string{}, map[artel.Digest]int{}
	var out []model.Message
	for range rapid.IntRange(1, 8).Draw(h.t, "messages") {
		m := model.Message{Role: rapid.SampledFrom([]artel.Role{artel.RoleSystem, artel.RoleUser, artel.RoleAssistant, artel.RoleTool}).Draw(h.t, "role")}
		for range rapid.IntRange(0, 3).Draw(h.t, "parts") {
			p := h.part(m.Role)
			if m.Role == artel.RoleUser {
				h.user = append(h.user, tokenOf(p))
			}
			m.Parts = append(m.Parts, p)
		}
		out = append(out, m)
	}
	return append(out, say(artel.RoleUser, artel.Text{Text: "continue"}))
}

func (h *conversation) part(role artel.Role) artel.Part {
	id := func() artel.CallID {
		return rapid.SampledFrom([]artel.CallID{"a", "b", "toolu_01", "an id of another service, longer than most APIs would take it"}).Draw(h.t, "id")
	}
	kind := rapid.IntRange(0, 3).Draw(h.t, "part")
	if role == artel.RoleTool {
		r := artel.ToolResult{CallID: id(), Content: h.mark(), IsError: rapid.Bool().Draw(h.t, "error")}
		h.said[role] = append(h.said[role], r.Content)
		if kind == 0 {
			r.Parts = artel.Parts{h.picture()}
		}
		return r
	}
	switch {
	case kind == 0:
		return h.picture()
	case kind == 1 && role == artel.RoleAssistant:
		c := artel.ToolCall{ID: id(), Name: "look"}
		mark := h.mark()
		h.calls = append(h.calls, mark)
		c.Arguments = json.RawMessage(`{"q":"` + mark + `"}`)
		if rapid.Bool().Draw(h.t, "broken arguments") {
			c.Arguments = json.RawMessage(`"{ ` + mark + `"`)
		}
		switch rapid.IntRange(0, 2).Draw(h.t, "state of the call") {
		case 1:
			c.Opaque, c.Service = json.RawMessage(`{"foreign":"state"}`), foreign
		case 2:
			if h.d.Native.CallState != nil {
				c.Opaque, c.Service = h.d.Native.CallState, h.service
			}
		}
		return c
	case kind == 2 && role == artel.RoleAssistant:
		if state := h.d.Native.ThoughtState; state != nil && rapid.Bool().Draw(h.t, "own thought") {
			return artel.Reasoning{Text: "a thought", Opaque: state, Service: h.service}
		}
		return artel.Reasoning{Text: "thought elsewhere", Opaque: json.RawMessage(`{"foreign":"state"}`), Service: foreign}
	}
	text := h.mark()
	h.said[role] = append(h.said[role], text)
	return artel.Text{Text: text}
}

// tokenOf returns the string that identifies a text or a picture.
func tokenOf(p artel.Part) string {
	if m, ok := p.(artel.Media); ok {
		return string(m.Ref.Digest)
	}
	return artel.TextOf(artel.Parts{p})
}

// ordered checks the order of the user's parts. A repeated picture may be at its
// other place.
func (h *conversation) ordered(got []model.Message) error {
	var all strings.Builder
	for _, m := range got {
		for _, p := range m.Parts {
			switch p.(type) {
			case artel.Text, artel.Media:
				all.WriteString(tokenOf(p) + "\n")
			}
		}
	}
	tokens := slices.DeleteFunc(slices.Clone(h.user), func(s string) bool { return h.drawn[artel.Digest(s)] > 1 })
	return once(all.String(), tokens, true)
}

// kept compares the request that was read back with the drawn conversation.
func (h *conversation) kept(got []model.Message) error {
	var all, calls strings.Builder
	shown := map[artel.Digest]int{}
	var open []artel.CallID
	for _, m := range got {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				all.WriteString(p.Text)
			case artel.Reasoning:
				if strings.Contains(p.Text, "elsewhere") || strings.Contains(string(p.Opaque), "foreign") {
					return fmt.Errorf("the thought of another service was sent: %+v", p)
				}
			case artel.ToolCall:
				if strings.Contains(string(p.Opaque), "foreign") {
					return fmt.Errorf("the state of another service was sent: %+v", p)
				}
				calls.Write(p.Arguments)
				open = append(open, p.ID)
			case artel.ToolResult:
				all.WriteString(p.Content)
				at := slices.Index(open, p.CallID)
				if at < 0 {
					return fmt.Errorf("a result of %q, which is no call", p.CallID)
				}
				open = slices.Delete(open, at, at+1)
			}
			for _, media := range artel.MediaOf(artel.Parts{p}) {
				shown[media.Ref.Digest]++
			}
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("the calls %q have no result", open)
	}
	for d := range h.shown {
		if shown[d] != 1 {
			return fmt.Errorf("a picture is there %d times, want once", shown[d])
		}
	}
	if err := once(calls.String(), h.calls, true); err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	if err := h.ordered(got); err != nil {
		return fmt.Errorf("parts of a user: %w", err)
	}
	for role, texts := range h.said {
		// Results follow their calls, so their order may change.
		if err := once(all.String(), texts, role != artel.RoleTool); err != nil {
			return fmt.Errorf("texts of %s: %w", role, err)
		}
	}
	return nil
}

// once checks that all contains each of texts once, and in order if ordered.
func once(all string, texts []string, ordered bool) error {
	last := -1
	for _, text := range texts {
		at := strings.Index(all, text)
		switch {
		case strings.Count(all, text) != 1:
			return fmt.Errorf("%s is there %d times, want once", text, strings.Count(all, text))
		case ordered && at < last:
			return fmt.Errorf("%s comes too early", text)
		}
		last = at
	}
	return nil
}
