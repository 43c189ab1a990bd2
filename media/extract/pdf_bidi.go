// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"slices"
	"strings"

	"golang.org/x/text/unicode/bidi"
)

// A cluster is a character with its marks, which stay together. A page shows clusters
// from left to right; text has them in the order in which they are read.
type cluster struct {
	glyphs []glyph
	class  bidiClass
}

type bidiClass byte

const (
	classNeutral   bidiClass = iota
	classSeparator           // between digits, part of the number
	classNumber
	classLeft
	classRight
)

func classOf(r rune) bidiClass {
	p, _ := bidi.LookupRune(r)
	switch p.Class() {
	case bidi.R, bidi.AL:
		return classRight
	case bidi.L:
		return classLeft
	case bidi.EN, bidi.AN:
		return classNumber
	case bidi.ES, bidi.CS:
		return classSeparator
	}
	return classNeutral
}

// isRTL reports characters written from right to left.
func isRTL(r rune) bool { return r >= 0x590 && classOf(r) == classRight }

func isAccent(r rune) bool {
	p, _ := bidi.LookupRune(r)
	return p.Class() == bidi.NSM
}

func (c cluster) left() float64  { return c.glyphs[0].Box.X0 }
func (c cluster) right() float64 { return c.glyphs[0].Box.X1 }

// logical puts the glyphs of a line with text from right to left into the order in which
// it is read, with the spaces that its gaps are, and returns the cell of each. Pdfium has
// done so for words, but not for lines.
func logical(glyphs []glyph, least float64) (ordered []glyph, cells []int) {
	var line []cluster
	least = max(least, arabicSpace)
	for _, g := range glyphs {
		if g.Rune == ' ' && g.Box.X1-g.Box.X0 < 0.05*g.Size { // it has no place; the gaps have
			continue
		}
		// The letters of a ligature have places of their own if it is drawn from the right.
		if n := len(line); n > 0 && (g.joined && g.Box == line[n-1].glyphs[0].Box || isAccent(g.Rune)) {
			line[n-1].glyphs = append(line[n-1].glyphs, g)
			continue
		}
		line = append(line, cluster{[]glyph{g}, classOf(g.Rune)})
	}
	slices.SortStableFunc(line, func(a, b cluster) int {
		switch x, y := a.left()+a.right(), b.left()+b.right(); {
		case x < y:
			return -1
		case x > y:
			return 1
		}
		return 0
	})
	var columns [][]cluster
	begin := 0
	for i := 1; i <= len(line); i++ {
		if i == len(line) || apartInCells(line[i-1], line[i]) {
			columns = append(columns, withSpaces(line[begin:i], least))
			begin = i
		}
	}
	if fromRight(line) {
		slices.Reverse(columns)
	}
	for n, column := range columns {
		from := len(ordered)
		for _, c := range reading(column) {
			for _, g := range c.glyphs {
				ordered, cells = append(ordered, g), append(cells, n)
			}
		}
		turnBrackets(ordered[from:])
	}
	return ordered, cells
}

// arabicSpace is the least gap that is a space in such a line, as a part of the size:
// Arabic letters that do not join stand apart from each other.
const arabicSpace = 0.2

// turnBrackets turns the brackets next to text from right to left as they belong: what
// opens follows a space, and what closes follows text. Pdfium has mirrored some of them.
func turnBrackets(line []glyph) {
	for i := range line {
		g := &line[i]
		k := strings.IndexRune("()[]{}", g.Rune)
		if k < 0 || !(i > 0 && isRTL(line[i-1].Rune)) && !(i+1 < len(line) && isRTL(line[i+1].Rune)) {
			continue
		}
		closes := i > 0 && line[i-1].Rune != ' '
		if closes != (k%2 == 1) {
			g.Rune = rune("()[]{}"[k^1])
		}
	}
}

func apartInCells(a, b cluster) bool {
	return b.left()-a.right() > cellGap*min(a.glyphs[0].Size, b.glyphs[0].Size)
}

// withSpaces adds spaces where the gaps between clusters say so.
func withSpaces(line []cluster, least float64) []cluster {
	var spaced []cluster
	for i, c := range line {
		if i > 0 {
			a, b := line[i-1].glyphs[0], c.glyphs[0]
			if a.Rune != ' ' && b.Rune != ' ' && c.left()-line[i-1].right() > least*min(a.Size, b.Size) {
				space := b
				space.Rune, space.Box.X0, space.Box.X1 = ' ', a.Box.X1, b.Box.X0
				spaced = append(spaced, cluster{[]glyph{space}, classNeutral})
			}
		}
		spaced = append(spaced, c)
	}
	return spaced
}

// fromRight reports whether more letters are written from the right than from the left.
func fromRight(line []cluster) bool {
	n := 0
	for _, c := range line {
		switch c.class {
		case classRight:
			n++
		case classLeft:
			n--
		}
	}
	return n >= 0
}

// reading turns the order from left to right into that of reading.
func reading(line []cluster) []cluster {
	if fromRight(line) {
		return reversed(line)
	}
	var text []cluster
	for i := 0; i < len(line); {
		if line[i].class != classRight {
			text = append(text, line[i])
			i++
			continue
		}
		end := i + 1 // of the passage from right to left
		for k := end; k < len(line) && line[k].class != classLeft; k++ {
			if line[k].class == classRight {
				end = k + 1
			}
		}
		text = append(text, reversed(line[i:end])...)
		i = end
	}
	return text
}

// reversed reads from the right, but numbers and passages from left to right as they are.
func reversed(line []cluster) []cluster {
	text := make([]cluster, 0, len(line))
	for end := len(line); end > 0; {
		begin := end - 1
		if c := line[begin].class; c == classLeft || c == classNumber {
			begin = beginning(line, begin)
		}
		text = append(text, line[begin:end]...)
		end = begin
	}
	return text
}

// beginning returns where the passage from left to right begins that ends at end.
func beginning(line []cluster, end int) int {
	begin := end
	for k := end - 1; k >= 0; k-- {
		switch c := line[k].class; {
		case c == classRight:
			return begin
		case c == classLeft:
			begin = k
		case c == classNumber:
			near := k == begin-1 || k == begin-2 && line[k+1].class == classSeparator
			if !near && line[begin].class == classNumber {
				return begin
			}
			if near {
				begin = k
			}
		}
	}
	return begin
}
