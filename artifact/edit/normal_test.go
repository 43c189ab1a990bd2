// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
)

func TestNormalized(t *testing.T) {
	for _, tt := range []struct {
		name, text, old, put string
		want                 string
		matched              string
	}{
		{"quotes", "say “hello” to ‹them›", `say "hello" to 'them'`, "x", "x", "say “hello” to ‹them›"},
		{"quotes of the old text", `say "hello"`, "say “hello”", "x", "x", `say "hello"`},
		{"an apostrophe", "it’s so", "it's", "x", "x so", "it’s"},
		{"dashes", "a – b — c − d", "a - b - c - d", "x", "x", "a – b — c − d"},
		{"hyphens", "non\u2011breaking \u2010", "non-breaking -", "x", "x", "non\u2011breaking \u2010"},
		{"spaces", "a\u00a0b\u3000c\u2009d\u1680e", "a b c d e", "x", "x", "a\u00a0b\u3000c\u2009d\u1680e"},
		{"composition", "un cafe\u0301!", "un café", "x", "x!", "un cafe\u0301"},
		{"decomposition", "un café!", "un cafe\u0301", "x", "x!", "un café"},
		{"syllables", "\u1112\u1161\u11ab글 한", "한글", "x", "x 한", "\u1112\u1161\u11ab글"},
		{"expansion", "chapter Ⅳ: the ﬁrst…", "chapter IV: the first...", "x", "x", "chapter Ⅳ: the ﬁrst…"},
		{"full width", "版本：１．２（新）", "版本:1.2(新)", "x", "x", "版本：１．２（新）"},
		{"no width", "a\u200bb\u2060c\ufeffd\u00ade", "abcde", "x", "x", "a\u200bb\u2060c\ufeffd\u00ade"},
		{"no width around", "\u200ba\u200bb\u200b", "ab", "x", "\u200bx\u200b", "a\u200bb"},
		{"selectors", "done ✔\ufe0f now", "done ✔ now", "x", "x", "done ✔\ufe0f now"},
		{"blanks at ends of lines", "a  \nb\t\u3000\nc", "a\nb\nc", "x", "x", "a  \nb\t\u3000\nc"},
		{"blanks of the old text", "a\nb\nc", "a \nb  \nc", "x", "x", "a\nb\nc"},
		{"blanks behind the match stay", "“a”  \nb", `"a"`, "x", "x  \nb", "“a”"},
		{"blanks at the end, in the document too", "“a”  \nb", `"a" `, "x", "x\nb", "“a”  "},
		{"a blank at the end that stands there", "“a” b “a”c", `"a" `, "x ", "x b “a”c", "“a” "},
		{"a blank at the end that does not", "“a”, b", `"a" `, "x", "x, b", "“a”"},
		{"line ends", "a\r\nb\r\nc", "a\nb", "x\ny\n", "x\r\ny\r\n\r\nc", "a\r\nb"},
		{"line ends the other way", "a\nb\nc\n", "b\r\nc\r\n", "x\r\ny\r\n", "a\nx\ny\n", "b\nc\n"},
		{"a line end alone", "a\r\nb  \r\nc", "b\n", "", "a\r\nc", "b  \r\n"},
		{"line ends and blanks", "a \t\r\nb", "a\nb", "x", "x", "a \t\r\nb"},
		{"a carriage return alone stays one", "a\rb\u00a0c", "a\rb c", "x", "x", "a\rb\u00a0c"},
		{"spaces between scripts", "用 Go 写 的2 号", "用Go写 的 2号", "x", "x", "用 Go 写 的2 号"},
		{"spaces between scripts, more", "用Go写", "用  Go\u00a0写", "x", "x", "用Go写"},
		{"spaces between scripts, at the edges", "请用 Go\u00a0语言 x", " Go语言x", "y", "请用y", " Go\u00a0语言 x"},
		{"a space before a mark that joins", "“e \u0301”", "\"e \u0301\"", "x", "x", "“e \u0301”"},
		{"the second of two", "ab\n“ab”", `"ab"`, "x", "ab\nx", "“ab”"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := edit.Apply(t.Context(), tt.text, []edit.Edit{{Old: tt.old, New: tt.put}}, edit.Options{Mode: edit.Normalized})
			if err != nil {
				t.Fatal(err)
			}
			h := r.Hits[0]
			if r.Text != tt.want || h.Matched != tt.matched || h.Layer != artel.LayerNormalized {
				t.Errorf("got %q by %+v, want %q for %q", r.Text, h, tt.want, tt.matched)
			}
			if h.Similarity < 0 || h.Similarity >= 1 {
				t.Errorf("similarity %g", h.Similarity)
			}
			untouched(t, tt.text, r)
		})
	}
}

func TestNotNormalized(t *testing.T) {
	for _, tt := range []struct {
		name, text, old string
		want            edit.RefusalKind
	}{
		{"case", "ABC", "abc", edit.NotFound},
		{"blanks inside", "a  b", "a b", edit.NotFound},
		{"tabs inside", "a\tb", "a b", edit.NotFound},
		{"indentation", "  a\n  b", "a\nb", edit.NotFound},
		{"spaces within a script", "中 文", "中文", edit.NotFound},
		{"half a character", "wait… “ok”", "wait..", edit.NotFound},
		{"half a ligature", "ﬁx", "f", edit.NotFound},
		{"nothing but width", "a b", "\u200b", edit.NotFound},
		{"a letter without its accent", "cafe\u0301", "cafe\u2060", edit.NotFound},
		{"two places", "“a”\n‘a’ „a”", `"a"`, edit.Ambiguous},
		{"overlapping places", "“”“”“”", `""""`, edit.Ambiguous},
		{"lines are lines", "a\u2028b", "a\nb", edit.NotFound},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := edit.Apply(t.Context(), tt.text, []edit.Edit{{Old: tt.old, New: "new"}}, edit.Options{Mode: edit.Normalized})
			if !isRefusal(err, tt.want) {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	if _, err := edit.Apply(t.Context(), "“a”", []edit.Edit{{Old: `"a"`, New: "b"}}, edit.Options{Mode: edit.Exact}); !isRefusal(err, edit.NotFound) {
		t.Errorf("the exact mode: %v", err)
	}
}

func TestNormalizedRefusalNamesLines(t *testing.T) {
	_, err := edit.Apply(t.Context(), "“a”\nb\n„a”", []edit.Edit{{Old: `"a"`, New: "b"}}, edit.Options{})
	var r *edit.Refusal
	if !errors.As(err, &r) || r.Message != "2 places match; give more of the line: lines 1, 3" || len(r.Places) != 2 || r.Places[1] != (edit.Place{Line: 3, Start: 6, End: 9}) {
		t.Errorf("got %+v", r)
	}
}

func TestNormalizedReplaceAll(t *testing.T) {
	text := "“a” ‘a’\r\n«a» \"b\"“\"\"“"
	r, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: `”a”`, New: "x\ny", ReplaceAll: true}, {Old: `””`, New: "2", ReplaceAll: true}}, edit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if want := "x\r\ny ‘a’\r\nx\r\ny \"b22“"; r.Text != want {
		t.Errorf("got %q, want %q", r.Text, want)
	}
	if r.Hits[0].Count != 2 || len(r.Hits[0].Places) != 2 {
		t.Errorf("got %+v", r.Hits[0])
	}
	untouched(t, text, r)
}

func TestIndent(t *testing.T) {
	for _, tt := range []struct{ name, text, old, put, want string }{
		{"tabs for spaces", "\t\tif a {\n\t\t\tb()\n\t\t}\n", "    if a {\n        b()\n    }\n", "    if a {\n        c()\n            d()\n    }\n", "\t\tif a {\n\t\t\tc()\n\t\t\t    d()\n\t\t}\n"},
		{"none quoted", "  a\n    b\n", "a\n  b\n", "c\n\n  d\n", "  c\n\n    d\n"},
		{"another level", "        x = 1\n        y = 2\n", "    x = 1\n    y = 2", "    x = 3\n    y = 4", "        x = 3\n        y = 4\n"},
		{"less than known", "\t\ta\n", "  a", "a", "a\n"},
		{"less than known, in kind", "\t  b\n", "    b", "  b\n", "\tb\n\n"},
		{"within a line", "x := a +\n\t\tb\n", "a +\n  b", "c +\n  d", "x := c +\n\t\td\n"},
		{"blank lines", "  a\n\n  b\n", "a\n\nb", "c\n\nd", "  c\n\n  d\n"},
		{"line ends", "\ta\r\n\tb\r\n", "a\nb", "c\nd", "\tc\r\n\td\r\n"},
		{"exact first", "  a\n", "  a", " b", " b\n"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r, err := edit.Apply(t.Context(), tt.text, []edit.Edit{{Old: tt.old, New: tt.put}}, edit.Options{Mode: edit.Normalized, Indent: true})
			if err != nil {
				t.Fatal(err)
			}
			if r.Text != tt.want {
				t.Errorf("got %q, want %q", r.Text, tt.want)
			}
			untouched(t, tt.text, r)
		})
	}
	all, err := edit.Apply(t.Context(), "\ta\n  a; a", []edit.Edit{{Old: "   a", New: "   b", ReplaceAll: true}}, edit.Options{Indent: true})
	if err != nil || all.Text != "\tb\n  b; b" {
		t.Errorf("got %q, %v", all.Text, err)
	}
}

// respell writes a line in another way that normalisation takes back.
func respell(t *rapid.T, s string) string {
	var b strings.Builder
	for _, r := range s {
		ways := map[rune][]string{
			'"': {"“", "”", "«", "„", "＂"}, '\'': {"’", "‘", "′"}, '-': {"–", "—", "\u2011", "－"}, ' ': {"\u00a0", "\u2003", "\u3000"},
			'é': {"e\u0301"}, '.': {"．"}, 'f': {"ｆ"}, '\n': {"\r\n", " \n", "\t\u200b \r\n"}, 'k': {"k\u200b", "\u2060k"},
		}[r]
		if len(ways) > 0 && rapid.Bool().Draw(t, "respell") {
			b.WriteString(rapid.SampledFrom(ways).Draw(t, "as"))
			continue
		}
		b.WriteRune(r)
	}
	return b.String()
}

// A passage that is written otherwise on either side is found where it stands.
func TestRespelled(t *testing.T) {
	line := rapid.StringOfN(rapid.SampledFrom([]rune("ak fé'\"-.中 文")), 0, 12, -1)
	rapid.Check(t, func(t *rapid.T) {
		before, passage, after := line.Draw(t, "before"), "<"+line.Draw(t, "first")+"\n"+line.Draw(t, "second")+">", line.Draw(t, "after")
		there := respell(t, passage)
		text := before + "\n" + there + "\n" + after
		e := edit.Edit{Old: respell(t, passage), New: "new"}
		d := edit.NewDocument(text)
		for range 2 { // the second time from what the document remembers
			r, err := d.Apply(t.Context(), []edit.Edit{e}, edit.Options{Mode: edit.Normalized})
			if err != nil {
				t.Fatalf("%q in %q: %v", e.Old, text, err)
			}
			if want := before + "\nnew\n" + after; r.Text != want || r.Hits[0].Matched != there || d.Text() != text {
				t.Fatalf("got %q, want %q", r.Text, want)
			}
		}
	})
}

func FuzzNormalized(f *testing.F) {
	f.Add("“a”\r\nb\t\n中 c ﬁ…", "\"a\"\nb\n中c", "x\ny", true, false)
	f.Add("cafe\u0301 \u3000", "café ", "", false, true)
	f.Fuzz(func(t *testing.T, text, old, put string, all, indent bool) {
		r, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: old, New: put, ReplaceAll: all}}, edit.Options{Mode: edit.Normalized, Indent: indent})
		if err != nil {
			var refusal *edit.Refusal
			if !errors.As(err, &refusal) || refusal.Message == "" {
				t.Fatalf("got %v", err)
			}
			return
		}
		untouched(t, text, r)
	})
}
