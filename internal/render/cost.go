// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// The Markdown parser takes quadratic time in three quantities: the nesting of
// quotes and lists on a line, the unpaired brackets and emphasis marks in a
// block, and the cells of a table, whose short rows are padded to the width of
// the first. These bounds keep the worst text of MaxMarkdown bytes near the
// time of ordinary text; TestHostile measures it.
const (
	maxDepth = 16         // quotes and lists opened on one line
	indent   = 16         // columns of indentation that count as one level
	maxPairs = 10_000_000 // sum over all blocks of their marks squared
	maxCells = 100_000    // cells of all tables
	maxGrow  = 16         // bytes of destinations and titles per byte of source; references repeat them
)

// costly reports whether source exceeds a bound.
func costly(source string) bool {
	var c cost
	for line := range strings.Lines(source) {
		c.add(line)
		if c.deep {
			return true
		}
	}
	return c.over()
}

// A cost sums up the cost of a text by lines. A block is assumed to extend from
// blank line to blank line, which no paragraph, heading or table exceeds.
type cost struct {
	pairs, cells int // of the finished blocks
	marks        int // of the current block, by lines and width
	lines, width int
	deep         bool
}

func (c *cost) add(line string) {
	if strings.TrimSpace(line) == "" {
		c.pairs, c.cells = c.sums()
		c.marks, c.lines, c.width = 0, 0, 0
		return
	}
	c.deep = c.deep || depth(line) > maxDepth
	c.lines++
	c.width = max(c.width, strings.Count(line, "|"))
	c.marks += countMarks(line)
}

func (c *cost) sums() (pairs, cells int) {
	pairs, cells = c.pairs+c.marks*c.marks, c.cells
	if c.width > 0 {
		cells += c.lines * (c.width + 1)
	}
	return pairs, cells
}

func (c *cost) over() bool {
	pairs, cells := c.sums()
	return c.deep || pairs > maxPairs || cells > maxCells
}

// depth counts the block openers at the beginning of line: ">", "-", "1." and
// so on.
func depth(line string) int {
	n, spaces := 0, 0
	for i := 0; i < len(line); {
		switch c := line[i]; {
		case c == ' ':
			spaces++
			i++
			continue
		case c == '\t':
			spaces += 4
			i++
			continue
		case c == '>':
			i++
		default:
			w := bullet(line[i:])
			if w == 0 {
				return n + spaces/indent
			}
			i += w
		}
		n++
	}
	return n + spaces/indent
}

// bullet returns the length of the list marker at the beginning of s, or 0.
func bullet(s string) int {
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	ends := ".)"
	if i == 0 {
		ends = "-+*"
	}
	if i == len(s) || strings.IndexByte(ends, s[i]) < 0 {
		return 0
	}
	i++
	if i < len(s) && !strings.ContainsRune(" \t\r\n", rune(s[i])) {
		return 0
	}
	return i
}

// countMarks counts the marks that need a partner: brackets, and runs of
// emphasis marks except underscores inside words.
func countMarks(line string) int {
	n := 0
	before := ' '
	for i := 0; i < len(line); {
		r, w := utf8.DecodeRuneInString(line[i:])
		i += w
		switch r {
		case '[', ']':
			n++
		case '*', '_', '~':
			if r == before {
				break
			}
			after, _ := utf8.DecodeRuneInString(line[i:])
			if r != '_' || !wordy(before) || !wordy(after) {
				n++
			}
		}
		before = r
	}
	return n
}

func wordy(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
