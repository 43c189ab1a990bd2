// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline"
)

type preset = pipeline.Preset

func list(id string) preset { return preset{ID: id, Text: id} }

func deep(id, depth string, order ...int) preset {
	p := preset{ID: id, Text: id, Place: pipeline.Place{Depth: depth}}
	if len(order) > 0 {
		p.Place.Order = &order[0]
	}
	return p
}

func anchored(id, anchor string, side pipeline.Side, order ...int) preset {
	p := preset{ID: id, Text: id, Place: pipeline.Place{Anchor: anchor, Side: side}}
	if len(order) > 0 {
		p.Place.Order = &order[0]
	}
	return p
}

func slot(id string, s pipeline.Slot, text string) preset {
	return preset{ID: id, Slot: s, Text: text}
}

func disabled(p preset) preset {
	no := false
	p.Enabled = &no
	return p
}

func ofKind(p preset, k pipeline.PlaceKind) preset { p.Place.Kind = k; return p }

// four is a history of four messages.
func four() []artel.Message {
	return []artel.Message{say("1", "user", "1"), say("2", "assistant", "2"), say("3", "user", "3"), say("4", "assistant", "4")}
}

func TestPlacing(t *testing.T) {
	history := slot("h", pipeline.SlotHistory, "")
	for _, c := range []struct {
		name    string
		presets []preset
		want    string // ids
		warns   string // ids of presets
	}{
		{"no slot: all before", []preset{list("a"), list("b")}, "a b 1 2 3 4", ""},
		{"around the slot", []preset{list("a"), history, list("b")}, "a 1 2 3 4 b", ""},
		{"a second slot", []preset{history, list("a"), slot("h2", pipeline.SlotHistory, ""), list("b")}, "1 2 3 4 a b", "h2"},
		{"a disabled slot", []preset{list("a"), disabled(history), list("b")}, "a b 1 2 3 4", ""},
		{"a disabled preset", []preset{disabled(list("a")), list("b")}, "b 1 2 3 4", ""},
		{"blank ones", []preset{slot("a", "", " \n"), list("b")}, "b 1 2 3 4", ""},
		{"depths", []preset{deep("a", "0"), deep("b", "1"), deep("c", "4"), deep("d", "2")}, "c 1 2 d 3 b 4 a", ""},
		{"one at several depths", []preset{deep("a", "0,2"), deep("b", "1~2")}, "1 b 2 a 3 b 4 a", ""},
		{"beyond the history", []preset{deep("a", "9"), deep("b", "12"), deep("c", "4")}, "b a c 1 2 3 4", ""},
		{"deeper above, also of a lower order", []preset{deep("a", "9", 1), deep("b", "12", 9)}, "b a 1 2 3 4", ""},
		{"clamped points of one count once", []preset{deep("a", "9,12,3"), deep("b", "10")}, "a b 1 a 2 3 4", ""},
		{"a series that is clamped", []preset{deep("a", "10~5")}, "a 1 2 3 4", ""},
		{"positions are those of the history", []preset{deep("a", "9"), deep("b", "9"), deep("c", "4"), deep("d", "3")}, "a b c 1 d 2 3 4", ""},
		{"ties by order, then position", []preset{deep("a", "1"), deep("b", "1", 100), deep("c", "1", 5), deep("d", "1", 200)}, "1 2 3 c a b d 4", ""},
		{"no valid depth", []preset{deep("a", "x"), deep("b", "-1"), ofKind(list("c"), pipeline.AtDepth)}, "1 2 3 4", "a b c"},
		{"beside the history", []preset{anchored("a", "chat_history", "before"), anchored("b", "chat_history", "after"), anchored("c", "chat_history", "")}, "a 1 2 3 4 b c", ""},
		{"between list and history", []preset{list("x"), history, list("y"), anchored("a", "chat_history", "before"), anchored("b", "chat_history", "after"), deep("c", "0"), deep("d", "9")}, "x a d 1 2 3 4 c b y", ""},
		{"orders at an anchor", []preset{anchored("a", "chat_history", "before"), anchored("b", "chat_history", "before", 3), anchored("c", "chat_history", "before")}, "b a c 1 2 3 4", ""},
		{"beside the profile", []preset{slot("u", pipeline.SlotUser, "me"), anchored("a", "user_profile", "before"), anchored("b", "user_profile", "after")}, "a u b 1 2 3 4", ""},
		{"a profile that says nothing", []preset{slot("u", pipeline.SlotUser, ""), anchored("a", "user_profile", "before"), anchored("b", "user_profile", "")}, "a b 1 2 3 4", ""},
		{"the profile after the history", []preset{history, slot("u", pipeline.SlotUser, "me"), anchored("a", "user_profile", "before")}, "1 2 3 4 a u", ""},
		{"a second profile", []preset{slot("u", pipeline.SlotUser, "me"), anchored("a", "user_profile", ""), slot("v", pipeline.SlotUser, "me")}, "u a 1 2 3 4", "v"},
		{"no such anchor", []preset{list("x"), anchored("a", "lore", "after"), anchored("b", "user_profile", "")}, "x a b 1 2 3 4", "a b"},
		{"a disabled anchor", []preset{disabled(slot("u", pipeline.SlotUser, "me")), anchored("a", "user_profile", "after", 7), anchored("b", "chat_history", "before")}, "a b 1 2 3 4", "a"},
		{"a slot of another name", []preset{slot("l", "lore", "old tales"), list("x"), anchored("a", "lore", "after")}, "l a x 1 2 3 4", ""},
		{"the kind goes before depth and anchor", []preset{
			ofKind(deep("a", "1"), pipeline.InList), ofKind(preset{ID: "b", Text: "b", Place: pipeline.Place{Depth: "1", Anchor: "chat_history"}}, pipeline.AtAnchor),
			{ID: "c", Text: "c", Place: pipeline.Place{Depth: "1", Anchor: "chat_history"}},
		}, "a 1 2 3 c 4 b", ""},
		{"no id", []preset{{Text: "x"}, {Text: "y"}}, "preset-1 preset-2 1 2 3 4", ""},
		{"an id of the history", []preset{list("3"), deep("1", "0")}, "3 1 2 3 4 1", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(service(0), four()...)
			in.Agent.Presets, in.Until = c.presets, pipeline.InjectionAssembler
			r := build(t, in)
			if got := strings.Join(ids(r), " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			var warns []string
			for _, l := range r.Record.Processors[len(r.Record.Processors)-1].Logs {
				warns = append(warns, l.Details["preset"].(string))
			}
			if got := strings.Join(warns, " "); got != c.warns {
				t.Errorf("warned of %q, want %q", got, c.warns)
			}
		})
	}
}

func TestOriginsOfPresets(t *testing.T) {
	in := input(service(0), four()...)
	in.Agent.Prompt = "You lead."
	in.Agent.Presets = []preset{
		{ID: "l", Role: artel.RoleAssistant, Text: "l"},
		slot("h", pipeline.SlotHistory, "not sent"), slot("u", pipeline.SlotUser, ""),
		deep("d", "1"), anchored("a", "chat_history", ""),
	}
	in.User.Persona = "A sailor."
	in.Until = pipeline.InjectionAssembler
	r := build(t, in)
	var got []string
	for _, m := range r.Messages {
		got = append(got, fmt.Sprintf("%s %s %s %s", m.ID, m.Role, m.Origin, m.Stability))
	}
	want := []string{
		"artel:role-prompt system preset static", "l assistant preset static", "1 user history session", "2 assistant history session",
		"3 user history session", "d system depth turn", "4 assistant history session", "a system anchor static", "u system preset static",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if last := r.Messages[len(r.Messages)-1]; artel.TextOf(last.Parts) != "A sailor." {
		t.Errorf("the profile: %v", last.Parts)
	}
}

// What stands among the history stays there, with the formatters as they are by
// default, and is no history that the limiter could drop.
func TestFormattersLeaveDepthsAlone(t *testing.T) {
	in := input(service(0), four()...)
	in.Agent.Prompt = "You lead."
	in.Agent.Presets = []preset{deep("note", "1"), {ID: "more", Text: "more"}}
	in.Agent.Context = pipeline.Limits{MaxTokens: 21, ReplyReserve: number(0)}
	if diff := cmp.Diff([]string{"system:You lead.\n\nmore", "user:3", "system:note", "assistant:4"}, shown(build(t, in))); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A point inside a tool exchange goes before it.
func TestDepthsKeepExchangesWhole(t *testing.T) {
	in := input(service(0), say("1", "user", "a"), calls("2", "x", "y"), answers("3", "x", "r"), answers("4", "y", "s"), say("5", "assistant", "b"))
	in.Agent.Presets = []preset{deep("a", "2"), deep("b", "3"), deep("c", "1"), deep("d", "4")}
	in.Until = pipeline.InjectionAssembler
	if got := strings.Join(ids(build(t, in)), " "); got != "1 d b a 2 3 4 c 5" {
		t.Errorf("got %s", got)
	}
}

// An anchor of a processor's making shows what the processor says.
func TestAnchors(t *testing.T) {
	tales := pipeline.Processor{ID: "tales", Priority: pipeline.PriorityTranscription, Process: func(_ context.Context, d *pipeline.Draft) error {
		pipeline.Set(d, pipeline.Anchors{"lore": "Here be dragons."})
		return nil
	}}
	in := input(service(0), say("1", "user", "go"))
	in.Agent.Presets = []preset{slot("l", "lore", ""), anchored("a", "lore", "before")}
	r, err := builtIn(t, tales).Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"system:a\n\nHere be dragons.", "user:go"}, shown(r)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestConditions(t *testing.T) {
	s := service(0)
	s.ID, s.Name, s.Model = "box", "My Box", "acme/Sonnet-5"
	for _, c := range []struct {
		name string
		when pipeline.Condition
		want bool
	}{
		{"nothing", pipeline.Condition{}, true},
		{"model", pipeline.Condition{Models: []string{"sonnet"}}, true},
		{"model, from its own beginning", pipeline.Condition{Models: []string{"^sonnet-5$"}}, true},
		{"another model", pipeline.Condition{Models: []string{"opus"}}, false},
		{"any of the patterns", pipeline.Condition{Models: []string{"opus", "sonnet"}}, true},
		{"another model, and no word on providers", pipeline.Condition{Models: []string{"opus"}, Match: pipeline.MatchAny}, false},
		{"provider by id", pipeline.Condition{Providers: []string{"^box$"}}, true},
		{"provider by dialect", pipeline.Condition{Providers: []string{"openai"}}, true},
		{"another provider", pipeline.Condition{Providers: []string{"azure"}}, false},
		{"any: one of two", pipeline.Condition{Models: []string{"opus"}, Providers: []string{"box"}}, true},
		{"all: one of two", pipeline.Condition{Models: []string{"opus"}, Providers: []string{"box"}, Match: pipeline.MatchAll}, false},
		{"all: both", pipeline.Condition{Models: []string{"sonnet"}, Providers: []string{"box"}, Match: pipeline.MatchAll}, true},
		{"all: the only one", pipeline.Condition{Models: []string{"sonnet"}, Match: pipeline.MatchAll}, true},
		{"but not this one", pipeline.Condition{Models: []string{"sonnet"}, Exclude: true}, false},
		{"but not another one", pipeline.Condition{Models: []string{"opus"}, Exclude: true}, true},
		{"alternatives stay together", pipeline.Condition{Models: []string{"^a$|^b$"}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(s, say("1", "user", "go"))
			in.Agent.Presets = []preset{{ID: "p", Text: "p", When: &c.when}}
			if got := len(build(t, in).Messages) == 2; got != c.want {
				t.Errorf("sent: %v", got)
			}
		})
	}
}

func TestCheckPresets(t *testing.T) {
	for name, c := range map[string]struct {
		p    []preset
		says string
	}{
		"fine":           {[]preset{list("a"), deep("b", "junk"), anchored("c", "nowhere", ""), {Text: "no id"}, {Text: "nor here"}}, ""},
		"two of one id":  {[]preset{list("a"), list("a")}, "preset_messages[1] a"},
		"role":           {[]preset{{ID: "a", Role: artel.RoleTool}}, "want system, user or assistant"},
		"kind":           {[]preset{ofKind(list("a"), "top")}, "want list, depth or anchor"},
		"side":           {[]preset{anchored("a", "x", "left")}, "want before or after"},
		"match":          {[]preset{{ID: "a", When: &pipeline.Condition{Match: "some"}}}, "want any or all"},
		"pattern":        {[]preset{{ID: "a", When: &pipeline.Condition{Models: []string{"("}}}}, "no regular expression"},
		"long text":      {[]preset{{ID: "a", Text: strings.Repeat("x", 2<<20)}}, "at most 1048576"},
		"many":           {make([]preset, 501), "at most 500"},
		"many patterns":  {[]preset{{ID: "a", When: &pipeline.Condition{Models: make([]string, 101)}}}, "at most 100"},
		"long pattern":   {[]preset{{ID: "a", When: &pipeline.Condition{Models: []string{strings.Repeat("a", 1001)}}}}, "longer than 1000"},
		"long depth":     {[]preset{deep("a", strings.Repeat("1", 1001))}, "longer than 1000"},
		"long id":        {[]preset{list(strings.Repeat("a", 300))}, "the id is longer"},
		"long slot name": {[]preset{slot("a", pipeline.Slot(strings.Repeat("a", 300)), "")}, "slot is longer"},
	} {
		err := pipeline.CheckPresets(c.p)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%s: %v", name, err)
		}
		if k := artel.KindOf(err); err != nil && k != artel.Invalid && k != artel.TooLarge {
			t.Errorf("%s: kind %v", name, k)
		}
	}
	in := input(service(0), say("1", "user", "a"))
	in.Agent.Presets = []preset{ofKind(list("a"), "top")}
	if _, err := builtIn(t).Build(t.Context(), in); !errors.Is(err, artel.Invalid) {
		t.Errorf("a build with it: %v", err)
	}
}

// The history keeps its order, no preset is lost but those that are warned of,
// and the order is total: the same list gives the same places.
func TestPlacingProperties(t *testing.T) {
	depth := rapid.SampledFrom([]string{"0", "1", "2,7", "1~2", "30", "30,40", "x", ""})
	rapid.Check(t, func(rt *rapid.T) {
		in := input(service(0), history(rt, nil)...)
		in.Until = pipeline.InjectionAssembler
		want := map[string]bool{}
		for i := range rapid.IntRange(0, 10).Draw(rt, "presets") {
			id, order := fmt.Sprintf("p%d", i), rapid.IntRange(0, 2).Draw(rt, "order")
			p := preset{ID: id, Text: id, Place: pipeline.Place{Order: &order, Side: rapid.SampledFrom([]pipeline.Side{"", "before", "after"}).Draw(rt, "side")}}
			switch rapid.IntRange(0, 2).Draw(rt, "place") {
			case 0:
				p.Place.Depth = depth.Draw(rt, "depth")
			case 1:
				p.Place.Anchor = rapid.SampledFrom([]string{"chat_history", "user_profile", "lore"}).Draw(rt, "anchor")
			default:
				p.Slot = rapid.SampledFrom([]pipeline.Slot{"", "chat_history", "user_profile"}).Draw(rt, "slot")
			}
			in.Agent.Presets = append(in.Agent.Presets, p)
			want[id] = p.Place.Depth != "x" && p.Slot != pipeline.SlotHistory
		}
		r, err := builtIn(t).Build(t.Context(), in)
		if err != nil {
			rt.Fatal(err)
		}
		again, err := builtIn(t).Build(t.Context(), in)
		if err != nil || !slices.Equal(ids(r), ids(again)) {
			rt.Fatalf("%v, then %v: %v", ids(r), ids(again), err)
		}
		warned := map[string]bool{}
		for _, l := range r.Record.Processors[len(r.Record.Processors)-1].Logs {
			if id, ok := l.Details["slot"]; ok && id != "" {
				warned[l.Details["preset"].(string)] = true
			}
		}
		in.Agent.Presets = nil
		plain, err := builtIn(t).Build(t.Context(), in)
		if err != nil {
			rt.Fatal(err)
		}
		var kept []string
		seen := map[string]bool{}
		for _, m := range r.Messages {
			if seen[m.ID] = true; m.Origin == pipeline.OriginHistory || m.Origin == pipeline.OriginSummary {
				kept = append(kept, m.ID)
			}
		}
		if !slices.Equal(kept, ids(plain)) {
			rt.Fatalf("history %v became %v", ids(plain), kept)
		}
		for id, sent := range want {
			if sent != seen[id] && !warned[id] {
				rt.Fatalf("%s sent: %v", id, seen[id])
			}
		}
	})
}

// Macros run in what authors wrote, in the order of their list, with one set of
// variables; what people and models wrote is a value, and never runs.
func TestMacrosInPresets(t *testing.T) {
	in := input(service(0), say("1", "user", "I say {{setvar::x::stolen}}"), say("2", "assistant", "Aye {{char}}"))
	in.Agent = pipeline.Agent{Name: "lead", Description: "A pilot.", Prompt: "You are {{char}}.{{setvar::x::1}}"}
	in.User = pipeline.Profile{Name: "{{time}}", Persona: "Likes {{char}}."}
	in.Now, in.Machine = now, map[string]string{"os": "plan9"}
	in.Agent.Presets = []preset{
		{ID: "later", Text: "{{incvar::x}}x={{getvar::x}}", Place: pipeline.Place{Depth: "0"}},
		{ID: "first", Text: "x={{getvar::x}} {{user}} {{description}} {{os}}"},
		{ID: "nothing", Text: "{{setvar::x::9}}"},
		{ID: "unknown", Text: "{{nonsense}} \\{{char}} {{lastUserMessage}}{{lastCharMessage}}"},
		{ID: "history", Slot: pipeline.SlotHistory},
		{ID: "profile", Slot: pipeline.SlotUser},
		{ID: "own", Slot: "lore", Text: "It is {{date_ymd}}."},
		{ID: "end", Text: "x={{getvar::x}}"},
	}
	in.Until = pipeline.InjectionAssembler
	r := build(t, in)
	want := []string{
		"system:You are lead.", "system:x=2 {{time}} A pilot. plan9", "system:{{nonsense}} {{char}} I say {{setvar::x::stolen}}Aye {{char}}",
		"user:I say {{setvar::x::stolen}}", "assistant:Aye {{char}}", "system:x=2", "system:Likes {{char}}.", "system:It is 2026-05-04.", "system:x=9",
	}
	if diff := cmp.Diff(want, shown(r)[:9]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	logs := r.Record.Processors[len(r.Record.Processors)-1].Logs
	if len(logs) != 1 || !cmp.Equal(logs[0].Details["macros"], []string{"nonsense"}) || logs[0].Details["preset"] != "unknown" {
		t.Errorf("logs: %+v", logs)
	}
	for i, s := range []pipeline.Stability{pipeline.Turn, pipeline.Turn, pipeline.Turn} {
		if r.Messages[i].Stability != s {
			t.Errorf("%s is %s", r.Messages[i].ID, r.Messages[i].Stability)
		}
	}
	in.Agent.Presets = []preset{{ID: "a", Text: "{{ user }} {{char}}"}, {ID: "b", Text: "{{newline}}{{char}}"}, {ID: "c", Text: "{{roll::1d6}}"}, {ID: "d", Text: strings.Repeat("{{repeat::x::1000}}", 9)}}
	var got []string
	for _, m := range build(t, in).Messages[1:5] {
		got = append(got, string(m.Stability))
	}
	if diff := cmp.Diff([]string{"session", "static", "turn", "static"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	in.Agent.Presets = []preset{{ID: "huge", Text: "{{repeat::{{repeat::{{repeat::x::1000}}::1000}}::1000}}"}}
	_, err := builtIn(t).Build(t.Context(), in)
	var e *artel.Error
	if !errors.As(err, &e) || e.Kind != artel.TooLarge || e.Subject != pipeline.InjectionAssembler || !strings.Contains(err.Error(), "huge") {
		t.Errorf("too much: %v", err)
	}
}
