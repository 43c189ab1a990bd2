// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"context"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// Most of a long text has nothing in common with the old text and need not be
// searched. Seeds are short pieces of the old text that occur unchanged in every
// approximate match; a region with too few of them cannot contain a match within
// the limit. This filter is exact, so it does not change the result. If seeds
// exclude little, because the text is repetitive or the limit is wide, the whole
// text is searched.

const (
	seedFrom   = 4 << 10 // shorter texts, in bytes, are searched whole
	gram       = 8       // bytes compared at once
	shortGram  = 5       // the same for ASCII if edits are close to each other
	seedCost   = 4       // bytes read in the time of a step
	fewestSeed = 3       // minimum number of seeds for a useful count
)

// An area is the part of the text to search for matches.
type area struct {
	// The regions contain every match with at most limit edits, and every one
	// within the margin of the closest.
	regions []region
	limit   int   // maximum distance of the closest match
	ends    []int // ends of the matches with distance limit; nil: unknown
}

// areaOf returns the area of matches with at most limit edits.
func (a *approximate) areaOf(ctx context.Context, limit int) (area, error) {
	all := area{regions: []region{{0, len(a.text)}}, limit: limit}
	if len(a.text) < max(seedFrom, 4*len(a.old)) || len(a.old) < 2*gram {
		return all, nil
	}
	if err := a.meter.spend(ctx, int64(len(a.text)/seedCost)); err != nil {
		return area{}, err
	}
	s := filter{text: a.text, old: a.old, size: len(a.pattern), sample: samples.Get().(*sample)}
	defer s.sample.free()
	if !s.sample.take(a.text, a.old, gram) {
		return all, nil
	}
	// Usually few edits are enough, and unchanged pieces locate the match, sometimes
	// together with everything within the margin.
	few := min(limit, s.size/16)
	for _, margin := range slices.Compact([]int{a.margin, 0}) {
		s.limit = few + margin
		found, ok := s.bySample()
		if !ok || len(found) == 0 {
			continue
		}
		d, ends, err := a.closest(ctx, found, few)
		if err != nil {
			return area{}, err
		}
		if ends == nil {
			break
		}
		near := area{found, d, ends}
		if margin < a.margin {
			s.limit, s.known = d+a.margin, found[0]
			if near.regions, ok, err = s.regions(ctx, a.meter); !ok || err != nil {
				near.regions = all.regions
			}
		}
		return near, err
	}
	at, ok := s.sample.guess()
	if !ok {
		return all, nil
	}
	var guess region
	var ends []int
	slack := len(a.old)/32 + 1<<voteShift
	for _, most := range []int{limit / 4, limit} { // a narrow band is a fast one
		guess = whole(a.text, at-slack, at+2<<voteShift+len(a.old)+slack)
		var err error
		if all.limit, ends, err = a.closest(ctx, []region{guess}, most); err != nil {
			return area{}, err
		}
		if ends != nil {
			break
		}
		slack = len(a.old)/4 + 2<<voteShift
	}
	if ends == nil {
		return all, nil
	}
	s.limit, s.known = all.limit+a.margin, guess
	found, ok, err := s.regions(ctx, a.meter)
	if !ok || err != nil {
		return all, err
	}
	near := area{regions: found, limit: all.limit}
	if !slices.ContainsFunc(found, func(r region) bool { return r.from < guess.from || r.till > guess.till }) {
		near.ends = ends
	}
	return near, nil
}

func load(s string, i int) uint64 {
	b := s[i : i+gram]
	return uint64(b[0]) | uint64(b[1])<<8 | uint64(b[2])<<16 | uint64(b[3])<<24 |
		uint64(b[4])<<32 | uint64(b[5])<<40 | uint64(b[6])<<48 | uint64(b[7])<<56
}

// A hasher gives grams numbers below a power of two.
type hasher struct{ shift uint }

// newHasher returns a hasher with few collisions for this many grams.
func newHasher(grams int) hasher {
	return hasher{uint(64 - min(max(bits.Len(uint(grams)), 10), 18))}
}

func (h hasher) space() int { return 1 << (64 - h.shift) }

func (h hasher) of(x uint64) uint32 { return uint32(x * 0x9E3779B97F4A7C15 >> (h.shift & 63)) }

// whole returns the region, cut to the text and extended to whole characters.
func whole(text string, from, till int) region {
	from, till = max(from, 0), min(till, len(text))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	return region{from, wholeFrom(text, till)}
}

// wholeFrom returns the start of the first character from byte i on.
func wholeFrom(text string, i int) int {
	for i < len(text) && !utf8.RuneStart(text[i]) {
		i++
	}
	return i
}

// A filter finds the regions that can contain matches.
type filter struct {
	text, old string
	size      int     // code points of old
	limit     int     // edits of a match
	sample    *sample // nil: not sampled yet
	known     region  // a place where a match is known: it is kept; empty: none
}

// A piece is a part of the old text, in bytes, of whole characters.
type piece struct{ from, till int }

// regions returns the regions that can contain matches; false if seeds exclude too little.
func (s filter) regions(ctx context.Context, m *meter) ([]region, bool, error) {
	if found, ok := s.byOne(); ok {
		if found, ok = s.few(found); ok {
			return found, true, nil
		}
	}
	found, ok, err := s.byCount(ctx, m)
	if !ok || err != nil {
		return nil, false, err
	}
	found, covered := merge(found)
	return found, covered <= len(s.text)/2, nil
}

// few merges the regions, and reports whether they are a small part of the text.
func (s filter) few(found []region) ([]region, bool) {
	found, covered := merge(found)
	return found, covered <= max(len(s.text)/16, 4*len(s.old))
}

// bySample is byOne with the sample already taken. It returns false if the sample
// is too coarse or the regions are many.
func (s filter) bySample() ([]region, bool) {
	pieces := s.sample.pieces(s.limit)
	if len(pieces) <= s.limit {
		return nil, false
	}
	found, ok := s.unchanged(pieces)
	if ok {
		found, ok = s.few(found)
	}
	return found, ok
}

// merge sorts the regions, joins those that touch, and returns their total size.
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

// around returns the region of the matches in which text[from:till] corresponds to
// piece p of the old text. An edit adds at most one character, usually one byte.
func (s filter) around(p piece, from, till int) region {
	before, after := from-p.from-s.limit, till+len(s.old)-p.till+s.limit
	if before < 0 || firstNonASCII(s.text[before:from]) < from-before {
		before = from - p.from - utf8.UTFMax*s.limit
	}
	if after > len(s.text) || firstNonASCII(s.text[till:after]) < after-till {
		after = till + len(s.old) - p.till + utf8.UTFMax*s.limit
	}
	return whole(s.text, before, after)
}

// byOne finds the regions around unchanged pieces of the old text. With more pieces
// than edits, every match contains an unchanged one. The pieces are long enough to
// be found in a sample of the text.
func (s filter) byOne() ([]region, bool) {
	const dense = 4 // more samples cost more than counting does
	for stride := gram; stride >= dense; stride /= 2 {
		if len(s.old)/(stride+gram-1) <= s.limit {
			continue
		}
		if s.sample == nil || s.sample.stride != stride {
			if s.sample == nil {
				s.sample = new(sample)
			}
			if !s.sample.take(s.text, s.old, stride) {
				return nil, false
			}
		}
		if pieces := s.sample.pieces(s.limit); len(pieces) > s.limit {
			return s.unchanged(pieces)
		}
	}
	return nil, false
}

// unchanged returns the regions in which len(pieces) - limit pieces occur at about
// the same distances as in the old text. Each edit changes at most one piece.
func (s filter) unchanged(pieces []piece) ([]region, bool) {
	var begins []int // where the old text would begin
	budget := len(s.text) / 4
	for _, p := range pieces {
		for i := p.from; i < p.from+s.sample.stride; i++ {
			if budget -= s.sample.count(i); budget < 0 {
				return nil, false
			}
			s.sample.places(i, func(at int) {
				begin := at - i
				if from, till := begin+p.from, begin+p.till; from >= 0 && till <= len(s.text) && s.text[from:till] == s.old[p.from:p.till] {
					begins = append(begins, begin)
				}
			})
		}
	}
	slices.Sort(begins)
	needed := len(pieces) - s.limit
	var found []region
	for i, k := 0, 0; k < len(begins); k++ {
		for begins[k]-begins[i] > utf8.UTFMax*s.limit { // an edit moves the following text by one character
			i++
		}
		if k-i+1 < needed {
			continue
		}
		if n := len(found); n > 0 && begins[i] <= found[n-1].till {
			found[n-1].till = begins[k]
		} else {
			found = append(found, region{begins[i], begins[k]})
		}
	}
	for i, r := range found {
		if budget -= (r.till - r.from + len(s.old)) / gram; budget < 0 {
			return nil, false
		}
		r.till += len(s.old)
		near := whole(s.text, r.from-s.limit, r.till+s.limit)
		if firstNonASCII(s.text[near.from:near.till]) < near.till-near.from {
			near = whole(s.text, r.from-utf8.UTFMax*s.limit, r.till+utf8.UTFMax*s.limit)
		}
		found[i] = near
	}
	return found, true
}
