// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/artelhq/artel/media/pdf"
)

// A glyph is a character that a page shows.
type glyph struct {
	pdf.Char
	link   string
	brk    bool // pdfium sees a new line before it
	hinted bool // pdfium sees a space before it
	joined bool // a letter of a ligature, after its first
}

// A chunk is a piece of a line with one look. y grows upwards.
type chunk struct {
	text               string
	x, end, y, size    float64
	bold, italic, mono bool
	link               string
	rise               int8
}

// buildLines divides the glyphs of a page into lines, and lines into cells.
func buildLines(glyphs []glyph) []pdfLine {
	var lines []pdfLine
	glyphs = ordered(glyphs)
	for len(glyphs) > 0 {
		n := lineLength(glyphs)
		if l, ok := newLine(glyphs[:n]); ok {
			lines = append(lines, l)
		}
		glyphs = glyphs[n:]
	}
	return lines
}

// lineLength returns how many glyphs belong to the first line. In text from left to
// right the places tell it, and in other text pdfium, which knows in which order it put
// the characters.
func lineLength(glyphs []glyph) int {
	first := glyphs[0]
	size, y, end := first.Size, first.Y, first.Box.X1
	rtl := isRTL(first.Rune)
	for i, g := range glyphs[1:] {
		prev := glyphs[i]
		rtl = rtl || isRTL(g.Rune)
		if g.Turned != first.Turned {
			return i + 1
		}
		if upright := !g.Turned && upright(prev, g); g.Turned || upright {
			if !upright && math.Abs(g.X-first.X) > 0.2*size && math.Abs(g.Y-first.Y) > 0.2*size {
				return i + 1
			}
			continue
		}
		if g.joined {
			continue
		}
		larger, off := max(size, g.Size), 0.45
		if small := min(size, g.Size) < 0.8*larger; small && gap(prev, g) < 0.3*larger && g.Box.X0 > prev.Box.X0 {
			off = 0.75 // an index directly behind a letter, or the letter directly behind it
		}
		if math.Abs(g.Y-y) >= off*larger || rtl && g.brk || !rtl && g.Box.X0 < end-0.6*larger {
			return i + 1
		}
		end = max(end, g.Box.X1)
		if g.Size > size && g.Rune != ' ' {
			size, y = g.Size, g.Y
		}
	}
	return len(glyphs)
}

// upright reports Chinese characters that stand below each other.
func upright(a, b glyph) bool {
	return a.Font == b.Font && isCJK(a.Rune) && isCJK(b.Rune) && math.Abs(a.X-b.X) < 0.05*a.Size &&
		a.Y-b.Y > 0.7*a.Size && a.Y-b.Y < 1.3*a.Size
}

// newLine makes a line of glyphs; it reports false if it is blank.
func newLine(glyphs []glyph) (pdfLine, bool) {
	glyphs = composed(withoutOverlaps(glyphs))
	if len(glyphs) == 0 {
		return pdfLine{}, false
	}
	l := pdfLine{turned: glyphs[0].Turned || len(glyphs) > 1 && upright(glyphs[0], glyphs[1])}
	rtl := false
	for _, g := range glyphs {
		rtl = rtl || isRTL(g.Rune)
		if g.Size > l.size && g.Rune != ' ' {
			l.size, l.y = g.Size, g.Y
		}
	}
	least := spaceOf(glyphs)
	var columns []int
	if rtl = rtl && !l.turned; rtl {
		glyphs, columns = logical(glyphs, least)
	} else {
		columns = cellsOf(glyphs)
	}
	cell := -1
	for i, g := range glyphs {
		l.text++
		var last *chunk
		if i > 0 && columns[i] == columns[i-1] {
			cs := l.cells[cell].chunks
			last = &cs[len(cs)-1]
		} else {
			cell++
			l.cells = append(l.cells, pdfCell{x: g.Box.X0, end: g.Box.X1})
		}
		c := &l.cells[cell]
		c.x, c.end = min(c.x, g.Box.X0), max(c.end, g.Box.X1)
		if last != nil && !rtl && apart(glyphs[i-1], g, least, l.turned) {
			last.text += " "
		}
		look := l.chunkOf(g)
		if g.Rune == ' ' && last != nil {
			look.bold, look.italic, look.mono, look.link = last.bold, last.italic, last.mono, last.link
		}
		if last != nil && look.bold == last.bold && look.italic == last.italic && look.mono == last.mono && look.link == last.link && look.rise == last.rise {
			last.text += string(g.Rune)
			last.x, last.end = min(last.x, look.x), max(last.end, look.end)
			continue
		}
		c.chunks = append(c.chunks, look)
	}
	for i := range l.cells {
		for k := range l.cells[i].chunks {
			t := &l.cells[i].chunks[k].text
			*t = ligatures(*t)
		}
	}
	return l, true
}

// withoutOverlaps removes blanks at the ends of a line, blanks over which the next glyph was moved
// back, as programs do that set type exactly, and glyphs that are drawn again in the
// same place.
func withoutOverlaps(glyphs []glyph) []glyph {
	kept := make([]glyph, 0, len(glyphs))
	for i, g := range glyphs {
		if g.Rune == ' ' {
			if len(kept) == 0 {
				continue
			}
			if i+1 < len(glyphs) {
				prev, next, width := kept[len(kept)-1], glyphs[i+1], g.Box.X1-g.Box.X0
				if !g.Turned && prev.Rune != ' ' && next.Rune != ' ' && !isRTL(next.Rune) && gap(prev, next) < 0.6*width-0.001 &&
					(next.Box.X0 < g.Box.X0+0.4*width || prev.Box.X1 > g.Box.X0+0.6*width) {
					continue
				}
			}
		}
		kept = append(kept, g)
	}
	for len(kept) > 0 && kept[len(kept)-1].Rune == ' ' {
		kept = kept[:len(kept)-1]
	}
	return kept
}

// marks are the accents that typesetting programs draw over letters as characters of
// their own, with the marks that mean the same in text.
var marks = map[rune]string{
	'´': "\u0301", '`': "\u0300", '¨': "\u0308", 'ˆ': "\u0302", '^': "\u0302", '˜': "\u0303", '~': "\u0303", '¸': "\u0327", 'ˇ': "\u030C", '˚': "\u030A", '˘': "\u0306", '¯': "\u0304",
}

// composed joins such accents with the letters above or below which they are.
func composed(glyphs []glyph) []glyph {
	kept := glyphs[:0]
	for i := 0; i < len(glyphs); i++ {
		g := glyphs[i]
		mark, ok := marks[g.Rune]
		if !ok || g.Turned {
			kept = append(kept, g)
			continue
		}
		if i+1 < len(glyphs) && accents(g, glyphs[i+1], mark) {
			g = glyphs[i+1]
			g.Rune, _ = utf8.DecodeRuneInString(norm.NFC.String(string(g.Rune) + mark))
			i++
		} else if n := len(kept); n > 0 && accents(g, kept[n-1], mark) {
			kept[n-1].Rune, _ = utf8.DecodeRuneInString(norm.NFC.String(string(kept[n-1].Rune) + mark))
			continue
		}
		kept = append(kept, g)
	}
	return kept
}

// accents reports whether an accent is drawn over a letter with which it has a form.
func accents(mark, letter glyph, combining string) bool {
	overlap := min(mark.Box.X1, letter.Box.X1) - max(mark.Box.X0, letter.Box.X0)
	return unicode.IsLetter(letter.Rune) && overlap > 0.5*min(mark.Box.X1-mark.Box.X0, letter.Box.X1-letter.Box.X0) &&
		utf8.RuneCountInString(norm.NFC.String(string(letter.Rune)+combining)) == 1
}

func (l *pdfLine) chunkOf(g glyph) chunk {
	name := strings.ToLower(g.Font.Name)
	c := chunk{
		text: string(g.Rune), x: g.Box.X0, end: g.Box.X1, y: g.Y, size: g.Size,
		bold: g.Font.Bold, italic: g.Font.Italic, link: g.link,
		mono: g.Font.Mono || isMono(name) || strings.HasSuffix(name, "mono") || strings.Contains(name, "mono-"),
	}
	if l.turned {
		return c
	}
	switch high := g.Y - l.y; {
	case g.Size < 0.75*l.size && high > 0.15*l.size, high > 0.2*l.size:
		c.rise = 1
	case g.Size < 0.75*l.size && high < -0.1*l.size, high < -0.2*l.size:
		c.rise = -1
	}
	return c
}

// gap returns the distance between neighbours of a line, whichever is on the left.
func gap(a, b glyph) float64 { return max(b.Box.X0-a.Box.X1, a.Box.X0-b.Box.X1) }

// cellGap is the least gap between cells, as a part of the size: wider than any space.
const cellGap = 0.9

// cellsOf returns the number of the cell of each glyph.
func cellsOf(glyphs []glyph) []int {
	cells := make([]int, len(glyphs))
	if glyphs[0].Turned {
		return cells
	}
	n := 0
	for i, g := range glyphs[1:] {
		prev := glyphs[i]
		if gap(prev, g) > cellGap*min(prev.Size, g.Size) && g.Rune != ' ' && !upright(prev, g) {
			n++
		}
		cells[i+1] = n
	}
	return cells
}

// apart reports whether a space that the text does not have is between neighbours.
func apart(a, b glyph, least float64, turned bool) bool {
	if a.Rune == ' ' || b.Rune == ' ' || b.joined {
		return false
	}
	if turned {
		return b.hinted
	}
	g := gap(a, b) / min(a.Size, b.Size)
	if isCJK(a.Rune) || isCJK(b.Rune) { // as wide as their size: it is no space unless it is large
		return g > 0.5
	}
	return g > least
}

// spaceOf returns the least gap of a line that is a space, as a part of the size: the
// middle of the widest jump among its gaps that can divide letters from words. Words make
// up less than 40 % of the gaps; wider ones than usual are between letters set apart.
func spaceOf(glyphs []glyph) float64 {
	const usual, narrowest, widest = 0.11, 0.06, 0.25
	gaps := []float64{0}
	for i, g := range glyphs[1:] {
		prev := glyphs[i]
		if g.Rune == ' ' || prev.Rune == ' ' || g.joined || g.Rune == '.' || isCJK(g.Rune) || isCJK(prev.Rune) || isRTL(g.Rune) != isRTL(prev.Rune) {
			continue
		}
		gaps = append(gaps, min(max(gap(prev, g)/min(prev.Size, g.Size), 0), 1))
	}
	slices.Sort(gaps)
	if apart := gaps[len(gaps)*6/10]; len(gaps) > 8 && apart > 0.04 {
		return max(apart+0.15, 0.25)
	}
	least, jump := usual, 0.04
	for i, g := range gaps[1:] {
		if d := min(g, 0.35) - gaps[i]; d > jump && gaps[i] < usual {
			least, jump = gaps[i]+min(d/2, 0.1), d
		}
	}
	return min(max(least, narrowest), widest)
}

// ligatures turns ligatures of typefaces into their letters.
func ligatures(s string) string {
	if !strings.ContainsFunc(s, func(r rune) bool { return r >= 0xFB00 && r <= 0xFB06 }) {
		return s
	}
	return strings.NewReplacer("ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st").Replace(s)
}

func isCJK(r rune) bool {
	return r >= 0x2E80 && r <= 0x9FFF || r >= 0xF900 && r <= 0xFAFF || r >= 0xFF00 && r <= 0xFFEF || r >= 0x20000 && r <= 0x3FFFF
}
