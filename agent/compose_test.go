// SPDX-License-Identifier: Apache-2.0

package agent_test

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

func done(opaque string) model.Delta { return model.ReasoningDone{Opaque: json.RawMessage(opaque)} }

// replied returns the first message that the run wrote, and what was told of
// its text and its reasoning.
func replied(t *testing.T, b *bench) (m artel.Message, text, thought string) {
	t.Helper()
	all, err := b.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		switch p := p.(type) {
		case artel.MessageDelta:
			text, thought = text+p.Text, thought+p.Reasoning
		case artel.MessageCompleted:
			return p.Message, text, thought
		}
	}
	t.Fatal("no message")
	return m, text, thought
}

// What a model says stays in its order, with the state of each block of
// reasoning where the service put it.
func TestPartsKeepTheirOrder(t *testing.T) {
	b := newBench(t, []turn{{
		done(`null`), model.ReasoningDelta("one"), model.ReasoningDelta(" two"), done(`{"signature":"s1"}`),
		done(`{"redacted":"r"}`), done(""), say("I "), say("look."),
		model.ReasoningDelta("three"), done(""), call("c1", "echo", `{"text":"a"}`), say("And more."),
		model.ReasoningDelta("four"), call("c2", "echo", `{"text":"b"}`), tools,
	}, {say("Done."), end}})
	m, text, thought := replied(t, b)
	mine := b.in.Service.ID
	want := artel.Parts{
		artel.Reasoning{Opaque: json.RawMessage(`null`), Service: mine},
		artel.Reasoning{Text: "one two", Opaque: json.RawMessage(`{"signature":"s1"}`), Service: mine},
		artel.Reasoning{Opaque: json.RawMessage(`{"redacted":"r"}`), Service: mine},
		artel.Text{Text: "I look."},
		artel.Reasoning{Text: "three", Service: mine},
		artel.ToolCall{ID: "c1", Name: "echo", Arguments: json.RawMessage(`{"text":"a"}`)},
		artel.Text{Text: "And more."},
		artel.Reasoning{Text: "four", Service: mine},
		artel.ToolCall{ID: "c2", Name: "echo", Arguments: json.RawMessage(`{"text":"b"}`)},
	}
	if diff := cmp.Diff(want, m.Parts); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if text != artel.TextOf(m.Parts) || thought != "one two\n\nthree\n\nfour" {
		t.Errorf("told %q and %q", text, thought)
	}
	sent := b.requests[1].Messages
	for _, s := range sent {
		if s.Role == artel.RoleAssistant {
			if diff := cmp.Diff(want, s.Parts); diff != "" {
				t.Errorf("sent back: -want +got\n%s", diff)
			}
		}
	}
}

// A signature holds for the text, or the call, that was signed alone.
func TestWhatWasChangedHasNoState(t *testing.T) {
	png, err := os.ReadFile("../testdata/files/red.png")
	if err != nil {
		t.Fatal(err)
	}
	encoded := base64.StdEncoding.EncodeToString(png)
	b := newBench(t, []turn{{
		model.ReasoningDelta("It is " + encoded[:50]), model.ReasoningDelta(encoded[50:] + "."), done(`"signed"`),
		model.ReasoningDelta("So red."), done(`"signed too"`), say("Red."), signed("c1", encoded), signed("c2", "red"), tools,
	}, {say("Done."), end}})
	b.desk(t)
	m, _, _ := replied(t, b)
	if len(m.Parts) != 5 {
		t.Fatalf("got %+v", m.Parts)
	}
	first, second := m.Parts[0].(artel.Reasoning), m.Parts[1].(artel.Reasoning)
	if first.Opaque != nil || strings.Contains(first.Text, encoded[:50]) || !strings.Contains(first.Text, "image_1.png") {
		t.Errorf("got %+v", first)
	}
	if string(second.Opaque) != `"signed too"` {
		t.Errorf("got %+v", second)
	}
	changed, kept := m.Parts[3].(artel.ToolCall), m.Parts[4].(artel.ToolCall)
	if changed.Opaque != nil || changed.Service != "" || strings.Contains(string(changed.Arguments), encoded[:50]) {
		t.Errorf("got %+v", changed)
	}
	if string(kept.Opaque) != `"signed"` || kept.Service != b.in.Service.ID {
		t.Errorf("got %+v", kept)
	}
}

// signed is a call of a tool that keeps no content, with the state of its
// service.
func signed(id, text string) model.Delta {
	return model.CallDelta{ID: artel.CallID(id), Name: "echo", Arguments: json.RawMessage(`{"text":"` + text + `"}`), Opaque: json.RawMessage(`"signed"`), Service: "scripted"}
}
