// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
)

// Input that nobody means, or that nothing was made for, gets an answer that is
// right all the same.
func TestOddInput(t *testing.T) {
	whole := strings.Repeat("All happy families are alike. ", edit.MaxOld/30)
	for _, tt := range []struct {
		name, text, old string
		want            any // the layer, or the kind of a refusal
		matched         string
	}{
		{"white space", "a \t b", " \t ", artel.LayerExact, " \t "},
		{"white space in another form", "a\u00a0b", " ", artel.LayerNormalized, "\u00a0"},
		{"white space that is nowhere", "abc", "   ", edit.NotFound, ""},
		{"much white space that is nowhere", strings.Repeat("word ", 2000), strings.Repeat(" \n", 100), edit.NotFound, ""},
		{"white space everywhere", strings.Repeat(" ", 9000), strings.Repeat(" ", 200), edit.Ambiguous, ""},
		{"blank lines", "a\n\n\nb", "\n\n\n", artel.LayerExact, "\n\n\n"},
		{"nothing to see", "a\u200bb", "\u200b", artel.LayerExact, "\u200b"},
		{"the whole text", whole, whole, artel.LayerExact, whole},
		{"the whole text, nearly", whole, "X" + whole[1:], artel.LayerApproximate, whole},
		{"more than the text", "a b c", "a b c d", edit.NotFound, ""},
		{"overlapping places", "abababa", "aba", edit.Ambiguous, ""},
		{"overlapping places, nearly", strings.Repeat("ab", 5000), strings.Repeat("ab", 100) + "c", edit.Ambiguous, ""},
		{"NUL", "a\x00b\x00\x00c", "\x00\x00", artel.LayerExact, "\x00\x00"},
		{"NUL, nearly", strings.Repeat("x", 5000) + "the\x00quick\x00brown\x00fox", "the\x00quikc\x00brown\x00fox", artel.LayerApproximate, "the\x00quick\x00brown\x00fox"},
		{"controls", "a\x01\x1b[0m\x7fb", "\x1b[0m", artel.LayerExact, "\x1b[0m"},
		{"half a surrogate pair as bytes", "a", "\xed\xa0\x80", edit.Invalid, ""},
		{"half a surrogate pair in the text", "a\xed\xb0\x80", "a", edit.Invalid, ""},
		{"an overlong form", "a", "\xc0\xaf", edit.Invalid, ""},
		{"half a character in the text", "一\xe4\xb8", "一", edit.Invalid, ""},
		{"what stands for what is no character", "a\ufffdb", "\ufffd", artel.LayerExact, "\ufffd"},
		{"the last characters there are", "\U0010ffff\uffff", "\uffff", artel.LayerExact, "\uffff"},
		{"the longest old text", strings.Repeat("一", 3) + strings.Repeat("é", edit.MaxOld), "一" + strings.Repeat("é", edit.MaxOld-1), artel.LayerExact, "一" + strings.Repeat("é", edit.MaxOld-1)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := edit.Apply(t.Context(), tt.text, []edit.Edit{{Old: tt.old, New: "new"}}, edit.Options{})
			if kind, ok := tt.want.(edit.RefusalKind); ok {
				if !isRefusal(err, kind) {
					t.Fatalf("got %v, %+v; want %s", err, r.Hits, kind)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if h := r.Hits[0]; h.Layer != tt.want || h.Matched != tt.matched {
				t.Errorf("got %s for %q", h.Layer, artel.Shorten(h.Matched, 80))
			}
			untouched(t, tt.text, r)
		})
	}
}

// Documents as long as may be are answered, or refused for what it would cost,
// in the time that the bound of steps stands for. What was found is right.
func TestLongestDocuments(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	words := strings.Fields("the a of and to in is it that was for on are with as his they be at one have this from or had by hot but some")
	for range 5000 {
		word := ""
		for range 2 + r.IntN(3) {
			word += []string{"ba", "con", "de", "fi", "gor", "hu", "jes", "ka", "lim", "mo", "nar", "pe", "qui", "ro", "sta", "ten", "ul", "ver", "wy", "zo"}[r.IntN(20)]
		}
		words = append(words, word)
	}
	var b strings.Builder
	for b.Len() < edit.DefaultMaxText-100_000 {
		b.WriteString(words[min(r.IntN(len(words)), r.IntN(len(words)))]) // some more often than others
		b.WriteByte(" \n"[r.IntN(12)/11])
	}
	whole := b.String()
	const part = 3 << 20 // of the documents of which that is enough
	from := part * 3 / 4
	spoil := func(s string, every int) string {
		p := []byte(s)
		for i := every / 2; i < len(p); i += every {
			p[i] = '#'
		}
		return string(p)
	}
	for _, tt := range []struct {
		name, text, old string
		want            edit.RefusalKind // "": found where it was taken
	}{
		{"a typo in twenty", whole, spoil(whole[from:from+200], 20), ""},
		{"a typo in twenty of a long one", whole, spoil(whole[from:from+2000], 20), ""},
		{"a typo in forty of a very long one", whole[:part], spoil(whole[from:from+20_000], 40), ""},
		{"nowhere", whole[:part], strings.Repeat("QX#Z", 50), edit.NotFound},
		{"nowhere, and very long", whole, strings.Repeat("QX#Z", 20_000), edit.TooCostly},
	} {
		began := time.Now()
		got, err := edit.Apply(t.Context(), tt.text, []edit.Edit{{Old: tt.old, New: "new"}}, edit.Options{})
		t.Logf("%s: %v", tt.name, time.Since(began).Round(time.Millisecond))
		var refusal *edit.Refusal
		switch {
		case tt.want != "" && !isRefusal(err, tt.want), tt.want == "" && err != nil:
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		case err != nil && !errors.As(err, &refusal):
			t.Errorf("%s: %v", tt.name, err)
		case err == nil && got.Hits[0].Matched != tt.text[from:from+len(tt.old)]:
			t.Errorf("%s: %q was found", tt.name, artel.Shorten(got.Hits[0].Matched, 80))
		}
	}
}
