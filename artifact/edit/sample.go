// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"slices"
	"sync"
)

// A sample holds the positions of the old text's grams in the text, of which it
// reads one gram every stride bytes.
type sample struct {
	text, old string
	stride    int
	seeds     []seed
	which     []int32 // the seed at each byte of old
	hits      []hit

	some  []uint8 // by hash, whether there is a seed
	heads []int32 // by hash, 1 + the first seed
	votes []int32 // see guess
}

// samples are samples whose memory is used again.
var samples = sync.Pool{New: func() any { return new(sample) }}

// free returns the memory of s to samples, unless it is much.
func (s *sample) free() {
	const most = 1 << 18 // seeds or hits
	if s.text, s.old = "", ""; max(cap(s.which), cap(s.hits), cap(s.votes)) <= most {
		samples.Put(s)
	}
}

// zeros returns n zeros in the memory of s, if it is enough.
func zeros[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	clear(s[:n])
	return s[:n]
}

// A seed is a gram of the old text.
type seed struct {
	at    int32 // its first position in old
	next  int32 // 1 + the next seed of the same hash; 0: none
	last  int32 // 1 + its last hit; 0: none
	count int32 // of hits; only the first mostHits are stored
}

// A hit is a position of a seed in the text.
type hit struct {
	at   int32
	next int32 // 1 + the previous hit of the same seed; 0: none
}

// mostHits is the maximum number of stored hits of a seed.
const mostHits = 1000

// take samples the text every stride bytes, 4 or 8. It returns false if hash
// collisions would make that too slow.
func (s *sample) take(text, old string, stride int) bool {
	s.text, s.old, s.stride = text, old, stride
	s.which = zeros(s.which, len(old)-gram+1)
	s.seeds, s.hits = slices.Grow(s.seeds[:0], len(s.which)), slices.Grow(s.hits[:0], 256)
	// Most grams of the text are not seeds. A sparse set excludes them fast.
	const slack = 4 // bits by which it is larger than the table
	hash := newHasher(len(old) << (2 + slack))
	s.some, s.heads = zeros(s.some, hash.space()), zeros(s.heads, hash.space()>>slack)
	some, heads := s.some, s.heads
	budget := 8 * len(old)
	for i := range s.which {
		x := load(old, i)
		h := hash.of(x)
		n := heads[h>>slack]
		for ; n != 0 && load(old, int(s.seeds[n-1].at)) != x; n = s.seeds[n-1].next {
			if budget--; budget < 0 {
				return false
			}
		}
		if n == 0 {
			s.seeds = append(s.seeds, seed{at: int32(i), next: heads[h>>slack]})
			n = int32(len(s.seeds))
			heads[h>>slack] = n
			some[h] = 1
		}
		s.which[i] = n - 1
	}
	budget = len(text)
	i := 0
	for ; i+4*gram <= len(text) && budget >= 0; i += 4 * stride {
		b := text[i : i+4*gram]
		w, x, y, z := load(b, 0), load(b, 4), load(b, 8), load(b, 12)
		if stride == gram {
			x, y, z = y, load(b, 16), load(b, 24)
		}
		g, h, j, k := hash.of(w), hash.of(x), hash.of(y), hash.of(z)
		if some[g]|some[h]|some[j]|some[k] == 0 {
			continue
		}
		for n, h := range [4]uint32{g, h, j, k} {
			if some[h] != 0 {
				budget -= s.hit(i+n*stride, heads[h>>slack])
			}
		}
	}
	for ; i+gram <= len(text) && budget >= 0; i += stride {
		budget -= s.hit(i, heads[hash.of(load(text, i))>>slack])
	}
	return budget >= 0
}

// hit stores a hit at byte i of the text if one of the seeds from n on is there, and
// returns how many others it compared.
func (s *sample) hit(i int, n int32) (compared int) {
	x := load(s.text, i)
	for ; n != 0; compared++ {
		g := &s.seeds[n-1]
		if load(s.old, int(g.at)) == x {
			if g.count++; g.count <= mostHits {
				s.hits = append(s.hits, hit{int32(i), g.last})
				g.last = int32(len(s.hits))
			}
			break
		}
		n = g.next
	}
	return compared
}

// places calls yield for the hits of the seed at byte i of old.
func (s *sample) places(i int, yield func(at int)) {
	for n := s.seeds[s.which[i]].last; n != 0; n = s.hits[n-1].next {
		yield(int(s.hits[n-1].at))
	}
}

// count returns the number of hits of the seed at byte i of old.
func (s *sample) count(i int) int { return int(s.seeds[s.which[i]].count) }

// pieces cuts the old text into pieces long enough to contain a sampled gram at any
// position in the text. It returns the rarest of them, more than the number of edits,
// so that some occur unchanged in every match, at about the same distances.
func (s *sample) pieces(edits int) []piece {
	type counted struct {
		piece
		count int
	}
	var all []counted
	least := s.stride + gram - 1
	for from := 0; from+least <= len(s.old); {
		sum, behind := 0, 0
		for i := from; i < from+s.stride; i++ {
			n := s.count(i)
			if sum += n; n > mostHits {
				behind = i + 1
			}
		}
		if behind > 0 {
			from = wholeFrom(s.old, behind)
			continue
		}
		till := wholeFrom(s.old, from+least)
		all = append(all, counted{piece{from, till}, sum})
		from = till
	}
	if most := edits + edits/4 + 1; len(all) > most {
		slices.SortFunc(all, func(a, b counted) int { return cmp.Compare(a.count, b.count) })
		all = all[:most]
	}
	pieces := make([]piece, len(all))
	for i, p := range all {
		pieces[i] = p.piece
	}
	return pieces
}

// Each gram votes for the offset between its positions in the text and in the old
// text. Offsets are grouped by 1<<voteShift bytes.
const voteShift = 6

// guess returns the most likely start of the old text in the text: the offset with
// the most votes. The true start is up to 2<<voteShift bytes later. Rare grams vote
// first.
func (s *sample) guess() (int, bool) {
	s.votes = zeros(s.votes, (len(s.text)+len(s.old))>>voteShift+2)
	votes := s.votes
	best, most := 0, int32(0)
	few, budget := 0, len(s.text)
	for _, many := range []int{8, 64, mostHits} {
		for i := range s.which {
			n := s.count(i)
			if n <= few || n > many {
				continue
			}
			if budget -= n; budget < 0 {
				break
			}
			s.places(i, func(at int) {
				v := (at - i + len(s.old)) >> voteShift
				votes[v]++
				if n := votes[v] + votes[v+1]; n > most {
					best, most = v, n
				}
				if v > 0 {
					if n := votes[v] + votes[v-1]; n > most {
						best, most = v-1, n
					}
				}
			})
		}
		if few = many; int(most) >= max(2, len(s.old)/(8*s.stride)) {
			break
		}
	}
	return best<<voteShift - len(s.old), most > 1
}
