// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"math"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A pdfLine is a line of text on a page: cells that wide gaps divide.
type pdfLine struct {
	cells  []pdfCell
	y      float64
	size   float64
	turned bool
	text   int // characters
}

type pdfCell struct {
	chunks []chunk // with the spaces between them
	x, end float64
}

// pdfLines are the lines of a page.
type pdfLines struct {
	number int
	lines  []pdfLine
	fields []span
}

func (l *pdfLine) x() float64   { return l.cells[0].x }
func (l *pdfLine) end() float64 { return l.cells[len(l.cells)-1].end }

func (l *pdfLine) spans() []span {
	var spans []span
	for i, c := range l.cells {
		if i > 0 {
			spans = append(spans, plain(" "))
		}
		spans = append(spans, c.spans()...)
	}
	return spans
}

func (c *pdfCell) spans() []span {
	spans := make([]span, len(c.chunks))
	for i, k := range c.chunks {
		spans[i] = span{text: strings.ReplaceAll(k.text, "\n", " "), bold: k.bold, italic: k.italic, link: k.link, rise: k.rise}
	}
	return spans
}

// bodySize returns the size that most of the text has.
func bodySize(pages []*pdfLines) float64 {
	counts := map[float64]int{}
	for _, p := range pages {
		for _, l := range p.lines {
			counts[math.Round(l.size*2)/2] += l.text
		}
	}
	best, most := 0.0, 0
	for size, n := range counts {
		if n > most || n == most && size < best {
			best, most = size, n
		}
	}
	return best
}

// A pdfWriter writes pages whose text is of size body.
type pdfWriter struct {
	o      *out
	body   float64
	listOn bool // the block before was an entry of a list
}

func (w *pdfWriter) page(p *pdfLines) {
	w.o.marker("page", p.number)
	lines := slices.Clone(p.lines)
	slices.SortStableFunc(lines, func(a, b pdfLine) int { // what is written across comes last
		switch {
		case a.turned == b.turned:
			return 0
		case a.turned:
			return 1
		}
		return -1
	})
	right := 0.0
	for _, l := range lines {
		if !l.turned {
			right = max(right, l.end())
		}
	}
	for len(lines) > 0 && !w.o.full {
		n := w.table(lines)
		if n == 0 {
			n = w.code(lines)
		}
		if n == 0 {
			n = w.paragraph(lines, right)
		}
		lines = lines[n:]
	}
	for i, f := range p.fields {
		w.o.item(0, "-", []span{f}, i > 0)
	}
}

// level returns the level of a heading of a size, 0 for none.
func (w *pdfWriter) level(l *pdfLine) int {
	switch ratio := l.size / max(w.body, 1); {
	case l.turned || l.text > 300:
		return 0
	case ratio >= 1.75:
		return 1
	case ratio >= 1.35:
		return 2
	case ratio >= 1.15:
		return 3
	}
	return 0
}

// table writes the lines at the beginning that are rows of one table, and
// returns how many there are. Rows may lack cells, also the first one, above whose
// row names nothing is written.
func (w *pdfWriter) table(lines []pdfLine) int {
	seed := &lines[0]
	if len(lines) > 1 && len(lines[1].cells) == len(seed.cells)+1 {
		seed = &lines[1]
	}
	width := len(seed.cells)
	if width < 2 || len(lines[0].cells) < 2 || lines[0].turned || bullet(lines[0].spans()) != "" {
		return 0
	}
	t := newPDFTable(seed)
	n, whole := 0, 0
	for ; n < len(lines) && n-whole <= maxSparse; n++ {
		l := &lines[n]
		if n > 0 && (l.turned || math.Abs(l.size-lines[0].size) > 0.2*lines[0].size || lines[n-1].y-l.y > 5*l.size || l.y > lines[n-1].y) {
			break
		}
		if !t.add(l) {
			break
		}
		if len(l.cells) == width {
			whole = n + 1
		}
	}
	// A line with fewer cells behind the last whole row belongs to the table if it
	// is as near as the rows are to each other.
	for n > whole && whole > 1 && lines[n-2].y-lines[n-1].y > 1.2*(lines[whole-2].y-lines[whole-1].y) {
		n--
	}
	if n < 2 || whole < 2 || width == 2 && n < 3 {
		return 0
	}
	w.o.rows(width, func(yield func([]string) bool) {
		for i := range n {
			row := make([]string, width)
			for k, c := range lines[i].cells {
				row[t.columns[i][k]] = (&budget{}).inline(c.spans())
			}
			if i == 0 {
				row = unbold(row)
			}
			if !yield(row) {
				return
			}
		}
	})
	return n
}

// maxSparse is how many rows in which cells are missing follow each other in a table.
const maxSparse = 200

// A pdfTable is a table that is being read: where each of its columns begins and ends so
// far, and the columns of the cells of each row.
type pdfTable struct {
	from, to []float64
	columns  [][]int
}

func newPDFTable(l *pdfLine) *pdfTable {
	t := &pdfTable{}
	for _, c := range l.cells {
		t.from, t.to = append(t.from, c.x), append(t.to, c.end)
	}
	return t
}

// add adds a line as a row; false if a cell is in no column, or if the line has
// fewer than two cells.
func (t *pdfTable) add(l *pdfLine) bool {
	width := len(t.from)
	if len(l.cells) < 2 || len(l.cells) > width {
		return false
	}
	columns := make([]int, len(l.cells))
	at := 0
	for i, c := range l.cells {
		for at < width && !t.fits(at, c, l.size) {
			at++
		}
		if at == width {
			return false
		}
		columns[i] = at
		at++
	}
	for i, c := range l.cells {
		k := columns[i]
		t.from[k], t.to[k] = min(t.from[k], c.x), max(t.to[k], c.end)
	}
	t.columns = append(t.columns, columns)
	return true
}

// fits reports whether a cell touches a column and none beside it.
func (t *pdfTable) fits(column int, c pdfCell, size float64) bool {
	return c.x < t.to[column]+0.5*size && c.end > t.from[column]-0.5*size &&
		(column == 0 || c.x > t.to[column-1]) && (column+1 == len(t.from) || c.end < t.from[column+1])
}

func (l *pdfLine) isCode() bool {
	for _, c := range l.cells {
		for _, k := range c.chunks {
			if !k.mono {
				return false
			}
		}
	}
	return !l.turned
}

// code writes lines of a typewriter face as code.
func (w *pdfWriter) code(lines []pdfLine) int {
	n := 0
	left := math.Inf(1)
	for ; n < len(lines) && lines[n].isCode(); n++ {
		left = min(left, lines[n].x())
	}
	if n == 0 {
		return 0
	}
	for i, l := range lines[:n] {
		var b strings.Builder
		column := max(0.6*l.size, 0.1)
		b.WriteString(strings.Repeat(" ", int(min(max((l.x()-left)/column+0.5, 0), 80))))
		for k, c := range l.cells {
			if k > 0 {
				b.WriteString(strings.Repeat(" ", int(min(max((c.x-l.cells[k-1].end)/column, 1), 80))))
			}
			b.WriteString(plainText(c.spans()))
		}
		if i > 0 && lines[i-1].y-l.y > 2.2*l.size {
			w.o.codeLine("")
		}
		w.o.codeLine(strings.TrimRight(b.String(), " "))
	}
	w.o.endCode()
	return n
}

// paragraph writes the lines at the beginning that belong together.
func (w *pdfWriter) paragraph(lines []pdfLine, right float64) int {
	first := &lines[0]
	spans := first.spans()
	level := w.level(first)
	mark := bullet(spans)
	n := 1
	pitch := 0.0
	for ; n < len(lines); n++ {
		prev, next := &lines[n-1], &lines[n]
		step := prev.y - next.y
		if prev.turned != next.turned || math.Abs(next.size-prev.size) > 0.12*prev.size || bullet(next.spans()) != "" {
			break
		}
		if !next.turned {
			if len(next.cells) > 1 || step < 0.3*next.size || step > 2*next.size || pitch > 0 && step > 1.25*pitch {
				break
			}
			pitch = max(pitch, step)
			indent := next.x() - prev.x()
			if level == 0 && prev.end() < right-0.25*right && !goesOn(next) || mark == "" && n > 1 && indent > next.size && indent < 5*next.size {
				break
			}
			if mark != "" && next.x() < first.x()-0.5*next.size {
				break
			}
		}
		spans = join(spans, next.spans())
	}
	switch {
	case level > 0:
		for i := range spans {
			spans[i].bold = false
		}
		w.o.heading(level, spans)
	case mark != "":
		number := "-"
		if markdownNumber(mark) {
			number = mark
		}
		w.o.item(0, number, cutBullet(spans, mark), w.listOn)
	default:
		w.o.paragraph(spans)
	}
	w.listOn = level == 0 && mark != ""
	return n
}

// goesOn reports a line that begins in the middle of a sentence.
func goesOn(l *pdfLine) bool {
	r, _ := utf8.DecodeRuneInString(strings.TrimSpace(l.cells[0].chunks[0].text))
	return unicode.IsLower(r)
}

// join puts the lines of a paragraph together: a word that was divided at the
// end of the line is one again, and between Chinese characters there is no space.
func join(a, b []span) []span {
	if len(a) == 0 || len(b) == 0 {
		return append(a, b...)
	}
	last := &a[len(a)-1]
	last.text = strings.TrimRight(last.text, " ")
	before, n := utf8.DecodeLastRuneInString(last.text)
	after, _ := utf8.DecodeRuneInString(b[0].text)
	prev, _ := utf8.DecodeLastRuneInString(last.text[:len(last.text)-n])
	switch {
	case before == '\u00AD', (before == '-' || before == '\u2010') && unicode.IsLower(prev) && unicode.IsLower(after) && !last.code && !hyphened(last.text[:len(last.text)-n]):
		last.text = last.text[:len(last.text)-n]
	case before == '-', isCJK(before) && isCJK(after), before == utf8.RuneError:
	default:
		a = append(a, span{text: " ", link: last.link})
	}
	return append(a, b...)
}

// hyphened reports a text whose last word has a hyphen already, like "--max" and
// "state-of-the": the next one belongs to it, too.
func hyphened(s string) bool {
	word := s[strings.LastIndexByte(s, ' ')+1:]
	return strings.ContainsAny(word, "-\u2010/_")
}

// bullet returns the sign that begins an entry of a list, or "".
func bullet(spans []span) string {
	text := strings.TrimLeft(plainText(spans[:min(len(spans), 3)]), " ")
	r, n := utf8.DecodeRuneInString(text)
	switch r {
	case '•', '◦', '▪', '‣', '●', '■', '○', '·', '∙', '❑', '\uF0B7', '\uF0A7':
		if rest := text[n:]; rest == "" || rest[0] == ' ' || len(spans) > 1 {
			return text[:n]
		}
	case '-', '–':
		if strings.HasPrefix(text[n:], " ") {
			return text[:n]
		}
	}
	digits := len(text) - len(strings.TrimLeft(text, "0123456789"))
	if digits > 0 && digits < 4 && len(text) > digits+1 && (text[digits] == '.' || text[digits] == ')') {
		if r, _ := utf8.DecodeRuneInString(text[digits+1:]); r != ' ' && !isCJK(r) {
			return ""
		}
		return text[:digits+1]
	}
	return ""
}

// cutBullet takes the sign of an entry away.
func cutBullet(spans []span, mark string) []span {
	spans = slices.Clone(spans)
	for i := range spans {
		t := strings.TrimLeft(spans[i].text, " ")
		if t == "" {
			continue
		}
		spans[i].text = strings.TrimLeft(strings.TrimPrefix(t, mark), " ")
		break
	}
	return spans
}
