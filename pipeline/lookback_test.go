// SPDX-License-Identifier: Apache-2.0

package pipeline_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/token"
)

// lookedAt is how many messages a build has loaded.
func lookedAt(r pipeline.Result) int { return len(r.Record.Processors[0].Added) }

// What a build sends of a long history is what it would send if it had looked
// at all of it: a plugin that does nothing makes it look.
func TestLookbackChangesNothing(t *testing.T) {
	narrow, wide := builtIn(t), builtIn(t, noop("looks", 350, nil))
	shortened := 0
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom([]int{50, 300, 800}).Draw(rt, "messages")
		history := make([]artel.Message, n)
		summary := rapid.SampledFrom([]int{-1, 7, n / 2, n - 1}).Draw(rt, "summary")
		for i := range history {
			role := rapid.SampledFrom([]string{"user", "assistant", "assistant"}).Draw(rt, "role")
			text := strings.Repeat(rapid.SampledFrom([]string{"word ", "敏捷的", "<think>x</think> ", "      "}).Draw(rt, "text"), rapid.IntRange(0, 40).Draw(rt, "length"))
			history[i] = say(fmt.Sprintf("m%d", i), role, text)
			history[i].Summary = i == summary
			if rapid.IntRange(0, 9).Draw(rt, "call") == 9 {
				history[i] = calls(fmt.Sprintf("m%d", i), "a")
			} else if i > 0 && len(history[i-1].Parts) > 0 {
				if _, ok := history[i-1].Parts[0].(artel.ToolCall); ok {
					history[i] = answers(fmt.Sprintf("m%d", i), "a", text)
				}
			}
		}
		s := service(rapid.SampledFrom([]int{200, 1000, 4000}).Draw(rt, "window"))
		s.Capabilities.Tokenizer = model.Fact[string]{Value: token.O200k, Source: model.FromOperator}
		in := input(s, history...)
		in.Agent.Prompt, in.Now = "You lead.", now
		in.Agent.Context.KeepChars = rapid.SampledFrom([]int{0, 20}).Draw(rt, "keep")
		in.Agent.Presets = []pipeline.Preset{
			{ID: "deep", Text: "{{lastUserMessage}}", Place: pipeline.Place{Depth: rapid.SampledFrom([]string{"", "3", "2,700", "10~50"}).Draw(rt, "depth")}},
			{ID: "tail", Text: "t", Place: pipeline.Place{Depth: "0"}},
		}
		in.Settings.Agent = []pipeline.Setting{tenRules()}
		a, errA := narrow.Build(t.Context(), in)
		b, errB := wide.Build(t.Context(), in)
		if (errA == nil) != (errB == nil) {
			rt.Fatalf("%v, %v", errA, errB)
		}
		if diff := cmp.Diff(b.Record.Tokens, a.Record.Tokens); diff != "" {
			rt.Fatalf("tokens (-all +lookback):\n%s", diff)
		}
		if diff := cmp.Diff(ids(b), ids(a)); diff != "" || a.Record.RequestHash != b.Record.RequestHash {
			rt.Fatalf("sent (-all +lookback):\n%s", diff)
		}
		if errA == nil && lookedAt(a) < lookedAt(b) {
			shortened++
		}
	})
	if shortened == 0 {
		t.Error("no build used the lookback")
	}
}

// Where rules take so much away that more fits, the build looks again.
func TestLookbackIsExtended(t *testing.T) {
	history := talk(2000, strings.Repeat("gone ", 80))
	s := service(4000)
	in := input(s, history...)
	in.Settings.Agent = []pipeline.Setting{{ID: pipeline.RegexProcessor, Config: []byte(`{"rules":[{"id":"r","find":"gone","replace":""},{"id":"s","find":"/ +/g","replace":""}]}`)}}
	r, err := builtIn(t).Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if lookedAt(r) != 2000 || len(r.Request.Messages) < 100 {
		t.Errorf("it looked at %d and sends %d", lookedAt(r), len(r.Request.Messages))
	}
	in.Settings.Agent = nil
	r, err = builtIn(t).Build(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	if n := lookedAt(r); n >= 2000 || len(r.Record.Tokens.Dropped)+len(r.Request.Messages) != 2000 || !slices.Contains(r.Record.Tokens.Dropped, "m00000") {
		t.Errorf("it looked at %d, sends %d and drops %d", n, len(r.Request.Messages), len(r.Record.Tokens.Dropped))
	}
}
