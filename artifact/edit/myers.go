// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"math/bits"
	"slices"
	"unicode/utf8"
)

// The approximate layer counts edits with the bit-vector algorithm of Myers (A fast
// bit-vector algorithm for approximate string matching, J. ACM 46, 1999), in blocks
// of 64 characters of the pattern. As Ukkonen proposed, it computes only blocks in
// which a count can be within the limit. Each character of the text is a column. A
// band holds, for one column, the number of edits between each prefix of the
// pattern and the text before the column.

const word = 64 // characters of a block

// A profile is a preprocessed pattern. Its characters are numbered densely; number
// 0 is every character that the pattern does not contain.
type profile struct {
	numbering
	size, blocks int
	pattern      []int32        // its characters, by number
	rows         [][]uint64     // for each number, a bit for each position in the pattern; nil: see sparse
	sparse       [][]sparseBits // of characters that are rare in a long pattern
	row          []uint64       // expanded row of the rare character current
	current      int32
}

// A sparseBits is a block of a row in which bits are set.
type sparseBits struct {
	block int32
	bits  uint64
}

// sparseFrom is the number of blocks from which rows of rare characters are sparse.
const sparseFrom = 128

func newProfile(pattern []rune) *profile {
	p := &profile{pattern: make([]int32, len(pattern))}
	for i, r := range pattern {
		p.pattern[i] = p.assign(r)
	}
	p.makeRows()
	return p
}

// reversed returns the profile of the pattern from its end.
func (p *profile) reversed() *profile {
	back := &profile{numbering: p.numbering, pattern: slices.Clone(p.pattern)}
	slices.Reverse(back.pattern)
	back.makeRows()
	return back
}

func (p *profile) makeRows() {
	p.size, p.blocks = len(p.pattern), (len(p.pattern)+word-1)/word
	p.rows = make([][]uint64, p.count+1)
	dense := len(p.rows)
	var isRare []bool
	if p.blocks >= sparseFrom {
		counts := make([]int, len(p.rows))
		for _, n := range p.pattern {
			counts[n]++
		}
		isRare = make([]bool, len(p.rows))
		for n := 1; n < len(p.rows); n++ {
			if counts[n] <= p.blocks/16 {
				isRare[n] = true
				dense--
			}
		}
		p.sparse, p.row = make([][]sparseBits, len(p.rows)), make([]uint64, p.blocks)
	}
	slab := make([]uint64, dense*p.blocks)
	for n := range p.rows {
		if isRare == nil || !isRare[n] {
			p.rows[n], slab = slab[:p.blocks:p.blocks], slab[p.blocks:]
		}
	}
	for i, n := range p.pattern {
		b, bit := i/word, uint64(1)<<(i%word)
		if row := p.rows[n]; row != nil {
			row[b] |= bit
			continue
		}
		if s := p.sparse[n]; len(s) > 0 && int(s[len(s)-1].block) == b {
			s[len(s)-1].bits |= bit
		} else {
			p.sparse[n] = append(s, sparseBits{int32(b), bit})
		}
	}
}

// rowOf returns the row of a number; it is valid until the next call.
func (p *profile) rowOf(n int32) []uint64 {
	if row := p.rows[n]; row != nil {
		return row
	}
	if n != p.current {
		if p.current != 0 {
			for _, s := range p.sparse[p.current] {
				p.row[s.block] = 0
			}
		}
		for _, s := range p.sparse[n] {
			p.row[s.block] = s.bits
		}
		p.current = n
	}
	return p.row
}

// A band is a column of counts, as differences from row to row.
type band struct {
	p        *profile
	up, down []uint64 // rows at which the count rises and falls by one
	first    int      // the first block computed
	last     int      // the last block computed
	score    int      // the count in the bottom row of last
	limit    int      // the highest count of a match
	anchored uint64   // 1: a match begins at the beginning of the text
	steps    int64    // blocks computed
}

// newBand returns the band of the column before the text.
func newBand(p *profile, limit int, anchored bool) *band {
	b := &band{p: p, up: make([]uint64, p.blocks), down: make([]uint64, p.blocks), limit: limit}
	if anchored {
		b.anchored = 1
	}
	b.reset()
	return b
}

func (b *band) reset() {
	b.last = min(max(b.limit-1, 0)/word, b.p.blocks-1)
	for i := range b.last + 1 {
		b.up[i], b.down[i] = ^uint64(0), 0
	}
	b.score = min(b.p.size, (b.last+1)*word)
}

// width returns the number of characters in block i.
func (b *band) width(i int) int {
	if i == b.p.blocks-1 {
		return (b.p.size-1)%word + 1
	}
	return word
}

// run processes characters, given by their numbers, up to and including the first
// after which the count of the whole pattern is within the limit; found reports
// whether there is one. It returns how many characters it took.
func (b *band) run(numbers []int32) (taken int, found bool) {
	final, bottom := b.p.blocks-1, uint(b.p.size-1)%word
	last, score, limit, rows := b.last, b.score, b.limit, b.p.rows
	up := b.up[b.first : last+1]
	steps := 0
	for taken = 0; taken < len(numbers) && !found; {
		if len(up) == 2 && b.first == 0 && score > limit+1 {
			b.score = score
			n := b.two(numbers[taken:min(taken+word, len(numbers))])
			score = b.score
			steps += 2 * n
			if n > 0 {
				b.last = last
				b.shrink()
				last, score = b.last, b.score
				up = b.up[b.first : last+1]
			}
			if taken += n; taken == len(numbers) {
				break
			}
		}
		row := rows[numbers[taken]]
		if row == nil {
			row = b.p.rowOf(numbers[taken])
		}
		taken++
		rise, fall := b.anchored, uint64(0)
		if b.first > 0 {
			rise = 1
		}
		var h, l uint64
		down, eqs := b.down[b.first:][:len(up)], row[b.first:][:len(up)]
		for i, u := range up {
			d, eq := down[i], eqs[i]
			xv := eq | d
			eq |= fall
			xh := (((eq & u) + u) ^ u) | eq
			h = d | ^(xh | u)
			l = u & xh
			hs, ls := h<<1|rise, l<<1|fall
			up[i] = ls | ^(xv | hs)
			down[i] = hs & xv
			rise, fall = h>>63, l>>63
		}
		steps += len(up)
		if last == final {
			rise, fall = h>>bottom&1, l>>bottom&1
			score += int(rise) - int(fall)
			found = score <= limit
		} else {
			before := score
			score += int(rise) - int(fall)
			if before <= limit && (row[last+1]&1 != 0 || fall != 0) {
				last++
				up = b.up[b.first : last+1]
				score = before + b.extend(last, row[last], rise, fall)
				steps++
				found = last == final && score <= limit
			}
		}
		// Checking every fourth column is enough.
		if score > limit && last > b.first && taken%4 == 0 {
			b.last, b.score = last, score
			b.shrink()
			last, score = b.last, b.score
			up = b.up[b.first : last+1]
		}
	}
	b.last, b.score = last, score
	b.steps += int64(steps)
	return taken, found
}

// two is a fast path of run: a band of the first two blocks, while the count at the
// bottom exceeds the limit by more than one, which is so in most dissimilar text. It
// returns how many numbers it took.
func (b *band) two(numbers []int32) int {
	bottom := uint(b.width(1) - 1)
	u0, u1, d0, d1 := b.up[0], b.up[1], b.down[0], b.down[1]
	score, limit, rows := b.score, b.limit+1, b.p.rows
	taken := 0
	for _, n := range numbers {
		row := rows[n]
		if len(row) < 2 || score <= limit {
			break
		}
		taken++

		eq := row[0]
		xv := eq | d0
		xh := (((eq & u0) + u0) ^ u0) | eq
		h := d0 | ^(xh | u0)
		l := u0 & xh
		rise, fall := h>>63, l>>63
		h = h<<1 | b.anchored
		u0 = l<<1 | ^(xv | h)
		d0 = h & xv

		eq = row[1]
		xv = eq | d1
		eq |= fall
		xh = (((eq & u1) + u1) ^ u1) | eq
		h = d1 | ^(xh | u1)
		l = u1 & xh
		score += int(h>>bottom&1) - int(l>>bottom&1)
		h = h<<1 | rise
		u1 = l<<1 | fall | ^(xv | h)
		d1 = h & xv
	}
	b.up[0], b.up[1], b.down[0], b.down[1], b.score = u0, u1, d0, d1, score
	return taken
}

// extend adds block i to the bottom of the band. It returns the difference between
// the count in the bottom row of the block and that in the row above the block, one
// column earlier.
func (b *band) extend(i int, eq, rise, fall uint64) int {
	u := ^uint64(0)
	xv := eq
	eq |= fall
	xh := (((eq & u) + u) ^ u) | eq
	h, l := ^(xh | u), u&xh
	bottom := b.width(i) - 1
	hs, ls := h<<1|rise, l<<1|fall
	b.up[i] = ls | ^(xv | hs)
	b.down[i] = hs & xv
	return b.width(i) + int(h>>bottom&1) - int(l>>bottom&1)
}

// shrink removes blocks from the bottom in which no count can be within the limit.
// Adjacent rows differ by at most one, so each count of a block is at least half the
// sum of the counts above it and in its bottom row, minus half its width.
func (b *band) shrink() {
	for b.last > b.first {
		w := b.width(b.last)
		mask := ^uint64(0) >> (word - w)
		above := b.score - bits.OnesCount64(b.up[b.last]&mask) + bits.OnesCount64(b.down[b.last]&mask)
		if b.score < b.limit+w && above+b.score-w <= 2*b.limit {
			return
		}
		b.last--
		b.score = above
	}
}

// skip removes blocks from the top. The caller knows that the counts in this many
// rows stay above the limit or are no longer needed.
func (b *band) skip(rows int) {
	b.first = min(max(b.first, rows/word), b.last)
}

// A meter bounds the work of one call, in steps that are left.
type meter int64

// spend takes steps off. The error is a refusal, or that of ctx.
func (m *meter) spend(ctx context.Context, steps int64) error {
	if *m -= meter(steps); *m < 0 {
		return tooCostly()
	}
	return ctx.Err()
}

func tooCostly() error {
	return refuse(TooCostly, "the old text is not there, and to look for a passage that only resembles it would take too long; copy a shorter passage exactly as it stands")
}

// chunk is the number of characters that a search decodes at a time.
const chunk = 1024

// search yields the end, in bytes of text, and the distance of each substring that
// differs from the pattern by at most limit edits. yield returns the limit for the
// rest of the text; a negative one ends the search.
func (p *profile) search(ctx context.Context, m *meter, text string, limit int, yield func(end, distance int) int) error {
	var numbers [chunk]int32
	var ends [chunk]int32 // end of each character, in bytes of the chunk
	b := newBand(p, limit, false)
	for at := 0; at < len(text); {
		n, i := 0, 0
		rest := text[at:]
		for n < chunk && i < len(rest) {
			if c := rest[i]; c < utf8.RuneSelf {
				numbers[n] = p.low[c]
				i++
			} else if c>>4 == 0b1110 { // three bytes; the text is valid
				r := rune(c&0xf)<<12 | rune(rest[i+1]&0x3f)<<6 | rune(rest[i+2]&0x3f)
				numbers[n] = p.number(r)
				i += 3
			} else {
				r, size := utf8.DecodeRuneInString(rest[i:])
				numbers[n] = p.number(r)
				i += size
			}
			ends[n] = int32(i)
			n++
		}
		for done := 0; done < n; {
			// The rest of the pattern must fit in the rest of the text.
			left := len(text) - at
			if done > 0 {
				left -= int(ends[done-1])
			}
			next := n
			if left < p.size {
				b.skip(p.size - left - b.limit - 1)
				next = min(n, done+word)
			}
			taken, found := b.run(numbers[done:next])
			done += taken
			if !found {
				continue
			}
			if b.limit = yield(at+int(ends[done-1]), b.score); b.limit < 0 {
				return m.spend(ctx, b.steps)
			}
			b.shrink()
		}
		if err := m.spend(ctx, b.steps); err != nil {
			return err
		}
		b.steps = 0
		at += i
	}
	return nil
}

// lengths returns the lengths, in characters, of the prefixes of a text that differ
// from the pattern by distance edits. No prefix may differ by less.
func (p *profile) lengths(ctx context.Context, m *meter, numbers []int32, distance int) ([]int, error) {
	numbers = numbers[:min(len(numbers), p.size+distance)]
	var out []int
	b := newBand(p, distance, true)
	for done := 0; done < len(numbers); {
		next := min(done+word, len(numbers))
		for done < next {
			taken, found := b.run(numbers[done:next])
			if done += taken; found {
				out = append(out, done)
			}
		}
		b.skip(done - distance - 1) // shorter prefixes of the pattern
		if err := m.spend(ctx, b.steps); err != nil {
			return nil, err
		}
		b.steps = 0
	}
	return out, nil
}

// distance returns the number of edits between pattern and text.
func distance(ctx context.Context, m *meter, pattern, text []rune) (int, error) {
	if len(pattern) == 0 || len(text) == 0 {
		return max(len(pattern), len(text)), nil
	}
	const setUp = 512
	if err := m.spend(ctx, setUp); err != nil {
		return 0, err
	}
	p := newProfile(pattern)
	most := max(len(pattern), len(text))
	for limit := min(most, word); ; limit = min(2*limit, most) {
		b := newBand(p, limit, true)
		d := -1
		for i := 0; i < len(text); i += chunk {
			part := text[i:min(i+chunk, len(text))]
			numbers := make([]int32, len(part))
			for k, r := range part {
				numbers[k] = p.number(r)
			}
			for done := 0; done < len(numbers); {
				taken, found := b.run(numbers[done:min(done+word, len(numbers))])
				if done += taken; found && i+done == len(text) {
					d = b.score
				}
				b.skip(i + done - limit - 1)
			}
			if err := m.spend(ctx, b.steps); err != nil {
				return 0, err
			}
			b.steps = 0
		}
		if d >= 0 {
			return d, nil
		}
	}
}
