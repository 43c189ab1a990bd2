// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"cmp"
	"slices"
	"unicode"
)

// A runes is a set of characters: pairs of the first and the last character of
// a range, ascending and disjoint.
type runes []rune

func everything() runes { return runes{0, unicode.MaxRune} }

// lineEnds are the line terminators of JavaScript.
func lineEnds() runes { return runes{'\n', '\n', '\r', '\r', '\u2028', '\u2029'} }

// spaces are the characters that \s matches in JavaScript.
func spaces() runes {
	return runes{
		'\t', '\r', ' ', ' ', '\u00a0', '\u00a0', '\u1680', '\u1680', '\u2000', '\u200a', '\u2028', '\u2029',
		'\u202f', '\u202f', '\u205f', '\u205f', '\u3000', '\u3000', '\ufeff', '\ufeff',
	}
}

// sorted sorts ranges and joins adjacent ones.
func (s runes) sorted() runes {
	type pair struct{ low, high rune }
	pairs := make([]pair, 0, len(s)/2)
	for i := 0; i < len(s); i += 2 {
		pairs = append(pairs, pair{s[i], s[i+1]})
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Compare(a.low, b.low) })
	out := make(runes, 0, len(s))
	for _, p := range pairs {
		if n := len(out); n > 0 && p.low <= out[n-1]+1 {
			out[n-1] = max(out[n-1], p.high)
			continue
		}
		out = append(out, p.low, p.high)
	}
	return out
}

// not returns the complement.
func (s runes) not() runes {
	var out runes
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out
}

// has reports whether any character of the range is in s.
func (s runes) has(low, high rune) bool {
	for i := 0; i < len(s); i += 2 {
		if s[i] <= high && s[i+1] >= low {
			return true
		}
	}
	return false
}

// count returns the number of characters in s from low on.
func (s runes) count(low rune) int {
	n := 0
	for i := 0; i < len(s); i += 2 {
		if s[i+1] >= low {
			n += int(s[i+1]-max(s[i], low)) + 1
		}
	}
	return n
}

// folded adds the other case of letters, as JavaScript does without the flag u,
// for ASCII. It is false with the flag u, and if s has cased letters beyond
// ASCII, which fold by other rules.
func (s runes) folded(u bool) (runes, bool) {
	if u {
		return nil, false
	}
	beyond := s
	if s.count(utf8Self) > (unicode.MaxRune-utf8Self)/2 {
		beyond = s.not()
	}
	if beyond.count(utf8Self) > 100_000 {
		return nil, false
	}
	out := slices.Clone(s)
	for i := 0; i < len(beyond); i += 2 {
		for r := max(beyond[i], utf8Self); r <= beyond[i+1]; r++ {
			if unicode.SimpleFold(r) != r {
				return nil, false
			}
		}
	}
	for c := 'a'; c <= 'z'; c++ {
		if s.has(c, c) || s.has(c-32, c-32) {
			out = append(out, c, c, c-32, c-32)
		}
	}
	return out.sorted(), true
}

// utf8Self is the first character beyond ASCII.
const utf8Self = 0x80
