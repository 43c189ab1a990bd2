// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/clipperhouse/uax29/v2/words"
)

const (
	// alike is the similarity in thousandths from which two lines are shown as a
	// pair.
	alike = 300

	// fullPairs is the maximum number of pairs of lines compared in a block.
	// Larger blocks are divided into pieces of pieceLines on the longer side.
	fullPairs  = 10_000
	pieceLines = 64

	// longLine is the length in bytes up to which all words of a line are
	// compared. For longer lines it limits the part between the common beginning
	// and end.
	longLine = 1 << 16

	// Limits of a whole diff: bytes cut into words, and words compared to find
	// pairs. Later lines have no spans.
	wordBytes = 1 << 22
	wordSteps = 1 << 25

	// pairSteps is what it costs to look at a pair of lines at all.
	pairSteps = 8
)

// wordLimits are those for the words of two lines.
func wordLimits() limits { return limits{edits: 512, work: 1 << 20} }

// A word is a segment of a line.
type word struct {
	end    int   // in bytes; it begins where the one before ends
	id     int32 // equal for equal text
	weight int32 // visible importance: 0 for white space
}

// A phrase is a line to be paired.
type phrase struct {
	line   *Line
	words  []word
	sorted []word // by id, for alike
	weight int
	cut    bool // into words; false: too long or over the limits
}

// A speller finds the changed words.
type speller struct {
	ctx   context.Context
	known map[string]int32
	bytes int // left of wordBytes
	steps int // left of wordSteps
}

// spell pairs the lines of each run of changes and sets their spans.
func spell(ctx context.Context, hunks []Hunk) error {
	s := &speller{ctx: ctx, known: map[string]int32{}, bytes: wordBytes, steps: wordSteps}
	for _, h := range hunks {
		for lines := h.Lines; len(lines) > 0; {
			n := 0
			for n < len(lines) && lines[n].Op == Removed {
				n++
			}
			m := n
			for m < len(lines) && lines[m].Op == Added {
				m++
			}
			if n > 0 && m > n {
				if err := s.block(lines[:n], lines[n:m]); err != nil {
					return err
				}
			}
			lines = lines[max(m, 1):]
		}
	}
	return nil
}

// block pairs removed lines with the added lines that replaced them.
func (s *speller) block(removed, added []Line) error {
	pieces := 1
	if len(removed)*len(added) > fullPairs {
		pieces = (max(len(removed), len(added)) + pieceLines - 1) / pieceLines
	}
	for i := range pieces {
		if s.bytes <= 0 || s.steps <= 0 {
			return nil
		}
		if err := s.ctx.Err(); err != nil {
			return err
		}
		n, m := len(removed), len(added)
		if err := s.piece(removed[i*n/pieces:(i+1)*n/pieces], added[i*m/pieces:(i+1)*m/pieces]); err != nil {
			return err
		}
	}
	return nil
}

// piece pairs lines so that the sum of their similarities is maximal and no two
// pairs cross.
func (s *speller) piece(removed, added []Line) error {
	n, m := len(removed), len(added)
	if n == 0 || m == 0 {
		return nil
	}
	olds, news := s.phrases(removed), s.phrases(added)
	score := make([]int, n*m)
	best := make([]int, (n+1)*(m+1)) // of the lines from i and j on
	at := func(i, j int) int { return i*(m+1) + j }
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			v := s.alike(&olds[i], &news[j])
			score[i*m+j] = v
			best[at(i, j)] = max(best[at(i+1, j)], best[at(i, j+1)])
			if v >= alike {
				best[at(i, j)] = max(best[at(i, j)], v+best[at(i+1, j+1)])
			}
		}
	}
	for i, j := 0, 0; i < n && j < m && best[at(i, j)] > 0; {
		switch v := score[i*m+j]; {
		case v >= alike && best[at(i, j)] == v+best[at(i+1, j+1)]:
			if err := s.pair(&olds[i], &news[j]); err != nil {
				return err
			}
			i++
			j++
		case best[at(i, j)] == best[at(i, j+1)]:
			j++
		default:
			i++
		}
	}
	return nil
}

func (s *speller) phrases(lines []Line) []phrase {
	out := make([]phrase, len(lines))
	for i := range lines {
		p := &out[i]
		p.line = &lines[i]
		size := len(p.line.Text)
		if size > longLine || size > s.bytes {
			continue
		}
		p.cut = true
		p.words = s.segment(nil, p.line.Text, 0)
		p.sorted = slices.Clone(p.words)
		slices.SortFunc(p.sorted, func(a, b word) int { return cmp.Compare(a.id, b.id) })
		for _, w := range p.words {
			p.weight += int(w.weight)
		}
	}
	return out
}

// segment cuts text, which begins at byte offset of a line, into words.
func (s *speller) segment(out []word, text string, offset int) []word {
	s.bytes -= len(text)
	for it := words.FromString(text); it.Next(); {
		v := it.Value()
		offset += len(v)
		out = append(out, word{end: offset, id: s.number(v), weight: weigh(v)})
	}
	return out
}

func (s *speller) number(w string) int32 {
	id, ok := s.known[w]
	if !ok {
		id = int32(len(s.known))
		s.known[w] = id
	}
	return id
}

// weigh returns the weight of a word: its number of letters, one for signs, zero
// for white space.
func weigh(w string) int32 {
	r, _ := utf8.DecodeRuneInString(w)
	switch {
	case unicode.IsSpace(r):
		return 0
	case unicode.IsLetter(r) || unicode.IsNumber(r) || r == '_':
		return int32(utf8.RuneCountInString(w))
	}
	return 1
}

// alike returns the similarity of two lines in thousandths: the weight of their
// common words, in any order, or their common beginning and end if that is most of
// them, for example if a name became longer.
func (s *speller) alike(a, b *phrase) int {
	x, y := a.line.Text, b.line.Text
	if s.steps <= 0 {
		return 0
	}
	s.steps -= pairSteps
	if x == y {
		return 1000
	}
	whole := a.cut && b.cut
	if !whole && max(len(x), len(y)) > 4*min(len(x), len(y)) {
		return 0 // too long to compare
	}
	x, y = strings.TrimSpace(x), strings.TrimSpace(y) // indentation does not count
	if x == "" || y == "" {
		return 0
	}
	head, tail := ends(x, y)
	s.steps -= (head + tail) / 16
	both := 1000 * (head + tail) / max(len(x), len(y))
	if !whole {
		return both
	}
	if a.weight+b.weight == 0 {
		return 0
	}
	s.steps -= len(a.sorted) + len(b.sorted)
	common := 0
	for i, j := 0, 0; i < len(a.sorted) && j < len(b.sorted); {
		switch v, w := a.sorted[i], b.sorted[j]; {
		case v.id < w.id:
			i++
		case v.id > w.id:
			j++
		default:
			common += int(v.weight)
			i++
			j++
		}
	}
	score := 2000 * common / (a.weight + b.weight)
	if both >= 500 {
		score = max(score, both)
	}
	return score
}

// ends returns how many bytes two texts have in common at their beginning and
// at their end, in whole code points.
func ends(x, y string) (head, tail int) {
	head = commonPrefix(x, y)
	for head > 0 && (head < len(x) && !utf8.RuneStart(x[head]) || head < len(y) && !utf8.RuneStart(y[head])) {
		head--
	}
	tail = min(commonSuffix(x, y), len(x)-head, len(y)-head)
	for tail > 0 && !utf8.RuneStart(x[len(x)-tail]) {
		tail--
	}
	return head, tail
}

// pair links two lines and sets their spans, if the limits allow comparing their
// words.
func (s *speller) pair(a, b *phrase) error {
	a.line.Pair, b.line.Pair = b.line.New, a.line.Old
	x, y := a.words, b.words
	if !a.cut || !b.cut {
		x, y = s.middle(a.line.Text, b.line.Text)
	}
	// Renumber the words, so that the cost does not depend on the whole diff.
	local := make(map[int32]int32, len(x))
	ids := [2][]int32{renumber(local, x), renumber(local, y)}
	c, err := compare(s.ctx, ids[0], ids[1], len(local), wordLimits())
	if err != nil {
		return err
	}
	join(c, x, y)
	if len(x) > 0 && !slices.Contains(c.removed, false) {
		return nil // nothing in common to show
	}
	a.line.Spans = spans(a.line.Text, x, c.removed)
	b.line.Spans = spans(b.line.Text, y, c.added)
	return nil
}

// middle cuts the part of long lines between their common ends into words; each
// end becomes one word. If that part is too long, it is one word.
func (s *speller) middle(x, y string) (xs, ys []word) {
	head, tail := ends(x, y)
	// The words that the ends cut belong to the middle, if they begin and end
	// at a space that is not far.
	const near = 64
	if i := strings.LastIndexByte(x[max(head-near, 0):head], ' '); i >= 0 {
		head = max(head-near, 0) + i + 1
	}
	end := len(x) - tail
	if i := strings.IndexByte(x[end:min(end+near, len(x))], ' '); i >= 0 {
		tail -= i
	}
	cut := func(line string) []word {
		var out []word
		if head > 0 {
			out = append(out, word{end: head, id: s.number(line[:head]), weight: 1})
		}
		middle := line[head : len(line)-tail]
		switch {
		case len(middle) > longLine || len(middle) > s.bytes:
			out = append(out, word{end: len(line) - tail, id: s.number(middle), weight: 1})
		default:
			out = s.segment(out, middle, head)
		}
		if tail > 0 {
			out = append(out, word{end: len(line), id: s.number(line[len(line)-tail:]), weight: 1})
		}
		return out
	}
	return cut(x), cut(y)
}

func renumber(known map[int32]int32, words []word) []int32 {
	out := make([]int32, len(words))
	for i, w := range words {
		id, ok := known[w.id]
		if !ok {
			id = int32(len(known))
			known[w.id] = id
		}
		out[i] = id
	}
	return out
}

// join marks white space between words that changed on both sides, so that a
// changed part is one span.
func join(c changes, x, y []word) {
	runs := c.runs()
	for k := 1; k < len(runs); k++ {
		p, r := runs[k-1], runs[k]
		both := p.a0 < p.a1 && p.b0 < p.b1 && r.a0 < r.a1 && r.b0 < r.b1
		if !both || slices.ContainsFunc(x[p.a1:r.a0], func(w word) bool { return w.weight > 0 }) {
			continue
		}
		for i := p.a1; i < r.a0; i++ {
			c.removed[i] = true
		}
		for j := p.b1; j < r.b0; j++ {
			c.added[j] = true
		}
	}
}

// spans turns marked words into spans in code points.
func spans(line string, words []word, marks []bool) []Span {
	var out []Span
	at, char := 0, 0
	for i, w := range words {
		end := char + utf8.RuneCountInString(line[at:w.end])
		if n := len(out); n > 0 && out[n-1].Changed == marks[i] {
			out[n-1].End = end
		} else {
			out = append(out, Span{Start: char, End: end, Changed: marks[i]})
		}
		at, char = w.end, end
	}
	return out
}
