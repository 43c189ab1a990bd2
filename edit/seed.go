// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Most of a long text has nothing in common with the old text, and need not go
// through the bands. Seeds are short pieces of the old text that stand
// unchanged in a passage that resembles it: where there are too few of them,
// no passage within the limit can be. That is proved, not guessed, so that
// what is found does not depend on it. Where seeds tell little, because the
// text repeats itself or the limit is wide, all of it is searched.

const (
	seedFrom    = 4 << 10 // shorter texts, in bytes, are searched as they are
	gram        = 8       // bytes that are compared at once
	shortGram   = 5       // the same, of ASCII, where edits are close to each other
	maxSections = 64
	maxCounts   = 8 << 20 // bins of the text, for each section
	seedCost    = 4       // bytes that are looked at in the time of a step
	fewestSeed  = 3       // seeds that have to be found for a count to tell anything
)

// An area is where passages have to be looked for.
type area struct {
	// Every passage lies in one of the regions that differs by at most limit
	// edits, or is within the margin of the closest.
	regions []region
	limit   int   // the closest differs by no more
	ends    []int // where those end that differ by limit; nil: not known yet
}

// areaOf returns the area of passages that differ by at most limit edits.
func (a *approximate) areaOf(ctx context.Context, limit int) (area, error) {
	all := area{regions: []region{{0, len(a.text)}}, limit: limit}
	if len(a.text) < max(seedFrom, 4*len(a.old)) || len(a.old) < 2*gram {
		return all, nil
	}
	if err := a.meter.spend(ctx, int64(len(a.text)/seedCost)); err != nil {
		return area{}, err
	}
	guess, ok := a.guess()
	if !ok {
		return all, nil
	}
	var ends []int
	for _, most := range []int{limit / 4, limit} { // a narrow band is a fast one
		var err error
		if all.limit, ends, err = a.closest(ctx, []region{guess}, most); err != nil {
			return area{}, err
		}
		if ends != nil {
			break
		}
	}
	if ends == nil {
		return all, nil
	}
	s := sieve{text: a.text, old: a.old, size: len(a.pattern), limit: all.limit + a.margin}
	found, ok, err := s.regions(ctx, a.meter)
	if !ok || err != nil {
		return all, err
	}
	at := area{regions: found, limit: all.limit}
	if !slices.ContainsFunc(found, func(r region) bool { return r.from < guess.from || r.till > guess.till }) {
		at.ends = ends
	}
	return at, nil
}

func load(s string, i int) uint64 {
	b := s[i : i+gram]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// A hasher gives grams numbers below a power of two.
type hasher struct{ shift uint }

// newHasher returns a hasher for a number of grams of which each should seldom
// share its number.
func newHasher(grams int) hasher {
	return hasher{uint(64 - min(max(bits.Len(uint(grams)), 10), 16))}
}

func (h hasher) space() int { return 1 << (64 - h.shift) }

func (h hasher) of(x uint64) uint32 { return uint32(x * 0x9E3779B97F4A7C15 >> (h.shift & 63)) }

// guess returns where a passage may well be: where most of the grams that are
// sampled from the text stand as far from each other as in the old text.
func (a *approximate) guess() (region, bool) {
	hash := newHasher(4 * len(a.old))
	at := make([]int32, hash.space()) // 1 more than where the old text has a gram
	for i := range len(a.old) - gram + 1 {
		at[hash.of(load(a.old, i))] = int32(i + 1)
	}
	const shift = 6
	votes := make([]int32, (len(a.text)+len(a.old))>>shift+2)
	best, most := 0, int32(0)
	for i := 0; i+gram <= len(a.text); i += gram {
		x := load(a.text, i)
		o := at[hash.of(x)]
		if o == 0 || load(a.old, int(o-1)) != x {
			continue
		}
		v := (i - int(o-1) + len(a.old)) >> shift
		votes[v]++
		if n := votes[v] + votes[v+1]; n > most {
			best, most = v, n
		}
		if v > 0 {
			if n := votes[v] + votes[v-1]; n > most {
				best, most = v-1, n
			}
		}
	}
	from := best<<shift - len(a.old)
	slack := len(a.old)/4 + 2<<shift
	return whole(a.text, from-slack, from+2<<shift+len(a.old)+slack), most > 1
}

// whole returns the region, within the text and up to whole characters.
func whole(text string, from, till int) region {
	from, till = max(from, 0), min(till, len(text))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for till < len(text) && !utf8.RuneStart(text[till]) {
		till++
	}
	return region{from, till}
}

// A sieve finds the regions in which passages can be.
type sieve struct {
	text, old string
	size      int // code points of old
	limit     int // edits of a passage
}

// A piece is a part of the old text, in bytes, of whole characters.
type piece struct{ from, till int }

// regions is false where seeds do not tell enough.
func (s sieve) regions(ctx context.Context, m *meter) ([]region, bool, error) {
	if len(s.old)/(s.limit+1) >= gram+3 {
		if found, ok := s.byOne(); ok {
			if found, covered := merge(found); covered <= max(len(s.text)/16, 4*len(s.old)) {
				return found, true, nil
			}
		}
	}
	found, ok, err := s.byCount(ctx, m)
	if !ok || err != nil {
		return nil, false, err
	}
	found, covered := merge(found)
	return found, covered <= len(s.text)/2, nil
}

// merge returns the regions in order, those that touch as one, and how many
// bytes they have.
func merge(found []region) (merged []region, covered int) {
	slices.SortFunc(found, func(a, b region) int { return cmp.Compare(a.from, b.from) })
	for _, r := range found {
		if n := len(merged); n > 0 && r.from <= merged[n-1].till {
			merged[n-1].till = max(merged[n-1].till, r.till)
		} else {
			merged = append(merged, r)
		}
	}
	for _, r := range merged {
		covered += r.till - r.from
	}
	return merged, covered
}

// byOne cuts the old text into one piece more than there may be edits, so that
// one of them stands in every passage as it is. Pieces are long enough that
// the text needs only be sampled.
func (s sieve) byOne() ([]region, bool) {
	pieces := s.cut(s.limit + 1)
	shortest := len(s.old)
	for _, p := range pieces {
		shortest = min(shortest, p.till-p.from)
	}
	stride := shortest - gram + 1
	if stride < 2 {
		return nil, false
	}
	// Grams of the same hash are chained.
	hash := newHasher(4 * len(s.old))
	head := make([]int32, hash.space())
	type spot struct {
		at    int32 // in old
		piece int32
		next  int32
	}
	spots := make([]spot, 1, len(s.old))
	for n, p := range pieces {
		for i := p.from; i+gram <= p.till; i++ {
			h := hash.of(load(s.old, i))
			spots = append(spots, spot{int32(i), int32(n), head[h]})
			head[h] = int32(len(spots) - 1)
		}
	}
	var found []region
	patience := len(s.text) / 4
	for i := 0; i+gram <= len(s.text); i += stride {
		n := head[hash.of(load(s.text, i))]
		for ; n != 0; n = spots[n].next {
			p := pieces[spots[n].piece]
			from := i - (int(spots[n].at) - p.from)
			till := from + p.till - p.from
			if patience--; patience < 0 {
				return nil, false
			}
			if from < 0 || till > len(s.text) || load(s.text, i) != load(s.old, int(spots[n].at)) {
				continue
			}
			if patience -= (till - from) / gram; s.text[from:till] == s.old[p.from:p.till] {
				slack := utf8.UTFMax * s.limit
				found = append(found, whole(s.text, from-p.from-slack, till+len(s.old)-p.till+slack))
			}
		}
	}
	return found, true
}

// cut cuts the old text into n pieces of as many characters each.
func (s sieve) cut(n int) []piece {
	pieces := make([]piece, 0, n)
	from, chars := 0, 0
	for i := range s.old {
		if chars > 0 && len(pieces) < n-1 && chars >= (len(pieces)+1)*s.size/n {
			pieces = append(pieces, piece{from, i})
			from = i
		}
		chars++
	}
	return append(pieces, piece{from, len(s.old)})
}

// grams cuts the old text into pieces of at least size bytes.
func (s sieve) grams(size int) []piece {
	var pieces []piece
	from := 0
	for i := range s.old {
		if i-from >= size && len(s.old)-i >= size {
			pieces = append(pieces, piece{from, i})
			from = i
		}
	}
	return append(pieces, piece{from, len(s.old)})
}
