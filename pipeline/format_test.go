// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/pipeline"
)

// on enables processors, each with a configuration.
func on(config string, ids ...string) []pipeline.Setting {
	yes := true
	var out []pipeline.Setting
	for _, id := range ids {
		out = append(out, pipeline.Setting{ID: id, Enabled: &yes, Config: json.RawMessage(config)})
	}
	return out
}

func off(ids ...string) []pipeline.Setting {
	no := false
	var out []pipeline.Setting
	for _, id := range ids {
		out = append(out, pipeline.Setting{ID: id, Enabled: &no})
	}
	return out
}

// shown writes messages as "role:text", with the separator between texts.
func shown(r pipeline.Result) []string {
	var out []string
	for _, m := range r.Messages {
		var b strings.Builder
		fmt.Fprintf(&b, "%s:", m.Role)
		for i, p := range m.Parts {
			if i > 0 {
				b.WriteByte('|')
			}
			switch p := p.(type) {
			case artel.Text:
				b.WriteString(p.Text)
			case artel.ToolResult:
				b.WriteString("=" + p.Content)
			default:
				fmt.Fprintf(&b, "%T", p)
			}
		}
		out = append(out, b.String())
	}
	return out
}

var (
	state = artel.Reasoning{Text: "hm", Opaque: json.RawMessage(`"s"`), Service: "svc"}
	shot  = artel.Media{Ref: artel.Ref{Artifact: "a.png", Version: 1}, MediaType: "image/png", Kind: artel.KindImage, Size: 9, Width: 3, Height: 3}
)

func TestFormatters(t *testing.T) {
	thinks := func(id, text string) artel.Message {
		return artel.Message{ID: artel.MessageID(id), Role: artel.RoleAssistant, Parts: artel.Parts{state, artel.Text{Text: text}}}
	}
	for _, c := range []struct {
		name    string
		set     []pipeline.Setting
		history []artel.Message
		want    []string
	}{
		{"the leading system messages", nil, []artel.Message{say("1", "system", "a"), say("2", "system", "b"), say("3", "user", "c"), say("4", "system", "d")}, []string{"system:a\n\nb", "user:c", "system:d"}},
		{"a single one stays", nil, []artel.Message{say("1", "user", "a"), say("2", "system", "b"), say("3", "user", "c")}, []string{"user:a", "system:b", "user:c"}},
		{"further down neighbors alone are joined", nil, []artel.Message{say("1", "user", "a"), say("2", "system", "b"), say("3", "system", "c")}, []string{"user:a", "system:b\n\nc"}},
		{"only the leading ones", off(pipeline.MergeRoles), []artel.Message{say("1", "system", "a"), say("2", "system", "b"), say("3", "user", "c"), say("4", "user", "d"), say("5", "system", "e"), say("6", "system", "f")}, []string{"system:a\n\nb", "user:c", "user:d", "system:e", "system:f"}},
		{"roles", nil, []artel.Message{say("1", "user", "a"), say("2", "user", "b"), say("3", "assistant", "c"), say("4", "assistant", "d"), say("5", "user", "e")}, []string{"user:a\n\nb", "assistant:c\n\nd", "user:e"}},
		{"another separator", on(`{"separator":" / "}`, pipeline.MergeRoles), []artel.Message{say("1", "user", "a"), say("2", "user", "b"), say("3", "user", "c")}, []string{"user:a / b / c"}},
		{"no separator", on(`{"separator":""}`, pipeline.MergeRoles), []artel.Message{say("1", "user", "a"), say("2", "user", "b")}, []string{"user:ab"}},
		{"results of tools are not joined", nil, []artel.Message{say("0", "user", "a"), calls("1", "x", "y"), answers("2", "x", "r"), answers("3", "y", "s")}, []string{"user:a", "assistant:artel.ToolCall|artel.ToolCall", "tool:=r", "tool:=s"}},
		{"calls survive", nil, []artel.Message{say("0", "user", "a"), say("1", "assistant", "b"), calls("2", "x"), answers("3", "x", "r")}, []string{"user:a", "assistant:b|artel.ToolCall", "tool:=r"}},
		{"what was thought is not touched", on(`{}`, pipeline.MessageFormatters), []artel.Message{say("1", "user", "a"), thinks("2", "b"), thinks("3", "c"), say("4", "assistant", "d"), say("5", "user", "e")}, []string{"user:a", "assistant:artel.Reasoning|b", "assistant:artel.Reasoning|c", "assistant:d", "user:e"}},
		{"convert", on(`{}`, pipeline.ConvertSystem), []artel.Message{say("1", "system", "a"), say("2", "user", "b"), say("3", "system", "c"), say("4", "assistant", "d")}, []string{"user:a", "user:b", "user:c", "assistant:d"}},
		{"alternate", slices.Concat(off(pipeline.MergeRoles), on(`{}`, pipeline.EnsureAlternation)), []artel.Message{say("1", "user", "a"), say("2", "user", "b"), say("3", "assistant", "c"), say("4", "assistant", "d"), say("5", "system", "e"), say("6", "assistant", "f")}, []string{"user:a", "assistant:OK.", "user:b", "assistant:c", "user:Continue.", "assistant:d", "system:e", "assistant:f"}},
		{"alternate after converting", on(`{"fillers":{"assistant":"mhm"}}`, pipeline.ConvertSystem, pipeline.EnsureAlternation), []artel.Message{say("1", "system", "a"), say("2", "user", "b")}, []string{"user:a", "assistant:mhm", "user:b"}},
		{"alternate beside calls", slices.Concat(off(pipeline.MergeRoles), on(`{}`, pipeline.EnsureAlternation)), []artel.Message{say("0", "user", "a"), say("1", "assistant", "b"), calls("2", "x"), answers("3", "x", "r"), say("4", "user", "c"), say("5", "user", "d")}, []string{"user:a", "assistant:b", "user:Continue.", "assistant:artel.ToolCall", "tool:=r", "user:c", "assistant:OK.", "user:d"}},
		{"first from the user", on(`{}`, pipeline.FirstUser), []artel.Message{say("1", "system", "a"), say("2", "assistant", "b"), say("3", "user", "c")}, []string{"system:a", "user:Continue.", "assistant:b", "user:c"}},
		{"it is from the user", on(`{}`, pipeline.FirstUser), []artel.Message{say("1", "system", "a"), say("2", "user", "b")}, []string{"system:a", "user:b"}},
		{"no filler beside thoughts", on(`{}`, pipeline.FirstUser), []artel.Message{thinks("1", "a"), say("2", "user", "b")}, []string{"assistant:artel.Reasoning|a", "user:b"}},
		{"nothing but system messages", on(`{}`, pipeline.FirstUser, pipeline.EnsureAlternation), []artel.Message{say("1", "system", "a")}, []string{"system:a"}},
		{"the whole group off", off(pipeline.MessageFormatters), []artel.Message{say("1", "user", "a"), say("2", "user", "b")}, []string{"user:a", "user:b"}},
		{"all five", on(`{"separator":"+","fillers":{"user":"go on"}}`, pipeline.MessageFormatters), []artel.Message{say("1", "system", "a"), say("2", "system", "b"), say("3", "assistant", "c"), say("4", "user", "d")}, []string{"user:a+b", "assistant:c", "user:d"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(service(0), c.history...)
			in.Settings.Agent = c.set
			if diff := cmp.Diff(c.want, shown(build(t, in))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Media are not lost where texts are joined, and texts that have become empty
// bring no separator.
func TestMergedParts(t *testing.T) {
	empties := pipeline.Processor{ID: "empties", Priority: pipeline.PriorityInjection, Process: emptyText("2")}
	in := input(service(0, artel.CanVision), say("1", "user", "a"), say("2", "user", "b"), say("3", "user", "c"),
		artel.Message{ID: "4", Role: artel.RoleUser, Parts: artel.Parts{shot, artel.Text{Text: "d"}}},
		say("5", "assistant", "e"))
	in.Until = pipeline.MergeRoles
	in.Settings.Agent = off(pipeline.TranscriptionProcessor)
	r, err := builtIn(t, empties).Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"user:a\n\nc|artel.Media|d", "assistant:e"}, shown(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	m := r.Messages[0]
	if diff := cmp.Diff([]string{"1", "2", "3", "4"}, m.MergedFrom); diff != "" || m.ID != "1" || m.Origin != pipeline.OriginMerged {
		t.Errorf("merged: %+v %s", m, diff)
	}
	if r.Record.Tokens.History != r.Record.Tokens.Total-len("\n\n") || r.Record.Tokens.Fixed != len("\n\n") {
		t.Errorf("the separator is not history: %+v", r.Record.Tokens)
	}
	last := r.Record.Processors[len(r.Record.Processors)-1]
	if diff := cmp.Diff([]string{"2", "3", "4"}, last.Removed); diff != "" || !slices.Equal(last.Changed, []string{"1"}) {
		t.Errorf("record: %+v", last)
	}
}

func TestFillersInChinese(t *testing.T) {
	in := input(service(0), say("1", "assistant", "a"), say("2", "assistant", "b"))
	in.Locale = phrase.Locale("zh")
	in.Settings.Agent = slices.Concat(off(pipeline.MergeRoles), on(`{}`, pipeline.EnsureAlternation, pipeline.FirstUser))
	r := build(t, in)
	if diff := cmp.Diff([]string{"user:继续", "assistant:a", "user:继续", "assistant:b"}, shown(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if r.Messages[0].Origin != pipeline.OriginFiller || r.Record.Tokens.Fixed != 4 {
		t.Errorf("%+v, %+v", r.Messages[0], r.Record.Tokens)
	}
}

func TestFormatterSettings(t *testing.T) {
	for config, says := range map[string]string{
		`{"fillers":"x"}`:            "want an object like",
		`{"fillers":{"tool":"x"}}`:   "want an object like",
		`{"fillers":{"user":"  "}}`:  "an empty filler",
		`{"separator":3}`:            "want a string",
		`{"separators":"x"}`:         "unknown field",
		`{"fillers":{"user":"yes"}}`: "",
		`{"fillers":{"user":null}}`:  "",
		`{"separator":"\n---\n"}`:    "",
	} {
		_, err := builtIn(t).Processors().Check(on(config, pipeline.MessageFormatters))
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says) || !errors.Is(err, artel.Invalid)) {
			t.Errorf("%s: %v", config, err)
		}
	}
}

// Merging loses no part, writes into no message and changes no order.
func TestMergingKeepsAllParts(t *testing.T) {
	part := rapid.Custom(func(t *rapid.T) artel.Part {
		return rapid.SampledFrom([]artel.Part{artel.Text{Text: "a"}, artel.Text{Text: "bc"}, shot, state, artel.Reasoning{Text: "r", Service: "svc"}}).Draw(t, "part")
	})
	rapid.Check(t, func(rt *rapid.T) {
		var history []artel.Message
		for i := range rapid.IntRange(1, 8).Draw(rt, "messages") {
			history = append(history, artel.Message{
				ID: artel.MessageID(fmt.Sprint(i)), Role: rapid.SampledFrom([]artel.Role{"system", "user", "assistant"}).Draw(rt, "role"),
				Parts: append(artel.Parts{artel.Text{Text: "."}}, rapid.SliceOfN(part, 0, 3).Draw(rt, "parts")...),
			})
		}
		before, _ := json.Marshal(history)
		in := input(service(0), history...)
		in.Until = pipeline.FirstUser
		in.Settings.Agent = slices.Concat(off(pipeline.TranscriptionProcessor), on(`{"separator":""}`, pipeline.MessageFormatters))
		r, err := builtIn(t).Build(t.Context(), in)
		if err != nil {
			rt.Fatal(err)
		}
		if after, _ := json.Marshal(history); string(before) != string(after) {
			rt.Fatal("the history was written into")
		}
		text := func(ps artel.Parts) string { return strings.ReplaceAll(artel.TextOf(ps), "\n\n", "") }
		var want, got string
		var others, sent []artel.Part
		collect := func(ps artel.Parts, s *string, to *[]artel.Part) {
			*s += text(ps)
			for _, p := range ps {
				if _, ok := p.(artel.Text); !ok {
					*to = append(*to, p)
				}
			}
		}
		for _, m := range history {
			collect(m.Parts, &want, &others)
		}
		var last pipeline.Message
		for i, m := range r.Messages {
			if m.Origin != pipeline.OriginFiller {
				collect(m.Parts, &got, &sent)
			}
			if i > 0 && m.Role == last.Role && !opaque(m) && !opaque(last) {
				rt.Fatalf("two of one role in turn: %v", shown(r))
			}
			last = m
		}
		if want != got || !cmp.Equal(others, sent) {
			rt.Fatalf("want %q %v\ngot %q %v", want, others, got, sent)
		}
	})
}

func opaque(m pipeline.Message) bool {
	return slices.ContainsFunc(m.Parts, func(p artel.Part) bool { r, ok := p.(artel.Reasoning); return ok && r.Opaque != nil })
}

// emptyText is what a processor does that leaves nothing of a message.
func emptyText(id string) func(context.Context, *pipeline.Draft) error {
	return func(_ context.Context, d *pipeline.Draft) error {
		for i, m := range d.Messages {
			if m.ID == id {
				d.Messages[i].Parts = artel.Parts{artel.Text{}}
			}
		}
		return nil
	}
}

// Media that were settled before messages were joined are settled for good.
func TestMergedMediaAreSettledOnce(t *testing.T) {
	w := newWorld(t)
	a, b := w.upload("a.png", picture(t)), w.upload("b.png", picture(t))
	in := input(service(0, artel.CanVision), artel.Message{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{a.MediaPart()}},
		artel.Message{ID: "2", Role: artel.RoleUser, Parts: artel.Parts{b.MediaPart()}}, say("3", "assistant", "Two."))
	in.Sources = w.files
	r := build(t, in)
	if diff := cmp.Diff([]string{"user:attachment a.png v1 (a.png)|artel.Media|attachment b.png v1 (b.png)|artel.Media", "assistant:Two."}, shown(r)[:2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := r.Record.Processors[len(r.Record.Processors)-1]; len(last.Logs) > 0 || len(r.Record.Decisions) != 2 {
		t.Errorf("%+v, %+v", last, r.Record.Decisions)
	}
}
