// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"slices"
)

// A sample holds the positions of the old text's grams in the text, of which it
// reads one gram every stride bytes.
type sample struct {
	text, old string
	stride    int
	seeds     []seed
	which     []int32 // the seed at each byte of old
	hits      []hit
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

// hashSlack is the number of bits by which a bit set of hashes is larger than its
// table. Most grams of the text are not seeds, and a sparse set excludes them fast.
const hashSlack = 3

// newSample samples the text every stride bytes. It returns nil if hash collisions
// would make that too slow.
func newSample(text, old string, stride int) *sample {
	s := &sample{text: text, old: old, stride: stride, which: make([]int32, len(old)-gram+1)}
	s.seeds = make([]seed, 0, len(s.which))
	hash := newHasher(len(old) << (1 + hashSlack))
	some, heads := make([]uint64, hash.space()/word), make([]int32, hash.space()>>hashSlack)
	budget := 8 * len(old)
	for i := range s.which {
		x := load(old, i)
		h := hash.of(x)
		n := heads[h>>hashSlack]
		for ; n != 0 && load(old, int(s.seeds[n-1].at)) != x; n = s.seeds[n-1].next {
			if budget--; budget < 0 {
				return nil
			}
		}
		if n == 0 {
			s.seeds = append(s.seeds, seed{at: int32(i), next: heads[h>>hashSlack]})
			n = int32(len(s.seeds))
			heads[h>>hashSlack] = n
			some[h/word] |= 1 << (h % word)
		}
		s.which[i] = n - 1
	}
	budget = len(text)
	s.hits = make([]hit, 0, 256)
	for i := 0; i+gram <= len(text); i += stride {
		x := load(text, i)
		h := hash.of(x)
		if some[h/word]>>(h%word)&1 == 0 {
			continue
		}
		for n := heads[h>>hashSlack]; n != 0; {
			g := &s.seeds[n-1]
			if load(old, int(g.at)) == x {
				if g.count++; g.count <= mostHits {
					s.hits = append(s.hits, hit{int32(i), g.last})
					g.last = int32(len(s.hits))
				}
				break
			}
			if budget--; budget < 0 {
				return nil
			}
			n = g.next
		}
	}
	return s
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
	votes := make([]int32, (len(s.text)+len(s.old))>>voteShift+2)
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
