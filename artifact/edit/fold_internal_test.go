// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"math/rand/v2"
	"regexp"
	"slices"
	"sort"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
	"pgregory.net/rapid"
)

// plainly folds text step by step over the whole text.
func plainly(text string, indent bool) string {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	lines := strings.Split(text, "\n")
	for i, l := range lines {
		l = strings.TrimRightFunc(l, isBlank)
		if indent {
			l = strings.TrimLeftFunc(l, isBlank)
		}
		l = norm.NFKC.String(strings.Map(fold, l))
		l = strings.Map(func(r rune) rune {
			if zeroWidth(r) {
				return -1
			}
			return fold(r)
		}, l)
		const cjk = `([\x{2E80}-\x{2FDF}\x{3000}-\x{30FF}\x{31F0}-\x{31FF}\x{3400}-\x{4DBF}\x{4E00}-\x{9FFF}\x{F900}-\x{FAFF}\x{FE30}-\x{FE4F}\x{FF00}-\x{FFEF}\x{20000}-\x{323AF}])`
		l = regexp.MustCompile(cjk+` +([A-Za-z0-9])`).ReplaceAllString(l, "$1$2")
		// A space that a mark joins is no space between two characters.
		l = regexp.MustCompile(`([A-Za-z0-9]) +`+strings.Replace(cjk, `\x{3000}-\x{30FF}`, `\x{3000}-\x{3029}\x{3030}-\x{3098}\x{309B}-\x{30FF}`, 1)).ReplaceAllString(l, "$1$2")
		lines[i] = l
	}
	return strings.Join(lines, "\n")
}

const strange = "abZ9 \t  \r\n\n中文字,。、，Ａ！　\u00a0\u2003“”‘’–—\u2011\u2212…ﬁⅣé\u0301\u0308가ㄱ\u1100\u1161\u11a8が\u3099\u200b\u200d\ufeff\u00adß漢😀\U000205a4\ufe0f\u0345½"

func TestFoldAgainstDefinition(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.StringOf(rapid.SampledFrom([]rune(strange))), rapid.String()).Draw(t, "text")
		indent := rapid.Bool().Draw(t, "indent")
		f := foldText(text, indent)
		if want := plainly(text, indent); f.text() != want {
			t.Fatalf("%q folds to %q, want %q", text, f.text(), want)
		}
		checkFolded(t, text, f)
	})
}

// checkFolded checks that the groups lead from each byte to where it came from.
func checkFolded(t interface {
	Helper()
	Fatalf(string, ...any)
}, text string, f *folded,
) {
	t.Helper()
	at, from := 0, 0
	for _, g := range append(f.groups, group{int32(len(f.text())), int32(len(f.text())), int32(len(text)), int32(len(text)), int32(len(f.by))}) {
		if int(g.at) < at || int(g.from) < from || g.to < g.at || g.till < g.from || f.text()[at:g.at] != text[from:g.from] {
			t.Fatalf("%q: group %+v does not follow %d, %d", text, g, at, from)
		}
		at, from = int(g.to), int(g.till)
	}
	for i := 0; i <= len(f.text()); i++ {
		start, ok := f.start(i)
		end, also := f.end(i)
		if ok != also {
			t.Fatalf("%q: byte %d cuts and does not", text, i)
		}
		if ok && (end > start || i < len(f.text()) && utf8.RuneStart(f.text()[i]) && !utf8.RuneStart((text + "\x00")[start])) {
			t.Fatalf("%q: what ends at byte %d ends at %d, and the rest begins at %d", text, i, end, start)
		}
		if ok && foldedPieces(f, i) && (f.leftOutBefore(i) != end || f.leftOutAfter(i, end) != start) {
			t.Fatalf("%q: left out at %d: %d to %d, want %d to %d", text, i, f.leftOutBefore(i), f.leftOutAfter(i, end), end, start)
		}
	}
}

// foldedPieces reports whether something was left out at byte i.
func foldedPieces(f *folded, i int) bool {
	for _, g := range f.groups {
		if int(g.at) == i && int(g.to) == i {
			return true
		}
	}
	return false
}

// plainLines stops shortly before the first thing that folding may change, and not
// before.
func TestPlainLinesGetFar(t *testing.T) {
	changes := regexp.MustCompile(`[^\x00-\x7f]|[\x00-\x09\x0b-\x20]\n`)
	rapid.Check(t, func(t *rapid.T) {
		plain := rapid.SampledFrom([]string{"a", "b!", "\n", "\n\n", "word ", "\tx", "~\x7f", strings.Repeat("a line\n", 9)})
		odd := rapid.SampledFrom([]string{"é", "的", " \n", "\r\n", "\t\n", "\x00\n"})
		text := ""
		for range rapid.IntRange(1, 4).Draw(t, "parts") {
			text += strings.Join(rapid.SliceOfN(plain, 0, 60).Draw(t, "plain"), "")
			if rapid.Bool().Draw(t, "odd") {
				text += odd.Draw(t, "what is odd")
			}
		}
		till := len(text)
		if first := changes.FindStringIndex(text); first != nil {
			till = first[1] - 1
		}
		if n := plainLines(text, 0); n > till || n < till-2*four {
			t.Fatalf("%q: got as far as %d of %d", text, n, till)
		}
	})
}

// Without being written, a folded text says of what it contains that it may, and of
// most else that it does not.
func TestLacksNothingThatIsThere(t *testing.T) {
	there, lacking := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		text := string(babble(r, rapid.SampledFrom(append(scripts, strange)).Draw(t, "letters"), 2000+r.IntN(8000)))
		lines := strings.SplitAfter(text, " ")
		for range rapid.SampledFrom([]int{0, 1, 30, 1000}).Draw(t, "changed by folding") {
			i := r.IntN(len(lines))
			lines[i] += rapid.SampledFrom([]string{"“", "\u200b", " \n", "\r\n", "，", "ﬁ", "½", "\u00a0"}).Draw(t, "what is changed")
		}
		f := foldText(strings.Join(lines, ""), rapid.Bool().Draw(t, "indent"))
		checkPieces(t, f)
		whole := f.text()
		for range 50 {
			from, size := r.IntN(len(whole)), 1+r.IntN(rapid.SampledFrom([]int{70, 200, 1500}).Draw(t, "size"))
			old := []byte(whole[from:min(len(whole), from+size)])
			if r.IntN(2) == 0 {
				old[r.IntN(len(old))] ^= 1
			}
			switch lacks, contains := f.lacks(string(old), !strings.Contains(f.src, string(old))), strings.Contains(whole, string(old)); {
			case lacks && contains:
				t.Fatalf("%q is said to lack %q", whole, old)
			case lacks:
				lacking++
			case contains:
				there++
			}
		}
	})
	if there < 10 || lacking < 10 {
		t.Errorf("%d were there and %d lacking; the test tests nothing", there, lacking)
	}
}

// checkPieces checks that the pieces from anywhere on are the rest of the text.
func checkPieces(t *rapid.T, f *folded) {
	at := rapid.IntRange(0, f.size).Draw(t, "at")
	k := sort.Search(len(f.groups), func(k int) bool { return int(f.groups[k].to) > at })
	if got := strings.Join(slices.Collect(f.pieces(k, at)), ""); got != f.text()[at:] || f.size != len(f.text()) {
		t.Fatalf("from byte %d of %q: %q", at, f.text(), got)
	}
}

func FuzzFold(f *testing.F) {
	f.Add(strange, false)
	f.Add("\t “a” \r\n 中 a\u0301", true)
	f.Fuzz(func(t *testing.T, text string, indent bool) {
		if !utf8.ValidString(text) {
			return
		}
		g := foldText(text, indent)
		checkFolded(t, text, g)
		if again := foldText(g.text(), indent); len(again.text()) > len(g.text()) {
			t.Fatalf("%q folds to %q, and that to %q", text, g.text(), again.text())
		}
	})
}

// A rare character of a long pattern takes no row of its own.
func TestProfileOfManyCharacters(t *testing.T) {
	pattern := make([]rune, 100_000)
	for i := range pattern {
		pattern[i] = rune(0x20000 + i%50_000)
	}
	p := newProfile(pattern)
	dense := 0
	for _, row := range p.rows {
		dense += len(row)
	}
	if dense > 1<<20 {
		t.Fatalf("rows of %d words", dense)
	}
	for _, r := range []rune{0x20000, 'x', 0x20000 + 49_999, 0x20000, 0x20001} {
		row := p.rowOf(p.number(r))
		for i, want := range pattern {
			if row[i/word]>>(i%word)&1 == 1 != (want == r) {
				t.Fatalf("%U at %d", r, i)
			}
		}
	}
}
