// SPDX-License-Identifier: Apache-2.0

package demo_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider/demo"
)

const script = `A scenario with everything.

-- turn 1 --
Let me see.
@@ is an at sign.
@think hm
@call read_artifact {"id": "notes"}
@call create_artifact
{
  "id": "a",
  "content": "} @cut"
}

And on.
-- turn 2 --
@delay 50ms
The notes say
@cut
-- turn 3 --
@error 429 slow down
-- turn 4 --
Wait
@hang
-- turn 5 --
Too long
@stop length
-- turn 6 --
@error 400
`

func scenario(t *testing.T, s string) *demo.Scenario {
	t.Helper()
	sc, err := demo.ParseScenario([]byte(s))
	if err != nil {
		t.Fatal(err)
	}
	return sc
}

func after(answers int) *model.Request {
	r := &model.Request{Service: model.Service{ID: "demo"}, Messages: []model.Message{user(says("Go"))}}
	for range answers {
		r.Messages = append(r.Messages, model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{says("…")}})
	}
	r.Messages = append(r.Messages, reminder)
	return r
}

func TestScenario(t *testing.T) {
	s := scenario(t, script)
	if s.Turns() != 6 {
		t.Fatalf("%d turns", s.Turns())
	}
	p := demo.New(nil, demo.Options{Scenario: s})

	a := ask(t.Context(), p, after(0))
	if a.err != nil || a.text != "Let me see.\n@ is an at sign.And on." || a.reasoning != "hm" || a.finish.Reason != model.StopTools {
		t.Errorf("turn 1: %+v", a)
	}
	var calls []string
	for _, c := range a.calls {
		calls = append(calls, c.Name+" "+string(c.Arguments))
	}
	want := []string{`read_artifact {"id": "notes"}`, "create_artifact {\n  \"id\": \"a\",\n  \"content\": \"} @cut\"\n}"}
	if diff := cmp.Diff(want, calls); diff != "" {
		t.Error(diff)
	}
	if a.calls[0].ID == a.calls[1].ID || a.calls[0].ID == "" {
		t.Errorf("call ids %q and %q", a.calls[0].ID, a.calls[1].ID)
	}

	long := "First I weigh what was asked, then what is there, and then I write."
	thinking := demo.New(nil, demo.Options{Scenario: scenario(t, "-- turn 1 --\n@think "+long+"\nSo it is.\n")})
	pieces := 0
	for d, err := range thinking.Generate(t.Context(), after(0)) {
		if err != nil {
			t.Fatal(err)
		}
		switch d.(type) {
		case model.ReasoningDelta:
			pieces++
		case model.TextDelta:
			if pieces < 4 {
				t.Fatalf("text after %d pieces of reasoning", pieces)
			}
		}
	}
	if a := ask(t.Context(), thinking, after(0)); a.reasoning != long || a.text != "So it is." {
		t.Errorf("%+v", a)
	}

	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		a := ask(t.Context(), p, after(1))
		call, ok := errors.AsType[*model.CallError](a.err)
		if a.text != "The notes say" || !errors.Is(a.err, artel.Unavailable) || !ok || !call.Transient || time.Since(start) != 50*time.Millisecond {
			t.Errorf("turn 2 after %s: %+v", time.Since(start), a)
		}
	})
	a = ask(t.Context(), p, after(2))
	if call, ok := errors.AsType[*model.CallError](a.err); !errors.Is(a.err, artel.Unavailable) || !ok || call.Status != 429 || !call.Transient || !strings.Contains(call.Message, "slow down") {
		t.Errorf("turn 3: %v", a.err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		start := time.Now()
		if a := ask(ctx, p, after(3)); a.text != "Wait" || !errors.Is(a.err, artel.Canceled) || time.Since(start) != time.Hour {
			t.Errorf("turn 4 after %s: %+v", time.Since(start), a)
		}
	})
	if a := ask(t.Context(), p, after(4)); a.err != nil || a.finish.Reason != model.StopLength {
		t.Errorf("turn 5: %+v", a)
	}
	if a := ask(t.Context(), p, after(5)); !errors.Is(a.err, artel.Invalid) {
		t.Errorf("turn 6: %v", a.err)
	}
	if a := ask(t.Context(), p, after(6)); !errors.Is(a.err, artel.Invalid) || !strings.Contains(a.err.Error(), "6 turns") {
		t.Errorf("turn 7: %v", a.err)
	}
}

func TestParseScenarioNamesSectionAndLine(t *testing.T) {
	for name, c := range map[string]struct{ in, want string }{
		"nothing":             {"", "line 1: there are no turns"},
		"a gap":               {"x\n-- turn 1 --\na\n-- turn 3 --\n", `turn 3: line 4: want a section "turn 2"`},
		"another section":     {"-- setup --\n", `setup: line 1: want a section "turn 1"`},
		"unknown command":     {"c\n\n-- turn 1 --\ntext\n@sing loud\n", "turn 1: line 5: there is no command @sing"},
		"second section":      {"-- turn 1 --\na\nb\n-- turn 2 --\n@delay soon\n", "turn 2: line 5: @delay \"soon\""},
		"negative delay":      {"-- turn 1 --\n@delay -1s\n", "line 2: @delay"},
		"status":              {"-- turn 1 --\n@error 200 fine\n", "line 2: @error \"200\": want a status from 400 to 599"},
		"no name":             {"-- turn 1 --\n@call {}\n", "line 2: @call: want the name"},
		"no object":           {"-- turn 1 --\n@call x\n", "line 2: @call x: want a JSON object"},
		"a list":              {"-- turn 1 --\n@call x [1]\n", "line 2: @call x: want a JSON object, not [1]"},
		"broken object":       {"-- turn 1 --\n@call x {\"a\"\n\n}\n", "line 2: @call x: want a JSON object: "},
		"after the object":    {"-- turn 1 --\n@call x {} y\n", "line 2: @call x: nothing comes after the object"},
		"line after a call":   {"-- turn 1 --\n@call x {\n\n}\n@x\n", "line 5: there is no command @x"},
		"stop reason":         {"-- turn 1 --\n@stop tired\n", "line 2: @stop \"tired\""},
		"argument":            {"-- turn 1 --\n@cut off\n", "line 2: @cut takes no argument"},
		"text after the end":  {"-- turn 1 --\n@cut\n\nmore\n", "line 4: nothing comes after @cut"},
		"command after a cut": {"-- turn 1 --\n@hang\n@cut\n", "line 3: nothing comes after @hang"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := demo.ParseScenario([]byte(c.in))
			if !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestParseScenarioTakesWindowsLines(t *testing.T) {
	s := scenario(t, "-- turn 1 --\r\nhello\r\n@call x {\"a\": 1}\r\n@cut\r\n")
	a := ask(t.Context(), demo.New(nil, demo.Options{Scenario: s}), after(0))
	if len(a.calls) != 1 || !errors.Is(a.err, artel.Unavailable) {
		t.Errorf("%+v", a)
	}
}

func FuzzParseScenario(f *testing.F) {
	f.Add([]byte(script))
	f.Add([]byte("-- --"))
	f.Add([]byte("-- turn 1 --\n@call call {\"call\": \"@call\"}"))
	f.Add([]byte("-- turn 1 --\n@call  x\n\n{}\n@@\n@stop end"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := demo.ParseScenario(data)
		if err != nil {
			if !errors.Is(err, artel.Invalid) || s != nil {
				t.Errorf("%v of kind %s", err, artel.KindOf(err))
			}
			return
		}
		if s.Turns() == 0 {
			t.Error("a scenario without turns")
		}
	})
}

const dialogue = `Two messages, and what is for the player.
-- upload a.txt --
hello
-- upstream --
{}
-- message 1 --
First.
-- turn 1 --
One.
-- message 2 --
Second.
-- turn 1 --
Two.
-- turn 2 --
Three.
-- outcome --
@dance
`

func TestScenarioOfSeveralMessages(t *testing.T) {
	s := scenario(t, dialogue)
	if s.Turns() != 3 {
		t.Errorf("%d turns", s.Turns())
	}
	p := demo.New(nil, demo.Options{Scenario: s})
	messages := []model.Message{user(says("First."))}
	for _, want := range []string{"One.", "", "Two.", "Three.", ""} {
		a := ask(t.Context(), p, &model.Request{Messages: messages})
		if a.text != want || (want == "") != errors.Is(a.err, artel.Invalid) {
			t.Errorf("got %q, %v, want %q", a.text, a.err, want)
		}
		if want == "" {
			messages = append(messages, user(says("Second.")))
			continue
		}
		messages = append(messages, model.Message{Role: artel.RoleAssistant, Parts: artel.Parts{says(a.text)}})
	}
	for src, want := range map[string]string{
		"-- turn 1 --\na\n-- message 1 --\nb\n":                        "line 3: the first message comes before the first turn",
		"-- message 2 --\n-- turn 1 --\na\n":                           `line 1: want a section "message 1"`,
		"-- message 1 --\n-- turn 1 --\n-- message 3 --\n":             `line 3: want a section "message 2"`,
		"-- message 1 --\nb\n":                                         "there are no turns",
		"-- message 1 --\n-- turn 1 --\n-- message 2 --\n-- turn 2 --": `line 4: want a section "turn 1"`,
		"-- extra --\n-- turn 1 --\n":                                  `line 1: want a section "turn 1"`,
	} {
		if _, err := demo.ParseScenario([]byte(src)); !errors.Is(err, artel.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", src, err, want)
		}
	}
}

func TestCarriedMediaAreNoMessage(t *testing.T) {
	s := scenario(t, "-- turn 1 --\nOne.\n-- turn 2 --\nTwo.\n")
	p := demo.New(nil, demo.Options{Scenario: s})
	picture := artel.Media{Ref: artel.BlobRef(artel.NewDigest([32]byte{1})), MediaType: "image/png", Kind: artel.KindImage}
	label := "artifact photo.jpg v1 (photo.jpg), from tool call demo_1"
	for name, carrier := range map[string]model.Message{
		"in parts":       user(says(label), picture),
		"shown before":   user(says(label + ": the same as artifact photo.jpg v1 (photo.jpg), already shown")),
		"with reminder":  user(says(label), picture, reminder.Parts[0]),
		"from assistant": user(says("file (a.png), from the assistant"), picture),
		"joined":         user(says(label + ": the same as file (a), already shown\n\n<system-reminder>\nx\n</system-reminder>")),
	} {
		a := ask(t.Context(), p, &model.Request{Messages: []model.Message{
			user(says("Go")), {Role: artel.RoleAssistant, Parts: artel.Parts{says("One.")}}, carrier,
		}})
		if a.text != "Two." {
			t.Errorf("%s: got %q, %v", name, a.text, a.err)
		}
	}
}
