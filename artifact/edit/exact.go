// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"iter"
	"strings"
)

// findExact finds exact occurrences of old.
func findExact(_ context.Context, j *job, e Edit, overlap bool) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		for i := range occurrences(j.doc.text, e.Old, overlap) {
			if !yield(match{i, i + len(e.Old), 1, e.New}, nil) {
				return
			}
		}
	}
}

// occurrences yields the positions of old in text. It searches with a gramFinder;
// after a match that the next one may overlap it continues with the algorithm of
// Knuth, Morris and Pratt, so that "aaaa…" in "aaaa…" takes linear time.
func occurrences(text, old string, overlap bool) iter.Seq[int] {
	return func(yield func(int) bool) {
		var border []int32
		finder := newGramFinder(text, old)
		matched := 0 // length of the prefix of old that ends at i
		for i := 0; i < len(text); {
			if matched == 0 {
				j := finder.next(i)
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

// borders returns, for each prefix of s, the length of its longest proper prefix
// that is also its suffix.
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

// A gramFinder finds a long string in a longer one while reading few bytes: it
// samples the text at a distance that gives each occurrence a sampled gram in its
// first part. It falls back to strings.Index if the string is short or too
// repetitive.
type gramFinder struct {
	text, old string
	gramIndex
	budget int // remaining comparisons
}

// A gramIndex holds the positions of the grams in the first part of a text.
type gramIndex struct {
	hash  hasher
	heads []uint16 // by hash, 1 + the last position of such a gram
	chain []uint16 // for each position, 1 + the previous one of the same hash
}

const (
	finderMinOld   = 64      // minimum length of old, in bytes
	finderMinRatio = 64      // minimum length of the text, in finderMinOld
	finderPrefix   = 1 << 10 // bytes of old that are indexed
)

func newGramFinder(text, old string) *gramFinder {
	l := &gramFinder{text: text, old: old}
	if len(old) < finderMinOld || len(text) < finderMinRatio*finderMinOld {
		return l
	}
	l.gramIndex = indexGrams(old)
	l.budget = len(text) / gram
	return l
}

// indexGrams indexes a text of at least finderMinOld bytes.
func indexGrams(old string) gramIndex {
	x := gramIndex{chain: make([]uint16, min(len(old), finderPrefix)-gram+1)}
	x.hash = newHasher(4 * len(x.chain))
	x.heads = make([]uint16, x.hash.space())
	for i := range x.chain {
		h := &x.heads[x.hash.of(load(old, i))]
		x.chain[i], *h = *h, uint16(i+1)
	}
	return x
}

// next returns the first position of old from byte i on, or -1.
func (l *gramFinder) next(i int) int {
	if l.heads != nil {
		for t := i + len(l.chain) - 1; t+gram <= len(l.text) && l.budget > 0; t += len(l.chain) {
			found := -1
			for o := l.heads[l.hash.of(load(l.text, t))]; o != 0; o = l.chain[o-1] {
				l.budget--
				at := t - int(o-1)
				if at < i || load(l.text, t) != load(l.old, int(o-1)) {
					continue
				}
				if l.budget -= len(l.old) / gram; strings.HasPrefix(l.text[at:], l.old) {
					found = at // the last position of the gram in old gives the first in text
					break
				}
			}
			if found >= 0 {
				return found
			}
			if l.budget <= 0 {
				i = t + 1 - len(l.chain)
			}
		}
		if l.budget > 0 {
			return -1
		}
	}
	j := strings.Index(l.text[i:], l.old)
	if j < 0 {
		return -1
	}
	return i + j
}
