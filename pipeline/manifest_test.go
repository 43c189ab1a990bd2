// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
)

// pantry has what a build left: the history as a store gives it back, and the
// segments.
func pantry(history []artel.Message, segments []pipeline.Segment) pipeline.Contents {
	return pipeline.Contents{
		Stored: func(id artel.MessageID) (artel.Message, error) {
			for _, m := range history {
				if m.ID != id {
					continue
				}
				b, err := json.Marshal(m)
				if err == nil {
					err = json.Unmarshal(b, &m)
				}
				return m, err
			}
			return artel.Message{}, artel.NotFound
		},
		Segment: func(d artel.Digest) ([]byte, error) {
			for _, s := range segments {
				if s.Digest == d {
					return s.Body, nil
				}
			}
			return nil, artel.NotFound
		},
	}
}

func TestRebuildIsWhatWasSent(t *testing.T) {
	w := newWorld(t)
	files := []artel.Artifact{w.upload("a.png", picture(t)), w.upload("c.txt", []byte("plain <text> & more"))}
	registry := builtIn(t)
	rapid.Check(t, func(rt *rapid.T) {
		in := input(service(rapid.SampledFrom([]int{0, 600, 8000}).Draw(rt, "window"), artel.CanVision), history(rt, files)...)
		in.Agent.Prompt, in.Now, in.Sources = "You lead <b>.", now, w.files
		if rapid.Bool().Draw(rt, "tools") {
			in.Tools = []model.ToolSpec{{Name: "f", Description: "does <f>", Schema: json.RawMessage(`{"type":"object"}`)}}
		}
		r, err := registry.Build(t.Context(), in)
		if errors.Is(err, artel.TooLarge) {
			return
		}
		if err != nil {
			rt.Fatal(err)
		}
		again, err := r.Manifest.Rebuild(in.Service, pantry(in.History, r.Segments), r.Record.RequestHash)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(r.Request, again); diff != "" {
			rt.Fatalf("(-sent +rebuilt):\n%s", diff)
		}
		for i, x := range r.Manifest.Messages {
			m := in.History
			for _, s := range m {
				if string(s.ID) == x.ID && !x.Stored && x.Origin == pipeline.OriginHistory && i < len(r.Manifest.Messages)-1 && len(artel.MediaOf(s.Parts)) == 0 && s.Role != artel.RoleAssistant && s.Role != artel.RoleTool {
					rt.Fatalf("%s was copied, and is sent as it is stored", x.ID)
				}
			}
		}
		p, err := r.Manifest.Prefix(r.Manifest, nil)
		if err != nil || p.Bytes != p.Of || p.Of != r.Manifest.Bytes() || p.Ratio() != 1 {
			rt.Fatalf("a request and itself: %+v %v", p, err)
		}
	})
}

func TestRebuildSaysWhatIsMissing(t *testing.T) {
	in := input(service(0), say("1", "user", "a"))
	in.Agent.Prompt = "You lead."
	r := build(t, in)
	if _, err := r.Manifest.Rebuild(in.Service, pantry(in.History, nil), r.Record.RequestHash); !errors.Is(err, artel.NotFound) {
		t.Errorf("without its segment: %v", err)
	}
	if _, err := r.Manifest.Rebuild(in.Service, pantry(nil, r.Segments), r.Record.RequestHash); !errors.Is(err, artel.NotFound) {
		t.Errorf("without its message: %v", err)
	}
	other := []artel.Message{say("1", "user", "b")}
	if _, err := r.Manifest.Rebuild(in.Service, pantry(other, r.Segments), r.Record.RequestHash); !errors.Is(err, artel.Conflict) {
		t.Errorf("with another message: %v", err)
	}
}

func TestPrefix(t *testing.T) {
	lines := func(a, b pipeline.Result, ha, hb []artel.Message) func(bool, pipeline.ManifestMessage) ([]byte, error) {
		return func(earlier bool, x pipeline.ManifestMessage) ([]byte, error) {
			p := pantry(hb, b.Segments)
			if earlier {
				p = pantry(ha, a.Segments)
			}
			_, l, err := x.Message("svc", p)
			return l, err
		}
	}
	first := []artel.Message{say("1", "user", "hello")}
	next := append(first[:1:1], say("2", "assistant", "hi"), say("3", "user", "more"))
	edited := append([]artel.Message{say("0", "user", "help")}, next[1:]...)
	built := func(prompt string, h []artel.Message) pipeline.Result {
		in := input(service(0), h...)
		in.Agent.Prompt, in.Now = prompt, now
		return build(t, in)
	}
	a, b := built("You lead.", first), built("You lead.", next)
	p, err := b.Manifest.Prefix(a.Manifest, lines(a, b, first, next))
	if err != nil || p.Messages != 1 || p.Of-p.Bytes < 100 || p.Before-p.Bytes < 50 || p.Before-p.Bytes > 300 {
		t.Errorf("all but the reminder is there again: %+v, %v", p, err)
	}
	c := built("You lead.", edited)
	q, err := c.Manifest.Prefix(b.Manifest, lines(b, c, next, edited))
	head, tail := b.Manifest.Bytes()-b.Manifest.Messages[3].Bytes-b.Manifest.Messages[2].Bytes-b.Manifest.Messages[1].Bytes, len(`{"role":"user"}`+"\n"+`{"type":"text","text":"hel`)
	if err != nil || q.Bytes != head+tail || q.Messages != 1 {
		t.Errorf("up to the letter that differs: %+v, want %d, %v", q, head+tail, err)
	}
	d := built("You follow.", next)
	if r, err := d.Manifest.Prefix(b.Manifest, lines(b, d, next, next)); err != nil || r.Messages != 0 || r.Ratio() > 0.5 {
		t.Errorf("another prompt: %+v, %v", r, err)
	}
	d.Manifest.Head.Model = "other"
	if r, _ := d.Manifest.Prefix(b.Manifest, nil); r.Bytes != 0 {
		t.Errorf("another model: %+v", r)
	}
}

// The canonical form tells apart what is not the same.
func TestLines(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range []model.Message{
		{Role: "user"},
		{Role: "assistant"},
		{Role: "user", Parts: artel.Parts{artel.Text{Text: "ab"}}},
		{Role: "user", Parts: artel.Parts{artel.Text{Text: "a"}, artel.Text{Text: "b"}}},
		{Role: "user", Parts: artel.Parts{artel.ToolCall{ID: "1", Name: "f", Arguments: json.RawMessage(`{"<":1}`)}}},
	} {
		l, err := pipeline.Lines(m)
		if err != nil || seen[string(l)] || strings.Contains(string(l), `\u003c`) {
			t.Errorf("%+v: %s, %v", m, l, err)
		}
		seen[string(l)] = true
	}
}

// Texts are written as encoding/json writes them.
func TestLinesAreJSON(t *testing.T) {
	check := func(fail func(string, ...any), text string) {
		l, err := pipeline.Lines(model.Message{Role: "user", Parts: artel.Parts{artel.Text{Text: text}}})
		var want bytes.Buffer
		e := json.NewEncoder(&want)
		e.SetEscapeHTML(false)
		_ = e.Encode(map[string]string{"role": "user"})
		_ = e.Encode(struct {
			Type string `json:"type"`
			Text string `json:"text"`
		}{"text", text})
		if err != nil || !bytes.Equal(l, want.Bytes()) {
			fail("%q: got %s, want %s, %v", text, l, want.Bytes(), err)
		}
	}
	for _, text := range []string{"", "a\"b\\c\nd\re\tf", "\x00\x08\x0c\x1f\x7f", "\u2028\u2029", "\xff", "<>&", "中🙂"} {
		check(t.Errorf, text)
	}
	rapid.Check(t, func(rt *rapid.T) { check(rt.Fatalf, rapid.String().Draw(rt, "text")) })
}
