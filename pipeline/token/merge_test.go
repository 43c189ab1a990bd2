// SPDX-License-Identifier: Apache-2.0

package token

import (
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// naive merges as the algorithm is told: it returns the ends of the tokens.
func naive(v *table, s string) []int {
	var ends []int
	for i := range len(s) {
		ends = append(ends, i+1)
	}
	for {
		at, lowest := -1, none
		from := 0
		for i := 0; i+1 < len(ends); i++ {
			if r := v.rank(s, from, ends[i+1]); r < lowest {
				at, lowest = i, r
			}
			from = ends[i]
		}
		if at < 0 {
			return ends
		}
		ends = append(ends[:at], ends[at+1:]...)
	}
}

// TestMerging holds the three ways of merging to the plain one. They cannot be
// told apart from outside, where only a long piece takes another.
func TestMerging(t *testing.T) {
	v, err := o200k()
	if err != nil {
		t.Fatal(err)
	}
	piece := rapid.SampledFrom([]string{
		"a", "aa", "b", "ab", "ing", "the", " ", "-", "=", "----", "\n", "上", "下文", "智能体", "系统", "é", "\u0301", "🎉", "0", "x", "\x00", "QUJD", "é́",
	})
	rapid.Check(t, func(t *rapid.T) {
		s := strings.Join(rapid.SliceOfN(piece, 1, 60).Draw(t, "pieces"), "")
		if rapid.Bool().Draw(t, "a run") {
			s = strings.Repeat(s[:min(len(s), 7)], rapid.IntRange(1, 60).Draw(t, "times"))
		}
		want := naive(v, s)
		m := new(merger)
		if n, first := m.scan(v, s); n != len(want) || int(first) != want[0] {
			t.Fatalf("scan(%q) = %d, %d; want %d, %d", s, n, first, len(want), want[0])
		}
		if n := m.merge(v, s); n != len(want) {
			t.Fatalf("merge(%q) = %d, want %d", s, n, len(want))
		}
		i := int32(0)
		for k, end := range want {
			if i = m.nodes[i].next; int(i) != end {
				t.Fatalf("token %d of %q ends at %d, want %d", k, s, i, end)
			}
		}
		size := rapid.IntRange(2, 64).Draw(t, "size")
		n, ok := m.windows(v, s, size, rapid.IntRange(0, size-1).Draw(t, "overlap"))
		if ok && n != len(want) {
			t.Fatalf("windows(%q, %d) = %d, want %d", s, size, n, len(want))
		}
	})
}

// TestWindowsHold: the windows of production do not have to be made larger for
// anything that is likely, which would take time and memory.
func TestWindowsHold(t *testing.T) {
	v, err := o200k()
	if err != nil {
		t.Fatal(err)
	}
	for _, unit := range []string{"a", "ab", "abc", "aab", " ", "=", "-=", "QUJDREVGRw0K", "上下文", "智能体写下的一切内容", "🎉", "\u0301", "ACGT", "antidisestablishmentarianism"} {
		s := strings.Repeat(unit, 20_000/len(unit))
		m := new(merger)
		n, ok := m.windows(v, s, windowSize, overlap)
		if whole := m.merge(v, s); !ok || n != whole {
			t.Errorf("%q…: %d tokens (%v), want %d", unit, n, ok, whole)
		}
	}
}

// TestSeamsAreSeen: windows that are too small to merge rightly report it.
func TestSeamsAreSeen(t *testing.T) {
	v, err := o200k()
	if err != nil {
		t.Fatal(err)
	}
	s := strings.Repeat(" ", 128) // one token
	if n, ok := new(merger).windows(v, s, 5, 0); ok {
		t.Errorf("windows of five bytes made %d tokens of it", n)
	}
}

func TestTablesAreWhole(t *testing.T) {
	for name, tt := range map[string]struct {
		load func() (*table, error)
		want int
	}{O200k: {o200k, 199_998}, Cl100k: {cl100k, 100_256}} {
		v, err := tt.load()
		if err != nil || v.tokens != tt.want || v.longest != 128 {
			t.Fatalf("%s: %d tokens of up to %d bytes, %v", name, v.tokens, v.longest, err)
		}
		seen := make([]bool, v.tokens)
		for _, slot := range v.slots {
			if slot.where == 0 {
				continue
			}
			s := v.text[slot.where>>8:][:slot.where&0xFF]
			if got := v.rank(s, 0, len(s)); got != slot.rank || seen[got] {
				t.Fatalf("%s: %q has rank %d, want %d, once", name, s, got, slot.rank)
			}
			seen[slot.rank] = true
		}
		if slices.Contains(seen, false) {
			t.Errorf("%s: a token is missing", name)
		}
	}
}
