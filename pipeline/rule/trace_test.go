// SPDX-License-Identifier: Apache-2.0

package rule_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/rule"
)

func trace(t testing.TB, x rule.Text, stage rule.Stage, layers ...rule.Config) []rule.Traced {
	t.Helper()
	got, err := rule.New().Compile(layers...).Trace(t.Context(), stage, x, nil)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// What a trace tells is what Apply does: the text, the rules that found
// something, the problems; and the matches are where the text was changed.
func TestTraceIsApply(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var c rule.Config
		for range rapid.IntRange(1, 5).Draw(r, "rules") {
			c.Rules = append(c.Rules, rule.Rule{
				Find:    rapid.SampledFrom([]string{"a", "/b+/g", "/(?<=a)b/g", "x*", "(", "/😀|a/gu", "/\\uD83D/g", "/./", "/a/y", "{{x}}"}).Draw(r, "find"),
				Replace: rapid.SampledFrom([]string{"", "b", "[$&]", "$1", "😀"}).Draw(r, "replace"),
				Roles:   rapid.SampledFrom([][]artel.Role{nil, {artel.RoleUser}, {artel.RoleTool}}).Draw(r, "roles"),
				Stages:  rapid.SampledFrom([][]rule.Stage{nil, {rule.Request}, {rule.Display}}).Draw(r, "stages"),
				Order:   rapid.IntRange(0, 2).Draw(r, "order"),
			})
		}
		text := rule.Text{Text: rapid.StringOfN(rapid.SampledFrom([]rune("aabbx😀é\n")), 0, 20, -1).Draw(r, "text"), Role: artel.RoleUser, Depth: rapid.IntRange(-1, 1).Draw(r, "depth")}
		set := rule.New().Compile(c)
		want, err := set.Apply(t.Context(), rule.Request, []rule.Text{text}, nil)
		if err != nil {
			r.Fatal(err)
		}
		steps, err := set.Trace(t.Context(), rule.Request, text, nil)
		if err != nil {
			r.Fatal(err)
		}
		at, problems := text.Text, 0
		var applied []string
		for _, s := range steps {
			if s.Before != at {
				r.Fatalf("%s begins with %q, and the one before ends with %q", s.Name, s.Before, at)
			}
			if at = s.After; s.Count > 0 {
				applied = append(applied, s.Name)
			}
			if s.Problem != "" {
				problems++
			}
			if len(s.Matches) != s.Count {
				r.Fatalf("%d matches, and %d places", s.Count, len(s.Matches))
			}
			whole, end := true, 0
			for _, m := range s.Matches {
				if m[0] < end || m[1] < m[0] || m[1] > len(s.Before) {
					r.Fatalf("the places %v in %q", s.Matches, s.Before)
				}
				end = m[1]
				whole = whole && !strings.ContainsAny(s.Rule.Find, "D") // halves of characters are marked as whole ones
			}
			if whole && s.Rule.Replace == "[$&]" {
				b, end := strings.Builder{}, 0
				for _, m := range s.Matches {
					b.WriteString(s.Before[end:m[0]] + "[" + s.Before[m[0]:m[1]] + "]")
					end = m[1]
				}
				if made := b.String() + s.Before[end:]; made != s.After && !strings.Contains(s.Before, "😀") {
					r.Fatalf("the places make %q, and the rule %q", made, s.After)
				}
			}
		}
		if diff := cmp.Diff(want.Applied[0], applied); diff != "" || at != want.Texts[0] || problems != len(want.Problems) {
			r.Fatalf("%q with %d problems, want %q with %v; applied (-want +got): %s", at, problems, want.Texts[0], want.Problems, diff)
		}
	})
}

func TestTrace(t *testing.T) {
	off, low := false, 3
	deployment := rule.Config{Rules: []rule.Rule{{ID: "first", Find: "secret (\\w+)", Replace: "[$1]"}, {ID: "off", Find: "x", Enabled: &off}}}
	user := rule.Config{Presets: []rule.Preset{{Name: "p", Rules: []rule.Rule{
		{ID: "late", Find: "x", Order: 1},
		{ID: "shown", Find: "x", Stages: []rule.Stage{rule.Display}},
		{ID: "models", Find: "x", Roles: []artel.Role{artel.RoleAssistant}},
		{ID: "old", Find: "x", Depth: &rule.Depth{Min: &low}},
		{ID: "slow", Find: "(a+)+$"},
		{ID: "bad", Find: "("},
	}}}}
	got := trace(t, rule.Text{Text: "é secret word " + strings.Repeat("a", 40) + "!", Role: artel.RoleUser, Depth: 0}, rule.Request, deployment, user)
	type told struct {
		Name    string
		Where   rule.Location
		Passed  rule.SkipReason
		Problem bool
		Count   int
	}
	var all []told
	for _, s := range got {
		all = append(all, told{s.Name, s.Where, s.Skipped, s.Problem != "", s.Count})
	}
	want := []told{
		{"first", rule.Location{0, -1, 0}, "", false, 1},
		{"shown", rule.Location{1, 0, 1}, rule.SkippedStage, false, 0},
		{"models", rule.Location{1, 0, 2}, rule.SkippedRole, false, 0},
		{"old", rule.Location{1, 0, 3}, rule.SkippedDepth, false, 0},
		{"slow", rule.Location{1, 0, 4}, "", false, 0},
		{"bad", rule.Location{1, 0, 5}, "", true, 0},
		{"late", rule.Location{1, 0, 0}, "", false, 0},
	}
	if diff := cmp.Diff(want, all); diff != "" {
		t.Error("(-want +got):", diff)
	}
	if m := got[0].Matches; len(m) != 1 || got[0].Before[m[0][0]:m[0][1]] != "secret word" || got[0].After[:len("é [word]")] != "é [word]" {
		t.Errorf("the first rule: %+v", got[0])
	}

	// One that is stopped says so, and the others go on.
	got = trace(t, rule.Text{Text: strings.Repeat("a", 40) + "! x", Depth: -1}, rule.Request,
		rule.Config{Rules: []rule.Rule{{Find: "(?=(a+))(\\1|a+)+$(?!b)", ID: "slow"}, {Find: "x", Replace: "y"}}})
	if !got[0].Backtracking || !strings.Contains(got[0].Problem, "stopped") || got[0].After != got[0].Before || !strings.HasSuffix(got[1].After, "y") {
		t.Errorf("a rule that is too slow: %q, and then %q", got[0].Problem, got[1].After)
	}
}

func TestTraceCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := rule.New().Compile(rule.Config{Rules: []rule.Rule{{Find: "a(?=b)"}}}).Trace(ctx, rule.Request, rule.Text{Text: "ab"}, nil)
	if !errors.Is(err, context.Canceled) {
		t.Error("err:", err)
	}
}

func TestExplain(t *testing.T) {
	e := rule.New()
	for _, c := range []struct {
		rule rule.Rule
		want rule.Explanation
		says string // of the error
	}{
		{rule: rule.Rule{Find: "a(b)"}, want: rule.Explanation{Pattern: "a(b)", Flags: "gm", Groups: 1}},
		{rule: rule.Rule{Find: "/a(?=b)/i"}, want: rule.Explanation{Pattern: "a(?=b)", Flags: "i", Backtracking: true}},
		{rule: rule.Rule{Find: "{{user}}(", Expand: rule.ExpandRaw}, want: rule.Explanation{Pattern: "{{user}}(", Flags: "gm", MacrosPending: true}},
		{rule: rule.Rule{Find: "{{user}}", Expand: rule.ExpandRaw, Flags: "gg"}, says: "flags"},
		{rule: rule.Rule{Find: "("}, says: "not valid"},
		{rule: rule.Rule{}, says: "empty"},
	} {
		got, err := e.Explain(c.rule)
		if c.says != "" {
			if artel.KindOf(err) != artel.Invalid || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%+v: %v, want %q", c.rule, err, c.says)
			}
			continue
		}
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%+v: %v (-want +got): %s", c.rule, err, diff)
		}
	}
}
