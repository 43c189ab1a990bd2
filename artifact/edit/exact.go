// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"iter"
	"strings"
)

// findExact finds old letter for letter.
func findExact(_ context.Context, j *job, e Edit, overlap bool) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		for i := range occurrences(j.doc.text, e.Old, overlap) {
			if !yield(match{i, i + len(e.Old), 1, e.New}, nil) {
				return
			}
		}
	}
}

// occurrences yields where old stands in text. Between matches it leaps; inside
// a run of overlapping ones it goes by the borders of old (Knuth, Morris,
// Pratt), so that "aaaa…" in "aaaa…" stays linear.
func occurrences(text, old string, overlap bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		var border []int32
		leap := newLeaper(text, old)
		matched := 0 // bytes of old that end at i
		for i := 0; i < len(text); {
			if matched == 0 {
				j := leap.next(i)
				if j < 0 {
					return
				}
				i = j + len(old)
				matched = len(old)
			} else {
				for matched > 0 && text[i] != old[matched] {
					matched = int(border[matched-1])
				}
				if matched == 0 {
					continue // text[i] may still begin a match
				}
				matched++
				i++
			}
			if matched < len(old) {
				continue
			}
			if !yield(i - len(old)) {
				return
			}
			if matched = 0; overlap {
				if border == nil {
					border = borders(old)
				}
				matched = int(border[len(old)-1])
			}
		}
	}
}

// borders returns, for each prefix of s, the length of the longest proper
// prefix of it that is also its suffix.
func borders(s string) []int32 {
	b := make([]int32, len(s))
	k := int32(0)
	for i := 1; i < len(s); i++ {
		for k > 0 && s[i] != s[k] {
			k = b[k-1]
		}
		if s[i] == s[k] {
			k++
		}
		b[i] = k
	}
	return b
}

// A leaper finds a long string in a longer one by looking at few bytes: at one
// gram in so many that every occurrence has one of them in its first part.
// Where the string is short, or repeats itself so much that grams tell little,
// strings.Index is used.
type leaper struct {
	text, old string
	hash      hasher
	heads     []uint16 // 1 more than the last place of a gram in old, by its hash
	chain     []uint16 // for each place, the one before of the same hash, as in heads
	patience  int      // comparisons that are left
}

const (
	leapFrom = 64      // bytes of old that make it worth while
	leapOver = 64      // how many times as long as that the text has to be
	leapPart = 1 << 10 // how much of old is looked at
)

func newLeaper(text, old string) *leaper {
	l := &leaper{text: text, old: old}
	if len(old) < leapFrom || len(text) < leapOver*leapFrom {
		return l
	}
	l.chain = make([]uint16, min(len(old), leapPart)-gram+1)
	l.hash = newHasher(4 * len(l.chain))
	l.heads = make([]uint16, l.hash.space())
	for i := range l.chain {
		h := &l.heads[l.hash.of(load(old, i))]
		l.chain[i], *h = *h, uint16(i+1)
	}
	l.patience = len(text) / gram
	return l
}

// next returns where old stands next, from byte i on, or -1.
func (l *leaper) next(i int) int {
	if l.heads != nil {
		for t := i + len(l.chain) - 1; t+gram <= len(l.text) && l.patience > 0; t += len(l.chain) {
			found := -1
			for o := l.heads[l.hash.of(load(l.text, t))]; o != 0; o = l.chain[o-1] {
				l.patience--
				at := t - int(o-1)
				if at < i || load(l.text, t) != load(l.old, int(o-1)) {
					continue
				}
				if l.patience -= len(l.old) / gram; strings.HasPrefix(l.text[at:], l.old) {
					found = at // of those with this gram, the last in old is the first in text
					break
				}
			}
			if found >= 0 {
				return found
			}
			if l.patience <= 0 {
				i = t + 1 - len(l.chain)
			}
		}
		if l.patience > 0 {
			return -1
		}
	}
	j := strings.Index(l.text[i:], l.old)
	if j < 0 {
		return -1
	}
	return i + j
}
