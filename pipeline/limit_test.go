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
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

func number(n int) *int { return &n }

// ten writes a text of ten characters, which are ten tokens here.
func ten(id, role string) artel.Message { return say(id, role, strings.Repeat(id, 10)[:10]) }

func TestLimits(t *testing.T) {
	turns := []artel.Message{ten("1", "user"), ten("2", "assistant"), ten("3", "user"), ten("4", "assistant"), ten("5", "user")}
	for _, c := range []struct {
		name    string
		window  int
		context pipeline.Limits
		config  string
		presets []preset
		history []artel.Message
		want    string // ids
		tokens  pipeline.Tokens
	}{
		{"no window", 0, pipeline.Limits{}, "", nil, turns, "1 2 3 4 5", pipeline.Tokens{History: 50, Total: 50}},
		{"no window, and a reserve", 0, pipeline.Limits{ReplyReserve: number(10)}, "", nil, turns, "1 2 3 4 5", pipeline.Tokens{History: 50, Total: 50}},
		{"a quarter for the reply", 40, pipeline.Limits{}, "", nil, turns, "3 4 5", pipeline.Tokens{History: 30, Total: 30, Budget: 30, Dropped: []string{"1", "2"}}},
		{"another reserve", 40, pipeline.Limits{ReplyReserve: number(0)}, "", nil, turns, "2 3 4 5", pipeline.Tokens{History: 40, Total: 40, Budget: 40, Dropped: []string{"1"}}},
		{"exactly", 50, pipeline.Limits{ReplyReserve: number(0)}, "", nil, turns, "1 2 3 4 5", pipeline.Tokens{History: 50, Total: 50, Budget: 50}},
		{"the smaller window is the agent's", 1000, pipeline.Limits{MaxTokens: 20, ReplyReserve: number(0)}, "", nil, turns, "4 5", pipeline.Tokens{History: 20, Total: 20, Budget: 20, Dropped: []string{"1", "2", "3"}}},
		{"the smaller window is the model's", 20, pipeline.Limits{MaxTokens: 1000, ReplyReserve: number(0)}, "", nil, turns, "4 5", pipeline.Tokens{History: 20, Total: 20, Budget: 20, Dropped: []string{"1", "2", "3"}}},
		{"only the agent's window", 0, pipeline.Limits{MaxTokens: 20, ReplyReserve: number(0)}, "", nil, turns, "4 5", pipeline.Tokens{History: 20, Total: 20, Budget: 20, Dropped: []string{"1", "2", "3"}}},
		{"the processor's configuration goes before", 0, pipeline.Limits{MaxTokens: 20, ReplyReserve: number(10)}, `{"max_tokens":30,"reply_reserve":0}`, nil, turns, "3 4 5", pipeline.Tokens{History: 30, Total: 30, Budget: 30, Dropped: []string{"1", "2"}}},
		{"presets are not dropped", 40, pipeline.Limits{ReplyReserve: number(0)}, "", []preset{{ID: "p", Text: "0123456789"}}, turns, "p 3 4 5", pipeline.Tokens{Fixed: 10, History: 30, Total: 40, Budget: 40, Dropped: []string{"1", "2"}}},
		{"the first that does not fit ends it", 25, pipeline.Limits{ReplyReserve: number(0)}, "", nil, []artel.Message{say("1", "user", "a"), say("2", "assistant", strings.Repeat("b", 20)), ten("3", "user")}, "3", pipeline.Tokens{History: 10, Total: 10, Budget: 25, Dropped: []string{"1", "2"}}},
		{"what is after the last user message stays", 12, pipeline.Limits{ReplyReserve: number(0)}, "", nil, []artel.Message{ten("1", "user"), ten("2", "assistant"), say("3", "user", "a"), ten("4", "assistant")}, "3 4", pipeline.Tokens{History: 11, Total: 11, Budget: 12, Dropped: []string{"1", "2"}}},
		{"a summary stays", 20, pipeline.Limits{ReplyReserve: number(0)}, "", nil, []artel.Message{with(ten("1", "system"), func(m *artel.Message) { m.Summary = true }), ten("2", "assistant"), ten("3", "user")}, "1 3", pipeline.Tokens{Fixed: 10, History: 10, Total: 20, Budget: 20, Dropped: []string{"2"}}},
		{"separators count", 22, pipeline.Limits{ReplyReserve: number(0)}, "", nil, []artel.Message{ten("1", "user"), ten("2", "user"), ten("3", "user")}, "2", pipeline.Tokens{Fixed: 2, History: 20, Total: 22, Budget: 22, Dropped: []string{"1"}}},
		{"one token less for them", 21, pipeline.Limits{ReplyReserve: number(0)}, "", nil, []artel.Message{ten("1", "user"), ten("2", "user"), ten("3", "user")}, "3", pipeline.Tokens{History: 10, Total: 10, Budget: 21, Dropped: []string{"1", "2"}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(service(c.window), c.history...)
			in.Agent.Context, in.Agent.Presets = c.context, c.presets
			if c.config != "" {
				in.Settings.Agent = []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: json.RawMessage(c.config)}}
			}
			r, err := builtIn(t).Build(t.Context(), in)
			if err != nil {
				t.Fatal(err)
			}
			if got := strings.Join(ids(r), " "); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
			if diff := cmp.Diff(c.tokens, r.Record.Tokens); diff != "" {
				t.Errorf("tokens (-want +got):\n%s", diff)
			}
		})
	}
}

// What is kept free for the reply is the model's longest, where it is known,
// and never more than a quarter of the window.
func TestReserve(t *testing.T) {
	for longest, want := range map[int]int{0: 75, 10: 90, 25: 75, 26: 75, 1000: 75} {
		s := service(100)
		s.Capabilities.MaxOutput.Value = longest
		if got := build(t, input(s, say("1", "user", "a"))).Record.Tokens.Budget; got != want {
			t.Errorf("a model whose longest reply has %d tokens: %d are left, want %d", longest, got, want)
		}
	}
}

// Tools are fixed tokens: their names, descriptions and schemas are in the budget.
func TestLimitsCountTools(t *testing.T) {
	in := input(service(0), ten("1", "user"), ten("2", "assistant"), ten("3", "user"))
	in.Tools = []model.ToolSpec{{Name: "read", Description: "reads", Schema: json.RawMessage(`{"a":1}`)}} // 4 + 5 + 7
	in.Agent.Context = pipeline.Limits{MaxTokens: 36, ReplyReserve: number(0)}
	want := pipeline.Tokens{Fixed: 16, History: 20, Total: 36, Budget: 36, Dropped: []string{"1"}}
	if diff := cmp.Diff(want, build(t, in).Record.Tokens); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The budget holds what formatters will add: fillers are fixed tokens.
func TestLimitsCountFillers(t *testing.T) {
	in := input(service(0), ten("1", "assistant"), ten("2", "user"), ten("3", "user"))
	in.Settings.Agent = slices.Concat(off(pipeline.MergeRoles), on(`{"fillers":{"user":"hello","assistant":"ok"}}`, pipeline.EnsureAlternation, pipeline.FirstUser))
	for window, want := range map[int]string{
		37: "artel:first-user-0 1 2 artel:ensure-alternation-2 3",
		36: "2 artel:ensure-alternation-1 3",
		22: "2 artel:ensure-alternation-1 3",
		21: "3",
	} {
		in.Agent.Context = pipeline.Limits{MaxTokens: window, ReplyReserve: number(0)}
		r := build(t, in)
		if got := strings.Join(ids(r), " "); got != want {
			t.Errorf("%d: %s", window, got)
		}
		if tk := r.Record.Tokens; tk.Total > window || tk.Fixed+tk.History != tk.Total || tk.History%10 != 0 {
			t.Errorf("%d: %+v", window, tk)
		}
	}
}

// A summary that is half of an exchange keeps the other half.
func TestLimitsKeepHalvesOfSummaries(t *testing.T) {
	in := input(service(0), with(calls("1", "a"), func(m *artel.Message) { m.Summary = true }), answers("2", "a", "0123456789"), ten("3", "assistant"))
	in.Agent.Context = pipeline.Limits{MaxTokens: 15, ReplyReserve: number(0)}
	if _, err := builtIn(t).Build(t.Context(), in); !errors.Is(err, artel.TooLarge) {
		t.Errorf("got %v", err)
	}
	in.Agent.Context.MaxTokens = 25
	if got := strings.Join(ids(build(t, in)), " "); got != "1 2 3" {
		t.Errorf("got %s", got)
	}
}

func TestTooLarge(t *testing.T) {
	in := input(service(0), ten("1", "user"), ten("2", "assistant"), ten("3", "user"), ten("4", "assistant"))
	in.Agent.Context = pipeline.Limits{MaxTokens: 19, ReplyReserve: number(0), KeepChars: 2}
	in.Agent.Presets = []preset{{ID: "p", Text: "p"}}
	r, err := builtIn(t).Build(t.Context(), in)
	var e *artel.Error
	if !errors.As(err, &e) || e.Kind != artel.TooLarge || e.Subject != pipeline.TokenLimiter || !strings.Contains(err.Error(), "21 tokens, but 19 fit") {
		t.Fatalf("got %v", err)
	}
	want := pipeline.Tokens{Fixed: 1, History: 20, Total: 21, Budget: 19, Dropped: []string{"1", "2"}}
	if diff := cmp.Diff(want, r.Record.Tokens); diff != "" || r.Request != nil {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestCutting(t *testing.T) {
	long := strings.Repeat("héllo wörld ", 30)
	family := strings.Repeat("👨‍👩‍👧‍👦", 40) // seven code points each
	for _, c := range []struct {
		name string
		m    artel.Message
		keep int
		want string // how the message begins; "": it is not sent
	}{
		{"text", say("1", "user", long), 14, "héllo wörld hé\n[… 14 of 360"},
		{"what people see as one character is kept whole", say("1", "user", family), 20, strings.Repeat("👨‍👩‍👧‍👦", 2) + "\n[… 14 of 280"},
		{"not even one character", say("1", "user", family), 6, ""},
		{"a mark is not cut off", say("1", "user", strings.Repeat("e\u0301", 100)), 3, "e\u0301\n[… 2 of 200"},
		{"no longer than before", say("1", "user", strings.Repeat("a", 75)), 45, ""},
		{"short enough", say("1", "user", strings.Repeat("a", 70)), 100, ""},
		{"nothing to keep", say("1", "user", long), 0, ""},
		{"it does not fit", say("1", "user", long), 150, ""},
		{"only text", with(say("1", "user", long), func(m *artel.Message) { m.Parts = append(m.Parts, shot) }), 14, "héllo wörld hé\n[… 14 of 360"},
		{"thoughts go", with(say("1", "assistant", long), func(m *artel.Message) { m.Parts = append(artel.Parts{state}, m.Parts...) }), 14, "héllo wörld hé\n[… 14 of 360"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in := input(service(0, artel.CanVision), c.m, say("2", "assistant", "a"), say("3", "user", "b"))
			in.Agent.Context = pipeline.Limits{MaxTokens: 69, ReplyReserve: number(0), KeepChars: c.keep}
			in.Settings.Agent = off(pipeline.TranscriptionProcessor, pipeline.MessageFormatters)
			in.Until = pipeline.TokenLimiter
			r := build(t, in)
			text := ""
			if r.Messages[0].ID == "1" {
				text = artel.TextOf(r.Messages[0].Parts)
			}
			if c.want == "" && text != "" || !strings.HasPrefix(text, c.want) {
				t.Fatalf("got %q", text)
			}
			cut, dropped := []string{"1"}, []string(nil)
			if c.want == "" {
				cut, dropped = dropped, cut
			} else if len(r.Messages[0].Parts) != 1 || utf8.RuneCountInString(text) >= utf8.RuneCountInString(artel.TextOf(c.m.Parts)) {
				t.Errorf("%v", r.Messages[0].Parts)
			}
			if tk := r.Record.Tokens; !slices.Equal(tk.Cut, cut) || !slices.Equal(tk.Dropped, dropped) {
				t.Errorf("%+v", tk)
			}
			logs := r.Record.Processors[len(r.Record.Processors)-1].Logs
			warned := slices.ContainsFunc(logs, func(l pipeline.Log) bool { return l.Level == pipeline.Warn })
			if warned != (c.name == "thoughts go") {
				t.Errorf("logs: %+v", logs)
			}
		})
	}
	t.Run("never inside an exchange", func(t *testing.T) {
		in := input(service(0), say("0", "user", "x"), calls("1", "c"), answers("2", "c", long), say("3", "user", "b"))
		in.Agent.Context = pipeline.Limits{MaxTokens: 69, ReplyReserve: number(0), KeepChars: 5}
		r := build(t, in)
		if got := strings.Join(ids(r), " "); got != "3" || r.Record.Tokens.Cut != nil {
			t.Errorf("got %s, %+v", got, r.Record.Tokens)
		}
	})
}

func TestVocabularyOfLimiter(t *testing.T) {
	in := input(service(0), say("1", "user", "some English words in a row"))
	for v, want := range map[string]int{"": 27, token.Characters: 27, token.O200k: 6, token.Cl100k: 6} {
		in.Settings.Model = []pipeline.Setting{{ID: pipeline.TokenLimiter, Config: json.RawMessage(fmt.Sprintf(`{"vocabulary":%q}`, v))}}
		if v == "" {
			in.Settings.Model = nil
		}
		if got := build(t, in).Record.Tokens.Total; got != want {
			t.Errorf("%q: %d", v, got)
		}
	}
}

// Over any history: the budget is kept or nothing is sent; what is kept is a
// tail of the history, with the last user message and whole exchanges, and one
// unit more would not have fit.
func TestLimiterInvariants(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		branch := history(rt, nil)
		for i, m := range branch {
			branch[i].Summary = m.Summary && m.Role != artel.RoleAssistant // no summary calls a tool
		}
		in := input(service(0), branch...)
		in.Agent.Prompt = rapid.SampledFrom([]string{"", "You lead."}).Draw(rt, "prompt")
		in.Agent.Presets = []preset{deep("d", rapid.SampledFrom([]string{"1", "3", "0,20"}).Draw(rt, "depth"))}
		in.Agent.Context = pipeline.Limits{ReplyReserve: number(rapid.IntRange(0, 20).Draw(rt, "reserve")), KeepChars: rapid.IntRange(0, 3).Draw(rt, "keep")}
		in.Settings.Agent = rapid.SampledFrom([][]pipeline.Setting{nil, on(`{}`, pipeline.MessageFormatters), off(pipeline.MessageFormatters)}).Draw(rt, "formatters")
		whole, err := builtIn(t).Build(t.Context(), in)
		if err != nil {
			rt.Fatal(err)
		}
		in.Agent.Context.MaxTokens = rapid.IntRange(1, 120).Draw(rt, "window")
		limitHolds(rt, builtIn(t), in, whole)
	})
}

func limitHolds(rt *rapid.T, registry *pipeline.Registry, in pipeline.Input, whole pipeline.Result) {
	r, err := registry.Build(context.Background(), in)
	budget := max(0, in.Agent.Context.MaxTokens-*in.Agent.Context.ReplyReserve)
	tk := r.Record.Tokens
	if tk.Budget != budget || tk.Fixed+tk.History != tk.Total {
		rt.Fatalf("tokens: %+v", tk)
	}
	if errors.Is(err, artel.TooLarge) {
		if tk.Total <= budget {
			rt.Fatalf("refused though it fits: %+v", tk)
		}
		return
	}
	if err != nil || tk.Total > budget {
		rt.Fatalf("%+v: %v", tk, err)
	}
	if whole.Record.Tokens.Total <= budget && len(tk.Dropped)+len(tk.Cut) > 0 {
		rt.Fatalf("%v dropped though all fits", tk.Dropped)
	}
	// Behind the limiter, before formatters join messages.
	in.Until = pipeline.TokenLimiter
	cut, err := registry.Build(context.Background(), in)
	if err != nil {
		rt.Fatal(err)
	}
	in.Agent.Context.MaxTokens = 0
	all, err := registry.Build(context.Background(), in)
	if err != nil {
		rt.Fatal(err)
	}
	var kept, loaded []string
	lastUser := ""
	for _, m := range cut.Messages {
		if m.Origin == pipeline.OriginHistory {
			kept = append(kept, m.ID)
		}
	}
	for _, m := range all.Messages {
		if m.Origin == pipeline.OriginHistory {
			loaded = append(loaded, m.ID)
			if m.Role == artel.RoleUser {
				lastUser = m.ID
			}
		} else if !slices.ContainsFunc(cut.Messages, func(c pipeline.Message) bool { return c.ID == m.ID }) {
			rt.Fatalf("%s is no history and not sent", m.ID)
		}
	}
	if !slices.Equal(loaded[len(loaded)-len(kept):], kept) || !slices.Equal(append(slices.Clone(tk.Dropped), kept...), loaded) {
		rt.Fatalf("of %v %v are sent and %v dropped", loaded, kept, tk.Dropped)
	}
	if lastUser != "" && !slices.Contains(kept, lastUser) {
		rt.Fatalf("the last user message is not sent: %v of %v", kept, loaded)
	}
	wholeExchanges(rt, r.Request.Messages)
}
