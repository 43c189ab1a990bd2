// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// hostile gives sequences of about n elements that are hard to compare.
func hostile(n int) map[string][2][]int32 {
	random := rand.New(rand.NewPCG(1, 2))
	many := func(at func(i int) int) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = int32(at(i))
		}
		return out
	}
	order := random.Perm(n)
	dice := func(sides int) func(int) int { return func(int) int { return random.IntN(sides) } }
	period := func(p int) func(int) int { return func(i int) int { return i % p % 2 } }
	identity := func(i int) int { return i }
	return map[string][2][]int32{
		"all different":  {many(identity), many(func(i int) int { return n + i })},
		"shuffled":       {many(identity), many(func(i int) int { return order[i] })},
		"turned around":  {many(identity), many(func(i int) int { return n - 1 - i })},
		"halves swapped": {many(identity), many(func(i int) int { return (i + n/2) % n })},
		"two kinds":      {many(dice(2)), many(dice(2))},
		"many kinds":     {many(dice(300)), many(dice(300))},
		"pairs reversed": {many(func(i int) int { return i / 2 }), many(func(i int) int { return (n - 1 - i) / 2 })},
		"periods":        {many(period(2)), many(period(3))},
		"long periods":   {many(period(100)), many(period(101))},
		"all equal":      {many(func(int) int { return 0 }), many(func(int) int { return 0 })[:n/2]},
		"every second":   {many(identity), many(func(i int) int { return i * 2 % n })},
	}
}

// checkChanges reports whether what is not marked is equal, in order.
func checkChanges(a, b []int32, c changes) bool {
	return slices.Equal(unmarked(a, c.removed), unmarked(b, c.added))
}

func unmarked(ids []int32, marks []bool) []int32 {
	var out []int32
	for i, id := range ids {
		if !marks[i] {
			out = append(out, id)
		}
	}
	return out
}

// TestSteps holds the cost of hard comparisons to the limits, in steps.
func TestSteps(t *testing.T) {
	for _, n := range []int{2_000, 20_000} {
		for name, in := range hostile(n) {
			l := limits{edits: 200, work: 1 << 18}
			c := &comparison{ctx: t.Context(), ids: 2 * n, limits: l}
			if err := c.run(in[0], in[1]); err != nil {
				t.Fatal(err)
			}
			if !checkChanges(in[0], in[1], c.out) {
				t.Errorf("%s: what is left is not equal", name)
			}
			// The last search within the work may go over it by one diagonal.
			if most := l.work + n + 128*len(in[0]) + 128*len(in[1]); c.steps > most {
				t.Errorf("%s, %d: %d steps, at most %d", name, n, c.steps, most)
			}
		}
	}
}

// TestWithinLimits is minimal where the limits for lines are not reached.
func TestWithinLimits(t *testing.T) {
	const n = 1500
	for name, in := range hostile(n) {
		c, err := compare(t.Context(), in[0], in[1], 2*n, lineLimits(2*n))
		if err != nil {
			t.Fatal(err)
		}
		if want := longest(in[0], in[1]); !c.minimal || len(unmarked(in[0], c.removed)) != want || !checkChanges(in[0], in[1], c) {
			t.Errorf("%s: minimal %v, %d in common, the most is %d", name, c.minimal, len(unmarked(in[0], c.removed)), want)
		}
	}
}

// TestAnchors keeps the longest ordered run of lines that occur once, where
// searches give up at once.
func TestAnchors(t *testing.T) {
	for _, name := range []string{"shuffled", "halves swapped", "turned around"} {
		const n = 2000
		in := hostile(n)[name]
		c, err := compare(t.Context(), in[0], in[1], n, limits{edits: 1, work: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		if got, want := len(unmarked(in[0], c.removed)), longest(in[0], in[1]); got < want*9/10 || c.minimal {
			t.Errorf("%s: %d in common of %d, minimal %v", name, got, want, c.minimal)
		}
	}
}

func TestCompareProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		kinds := rapid.Int32Range(1, 12).Draw(t, "kinds")
		ids := rapid.SliceOfN(rapid.Int32Range(0, kinds-1), 0, 60)
		a, b := ids.Draw(t, "a"), ids.Draw(t, "b")
		l := limits{edits: rapid.IntRange(1, 40).Draw(t, "edits"), work: rapid.IntRange(0, 2000).Draw(t, "work")}
		c, err := compare(context.Background(), a, b, int(kinds), l)
		if err != nil {
			t.Fatal(err)
		}
		if !checkChanges(a, b, c) {
			t.Fatalf("what is left is not equal: %v", c)
		}
		got, want := len(unmarked(a, c.removed)), longest(a, b)
		if got > want || c.minimal && got != want {
			t.Fatalf("%d in common, minimal %v, the most is %d", got, c.minimal, want)
		}
	})
}

func TestIncreasing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.Permutation([]int{0, 1, 2, 3, 4, 5, 6, 7, 8}).Draw(t, "values")
		var got []int
		for _, i := range increasing(values) {
			got = append(got, values[i])
		}
		sorted := slices.Sorted(slices.Values(values))
		if !slices.IsSorted(got) || len(got) != longest(values, sorted) {
			t.Fatalf("%v of %v", got, values)
		}
	})
}

// TestNarrow cuts off what texts have in common, in whole lines.
func TestNarrow(t *testing.T) {
	tests := []struct {
		texts  []string
		keep   int
		want   []string
		before int
	}{
		{[]string{"a\nb\nc\n", "a\nx\nc\n"}, 0, []string{"b\n", "x\n"}, 1},
		{[]string{"a\nb\nc\n", "a\nx\nc\n"}, 1, []string{"a\nb\nc\n", "a\nx\nc\n"}, 0},
		{[]string{"a\nb\nc\nd\ne\n", "a\nb\nx\nd\ne\n"}, 1, []string{"b\nc\nd\n", "b\nx\nd\n"}, 1},
		{[]string{"a\na\n", "a\na\na\n"}, 0, []string{"", "a\n"}, 2},
		{[]string{"ab\n", "b\n"}, 0, []string{"ab\n", "b\n"}, 0},
		{[]string{"x\nab", "x\nb"}, 0, []string{"ab", "b"}, 1},
		{[]string{"", ""}, 3, []string{"", ""}, 0},
		{[]string{"a\nb\nc\nd\n", "a\nb\nd\n", "a\nx\nb\nd\n"}, 0, []string{"b\nc\n", "b\n", "x\nb\n"}, 1},
	}
	for _, tt := range tests {
		texts, err := narrow(t.Context(), tt.keep, tt.texts...)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range texts {
			got = append(got, texts[i].span(0, texts[i].count()))
		}
		if diff := cmp.Diff(tt.want, got); diff != "" || texts[0].before != tt.before {
			t.Errorf("%q, before %d: -want +got\n%s", tt.texts, texts[0].before, diff)
		}
	}
}
