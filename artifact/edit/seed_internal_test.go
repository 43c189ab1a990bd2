// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// babble writes n characters of words of its own, with passages that come
// again as they are or nearly.
func babble(r *rand.Rand, letters string, n int) []rune {
	alphabet := []rune(letters)
	var words [][]rune
	for range 20 + r.IntN(400) {
		var w []rune
		for range 1 + r.IntN(9) {
			w = append(w, alphabet[r.IntN(len(alphabet))])
		}
		words = append(words, append(w, ' '))
	}
	var out []rune
	for len(out) < n {
		if len(out) > 100 && r.IntN(60) == 0 {
			from := r.IntN(len(out))
			out = append(out, scramble(r, out[from:min(len(out), from+r.IntN(600))], alphabet, r.IntN(12))...)
			continue
		}
		out = append(out, words[r.IntN(len(words))]...)
	}
	return out[:n]
}

// scramble edits text that many times.
func scramble(r *rand.Rand, text, alphabet []rune, edits int) []rune {
	text = slices.Clone(text)
	for range edits {
		if len(text) == 0 {
			break
		}
		i, c := r.IntN(len(text)), alphabet[r.IntN(len(alphabet))]
		switch r.IntN(3) {
		case 0:
			text = slices.Insert(text, i, c)
		case 1:
			text[i] = c
		default:
			text = slices.Delete(text, i, i+1)
		}
	}
	return text
}

var scripts = []string{
	"abcdefghijklmnopqrstuvwxyz",
	"abc",
	"的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生",
	"aeiou 的一是不😀é\u0301",
}

// No passage within the limit lies outside of the regions, whatever the limit.
func TestSieveKeepsEveryPassage(t *testing.T) {
	ways := map[string]int{}
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		letters := rapid.SampledFrom(scripts).Draw(t, "letters")
		text := babble(r, letters, 2000+r.IntN(20_000))
		size := min(len(text), 16+r.IntN(rapid.SampledFrom([]int{50, 300, 1500}).Draw(t, "size")))
		from := r.IntN(len(text) - size + 1)
		old := scramble(r, text[from:from+size], []rune(letters), size*r.IntN(15)/100)
		limit := len(old) * rapid.SampledFrom([]int{0, 2, 5, 10, 15, 20}).Draw(t, "limit") / 100
		switch kind := r.IntN(4); {
		case kind == 0 && limit > 0: // as many pieces are spoilt as can be
			old = slices.Clone(text[from : from+size])
			for i := range limit {
				old[i*len(old)/limit] = '#'
			}
		case kind == 1 && limit > 0: // all edits are on one side
			old = slices.Clone(text[from : from+size])
			if limit < len(old)/2 {
				old = slices.Delete(old, 1, 1+limit)
			}
			if r.IntN(2) == 0 {
				slices.Reverse(old)
				slices.Reverse(text)
			}
		}
		s := filter{text: string(text), old: string(old), size: len(old), limit: limit}
		if r.IntN(2) == 0 {
			s.known = whole(s.text, r.IntN(len(s.text)), r.IntN(len(s.text)))
		}
		m := meter(maxSteps)
		for name, sift := range map[string]func() ([]region, bool, error){
			"one":   func() ([]region, bool, error) { found, ok := s.byOne(); return found, ok, nil },
			"count": func() ([]region, bool, error) { return s.byCount(t.Context(), &m) },
			"both":  func() ([]region, bool, error) { return s.regions(t.Context(), &m) },
		} {
			if name == "one" && len(s.old)/(s.limit+1) < gram+1 {
				continue
			}
			regions, ok, err := sift()
			if err != nil {
				t.Fatal(err)
			}
			if !ok {
				continue
			}
			ways[name]++
			a := approximate{meter: &m, text: s.text, old: s.old, pattern: old, profile: newProfile(old)}
			err = a.profile.search(t.Context(), &m, s.text, s.limit, func(end, d int) int {
				starts, err := a.starts(t.Context(), 0, end, d)
				if err != nil {
					t.Fatal(err)
				}
				for _, start := range starts {
					if !slices.ContainsFunc(regions, func(r region) bool { return r.from <= start && end <= r.till }) {
						t.Fatalf("by %s: %d to %d, distance %d, lies outside of %v", name, start, end, d, regions)
					}
				}
				return s.limit
			})
			if err != nil {
				t.Fatal(err)
			}
		}
	})
	for _, name := range []string{"one", "count", "both"} {
		if ways[name] < 10 {
			t.Errorf("regions by %s: %d times; the test tests nothing", name, ways[name])
		}
	}
}

// With seeds the same is found as without, be it the closest match or another one
// within the margin.
func TestSeedsChangeNothing(t *testing.T) {
	others := 0
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		letters := rapid.SampledFrom(scripts).Draw(t, "letters")
		text := babble(r, letters, seedFrom+r.IntN(30_000))
		size := 16 + r.IntN(rapid.SampledFrom([]int{50, 300, 1200}).Draw(t, "size"))
		from := r.IntN(len(text) - size + 1)
		old := scramble(r, text[from:from+size], []rune(letters), size*r.IntN(30)/100)
		if len(old) == 0 {
			return
		}
		if r.IntN(2) == 0 { // another place, farther away
			at := r.IntN(len(text) + 1)
			text = slices.Insert(text, at, scramble(r, old, []rune(letters), size*r.IntN(25)/100)...)
		}
		m := meter(maxSteps)
		a := approximate{meter: &m, text: string(text), old: string(old), pattern: old, profile: newProfile(old), margin: r.IntN(2 + size/8)}
		all := []region{{0, len(a.text)}}
		at, err := a.areaOf(t.Context(), size*3/10)
		if err != nil {
			t.Fatal(err)
		}
		d, ends := at.limit, at.ends
		if ends == nil {
			d, ends, err = a.closest(t.Context(), at.regions, at.limit)
		}
		want, wantEnds, wantErr := a.closest(t.Context(), all, size*3/10)
		if err != nil || wantErr != nil || d != want && len(wantEnds) > 0 || !slices.Equal(ends, wantEnds) {
			t.Fatalf("distance %d at %v, %v; without seeds %d at %v, %v", d, ends, err, want, wantEnds, wantErr)
		}
		if len(ends) == 0 {
			return
		}
		best, _, err := a.place(t.Context(), 0, ends[0], d)
		if err != nil {
			t.Fatal(err)
		}
		_, found, err := a.second(t.Context(), at.regions, best, d+a.margin)
		_, want2, err2 := a.second(t.Context(), all, best, d+a.margin)
		if err != nil || err2 != nil || found != want2 {
			t.Fatalf("another place: %v, %v; without seeds %v, %v", found, err, want2, err2)
		}
		if found {
			others++
		}
	})
	if others < 10 {
		t.Errorf("another place was found %d times; the test tests little", others)
	}
}

// A text in which everything is a seed is searched as it is.
func TestSeedsGiveUp(t *testing.T) {
	old := strings.Repeat("ab", 100) + "c"
	s := filter{text: strings.Repeat("ab", 1<<16), old: old, size: len(old), limit: 5}
	m := meter(maxSteps)
	if _, ok, err := s.regions(t.Context(), &m); ok || err != nil {
		t.Error("regions of a text that is the same all over")
	}
}

// Work grows with the document and not with what it holds, and stops where the
// meter does.
func TestWorkIsBounded(t *testing.T) {
	for name, tt := range map[string]struct{ unit, old string }{
		"all the same":                 {"a", "b" + strings.Repeat("a", 198) + "b"},
		"all the same, a long old one": {"a", "b" + strings.Repeat("a", 5_000) + "b"},
		"a period":                     {"abcabd", strings.Repeat("abcabd", 100) + "xyz"},
		"a table":                      {"| 1.00 | 2.00 | 3.00 |\n", strings.Repeat("| 1.00 | 2.O0 | 3.00 |\n", 9) + "| 1.00 | 7.00 |"},
		"nothing in common":            {"abcdefghijklmnop", strings.Repeat("qrst", 100)},
	} {
		t.Run(name, func(t *testing.T) {
			var took [3]meter
			for i, n := range []int{1 << 16, 1 << 17, 1 << 18} {
				j := job{doc: NewDocument(strings.Repeat(tt.unit, n/len(tt.unit))), limits: DefaultLimits(), meter: maxSteps}
				for _, err := range findApproximate(t.Context(), &j, Edit{Old: tt.old, New: "new"}, true) {
					if r, ok := err.(*Refusal); !ok || r.Kind != Ambiguous {
						t.Fatalf("got %v", err)
					}
				}
				took[i] = maxSteps - j.meter
				blocks := meter(len(tt.old)/word + 1)
				if most := 4 * meter(n) * blocks; took[i] > most {
					t.Errorf("%d bytes took %d steps, want %d at most", n, took[i], most)
				}
			}
			if took[2] > 3*took[1] || took[1] > 3*took[0] {
				t.Errorf("steps for a text, one of twice and one of four times the size: %v", took)
			}
			j := job{doc: NewDocument(strings.Repeat(tt.unit, 1<<16)), limits: DefaultLimits(), meter: 1000}
			for _, err := range findApproximate(t.Context(), &j, Edit{Old: tt.old, New: "new"}, true) {
				if r, ok := err.(*Refusal); !ok || r.Kind != TooCostly {
					t.Errorf("with few steps: %v", err)
				}
			}
		})
	}
}
