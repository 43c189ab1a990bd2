// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/artelhq/artel/artifact/edit"
)

// Texts that are made to take long either get an answer within the bound of
// work or are refused by it. They are long enough for what is not linear to take
// minutes.
func TestHostile(t *testing.T) {
	const mb = 1 << 20
	long := func(s string, n int) string { return strings.Repeat(s, n/len(s)+1)[:n] }
	many := make([]rune, 100_000)
	for i := range many {
		many[i] = rune(0x20000 + i%40_000)
	}
	for _, tt := range []struct {
		name, text, old string
		options         edit.Options
		want            edit.RefusalKind
	}{
		{"all the same", long("a", mb), "b" + long("a", 198) + "b", edit.Options{}, edit.Ambiguous},
		{"a period", long("abcabd", 2*mb), long("abcabd", 500) + "xyz", edit.Options{}, edit.Ambiguous},
		{"a text shorter than the old one", long("a", 50_000), long("b", 99_000), edit.Options{}, edit.NotFound},
		{"a table", long("| 1.00 | 2.00 | 3.00 |\n", 4*mb), "| 1.00 | 2.O0 | 3.00 |\n| 1.00 | 7.00 |", edit.Options{}, edit.Ambiguous},
		{"a document and an old text as long as can be", long("the cat sat on the mat and saw\n", 20*mb), long("quite another story, all along. ", 100_000), edit.Options{}, edit.TooCostly},
		{"as many characters as there are", long("the cat sat on the mat and saw\n", mb/16), string(many), edit.Options{}, edit.NotFound},
		{"blanks", long(" ", 4*mb) + "\n", long(" ", 5_000) + "x", edit.Options{}, edit.Ambiguous},
		{"quotes", long("“”", 3*mb/2), `""""""""""""`, edit.Options{}, edit.Ambiguous},
		{"marks without end", "a" + long("\u0301", mb/2*2), "á\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301\u0301!", edit.Options{}, edit.Ambiguous},
		{"indented without end", long("\t", mb/2) + long("a b\u00a0c", 3*mb/2), "a b c", edit.Options{Indent: true}, edit.Ambiguous},
		{"lines without end", long("\r\n", mb), "\n\n\n", edit.Options{Mode: edit.Normalized}, edit.Ambiguous},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tt.options.MaxText = 30 * mb
			_, err := edit.Apply(t.Context(), tt.text, []edit.Edit{{Old: tt.old, New: "new"}}, tt.options)
			if !isRefusal(err, tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
}

// Replacing very many normalised places stays one walk.
func TestReplaceAllNormalizedOfVeryMany(t *testing.T) {
	const n = 200_000
	text := "x\n\t" + strings.Repeat("“a”, ", n)
	for _, indent := range []bool{false, true} {
		r, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: `"a",`, New: "b\nc", ReplaceAll: true}}, edit.Options{Indent: indent})
		if err != nil || r.Hits[0].Count != n {
			t.Fatalf("indent %v: %v, %d places", indent, err, len(r.Hits))
		}
		if again, err := edit.ApplyChanges(text, r.Changes); err != nil || again != r.Text {
			t.Errorf("indent %v: replay: %v", indent, err)
		}
	}
}

// What approximate edits may cost together is bounded too.
func TestEditsTogetherAreBounded(t *testing.T) {
	text := strings.Repeat("the cat sat on the mat and saw\n", 1<<15)
	edits := make([]edit.Edit, 900)
	for i := range edits {
		edits[i] = edit.Edit{Old: "the cat", New: "The cat", ReplaceAll: true}
		if i%2 == 1 {
			edits[i] = edit.Edit{Old: "The\u00a0cat", New: "the cat", ReplaceAll: true}
		}
	}
	_, err := edit.Apply(t.Context(), text, edits[:9], edit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	edits = append(edits[:0], edit.Edit{Old: strings.Repeat("Something else entirely. ", 2000), New: "x"})
	if _, err := edit.Apply(t.Context(), strings.Repeat(text, 20), edits, edit.Options{MaxText: 30 << 20}); !isRefusal(err, edit.TooCostly) {
		t.Errorf("got %v", err)
	}
}

// A context that ends, ends a search that is under way.
func TestApproximateHonorsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	text := strings.Repeat("the cat sat on the mat and saw\n", 1<<15)
	done := make(chan error, 1)
	go func() {
		_, err := edit.Apply(ctx, text, []edit.Edit{{Old: strings.Repeat("Something else entirely. ", 2000), New: "x"}}, edit.Options{})
		done <- err
	}()
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
