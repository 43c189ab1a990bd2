// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A trait is a property of a character in the normalised layer.
type trait uint8

// The traits. A character without plain, folds or drops is normalised by NFKC.
const (
	plain  trait = 1 << iota // NFKC never changes it
	starts                   // never combines with the character before
	folds                    // replaced by one character, see fold
	drops                    // zero-width, dropped
	cjk                      // Chinese or Japanese, after normalisation
	latin                    // an ASCII letter or digit
)

// fold returns the replacement of r, or r.
func fold(r rune) rune {
	switch r {
	case '‘', '’', '‚', '‛', '‹', '›', '′', '´':
		return '\''
	case '“', '”', '„', '‟', '«', '»', '″':
		return '"'
	case '\u2010', '\u2011', '\u2012', '\u2013', '\u2014', '\u2015', '\u2212', '\ufe31', '\ufe32', '\ufe58', '\ufe63':
		return '-'
	case '\u00a0', '\u1680', '\u202f', '\u205f', '\u3000':
		return ' '
	}
	switch {
	case r >= '\u2000' && r <= '\u200a':
		return ' '
	case r >= '\uff01' && r <= '\uff5e': // the full-width forms of ASCII
		return r - '\uff01' + '!'
	}
	return r
}

// zeroWidth reports whether r is invisible: joiners, direction marks, soft hyphens,
// byte order marks, variation selectors.
func zeroWidth(r rune) bool {
	switch r {
	case '\u00ad', '\u034f', '\u061c', '\u180e', '\ufeff':
		return true
	}
	return r >= '\u200b' && r <= '\u200f' || r >= '\u202a' && r <= '\u202e' ||
		r >= '\u2060' && r <= '\u206f' || r >= '\ufe00' && r <= '\ufe0f'
}

// isCJK reports whether spaces between r and a Latin character are ignored.
func isCJK(r rune) bool {
	switch {
	case r < 0x2e80:
		return false
	case r <= 0x2fdf, r >= 0x3000 && r <= 0x30ff, r >= 0x31f0 && r <= 0x31ff, r >= 0x3400 && r <= 0x4dbf, r >= 0x4e00 && r <= 0x9fff,
		r >= 0xf900 && r <= 0xfaff, r >= 0xfe30 && r <= 0xfe4f, r >= 0xff00 && r <= 0xffef, r >= 0x20000 && r <= 0x323af:
		return true
	}
	return false
}

func isLatin(r rune) bool {
	return r < utf8.RuneSelf && (r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z')
}

// firstPlane holds the traits of the characters below 0x10000.
var firstPlane = sync.OnceValue(func() *[0x10000]trait {
	var all [0x10000]trait
	for r := range rune(len(all)) {
		all[r] = computeTraits(r)
	}
	return &all
})

// traits returns the traits of r; table is that of firstPlane.
func traits(table *[0x10000]trait, r rune) trait {
	if int(r) < len(table) {
		return table[r]
	}
	return computeTraits(r)
}

// computeTraits returns the traits of r.
func computeTraits(r rune) (t trait) {
	if isCJK(r) {
		t |= cjk
	}
	if isLatin(r) {
		t |= latin
	}
	switch {
	case r < utf8.RuneSelf:
		return t | plain | starts
	case zeroWidth(r):
		t |= drops
	case fold(r) != r:
		t |= folds
	case r >= 0x3400 && r <= 0x4dbf, r >= 0x4e00 && r <= 0x9fff, r >= 0xac00 && r <= 0xd7a3:
		return t | plain | starts // Han and Hangul syllables: a fast path
	}
	var buf [utf8.UTFMax]byte
	b := utf8.AppendRune(buf[:0], r)
	if norm.NFKC.Properties(b).BoundaryBefore() {
		t |= starts
		if t&(drops|folds) == 0 && norm.NFKC.IsNormal(b) {
			t |= plain
		}
	}
	return t
}

// isWord reports whether r is part of a word.
func isWord(r rune) bool {
	if r < utf8.RuneSelf {
		return isLatin(r) || r == '_'
	}
	return unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r)
}
