// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
)

// TestRepetitionsAreNotWrittenOut: RE2 would take 126 MB and most of a second
// for the first pattern, and a file from a stranger may have a thousand of them.
func TestRepetitionsAreNotWrittenOut(t *testing.T) {
	for _, source := range []string{
		"(?:" + strings.Repeat("ab?", 1000) + "){1000}",
		"(?:(?:a{2,100}b){50}c){3}",
		strings.Repeat("(?:[ab]{0,99}x?){1000}", 100),
	} {
		p, err := compile(source, "g", nil, false)
		if err != nil || p.linear != nil {
			t.Errorf("%.40s: %v, in RE2: %v", source, err, p != nil && p.linear != nil)
		}
	}
	p, err := compile("[ab]{0,1000}[c-z]", "g", nil, false)
	if err != nil || p.linear == nil || !p.linear.takes(strings.Repeat("ab", 1000)) {
		t.Fatalf("a large pattern is refused for a short text: %v", err)
	}
	if p.linear.takes(strings.Repeat("ab", 1<<20)) {
		t.Error("a large pattern takes a long text, with a thousand steps for each of its characters")
	}
	if p, err = compile(`\*(.+?)\*`, "g", nil, false); err != nil || p.linear == nil || !p.linear.takes(strings.Repeat("ab", MaxResult/2)) {
		t.Errorf("an ordinary pattern does not take every text: %v", err)
	}
}

// TestSearchesThatLookAhead: each match of this pattern is found at the end of the
// text. The time of that is work, and is known before there are many.
func TestSearchesThatLookAhead(t *testing.T) {
	p, err := compile("a(?:[^z]*z)?", "g", nil, false)
	if err != nil || p.linear == nil {
		t.Fatal(err)
	}
	const second = int(time.Second / timeWork)
	tooMuch := errors.New("too much")
	for _, tt := range []struct {
		name  string
		each  time.Duration // of a search
		most  int           // matches before it is stopped; 0: it is not
		total int
	}{
		{"slow", time.Second, 4, 2 * second},
		{"quick", time.Microsecond, 0, 2 * second},
	} {
		var clock time.Duration
		matches, work := 0, 0
		r := replacement{pattern: p, note: func(int, int) { matches++ }, cpu: func() time.Duration { clock += tt.each; return clock }}
		_, n, err := r.applyLinear(strings.Repeat("a", 10_000), func(w int) error {
			if work += w; work > tt.total {
				return tooMuch
			}
			return nil
		})
		switch {
		case tt.most == 0 && (err != nil || n != 10_000):
			t.Errorf("%s: %d matches, %v", tt.name, n, err)
		case tt.most > 0 && (!errors.Is(err, tooMuch) || matches > tt.most):
			t.Errorf("%s: stopped after %d matches, %v", tt.name, matches, err)
		}
	}
}

// TestOneHarmlessRuleOnALongText: what is linear in the text is no reason. The
// time stands still, so that a slow machine is none either.
func TestOneHarmlessRuleOnALongText(t *testing.T) {
	e := New()
	e.cpu = func() time.Duration { return 0 }
	s := e.Compile(Config{Rules: []Rule{{ID: "r", Find: "a", Replace: "b"}}})
	text := strings.Repeat("a", 3_900_000)
	out, err := s.Apply(t.Context(), Display, []Text{{Text: text, Role: artel.RoleUser}}, nil)
	if err != nil || len(out.Problems) > 0 || out.Texts[0] != strings.Repeat("b", len(text)) {
		t.Errorf("%v, %v", out.Problems, err)
	}
}
