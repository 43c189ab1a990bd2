// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"math"
	"slices"
)

// Bounds of the search for places of glyphs in lines before them.
const (
	maxMoves    = 1000 // of one page
	maxLineMove = 2000 // glyphs of the line
)

// ordered puts glyphs into the gaps of the line before them in which they are shown.
// Programs write a line and then, on it, what its font does not have, such as emoji.
func ordered(glyphs []glyph) []glyph {
	from, moves := 0, 0 // where the line begins
	end := 0.0
	for i := 0; i < len(glyphs); {
		g := glyphs[i]
		switch {
		case i == from || !levelWith(glyphs[from], g):
			from, end = i, g.Box.X1
		case g.Box.X0 >= end-0.6*g.Size:
			end = max(end, g.Box.X1)
		default:
			n := 1
			for moves < maxMoves && n <= maxLineMove && i+n < len(glyphs) && levelWith(glyphs[from], glyphs[i+n]) && glyphs[i+n].Box.X0 >= glyphs[i+n-1].Box.X0 && glyphs[i+n].Box.X1 <= end {
				n++
			}
			if moves++; moves <= maxMoves && i-from <= maxLineMove && n <= maxLineMove && insert(glyphs[from:i+n], i-from) {
				i += n
				continue
			}
			from, end = i, g.Box.X1
		}
		i++
	}
	return glyphs
}

// levelWith reports glyphs that may be on one line from left to right.
func levelWith(a, b glyph) bool {
	return !a.Turned && !b.Turned && math.Abs(a.Y-b.Y) < 0.12*max(a.Size, b.Size) && !isRTL(a.Rune) && !isRTL(b.Rune)
}

// insert puts the glyphs from n on into the gaps between those before. It does nothing if
// one of them has no gap.
func insert(glyphs []glyph, n int) bool {
	merged := make([]glyph, 0, len(glyphs))
	rest := glyphs[:n]
	for _, g := range glyphs[n:] {
		k := slices.IndexFunc(rest, func(o glyph) bool { return o.Box.X0 >= g.Box.X0 })
		slack := 0.25 * g.Size
		if k < 0 || g.Box.X1-rest[k].Box.X0 > slack {
			return false // beyond the end, or over what follows
		}
		merged, rest = append(merged, rest[:k]...), rest[k:]
		if m := len(merged); m == 0 || merged[m-1].Box.X1-g.Box.X0 > slack {
			return false
		}
		g.brk = false
		merged = append(merged, g)
	}
	copy(glyphs, append(merged, rest...))
	return true
}
