// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"cmp"
	"slices"
)

// A sample knows where the grams of the old text stand in the text, where the
// text is looked at once in so many bytes.
type sample struct {
	text, old string
	stride    int
	seeds     []seed
	which     []int32 // the seed at each byte of old
	hits      []hit
}

// A seed is a gram of the old text.
type seed struct {
	at    int32 // where it stands in old
	next  int32 // 1 more than the next of the same hash
	last  int32 // 1 more than the last hit
	count int32 // of hits; more than mostHits: not all are known
}

// A hit is a place in the text that has a seed.
type hit struct {
	at   int32
	next int32 // 1 more than the one before of the same seed
}

// mostHits is how many hits of a seed are worth knowing: more tell little.
const mostHits = 1000

// sparse is by how many bits a set of hashes is larger than the table of what
// has them: most grams of the text are no seeds, and are passed over at once.
const sparse = 3

// newSample looks at the text, once in stride bytes. It returns nil where that
// would take too long.
func newSample(text, old string, stride int) *sample {
	s := &sample{text: text, old: old, stride: stride, which: make([]int32, len(old)-gram+1)}
	s.seeds = make([]seed, 0, len(s.which))
	hash := newHasher(len(old) << (1 + sparse))
	some, heads := make([]uint64, hash.space()/word), make([]int32, hash.space()>>sparse)
	patience := 8 * len(old)
	for i := range s.which {
		x := load(old, i)
		h := hash.of(x)
		n := heads[h>>sparse]
		for ; n != 0 && load(old, int(s.seeds[n-1].at)) != x; n = s.seeds[n-1].next {
			if patience--; patience < 0 {
				return nil
			}
		}
		if n == 0 {
			s.seeds = append(s.seeds, seed{at: int32(i), next: heads[h>>sparse]})
			n = int32(len(s.seeds))
			heads[h>>sparse] = n
			some[h/word] |= 1 << (h % word)
		}
		s.which[i] = n - 1
	}
	patience = len(text)
	s.hits = make([]hit, 0, 256)
	for i := 0; i+gram <= len(text); i += stride {
		x := load(text, i)
		h := hash.of(x)
		if some[h/word]>>(h%word)&1 == 0 {
			continue
		}
		for n := heads[h>>sparse]; n != 0; {
			g := &s.seeds[n-1]
			if load(old, int(g.at)) == x {
				if g.count++; g.count <= mostHits {
					s.hits = append(s.hits, hit{int32(i), g.last})
					g.last = int32(len(s.hits))
				}
				break
			}
			if patience--; patience < 0 {
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

// count returns how often the text has the seed at byte i of old.
func (s *sample) count(i int) int { return int(s.seeds[s.which[i]].count) }

// pieces cuts the old text into pieces that the sample sees wherever they
// stand: one gram in the first stride of their bytes. It returns the rarest,
// some more of them than there may be edits: those that no edit spoils are to
// be found together.
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

// Votes add up, for each distance between text and old text, how many grams
// are that far from each other; 1<<voteShift bytes are one distance.
const voteShift = 6

// guess returns where in the text the old text may well begin: at a distance
// that most of the grams have, or up to 2<<voteShift bytes behind it. Grams
// that are rare are asked first.
func (s *sample) guess() (int, bool) {
	votes := make([]int32, (len(s.text)+len(s.old))>>voteShift+2)
	best, most := 0, int32(0)
	few, patience := 0, len(s.text)
	for _, many := range []int{8, 64, mostHits} {
		for i := range s.which {
			n := s.count(i)
			if n <= few || n > many {
				continue
			}
			if patience -= n; patience < 0 {
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
