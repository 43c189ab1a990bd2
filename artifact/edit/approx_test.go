// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
)

// A reference is the approximate layer by its definition: tables of counts,
// without bits, bands and seeds.
type reference struct {
	text, old []rune
	limits    edit.Limits
}

// table returns the last row of the table of counts of old against text: the
// least distance of a passage that ends behind each character; anchored: of
// the beginning of text up to there.
func table(old, text []rune, anchored bool) []int {
	column := make([]int, len(old)+1)
	for i := range column {
		column[i] = i
	}
	last := []int{len(old)}
	for j, c := range text {
		diagonal := column[0]
		if column[0] = 0; anchored {
			column[0] = j + 1
		}
		for i := 1; i <= len(old); i++ {
			cost := 1
			if old[i-1] == c {
				cost = 0
			}
			diagonal, column[i] = column[i], min(diagonal+cost, column[i]+1, column[i-1]+1)
		}
		last = append(last, column[len(old)])
	}
	return last
}

// find returns the passage, or why there is none.
func (r reference) find() (start, end, distance int, kind edit.RefusalKind) {
	m := len(r.old)
	limit := min(max(r.limits.MinDistance, int(r.limits.MaxRatio*float64(m))), int(max(0.3, r.limits.MaxRatio)*float64(m)), m-1)
	counts := table(r.old, r.text, false)
	distance = slices.Min(counts)
	if m < r.limits.MinLength || limit <= 0 || distance > limit {
		return 0, 0, 0, edit.NotFound
	}
	end, ok := aligned(positions(counts, distance), distance, r.endEdge)
	if !ok {
		return 0, 0, 0, edit.Ambiguous
	}
	back, head := slices.Clone(r.old), slices.Clone(r.text[:end])
	slices.Reverse(back)
	slices.Reverse(head)
	var starts []int
	for _, n := range positions(table(back, head, true), distance) {
		starts = append(starts, end-n)
	}
	start, ok = aligned(starts, distance, r.startEdge)
	if !ok {
		return 0, 0, 0, edit.Ambiguous
	}
	margin := r.limits.Margin
	if margin < 0 {
		margin = max(2, m/10)
	}
	for _, side := range [][]rune{r.text[:start], r.text[end:]} {
		if best := slices.Min(table(r.old, side, false)); best < m && best <= distance+margin {
			return 0, 0, 0, edit.Ambiguous
		}
	}
	return start, end, distance, ""
}

func positions(counts []int, d int) (out []int) {
	for i, c := range counts {
		if c == d && i > 0 {
			out = append(out, i)
		}
	}
	return out
}

type testEdge struct{ line, kind, word bool }

// aligned goes through the three rules; the first that leaves one decides.
// Cuts come from the inside of the passage to the outside, or the other way
// round for ends; neighbors that are left are settled to the outside.
func aligned(cuts []int, distance int, edgeOf func(int) testEdge) (int, bool) {
	for rule := range 3 {
		if len(cuts) == 1 {
			break
		}
		var kept []int
		for _, c := range cuts {
			e := edgeOf(c)
			if []bool{e.line, e.kind, e.word}[rule] {
				kept = append(kept, c)
			}
		}
		if kept != nil {
			cuts = kept
		}
	}
	outside := cuts[len(cuts)-1]
	for i := 1; i < len(cuts); i++ {
		if abs(cuts[i]-cuts[i-1]) != 1 {
			return 0, false
		}
	}
	return outside, len(cuts) <= distance+1
}

func (r reference) startEdge(i int) testEdge {
	lineEnds := func(s []rune) bool { t := string(s); return strings.HasPrefix(t, "\n") || strings.HasPrefix(t, "\r\n") }
	line := i == 0 || r.text[i-1] == '\n'
	if lineEnds(r.old) {
		line = lineEnds(r.text[i:])
	}
	return edgeOf(line, r.at(i-1), r.text[i], r.old[0])
}

func (r reference) endEdge(i int) testEdge {
	after := string(r.text[i:])
	line := after == "" || strings.HasPrefix(after, "\n") || strings.HasPrefix(after, "\r\n")
	if r.old[len(r.old)-1] == '\n' {
		line = r.text[i-1] == '\n'
	}
	return edgeOf(line, r.at(i), r.text[i-1], r.old[len(r.old)-1])
}

func (r reference) at(i int) rune {
	if i < 0 || i >= len(r.text) {
		return -1
	}
	return r.text[i]
}

func edgeOf(line bool, outside, inside, wanted rune) testEdge {
	kind := func(r rune) string {
		switch {
		case r < 0:
			return "nothing"
		case unicode.IsLetter(r), unicode.IsDigit(r), unicode.IsMark(r), r == '_':
			return "word"
		case unicode.IsSpace(r):
			return "space"
		}
		return "mark"
	}
	return testEdge{
		line: line,
		kind: kind(inside) == kind(wanted) && kind(inside) != kind(outside),
		word: kind(inside) == "word" && kind(outside) != "word",
	}
}

var alphabets = map[string]string{
	"two letters":     "ab",
	"few letters":     "abcd \n",
	"words":           "abcdefghijklmnopqrstuvwxyz     .,\n",
	"Chinese":         "甲乙丙丁戊己庚辛壬癸。,\n",
	"many Chinese":    strings.Repeat("的", 3) + "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水玉出昆冈剑号巨阙珠称夜光",
	"combining marks": "aeo\u0301\u0308\u0327é ö",
	"line ends":       "ab\r\n \t",
	"all planes":      "aß漢😀𝒳\U000205a4 ",
}

// draw returns text of an alphabet.
func draw(t *rapid.T, alphabet string, least, most int, label string) []rune {
	return rapid.SliceOfN(rapid.SampledFrom([]rune(alphabet)), least, most).Draw(t, label)
}

// misquote takes a passage of text and edits it at random.
func misquote(t *rapid.T, text []rune, alphabet string, length, edits int) []rune {
	from := rapid.IntRange(0, max(0, len(text)-length)).Draw(t, "from")
	old := slices.Clone(text[from:min(from+length, len(text))])
	for range edits {
		i := rapid.IntRange(0, len(old)).Draw(t, "at")
		c := rapid.SampledFrom([]rune(alphabet)).Draw(t, "character")
		switch how := rapid.IntRange(0, 2).Draw(t, "how"); {
		case how == 0 || len(old) == 0:
			old = slices.Insert(old, i, c)
		case i == len(old):
		case how == 1:
			old[i] = c
		default:
			old = slices.Delete(old, i, i+1)
		}
	}
	return old
}

// A tester is a test, of rapid or not.
type tester interface {
	fatal
	Context() context.Context
}

// against holds Apply to the reference.
func against(t tester, text, old []rune, limits edit.Limits) {
	e := edit.Edit{Old: string(old), New: "new"}
	if e.Old == "" || e.Old == e.New {
		return
	}
	if _, err := edit.Apply(t.Context(), string(text), []edit.Edit{e}, edit.Options{Mode: edit.Normalized}); !isRefusal(err, edit.NotFound) {
		return // a closer layer decides
	}
	r, err := edit.Apply(t.Context(), string(text), []edit.Edit{e}, edit.Options{Limits: &limits})
	start, end, distance, refused := reference{text, old, limits}.find()
	if refused != "" {
		if !isRefusal(err, refused) {
			t.Fatalf("text %q, old %q: got %v, %+v; want %s", string(text), e.Old, err, r.Hits, refused)
		}
		var refusal *edit.Refusal
		errors.As(err, &refusal)
		for _, p := range refusal.Places {
			if p.Start < 0 || p.Start >= p.End || p.End > len(text) || p.Line != strings.Count(string(text[:p.Start]), "\n")+1 {
				t.Fatalf("text %q, old %q: place %+v", string(text), e.Old, p)
			}
		}
		if refused == edit.Ambiguous && len(refusal.Places) != 2 {
			t.Fatalf("text %q, old %q: ambiguous with places %+v", string(text), e.Old, refusal.Places)
		}
		return
	}
	if err != nil {
		t.Fatalf("text %q, old %q: %v; want %d to %d, distance %d", string(text), e.Old, err, start, end, distance)
	}
	h := r.Hits[0]
	if h.Layer != artel.LayerApproximate || h.Start != start || h.End != end || h.Matched != string(text[start:end]) ||
		math.Abs(h.Similarity-(1-float64(distance)/float64(len(old)))) > 1e-9 {
		t.Fatalf("text %q, old %q: got %+v; want %d to %d, distance %d", string(text), e.Old, h, start, end, distance)
	}
	untouched(t, string(text), r)
}

func isRefusal(err error, k edit.RefusalKind) bool {
	var r *edit.Refusal
	return errors.As(err, &r) && r.Kind == k
}

func drawLimits(t *rapid.T) edit.Limits {
	return edit.Limits{
		MaxRatio:    rapid.SampledFrom([]float64{0, 0.1, 0.3, 0.3, 0.5, 1}).Draw(t, "max ratio"),
		MinDistance: rapid.SampledFrom([]int{0, 2, 5}).Draw(t, "min distance"),
		MinLength:   rapid.SampledFrom([]int{0, 0, 12}).Draw(t, "min length"),
		Margin:      rapid.SampledFrom([]int{edit.MarginTenth, edit.MarginTenth, 0, 1, 4, 30}).Draw(t, "margin"),
	}
}

// Small texts reach every corner.
func TestApproximateSmall(t *testing.T) {
	for name, alphabet := range alphabets {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				text := draw(t, alphabet, 0, 50, "text")
				old := misquote(t, text, alphabet, rapid.IntRange(1, 25).Draw(t, "length"), rapid.IntRange(0, 6).Draw(t, "edits"))
				against(t, text, old, drawLimits(t))
			})
		})
	}
}

// Patterns of several blocks in longer texts reach the bands.
func TestApproximateLarge(t *testing.T) {
	for name, alphabet := range alphabets {
		t.Run(name, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				r := rapid.Uint64().Draw(t, "seed")
				letters := []rune(alphabet)
				random := func(n int) int { r = r*6364136223846793005 + 1442695040888963407; return int(r>>33) % n }
				text := make([]rune, rapid.IntRange(0, 2500).Draw(t, "size"))
				for i := range text {
					text[i] = letters[random(len(letters))]
				}
				if len(text) > 0 && rapid.Bool().Draw(t, "repeats") { // a part stands twice, nearly
					from, to, n := random(len(text)), random(len(text)), random(400)
					n = min(n, len(text)-from, len(text)-to)
					copy(text[to:to+n], slices.Clone(text[from:from+n]))
				}
				length := rapid.SampledFrom([]int{12, 63, 64, 65, 128, 200, 300, 700}).Draw(t, "length")
				from := random(max(1, len(text)-length))
				old := slices.Clone(text[from:min(from+length, len(text))])
				for range random(1 + len(old)*rapid.SampledFrom([]int{2, 5, 10, 20, 35}).Draw(t, "edits in percent")/100) {
					i, c := random(len(old)), letters[random(len(letters))]
					switch random(3) {
					case 0:
						old = slices.Insert(old, i, c)
					case 1:
						old[i] = c
					default:
						if len(old) > 1 {
							old = slices.Delete(old, i, i+1)
						}
					}
				}
				if rapid.Bool().Draw(t, "cut") { // the document ends before the old text does
					text = text[:min(len(text), max(0, from+length-random(1+length/4)))]
				}
				against(t, text, old, drawLimits(t))
			})
		})
	}
}

func TestEdges(t *testing.T) {
	for _, tt := range []struct{ name, text, old, want string }{
		{"a word begins", "prefix Introduction to the matter, suffix", "QIntroduction to the matter,", "Introduction to the matter,"},
		{"its first letter is wrong", "prefix Introduction to the matter, suffix", "Xntroduction to the matter,", "Introduction to the matter,"},
		{"a mark for another", "so it was the end of it! Next", "so it was the end of it.", "so it was the end of it!"},
		{"a mark that is not there", "so it was the end of it and so on", "so it was the end of it.", "so it was the end of it"},
		{"a line ends", "so it was the end of it\nNext", "so it was the end of itx", "so it was the end of it"},
		{"a list", "a\n- an item of the list\n", "* an item of the list\n", "- an item of the list\n"},
		{"after punctuation", "。这是一段关于人工智能的文字。", "X是一段关于人工智能的文字。", "这是一段关于人工智能的文字。"},
		{"within a word", "irrelevant as it may seem to you", "Xelevant as it may seem to you", "relevant as it may seem to you"},
	} {
		r, err := edit.Apply(t.Context(), tt.text, []edit.Edit{{Old: tt.old, New: "new"}}, edit.Options{})
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		} else if got := r.Hits[0].Matched; got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
	// The passage could be moved by a whole unit.
	if _, err := edit.Apply(t.Context(), "ccc"+strings.Repeat("a", 25)+"ccc", []edit.Edit{{Old: "b" + strings.Repeat("a", 18) + "b", New: "new"}}, edit.Options{}); !isRefusal(err, edit.Ambiguous) {
		t.Errorf("a passage that can be anywhere: %v", err)
	}
	_, err := edit.Apply(t.Context(), "<abababababababababab>", []edit.Edit{{Old: "Xababababababababa", New: "new"}}, edit.Options{})
	var r *edit.Refusal
	if !errors.As(err, &r) || r.Kind != edit.Ambiguous || !strings.Contains(r.Message, "at which character") || !strings.Contains(r.Message, "line 1") {
		t.Errorf("a tie: %v", err)
	}
}

func TestApproximateRefusals(t *testing.T) {
	const text = "alpha\nthe quick brown fox jumps over it\nomega and more\nthe quick brown fax jumps over it\n"
	_, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: "the quikc brown fox jumps over it", New: "new"}}, edit.Options{})
	var r *edit.Refusal
	if !errors.As(err, &r) || r.Kind != edit.Ambiguous || !strings.Contains(r.Message, "lines 2, 4") || len(r.Places) != 2 || r.Places[1].Line != 4 {
		t.Errorf("two places: %+v", r)
	}
	if _, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: "the quikc brown fox jumps over it", New: "new", ReplaceAll: true}}, edit.Options{}); !isRefusal(err, edit.Ambiguous) {
		t.Errorf("all places: %v", err)
	}
	got, err := edit.Apply(t.Context(), text, []edit.Edit{{Old: "aplha\nthe quick brown", New: "a\nb", ReplaceAll: true}}, edit.Options{})
	if err != nil || got.Hits[0].Count != 1 || !strings.HasPrefix(got.Text, "a\nb fox jumps") {
		t.Errorf("all places of one: %q, %v", got.Text, err)
	}
	got, err = edit.Apply(t.Context(), "alpha\r\nthe quick brown fox jumps over it\r\n", []edit.Edit{{Old: "aplha\nthe quick brown", New: "a\nb"}}, edit.Options{})
	if err != nil || !strings.HasPrefix(got.Text, "a\r\nb fox jumps") {
		t.Errorf("line ends: %q, %v", got.Text, err)
	}
	for _, l := range []edit.Limits{{MaxRatio: -0.1}, {MaxRatio: 1.1}, {MaxRatio: math.NaN()}, {MinDistance: -1}, {MinLength: -1}, {Margin: -2}} {
		if _, err := edit.Apply(t.Context(), "a", []edit.Edit{{Old: "a", New: "b"}}, edit.Options{Limits: &l}); !isRefusal(err, edit.Invalid) {
			t.Errorf("limits %+v: %v", l, err)
		}
	}
}

func FuzzApproximate(f *testing.F) {
	f.Add("the quick brown fox\njumps over the lazy dog", "the quikc brwn fox", 0.3, 5, 0, -1)
	f.Add("ababababab", "Xabab", 1.0, 0, 0, 0)
	f.Add("漢字かな\U00020000e\u0301", "字かX\U00020000e", 0.5, 9, 3, 1)
	f.Fuzz(func(t *testing.T, text, old string, ratio float64, least, length, margin int) {
		limits := edit.Limits{MaxRatio: ratio, MinDistance: least, MinLength: length, Margin: margin}
		if len(text) > 400 || len(old) > 200 || !utf8.ValidString(text) || !utf8.ValidString(old) || old == "new" || old == "" ||
			!(ratio >= 0 && ratio <= 1) || min(least, length) < 0 || margin < edit.MarginTenth || max(least, margin) > 1000 {
			return
		}
		against(t, []rune(text), []rune(old), limits)
	})
}
