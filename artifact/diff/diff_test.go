// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

// mustLines compares and fails the test where that fails.
func mustLines(t testing.TB, old, new string, o Options) Diff {
	t.Helper()
	d, err := Lines(t.Context(), old, new, o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// sketch writes the lines of a diff short: sign, text, and ends that are not "\n".
func sketch(d Diff) string {
	var out strings.Builder
	for _, h := range d.Hunks {
		fmt.Fprintf(&out, "@ %d+%d %d+%d\n", h.OldStart, h.OldLines, h.NewStart, h.NewLines)
		for _, l := range h.Lines {
			out.WriteString(map[Op]string{Equal: " ", Added: "+", Removed: "-"}[l.Op] + l.Text)
			if l.End != "\n" {
				fmt.Fprintf(&out, "%q", l.End)
			}
			out.WriteString("\n")
		}
	}
	return out.String()
}

func TestLines(t *testing.T) {
	tests := []struct {
		name, old, new string
		o              Options
		want           string
	}{
		{"equal", "a\nb\n", "a\nb\n", Options{}, ""},
		{"both empty", "", "", Options{}, ""},
		{"from nothing", "", "a\nb", Options{}, "@ 0+0 1+2\n+a\n+b\"\"\n"},
		{"to nothing", "a\n", "", Options{}, "@ 1+1 0+0\n-a\n"},
		{"one line", "a\n", "b\n", Options{}, "@ 1+1 1+1\n-a\n+b\n"},
		{"the end of the last line", "a\nb", "a\nb\n", Options{}, "@ 1+2 1+2\n a\n-b\"\"\n+b\n"},
		{"line ends", "a\r\nb\n", "a\nb\n", Options{}, "@ 1+2 1+2\n-a\"\\r\\n\"\n+a\n b\n"},
		{"carriage returns inside", "a\rb\r", "a\rb\r\n", Options{}, "@ 1+1 1+1\n-a\rb\r\"\"\n+a\rb\"\\r\\n\"\n"},
		{"context", "1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nx\n6\n7\n8\n9\n", Options{}, "@ 2+7 2+7\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n"},
		{"no context", "1\n2\n3\n", "1\n3\n", Options{Context: -1}, "@ 2+1 1+0\n-2\n"},
		{"no context, added", "1\n3\n", "1\n2\n3\n", Options{Context: -1}, "@ 1+0 2+1\n+2\n"},
		{"hunks that touch are one", "1\n2\n3\n4\n5\n", "x\n2\n3\n4\ny\n", Options{Context: 2}, "@ 1+5 1+5\n-1\n+x\n 2\n 3\n 4\n-5\n+y\n"},
		{"context without bounds", "1\n2\n3\n", "1\nx\n3\n", Options{Context: math.MaxInt}, "@ 1+3 1+3\n 1\n-2\n+x\n 3\n"},
		{"hunks apart", "1\n2\n3\n4\n5\n", "x\n2\n3\n4\ny\n", Options{Context: 1}, "@ 1+2 1+2\n-1\n+x\n 2\n@ 4+2 4+2\n 4\n-5\n+y\n"},
		{"removed before added", "a\nb\nc\n", "x\ny\nc\n", Options{}, "@ 1+3 1+3\n-a\n-b\n+x\n+y\n c\n"},
		{"bytes that are no text", "\x00\xff\n\xfe", "\x00\xff\n\xfd", Options{}, "@ 1+2 1+2\n \x00\xff\n-\xfe\"\"\n+\xfd\"\"\n"},
		{
			"a function is added as one passage",
			"func a() {\n\tx()\n}\n\nfunc c() {\n\tx()\n}\n", "func a() {\n\tx()\n}\n\nfunc b() {\n\tx()\n}\n\nfunc c() {\n\tx()\n}\n",
			Options{Context: 1},
			"@ 4+2 4+6\n \n+func b() {\n+\tx()\n+}\n+\n func c() {\n",
		},
		{
			"and at the end of the text",
			"func a() {\n\tx()\n}\n", "func a() {\n\tx()\n}\n\nfunc b() {\n\tx()\n}\n",
			Options{Context: 1},
			"@ 3+1 3+5\n }\n+\n+func b() {\n+\tx()\n+}\n",
		},
		{
			"a paragraph is removed as one passage",
			"# A\n\ntext\n\n# B\n\nmore\n\n# C\n", "# A\n\ntext\n\n# C\n",
			Options{Context: 1},
			"@ 4+6 4+2\n \n-# B\n-\n-more\n-\n # C\n",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			d := mustLines(t, tt.old, tt.new, tt.o)
			if diff := cmp.Diff(tt.want, sketch(d)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if !d.Minimal || d.Cut || d.Hunks == nil {
				t.Errorf("minimal %v, cut %v, hunks %v", d.Minimal, d.Cut, d.Hunks)
			}
		})
	}
}

func TestLimit(t *testing.T) {
	old := "1\n2\n3\n4\n5\n6\n7\n8\n9\n"
	new := "1\nx\n3\n4\n5\n6\n7\ny\n9\n"
	want := map[int]string{
		1: "",
		2: "@ 1+2 1+1\n 1\n-2\n",
		3: "@ 1+2 1+2\n 1\n-2\n+x\n",
		4: "@ 1+3 1+3\n 1\n-2\n+x\n 3\n",
		5: "@ 1+3 1+3\n 1\n-2\n+x\n 3\n",
		6: "@ 1+3 1+3\n 1\n-2\n+x\n 3\n@ 7+2 7+1\n 7\n-8\n",
	}
	for limit, want := range want {
		d := mustLines(t, old, new, Options{Context: 1, Limit: limit})
		if got := sketch(d); got != want || !d.Cut || d.Stats != (Stats{2, 2}) {
			t.Errorf("limit %d: cut %v, %+v, got\n%swant\n%s", limit, d.Cut, d.Stats, got, want)
		}
	}
	if d := mustLines(t, old, new, Options{Context: 1, Limit: 8}); d.Cut || len(d.Hunks) != 2 {
		t.Errorf("a limit that fits cuts: %s", sketch(d))
	}
}

// TestJSON holds the wire form, which HTTP returns as it is.
func TestJSON(t *testing.T) {
	d := mustLines(t, "same\nthe old one", "same\nthe new one\n", Options{})
	got, err := json.MarshalIndent(d, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"hunks":[{"old_start":1,"old_lines":2,"new_start":1,"new_lines":2,"lines":[
{"op":"equal","old":1,"new":1,"text":"same","end":"\n"},
{"op":"removed","old":2,"text":"the old one","end":"","pair":2,"spans":[{"start":0,"end":4,"changed":false},{"start":4,"end":7,"changed":true},{"start":7,"end":11,"changed":false}]},
{"op":"added","new":2,"text":"the new one","end":"\n","pair":2,"spans":[{"start":0,"end":4,"changed":false},{"start":4,"end":7,"changed":true},{"start":7,"end":11,"changed":false}]}
]}],"stats":{"added":1,"removed":1},"minimal":true,"cut":false}`
	var a, b bytes.Buffer
	if err := errors.Join(json.Compact(&a, got), json.Compact(&b, []byte(want))); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(b.String(), a.String()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if got, _ := json.Marshal(mustLines(t, "", "", Options{})); string(got) != `{"hunks":[],"stats":{"added":0,"removed":0},"minimal":true,"cut":false}` {
		t.Errorf("equal texts: %s", got)
	}
}

// drawTexts gives an old and a new text that resemble each other, or do not.
func drawTexts(t *rapid.T) (old, new string) {
	line := rapid.SampledFrom([]string{
		"a\n", "b\n", "c\n", "\n", "\r\n", "a\r\n", "  x := 1\n", "  x := 2\n", "}\n", "一二三\n", "一二四\n", "\xff\x00\n", "a\r", "the quick fox\n", "the slow fox\n",
	})
	lines := rapid.SliceOfN(line, 0, 40).Draw(t, "lines")
	if rapid.Bool().Draw(t, "apart") {
		return withEnd(t, lines), withEnd(t, rapid.SliceOfN(line, 0, 40).Draw(t, "others"))
	}
	changed := slices.Clone(lines)
	for range rapid.IntRange(0, 6).Draw(t, "changes") {
		i := rapid.IntRange(0, len(changed)).Draw(t, "at")
		j := rapid.IntRange(i, min(i+4, len(changed))).Draw(t, "to")
		changed = slices.Replace(changed, i, j, rapid.SliceOfN(line, 0, 3).Draw(t, "with")...)
	}
	return withEnd(t, lines), withEnd(t, changed)
}

// withEnd joins lines, sometimes without the last end.
func withEnd(t *rapid.T, lines []string) string {
	s := strings.Join(lines, "")
	if rapid.Bool().Draw(t, "open") {
		s = strings.TrimSuffix(s, "\n")
	}
	return s
}

// apply turns the lines of a text that the hunks speak of into the new ones,
// or back, and checks the hunks on its way.
func apply(d Diff, text string, back bool) (string, error) {
	lines := slices.Collect(strings.Lines(text))
	var out strings.Builder
	at := 0
	for n, h := range d.Hunks {
		start, count := h.OldStart, h.OldLines
		gone, come := Removed, Added
		if back {
			start, count, gone, come = h.NewStart, h.NewLines, Added, Removed
		}
		if count > 0 {
			start--
		}
		if start < at || start > len(lines) {
			return "", fmt.Errorf("hunk %d begins at %d of %d, after %d", n, start, len(lines), at)
		}
		out.WriteString(strings.Join(lines[at:start], ""))
		at = start
		for _, l := range h.Lines {
			if l.Op == gone || l.Op == Equal {
				if at >= len(lines) || lines[at] != l.Text+l.End {
					return "", fmt.Errorf("hunk %d: line %d is not %q", n, at+1, l.Text+l.End)
				}
				at++
				count--
			}
			if l.Op == come || l.Op == Equal {
				out.WriteString(l.Text + l.End)
			}
		}
		if count != 0 {
			return "", fmt.Errorf("hunk %d counts %d lines too many", n, count)
		}
	}
	out.WriteString(strings.Join(lines[at:], ""))
	return out.String(), nil
}

// check holds a diff to everything that is promised of it.
func check(d Diff, old, new string, o Options) error {
	for _, way := range []struct {
		back     bool
		from, to string
	}{{false, old, new}, {true, new, old}} {
		got, err := apply(d, way.from, way.back)
		if err != nil {
			return err
		}
		if got != way.to {
			return fmt.Errorf("applied (back: %v) it gives %q, want %q", way.back, got, way.to)
		}
	}
	var stats Stats
	for _, h := range d.Hunks {
		i, j := h.OldStart, h.NewStart
		if h.OldLines == 0 {
			i++
		}
		if h.NewLines == 0 {
			j++
		}
		equal, changed, last := 0, false, Equal
		for _, l := range h.Lines {
			if strings.Contains(l.Text, "\n") || l.End != "" && l.End != "\n" && l.End != "\r\n" {
				return fmt.Errorf("a line of text %q and end %q", l.Text, l.End)
			}
			if l.Op == Removed && last == Added {
				return errors.New("a removed line follows an added one")
			}
			last = l.Op
			if l.Op == Equal {
				if equal++; changed && equal > 2*o.Context || !changed && equal > o.Context {
					return errors.New("too much context")
				}
			} else {
				equal, changed = 0, true
			}
			wantOld, wantNew := 0, 0
			if l.Op != Added {
				wantOld = i
				i++
			}
			if l.Op != Removed {
				wantNew = j
				j++
			}
			if l.Old != wantOld || l.New != wantNew {
				return fmt.Errorf("line %q is numbered %d, %d, want %d, %d", l.Text, l.Old, l.New, wantOld, wantNew)
			}
			switch l.Op {
			case Added:
				stats.Added++
			case Removed:
				stats.Removed++
			}
		}
		if !changed || equal > o.Context {
			return fmt.Errorf("changed %v, %d lines of context at the end", changed, equal)
		}
		if err := checkSpans(h); err != nil {
			return err
		}
	}
	if !d.Cut && stats != d.Stats {
		return fmt.Errorf("%+v are counted, there are %+v", d.Stats, stats)
	}
	return nil
}

// checkSpans holds pairs and spans of a hunk to what is promised.
func checkSpans(h Hunk) error {
	added := map[int]Line{}
	for _, l := range h.Lines {
		if l.Op == Added {
			added[l.New] = l
		}
	}
	before := 0
	for _, l := range h.Lines {
		at := 0
		for n, s := range l.Spans {
			if s.Start != at || s.End <= s.Start || n > 0 && s.Changed == l.Spans[n-1].Changed {
				return fmt.Errorf("spans %v", l.Spans)
			}
			at = s.End
		}
		if len(l.Spans) > 0 && (at != utf8.RuneCountInString(l.Text) || l.Pair == 0) {
			return fmt.Errorf("spans %v of %q with pair %d", l.Spans, l.Text, l.Pair)
		}
		if l.Op != Removed || l.Pair == 0 {
			continue
		}
		other, ok := added[l.Pair]
		if !ok || other.Pair != l.Old || l.Pair <= before {
			return fmt.Errorf("line %d is paired with %d, which is paired with %d, after %d", l.Old, l.Pair, other.Pair, before)
		}
		before = l.Pair
		if a, b := unchanged(l), unchanged(other); a != b {
			return fmt.Errorf("unchanged are %q and %q", a, b)
		}
	}
	return nil
}

func unchanged(l Line) string {
	var out strings.Builder
	text := []rune(l.Text)
	for _, s := range l.Spans {
		if !s.Changed {
			out.WriteString(string(text[s.Start:s.End]))
		}
	}
	return out.String()
}

func TestLinesProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawTexts(t)
		o := Options{Context: rapid.IntRange(1, 5).Draw(t, "context")}
		d, err := Lines(context.Background(), old, new, o)
		if err != nil {
			t.Fatal(err)
		}
		if err := check(d, old, new, o); err != nil {
			t.Fatalf("%v\n%s", err, sketch(d))
		}
		a, b := slices.Collect(strings.Lines(old)), slices.Collect(strings.Lines(new))
		if want := len(a) + len(b) - 2*longest(a, b); !d.Minimal || d.Stats.Added+d.Stats.Removed != want {
			t.Fatalf("%+v, minimal %v, want %d changed lines\n%s", d.Stats, d.Minimal, want, sketch(d))
		}
		again, _ := Lines(context.Background(), old, new, o)
		if diff := cmp.Diff(d, again); diff != "" {
			t.Fatalf("another result the second time\n%s", diff)
		}
	})
}

// TestHurried holds what is promised beyond minimality where the limits end
// searches early.
func TestHurried(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawTexts(t)
		l := limits{edits: rapid.IntRange(1, 4).Draw(t, "edits"), work: rapid.IntRange(0, 60).Draw(t, "work")}
		o := Options{Context: 2}
		d, err := lines(context.Background(), old, new, o, func(int) limits { return l })
		if err != nil {
			t.Fatal(err)
		}
		if err := check(d, old, new, o); err != nil {
			t.Fatalf("%v\n%s", err, sketch(d))
		}
		a, b := slices.Collect(strings.Lines(old)), slices.Collect(strings.Lines(new))
		least := len(a) + len(b) - 2*longest(a, b)
		if got := d.Stats.Added + d.Stats.Removed; got < least || d.Minimal && got != least {
			t.Fatalf("%d changed lines, minimal %v, the least is %d", got, d.Minimal, least)
		}
	})
}

// longest is the length of a longest common subsequence, by the table.
func longest[T comparable](a, b []T) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if x == y {
				row[j+1] = diagonal + 1
			} else {
				row[j+1] = max(above, row[j])
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

func FuzzLines(f *testing.F) {
	for _, seed := range [][2]string{
		{"", ""}, {"a", "a\n"}, {"a\r\nb", "a\nb\r"}, {"\x00\n\xff", "\xff\n\x00"}, {"你好世界\n", "你好，世界\n"}, {"a\na\na\n", "a\na\n"}, {"é\n", "e\u0301\n"},
	} {
		f.Add(seed[0], seed[1], 3)
	}
	f.Fuzz(func(t *testing.T, old, new string, around int) {
		o := Options{Context: 1 + max(around, 0)%100}
		d := mustLines(t, old, new, o)
		if err := check(d, old, new, o); err != nil {
			t.Fatal(err)
		}
		for _, way := range []struct {
			from, to string
			back     bool
		}{{old, new, false}, {new, old, true}} {
			got, err := patch(d.Unified("a", "b"), way.from, way.back)
			if err != nil || got != way.to {
				t.Fatalf("%q became %q by\n%s%v", way.from, got, d.Unified("a", "b"), err)
			}
		}
	})
}

// A countdown is a context that ends after it was asked so many times.
type countdown struct {
	context.Context
	left int
}

func (c *countdown) Err() error {
	if c.left--; c.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestCanceled ends the context at each place where it is looked at.
func TestCanceled(t *testing.T) {
	old, new := "one two\na\nb\nc\na\nb\nb\na\n", "one three\nc\nb\na\nb\na\nc\n"
	for name, do := range map[string]func(ctx context.Context) error{
		"Lines": func(ctx context.Context) error {
			_, err := Lines(ctx, old, new, Options{})
			return err
		},
		"Merge": func(ctx context.Context) error {
			_, err := Merge(ctx, old, new, "c\na\nb\n", MergeOptions{})
			return err
		},
	} {
		looks := 0
		for ; ; looks++ {
			err := do(&countdown{t.Context(), looks})
			if err == nil {
				break
			}
			if artel.KindOf(err) != artel.Canceled || !errors.Is(err, context.Canceled) {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if looks < 4 {
			t.Errorf("%s looks at the context %d times", name, looks)
		}
	}
	if _, err := compare(&countdown{t.Context(), 3}, hostile(2000)["two kinds"][0], hostile(2000)["two kinds"][1], 2, lineLimits(4000)); err == nil {
		t.Error("a long search does not look at the context")
	}
}
