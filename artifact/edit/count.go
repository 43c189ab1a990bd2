// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"context"
	"encoding/binary"
	"math/bits"
	"slices"
	"sync"
)

// A section is a part of the old text, cut into short pieces. An edit changes
// at most one piece. If a match has no more than the section's share of the
// edits, all other pieces occur in it unchanged, at the same distances, up to
// that many characters.
type section struct {
	piece
	pieces []piece
	size   int // code points
	share  int // of the edits
}

// sections cuts the old text so that in every match at least one section has no
// more than its share of the edits.
func (s filter) sections(size int) []section {
	const usual = 192 // code points
	pieces := s.grams(size)
	n := min(max(s.size/usual, 1), len(pieces), s.limit+1)
	all := make([]section, n)
	for i := range all {
		own := pieces[i*len(pieces)/n : (i+1)*len(pieces)/n]
		p := piece{own[0].from, own[len(own)-1].till}
		all[i] = section{
			piece: p, pieces: own, size: countChars(s.old[p.from:p.till]),
			share: (i+1)*(s.limit+1)/n - i*(s.limit+1)/n - 1,
		}
	}
	return all
}

// grams cuts the old text into pieces of at least size bytes.
func (s filter) grams(size int) []piece {
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

// A pieceCounter counts, for each section and each position in the text, the pieces
// found where they would be if the section began at that position. Positions are
// grouped in bins. A count is final once the text has been read to the end of the
// section.
type pieceCounter struct {
	sections []section
	cut      int // bits of a gram beyond the bytes of a piece that are compared

	hash        hasher
	some        []uint8 // by hash, whether there is a piece
	heads       []int32 // by hash, 1 + the first occurrence
	occurrences []occurrence

	shift   int // a bin has 1<<shift characters
	longest int // maximum characters of a section in the text
	lanes   int // words of a bin, a power of two: four sections share one
	needed  []uint64
	ring    []uint64   // the bins that are open
	starts  []int      // where each bin begins in the text, in bytes
	found   [][]region // of each section, in bins
	budget  int        // remaining pieces to count; beyond that, searching the whole text is faster
}

// An occurrence is the position of a piece in a section.
type occurrence struct {
	gram   uint64
	one    uint64 // in the word
	lane   int32  // the word
	offset int32  // added to the position of the piece: the position to count
	next   int32  // 1 + the next occurrence of the same hash
	count  int32  // in a part of the text
}

// hashSlack is the number of bits by which the set of hashes is larger than the table.
// Most grams of the text are not pieces, and a sparse set excludes them fast.
const hashSlack = 3

// counters are counters whose memory is used again.
var counters = sync.Pool{New: func() any { return new(pieceCounter) }}

// free returns the memory of t to counters, unless it is much.
func (t *pieceCounter) free() {
	const most = 1 << 18 // pieces or bins
	if t.sections = nil; max(cap(t.occurrences), cap(t.starts)) <= most {
		counters.Put(t)
	}
}

const (
	laneBits = 16
	perWord  = word / laneBits
	laneTops = 0x8000_8000_8000_8000
)

// prepare returns false if counting pieces would exclude too little.
func (t *pieceCounter) prepare(s filter) bool {
	size := gram
	if len(s.old) < s.size*3/2 {
		size = shortGram
	}
	t.cut, t.sections, t.budget = word-8*size, s.sections(size), len(s.text)*(1+s.limit/(4*word))
	t.lanes = 1 << bits.Len(uint(len(t.sections)-1)/perWord)
	t.needed = zeros(t.needed, t.lanes)
	t.hash = newHasher(64 * len(s.old) / size)
	t.found, t.occurrences = zeros(t.found, len(t.sections)), t.occurrences[:0]
	t.longest = 0
	widest, most := 8, 0 // edits, pieces
	for i, g := range t.sections {
		if len(g.pieces)-g.share < max(fewestSeed, len(g.pieces)/8) {
			return false
		}
		t.longest, widest, most = max(t.longest, g.size+g.share), max(widest, g.share), max(most, len(g.pieces))
		lane, one := i/perWord, uint64(1)<<(i%perWord*laneBits)
		at := 0
		for _, p := range g.pieces {
			x := padded(s.old, p.from) << t.cut
			t.occurrences = append(t.occurrences, occurrence{gram: x, lane: int32(lane), one: one, offset: int32(-at)})
			at += countChars(s.old[p.from:p.till])
		}
	}
	// Edits move the pieces of a section by less than two bins.
	t.shift = bits.Len(uint(widest - 1))
	if most<<(t.shift+1) >= 1<<(laneBits-1) {
		return false // more than can be counted
	}
	for i := range t.occurrences {
		t.occurrences[i].offset += int32(t.offset() << t.shift)
	}
	t.ring = zeros(t.ring, t.lanes<<bits.Len(uint(t.longest>>t.shift+4)))
	t.starts = slices.Grow(t.starts[:0], len(s.text)>>t.shift+2)
	t.link()
	t.leaveOut(s.text)
	t.link()
	return true
}

// link makes the table of the occurrences.
func (t *pieceCounter) link() {
	t.some, t.heads = zeros(t.some, t.hash.space()), zeros(t.heads, t.hash.space()>>hashSlack)
	for i := range t.occurrences {
		s := &t.occurrences[i]
		h := t.hash.of(s.gram)
		t.some[h] = 1
		s.next = t.heads[h>>hashSlack]
		t.heads[h>>hashSlack] = int32(i + 1)
	}
}

// leaveOut removes the most frequent pieces of each section: to count them takes most
// of the time and says least. A match may lack the section's share of the pieces, so
// each one that is removed is needed no more.
func (t *pieceCounter) leaveOut(text string) {
	const samples, often = 4 << 10, 2
	for i := 0; i+gram <= len(text); i += max(len(text)/samples, gram) {
		x := load(text, i) << t.cut
		for n := t.heads[t.hash.of(x)>>hashSlack]; n != 0; n = t.occurrences[n-1].next {
			if t.occurrences[n-1].gram == x {
				t.occurrences[n-1].count++
			}
		}
	}
	all, kept := t.occurrences, t.occurrences[:0]
	for i, g := range t.sections {
		own := all[:len(g.pieces)]
		all = all[len(g.pieces):]
		slices.SortFunc(own, func(a, b occurrence) int { return cmp.Compare(b.count, a.count) })
		need := len(own) - g.share
		for need > max(fewestSeed, len(g.pieces)/6) && own[0].count >= often {
			own = own[1:]
			need--
		}
		kept = append(kept, own...)
		t.needed[i/perWord] += uint64(1<<(laneBits-1)-need) << (i % perWord * laneBits)
	}
	t.occurrences = kept
}

// padded returns the gram at byte i, with zeros beyond the end of the text.
func padded(text string, i int) uint64 {
	if i+gram <= len(text) {
		return load(text, i)
	}
	var b [gram]byte
	copy(b[:], text[i:])
	return binary.LittleEndian.Uint64(b[:])
}

// byCount finds the regions that contain enough pieces of a section at the right
// distances, and keeps those with a match of the section. It does not look for one
// where a match is known.
func (s filter) byCount(ctx context.Context, m *meter) ([]region, bool, error) {
	t := counters.Get().(*pieceCounter)
	defer t.free()
	if !t.prepare(s) || !t.count(s.text) {
		return nil, false, nil
	}
	// Searching for a section computes about one block for each column. Searching
	// the whole text computes limit/word blocks, twice.
	budget := len(s.text) / 2 * (s.limit/word + 1)
	var found []region
	for i, g := range t.sections {
		var p *profile
		for _, r := range t.dense(i) {
			if s.known.from <= r.from && r.till <= s.known.till {
				found = append(found, s.around(piece{g.till, g.till}, r.from, r.till))
				continue
			}
			if budget -= r.till - r.from; budget < 0 {
				return nil, false, nil
			}
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
				// The match begins no further before than the length of the old
				// text up to here, plus the edits.
				found = append(found, s.around(piece{g.till, g.till}, first, last))
			}
		}
	}
	return found, true, nil
}

// count reads the text. It returns false if the text contains too many pieces.
func (t *pieceCounter) count(text string) bool {
	bin := 1 << t.shift
	chars := 0
	for i := 0; i < len(text); {
		t.starts = append(t.starts, i)
		end := chars + bin
		for chars < end && i < len(text) {
			if t.cut == word-8*shortGram {
				i, chars = t.countFour(text, i, chars, end)
				if chars == end {
					break
				}
			}
			if i < len(text) {
				t.probe(padded(text, i)<<t.cut, chars)
				i = wholeFrom(text, i+1)
				chars++
			}
		}
		if t.budget < 0 {
			return false
		}
		t.closeBin(len(t.starts) - 1)
	}
	for b := range t.offset() + 1 {
		t.closeBin(len(t.starts) + b)
	}
	t.starts = append(t.starts, len(text))
	return true
}

// countFour continues from byte i while the next four characters are ASCII and
// before the end: one load holds the short grams of all four.
func (t *pieceCounter) countFour(text string, i, chars, end int) (int, int) {
	const cut = word - 8*shortGram
	some, hash := t.some, t.hash
	for ; chars+4 <= end && i+gram <= len(text); i, chars = i+4, chars+4 {
		x := load(text, i)
		if x&0x80808080 != 0 {
			break
		}
		h := [4]uint32{hash.of(x << cut), hash.of(x >> 8 << cut), hash.of(x >> 16 << cut), hash.of(x >> 24 << cut)}
		m := uint32(some[h[0]]) | uint32(some[h[1]])<<1 | uint32(some[h[2]])<<2 | uint32(some[h[3]])<<3
		for ; m != 0; m &= m - 1 {
			k := bits.TrailingZeros32(m) & 3
			t.add(x>>(8*k)<<cut, h[k], chars+k)
		}
	}
	return i, chars
}

// probe counts the piece, if there is one, that begins at a character.
func (t *pieceCounter) probe(x uint64, chars int) {
	if h := t.hash.of(x); t.some[h] != 0 {
		t.add(x, h, chars)
	}
}

// add counts the pieces that match the gram at a character.
func (t *pieceCounter) add(x uint64, hash uint32, chars int) {
	for n := t.heads[hash>>hashSlack]; n != 0; {
		s := &t.occurrences[n-1]
		if t.budget--; s.gram == x {
			t.ring[((chars+int(s.offset))>>t.shift*t.lanes+int(s.lane))&(len(t.ring)-1)] += s.one
		}
		n = s.next
	}
}

// offset is the bin of a section that begins at the start of the text.
func (t *pieceCounter) offset() int { return t.longest>>t.shift + 1 }

// closeBin records the sections with enough pieces in a bin and the one before it,
// and clears the one before.
func (t *pieceCounter) closeBin(bin int) {
	mask := len(t.ring)/t.lanes - 1
	before := t.ring[(bin-1)&mask*t.lanes:][:t.lanes]
	own := t.ring[bin&mask*t.lanes:][:t.lanes]
	for lane, n := range own {
		full := (before[lane] + n + t.needed[lane]) & laneTops
		for ; full != 0; full &= full - 1 {
			i := lane*perWord + bits.TrailingZeros64(full)/laneBits
			// Edits move the start of the section as far as its pieces.
			r := region{bin - 2 - t.offset(), bin + 2 - t.offset() + (t.sections[i].size+t.sections[i].share)>>t.shift}
			if k := len(t.found[i]); k > 0 && r.from <= t.found[i][k-1].till {
				t.found[i][k-1].till = r.till
			} else {
				t.found[i] = append(t.found[i], r)
			}
		}
		before[lane] = 0
	}
}

// dense returns the regions in which section i has enough of its pieces.
func (t *pieceCounter) dense(i int) []region {
	last := len(t.starts) - 1
	found := slices.Clone(t.found[i])
	for k, r := range found {
		found[k] = region{t.starts[min(max(r.from, 0), last)], t.starts[min(max(r.till, 0), last)]}
	}
	return found
}
