// SPDX-License-Identifier: Apache-2.0

package rule_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/pipeline/rule"
)

func doubling(n int) rule.Config {
	var c rule.Config
	for i := range n {
		c.Rules = append(c.Rules, rule.Rule{ID: fmt.Sprint("r", i), Find: "a", Replace: "aa"})
	}
	return c
}

// TestRulesThatDouble applies rules each of which doubles a text. Their work is
// bounded: it was 15 s and 1.9 GB for 16 of them, and without an end for a
// thousand.
func TestRulesThatDouble(t *testing.T) {
	for _, n := range []int{16, 1000} {
		e := rule.New()
		s := e.Compile(doubling(n))
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out, err := s.Apply(t.Context(), rule.Display, []rule.Text{{Text: strings.Repeat("a", 1000), Role: artel.RoleUser, Depth: 0}}, nil)
		runtime.ReadMemStats(&after)
		if err != nil || len(out.Problems) == 0 || len(out.Texts[0]) > rule.MaxResult {
			t.Errorf("%d rules: %d bytes, %d problems, %v", n, len(out.Texts[0]), len(out.Problems), err)
		}
		// A search that collected its matches first took 130 bytes for each.
		if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 1500 {
			t.Errorf("%d rules allocated %d MB", n, mb)
		}
		trace, err := s.Trace(t.Context(), rule.Display, rule.Text{Text: strings.Repeat("a", 1000), Role: artel.RoleUser}, nil)
		if err != nil || trace[n-1].Problem == "" {
			t.Errorf("%d rules traced: %+v, %v", n, trace[n-1].Problem, err)
		}
	}
}

// TestHeavyRulesAreLeftOut: rules that are too much work do not take the others
// with them.
func TestHeavyRulesAreLeftOut(t *testing.T) {
	c := doubling(14)
	c.Rules = append([]rule.Rule{{ID: "innocent", Find: "x", Replace: "y"}}, c.Rules...)
	c.Rules = append(c.Rules, doubling(3).Rules...)
	s := rule.New().Compile(c)
	out, err := s.Apply(t.Context(), rule.Display, []rule.Text{{Text: "x" + strings.Repeat("a", 1000), Role: artel.RoleUser}}, nil)
	if err != nil || !strings.HasPrefix(out.Texts[0], "y") || len(out.Problems) == 0 {
		t.Errorf("got %.10q of %d bytes, %v, %v", out.Texts[0], len(out.Texts[0]), out.Problems, err)
	}
	for _, p := range out.Problems {
		if p.Rule == "innocent" {
			t.Errorf("left out: %v", p)
		}
	}
}

// TestRulesEndWithTheirContext: a client that leaves ends the rule that is under
// way.
func TestRulesEndWithTheirContext(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	s := rule.New().Compile(rule.Config{Rules: []rule.Rule{{ID: "r", Find: "a", Replace: "{{stop}}aa"}}})
	expand := func(text string, _ func(string) string) (string, error) {
		stop()
		return strings.ReplaceAll(text, "{{stop}}", ""), nil
	}
	if out, err := s.Apply(ctx, rule.Display, []rule.Text{{Text: strings.Repeat("a", 1_000_000), Role: artel.RoleUser}}, expand); err == nil {
		t.Errorf("got %d bytes", len(out.Texts[0]))
	}
}

// TestMatchesAfterTheFirstOnes compares matches beyond the first few thousand,
// which are searched from the middle of the text, with a search of the whole.
func TestMatchesAfterTheFirstOnes(t *testing.T) {
	for _, tt := range []struct{ find, unit, want string }{
		{`/a/g`, "a", "<a>"},
		{`/\ba/g`, "aa ", "<a>a "},
		{`/\Ba/g`, "aa ", "a<a> "},
		{`/^a/g`, "a", ""},
		{`/^a/gm`, "ab\n", "<a>b\n"},
		{`/(a)(b)?/g`, "aab", "<a><ab>"},
		{`/a$/gm`, "aa\n", "a<a>\n"},
		{`/a\b|x/g`, "xä", "<x>ä"},
		{`/a\b|b/g`, "ab", "a<b>"},
		{`/\b[ab]/g`, "ab-", "<a>b-"},
	} {
		const n = 5_000
		s := rule.New().Compile(rule.Config{Rules: []rule.Rule{{ID: "r", Find: tt.find, Replace: "<$&>"}}})
		text := strings.Repeat(tt.unit, n)
		want := strings.Repeat(tt.want, n)
		if tt.want == "" { // the first alone
			want = "<a>" + text[1:]
		}
		out, err := s.Apply(t.Context(), rule.Display, []rule.Text{{Text: text, Role: artel.RoleUser}}, nil)
		if err != nil || len(out.Problems) > 0 || out.Texts[0] != want {
			t.Errorf("%s: got %.60q…, want %.60q…; %v, %v", tt.find, out.Texts[0], want, out.Problems, err)
		}
	}
}
