// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"encoding/binary"
	"iter"
	"math/bits"
	"unicode/utf8"
)

// A section is a part of the old text, cut into short pieces. An edit spoils
// one piece, so that where a passage has no more than the section's share of
// the edits in it, the others stand there as they are.
type section struct {
	piece
	pieces []piece
	size   int // code points
	share  int // of the edits
}

// sections cuts the old text so that in every passage one section at least has no
// more than its share of the edits.
func (s sieve) sections(size int) []section {
	pieces := s.grams(size)
	n := min(max(s.size/192, 1), maxSections, len(pieces), s.limit+1)
	all := make([]section, n)
	for i := range all {
		own := pieces[i*len(pieces)/n : (i+1)*len(pieces)/n]
		p := piece{own[0].from, own[len(own)-1].till}
		all[i] = section{
			piece: p, pieces: own, size: utf8.RuneCountInString(s.old[p.from:p.till]),
			share: (i+1)*(s.limit+1)/n - i*(s.limit+1)/n - 1,
		}
	}
	return all
}

// A tally counts, in bins of the text, the pieces of each section.
type tally struct {
	sections []section
	size     int    // bytes of a piece that are compared
	mask     uint64 // of them

	// Which sections have a gram, known by its hash. Others of the same hash
	// only add to the counts.
	hashes hasher
	some   []uint64
	which  []uint32
	owners []uint64

	shift  int      // a bin has 1<<shift characters
	counts []uint16 // of each bin, for each section
	starts []int    // where bins begin, in bytes, and where the last ends
}

// byCount finds the sections that have enough of their pieces standing close
// together, and keeps those that resemble what stands there.
func (s sieve) byCount(ctx context.Context, m *meter) ([]region, bool, error) {
	t := tally{size: gram, owners: make([]uint64, 1)}
	if len(s.old) < s.size*3/2 {
		t.size = shortGram
	}
	t.mask = ^uint64(0) >> (64 - 8*t.size)
	t.sections = s.sections(t.size)
	t.hashes = newHasher(64 * len(s.old) / t.size)
	t.some, t.which = make([]uint64, t.hashes.space()/64), make([]uint32, t.hashes.space())
	longest := 0
	for i, g := range t.sections {
		if len(g.pieces)-g.share < max(fewestSeed, len(g.pieces)/8) {
			return nil, false, nil
		}
		longest = max(longest, g.size+g.share)
		for _, p := range g.pieces {
			t.own(s.old, p.from, i)
		}
	}
	for t.shift = max(bits.Len(uint(longest/4))-1, 4); len(s.text)>>t.shift*len(t.sections) > maxCounts; t.shift++ {
	}
	if t.shift > 15 {
		return nil, false, nil // a bin could have more than can be counted
	}
	if !t.count(s.text) {
		return nil, false, nil
	}
	// To look at a section costs about one block of a column; to do without,
	// as many as the limit has rows, twice.
	patience := len(s.text) / 2 * (s.limit/word + 1)
	var found []region
	for i := range t.sections {
		var p *profile
		for r := range t.dense(i) {
			if patience -= r.till - r.from; patience < 0 {
				return nil, false, nil
			}
			g := t.sections[i]
			if p == nil {
				p = newProfile([]rune(s.old[g.from:g.till]))
			}
			first, last := -1, -1
			err := p.search(ctx, m, s.text[r.from:r.till], g.share, func(end, _ int) int {
				if last = r.from + end; first < 0 {
					first = last
				}
				return g.share
			})
			if err != nil {
				return nil, false, err
			}
			if first >= 0 {
				// What comes before takes no more than the old text up to here,
				// and the edits.
				found = append(found, s.around(piece{g.till, g.till}, first, last))
			}
		}
	}
	return found, true, nil
}

// around returns where a passage can be of which text[from:till] holds the part
// that belongs to this piece of the old text. An edit adds one character, which
// mostly is one byte.
func (s sieve) around(p piece, from, till int) region {
	before, after := from-p.from-s.limit, till+len(s.old)-p.till+s.limit
	if before < 0 || firstForeign(s.text[before:from]) < from-before {
		before = from - p.from - utf8.UTFMax*s.limit
	}
	if after > len(s.text) || firstForeign(s.text[till:after]) < after-till {
		after = till + len(s.old) - p.till + utf8.UTFMax*s.limit
	}
	return whole(s.text, before, after)
}

// hash returns the number of the gram at byte i of text.
func (t *tally) hash(text string, i int) uint32 {
	if i+gram <= len(text) {
		return t.hashes.of(load(text, i) & t.mask)
	}
	var b [gram]byte
	copy(b[:], text[i:i+t.size])
	return t.hashes.of(binary.LittleEndian.Uint64(b[:]))
}

// own says that a section has the gram at byte i of old.
func (t *tally) own(old string, i, section int) {
	h := t.hash(old, i)
	if t.which[h] == 0 {
		t.which[h] = uint32(len(t.owners))
		t.owners = append(t.owners, 0)
		t.some[h/64] |= 1 << (h % 64)
	}
	t.owners[t.which[h]] |= 1 << section
}

// count counts the pieces in text; false says that there are so many that they
// tell nothing.
func (t *tally) count(text string) bool {
	n := len(t.sections)
	bin := 1<<t.shift - 1
	t.counts = make([]uint16, (len(text)>>t.shift+1)*n)
	t.starts = make([]int, 0, len(text)>>t.shift+2)
	row := t.counts
	chars, hits, mask, some, hashes := 0, 0, t.mask, t.some, t.hashes
	for i := 0; i < len(text); i++ {
		if !utf8.RuneStart(text[i]) {
			continue
		}
		if chars&bin == 0 {
			row = t.counts[chars>>t.shift*n:]
			t.starts = append(t.starts, i)
		}
		chars++
		var h uint32
		switch {
		case i+gram <= len(text):
			h = hashes.of(load(text, i) & mask)
		case i+t.size <= len(text):
			h = t.hash(text, i)
		default:
			continue
		}
		if some[h/64]>>(h%64)&1 == 0 {
			continue
		}
		for m := t.owners[t.which[h]]; m != 0; m &= m - 1 {
			row[bits.TrailingZeros64(m)]++
		}
		if hits++; hits > len(text)/3 {
			return false
		}
	}
	t.starts = append(t.starts, len(text))
	return true
}

// dense yields where a section has enough of its pieces, apart from each other.
func (t *tally) dense(i int) iter.Seq[region] {
	return func(yield func(region) bool) {
		s, n, bins := t.sections[i], len(t.sections), len(t.starts)-1
		span := (s.size+s.share-1)>>t.shift + 2 // bins that it can reach over
		sum, from, till := 0, -1, -1            // bins
		for b := range bins {
			sum += int(t.counts[b*n+i])
			if b >= span {
				sum -= int(t.counts[(b-span)*n+i])
			}
			if sum < len(s.pieces)-s.share {
				continue
			}
			at := max(b-span+1, 0)
			if from >= 0 && at > till {
				if !yield(region{t.starts[from], t.starts[till]}) {
					return
				}
				from = -1
			}
			if from < 0 {
				from = at
			}
			till = b + 1
		}
		if from >= 0 {
			yield(region{t.starts[from], t.starts[till]})
		}
	}
}
