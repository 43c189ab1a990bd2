// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
)

func TestApply(t *testing.T) {
	for _, tt := range []struct {
		name  string
		text  string
		edits []edit.Edit
		want  string
		hits  []edit.Hit
	}{
		{
			"code points", "héllo 世界!",
			[]edit.Edit{{Old: "世界", New: "world"}},
			"héllo world!",
			[]edit.Hit{{Layer: artel.LayerExact, Similarity: 1, Matched: "世界", Start: 6, End: 8, Count: 1}},
		},
		{
			"each on what the one before left", "ab",
			[]edit.Edit{{Old: "b", New: "😀c"}, {Old: "c", New: ""}},
			"a😀",
			[]edit.Hit{
				{Layer: artel.LayerExact, Similarity: 1, Matched: "b", Start: 1, End: 2, Count: 1},
				{Layer: artel.LayerExact, Similarity: 1, Matched: "c", Start: 2, End: 3, Count: 1},
			},
		},
		{
			"all places, from the left", "aaa\na é aa",
			[]edit.Edit{{Old: "aa", New: "b", ReplaceAll: true}},
			"ba\na é b",
			[]edit.Hit{{
				Layer: artel.LayerExact, Similarity: 1, Matched: "aa", Start: 0, End: 2, Count: 2,
				Places: []edit.Place{{Line: 1, Start: 0, End: 2}, {Line: 2, Start: 8, End: 10}},
			}},
		},
		{
			"the whole text", "all",
			[]edit.Edit{{Old: "all", New: ""}},
			"",
			[]edit.Hit{{Layer: artel.LayerExact, Similarity: 1, Matched: "all", Start: 0, End: 3, Count: 1}},
		},
		{
			"a byte order mark and NUL stay", "\ufeffa\x00b\r\n",
			[]edit.Edit{{Old: "b", New: "c"}},
			"\ufeffa\x00c\r\n",
			[]edit.Hit{{Layer: artel.LayerExact, Similarity: 1, Matched: "b", Start: 3, End: 4, Count: 1}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := edit.Apply(t.Context(), tt.text, tt.edits, edit.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if r.Text != tt.want {
				t.Errorf("text %q, want %q", r.Text, tt.want)
			}
			if diff := cmp.Diff(tt.hits, r.Hits); diff != "" {
				t.Errorf("hits (-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusals(t *testing.T) {
	lines := func(n int, s string) string { return strings.Repeat(s+"\n", n) }
	for _, tt := range []struct {
		name    string
		text    string
		edits   []edit.Edit
		options edit.Options
		want    edit.Refusal // Message: what the message has to hold
	}{
		{"nowhere", "abc", []edit.Edit{{Old: "x"}}, edit.Options{}, edit.Refusal{Kind: edit.NotFound, Message: "copy the passage exactly"}},
		{"nowhere, of all", "abc", []edit.Edit{{Old: "x", ReplaceAll: true}}, edit.Options{}, edit.Refusal{Kind: edit.NotFound, Message: "not there"}},
		{"in an empty text", "", []edit.Edit{{Old: "x"}}, edit.Options{}, edit.Refusal{Kind: edit.NotFound}},
		{
			"two places", "1\n2\n3\nfoo\n" + lines(14, "-") + "a foo",
			[]edit.Edit{{Old: "foo", New: "b"}},
			edit.Options{},
			edit.Refusal{
				Kind: edit.Ambiguous, Message: "2 places match; give more of the line: lines 4, 19",
				Places: []edit.Place{{Line: 4, Start: 6, End: 9}, {Line: 19, Start: 40, End: 43}},
			},
		},
		{
			"overlapping places", "aaa",
			[]edit.Edit{{Old: "aa", New: "b"}},
			edit.Options{},
			edit.Refusal{
				Kind: edit.Ambiguous, Message: "2 places match; give more of the line: line 1",
				Places: []edit.Place{{Line: 1, Start: 0, End: 2}, {Line: 1, Start: 1, End: 3}},
			},
		},
		{"the second edit", "ab", []edit.Edit{{Old: "a", New: "c"}, {Old: "a", New: "d"}}, edit.Options{}, edit.Refusal{Edit: 1, Kind: edit.NotFound}},
		{"no edit", "a", nil, edit.Options{}, edit.Refusal{Kind: edit.Invalid, Message: "no edit"}},
		{"empty", "", []edit.Edit{{Old: "", New: "a"}}, edit.Options{}, edit.Refusal{Kind: edit.Invalid, Message: "empty"}},
		{"no change", "a", []edit.Edit{{Old: "a", New: "a"}}, edit.Options{}, edit.Refusal{Kind: edit.Invalid, Message: "the same"}},
		{"bad text", "a\xff", []edit.Edit{{Old: "a", New: "b"}}, edit.Options{}, edit.Refusal{Kind: edit.Invalid, Message: "UTF-8"}},
		{"bad old", "a", []edit.Edit{{Old: "a\xc3", New: "b"}}, edit.Options{}, edit.Refusal{Kind: edit.Invalid, Message: "UTF-8"}},
		{"bad new", "a", []edit.Edit{{Old: "a", New: "\xed\xa0\x80"}}, edit.Options{}, edit.Refusal{Kind: edit.Invalid, Message: "UTF-8"}},
		{"a mode of no kind", "a", []edit.Edit{{Old: "a", New: "b"}}, edit.Options{Mode: "loose"}, edit.Refusal{Kind: edit.Invalid, Message: "loose"}},
		{"a long text", "abcde", []edit.Edit{{Old: "a", New: "b"}}, edit.Options{MaxText: 4}, edit.Refusal{Kind: edit.TooCostly, Message: "at most 4"}},
		{"growth", "abcd", []edit.Edit{{Old: "a", New: "xx"}}, edit.Options{MaxText: 4}, edit.Refusal{Kind: edit.TooCostly, Message: "at most 4"}},
		{"growth of all", "aaxx", []edit.Edit{{Old: "a", New: "xx", ReplaceAll: true}}, edit.Options{MaxText: 5}, edit.Refusal{Kind: edit.TooCostly, Message: "at most 5"}},
		{"a long pattern", "a", []edit.Edit{{Old: strings.Repeat("é", edit.MaxOld+1), New: "b"}}, edit.Options{}, edit.Refusal{Kind: edit.TooCostly, Message: "at most 100000"}},
		{"too many edits", "a", make([]edit.Edit, 5000), edit.Options{}, edit.Refusal{Kind: edit.TooCostly, Message: "5000 edits"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := edit.Apply(t.Context(), tt.text, tt.edits, tt.options)
			var got *edit.Refusal
			if !errors.As(err, &got) {
				t.Fatalf("got %v, want a refusal", err)
			}
			if diff := cmp.Diff(edit.Result{}, r); diff != "" {
				t.Errorf("a refusal came with a result:\n%s", diff)
			}
			if !strings.Contains(got.Message, tt.want.Message) {
				t.Errorf("message %q, want %q in it", got.Message, tt.want.Message)
			}
			tt.want.Message = got.Message
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestRefusalListsFewPlaces(t *testing.T) {
	_, err := edit.Apply(t.Context(), strings.Repeat("a\n", 100_000), []edit.Edit{{Old: "a", New: "b"}}, edit.Options{})
	var r *edit.Refusal
	if !errors.As(err, &r) || len(r.Places) != edit.MaxPlaces {
		t.Fatalf("got %v", err)
	}
	if want := "100000 places match; give more of the line: lines 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …"; r.Message != want {
		t.Errorf("got %q, want %q", r.Message, want)
	}
	if !errors.Is(err, artel.Invalid) {
		t.Error("an ambiguous edit is not of kind invalid")
	}
}

func TestApplyHonorsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := edit.Apply(ctx, "a", []edit.Edit{{Old: "a", New: "b"}}, edit.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// Very many places are journalled as one span, and still replay.
func TestReplaceAllOfVeryMany(t *testing.T) {
	text := "<" + strings.Repeat("ab", 5000) + ">"
	r, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: "a", New: "é", ReplaceAll: true}}, edit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Changes) != 1 || r.Hits[0].Count != 5000 || len(r.Hits[0].Places) != edit.MaxPlaces {
		t.Errorf("%d changes, %d places, %d listed", len(r.Changes), r.Hits[0].Count, len(r.Hits[0].Places))
	}
	if got, err := edit.ApplyChanges(text, r.Changes); err != nil || got != r.Text || got != strings.ReplaceAll(text, "a", "é") {
		t.Errorf("replay differs: %v", err)
	}
}

// Letters from a small alphabet make matches, overlaps and borders likely.
func words(least, most int) *rapid.Generator[string] {
	return rapid.StringOfN(rapid.SampledFrom([]rune("aaabé世\n")), least, most, -1)
}

// oracle says where old stands in text, by definition.
func oracle(text, old string) (starts []int) {
	for i := range text {
		if strings.HasPrefix(text[i:], old) {
			starts = append(starts, i)
		}
	}
	return starts
}

func TestApplyAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := words(0, 60).Draw(t, "text")
		e := edit.Edit{Old: words(1, 5).Draw(t, "old"), New: words(0, 4).Draw(t, "new"), ReplaceAll: rapid.Bool().Draw(t, "all")}
		if e.Old == e.New {
			return
		}
		r, err := edit.Apply(t.Context(), text, []edit.Edit{e}, edit.Options{})
		starts := oracle(text, e.Old)
		switch {
		case len(starts) == 0:
			wantRefusal(t, err, edit.NotFound)
		case len(starts) > 1 && !e.ReplaceAll:
			wantRefusal(t, err, edit.Ambiguous)
			if want := fmt.Sprintf("%d places", len(starts)); !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("%q does not begin with %q", err, want)
			}
			var refusal *edit.Refusal
			errors.As(err, &refusal)
			for i, p := range refusal.Places {
				before := text[:starts[i]]
				if p.Start != utf8.RuneCountInString(before) || p.Line != strings.Count(before, "\n")+1 {
					t.Fatalf("place %d is %+v", i, p)
				}
			}
		default:
			n := 1
			if e.ReplaceAll {
				n = -1
			}
			if want := strings.Replace(text, e.Old, e.New, n); err != nil || r.Text != want {
				t.Fatalf("got %q and %v, want %q", r.Text, err, want)
			}
			h := r.Hits[0]
			if got := string([]rune(text)[h.Start:h.End]); got != h.Matched || got != e.Old {
				t.Fatalf("the span holds %q, matched is %q", got, h.Matched)
			}
		}
	})
}

func wantRefusal(t *rapid.T, err error, k edit.RefusalKind) {
	t.Helper()
	var r *edit.Refusal
	if !errors.As(err, &r) || r.Kind != k {
		t.Fatalf("got %v, want a refusal: %s", err, k)
	}
}

// Long old texts in long texts are looked for by leaps.
func TestLongOldAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		unit := words(1, 300).Draw(t, "unit")
		old := strings.Repeat(unit, 1+rapid.IntRange(64, 2000).Draw(t, "length")/len(unit))
		var b strings.Builder
		for b.Len() < 5000 {
			switch rapid.IntRange(0, 3).Draw(t, "next") {
			case 0:
				b.WriteString(old)
			case 1:
				b.WriteString(old[:len(unit)*rapid.IntRange(0, len(old)/len(unit)).Draw(t, "part")])
			case 2:
				b.WriteString(words(0, 30).Draw(t, "else"))
			default:
				b.WriteString(strings.Repeat("b\n", rapid.IntRange(0, 500).Draw(t, "far")))
			}
		}
		text := b.String()
		_, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: old, New: "!"}}, edit.Options{Mode: edit.Exact})
		switch starts := oracle(text, old); len(starts) {
		case 0:
			wantRefusal(t, err, edit.NotFound)
		case 1:
			if err != nil {
				t.Fatal(err)
			}
		default:
			wantRefusal(t, err, edit.Ambiguous)
			if want := fmt.Sprintf("%d places", len(starts)); !strings.HasPrefix(err.Error(), want) {
				t.Fatalf("%q does not begin with %q", err, want)
			}
		}
		if len(oracle(text, old)) > 0 {
			r, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: old, New: "!", ReplaceAll: true}}, edit.Options{Mode: edit.Exact})
			if want := strings.ReplaceAll(text, old, "!"); err != nil || r.Text != want {
				t.Fatalf("got %q, %v; want %q", r.Text, err, want)
			}
		}
	})
}

func TestSeveralEdits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := words(0, 60).Draw(t, "text")
		edits := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) edit.Edit {
			return edit.Edit{Old: words(1, 4).Draw(t, "old"), New: words(0, 4).Draw(t, "new"), ReplaceAll: rapid.Bool().Draw(t, "all")}
		}), 1, 5).Draw(t, "edits")
		r, err := edit.Apply(t.Context(), text, edits, edit.Options{})

		// One by one has to come to the same.
		want, changes := text, []artel.Change(nil)
		for i, e := range edits {
			one, oneErr := edit.Apply(t.Context(), want, []edit.Edit{e}, edit.Options{})
			if oneErr != nil {
				var all, single *edit.Refusal
				if !errors.As(err, &all) || !errors.As(oneErr, &single) || all.Edit != i || all.Message != single.Message {
					t.Fatalf("together: %v; alone, edit %d: %v", err, i, oneErr)
				}
				if r.Text != "" || r.Hits != nil || r.Changes != nil {
					t.Fatal("a refusal left something done")
				}
				return
			}
			untouched(t, want, one)
			want, changes = one.Text, append(changes, one.Changes...)
		}
		if err != nil || r.Text != want || len(r.Hits) != len(edits) {
			t.Fatalf("together: %q, %v; one by one: %q", r.Text, err, want)
		}
		if diff := cmp.Diff(changes, r.Changes); diff != "" {
			t.Fatal(diff)
		}
		replay, err := edit.ApplyChanges(text, r.Changes)
		if err != nil || replay != r.Text {
			t.Fatalf("replay: %q, %v; want %q", replay, err, r.Text)
		}
	})
}

// A fatal is a test, of rapid or not.
type fatal interface {
	Helper()
	Fatalf(format string, args ...any)
}

// untouched checks that each change of r left all outside its span alone.
func untouched(t fatal, text string, r edit.Result) {
	t.Helper()
	for i, c := range r.Changes {
		runes := []rune(text)
		if string(runes[c.Start:c.End]) != c.Old {
			t.Fatalf("change %d: %q stands in the span, not %q", i, string(runes[c.Start:c.End]), c.Old)
		}
		text = string(runes[:c.Start]) + c.New + string(runes[c.End:])
	}
	if text != r.Text {
		t.Fatalf("the spans make %q, the text is %q", text, r.Text)
	}
}

func TestApplyChangesRefuses(t *testing.T) {
	for _, c := range []artel.Change{
		{Start: 0, End: 1, Old: "b"},
		{Start: 0, End: 2, Old: "a"},
		{Start: -1, End: 0, Old: "a"},
		{Start: 3, End: 4, Old: "a"},
		{Start: 4, End: 4, Old: ""},
		{Start: 2, End: 1, Old: ""},
		{Start: 1, End: 1 << 62, Old: "é"},
	} {
		if got, err := edit.ApplyChanges("aéa", []artel.Change{c}); !errors.Is(err, artel.Conflict) {
			t.Errorf("%+v: got %q, %v", c, got, err)
		}
	}
	if got, err := edit.ApplyChanges("aéa", []artel.Change{{Start: 3, End: 3, New: "b"}, {Start: 0, End: 1, Old: "a"}}); err != nil || got != "éab" {
		t.Errorf("got %q, %v", got, err)
	}
}

func FuzzApply(f *testing.F) {
	f.Add("héllo héllo", "llo", "y", true)
	f.Add("aaaa", "aa", "", false)
	f.Add("a\xff", "a", "\xff", false)
	f.Fuzz(func(t *testing.T, text, old, repl string, all bool) {
		r, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: old, New: repl, ReplaceAll: all}}, edit.Options{})
		if err != nil {
			var refusal *edit.Refusal
			if !errors.As(err, &refusal) || refusal.Message == "" {
				t.Fatalf("got %v", err)
			}
			return
		}
		replay, err := edit.ApplyChanges(text, r.Changes)
		if err != nil || replay != r.Text || !utf8.ValidString(r.Text) {
			t.Fatalf("replay: %q, %v; want %q", replay, err, r.Text)
		}
	})
}

func FuzzApplyChanges(f *testing.F) {
	f.Add("héllo", 1, 2, "é", "e", 0, 1, "h", "")
	f.Fuzz(func(t *testing.T, text string, s1, e1 int, o1, n1 string, s2, e2 int, o2, n2 string) {
		_, err := edit.ApplyChanges(text, []artel.Change{{Start: s1, End: e1, Old: o1, New: n1}, {Start: s2, End: e2, Old: o2, New: n2}})
		if err != nil && !errors.Is(err, artel.Conflict) {
			t.Fatal(err)
		}
	})
}
