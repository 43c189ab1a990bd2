// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/artelhq/artel/artifact/edit"
)

// manual returns n characters of documents as people write them: headings,
// lists, tables, code.
func manual(t *testing.T, n int) []rune {
	t.Helper()
	var text []rune
	for _, name := range []string{"testdata/manual.md", "testdata/packages.md"} {
		part, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, []rune(string(part))...)
	}
	return text[:n]
}

// Of 20 passages of a real document, taken and misquoted at random, at least 19
// are found where they were taken; those are left out that the definition
// refuses because another place is within the margin. Of the longest document
// the whole grid is gone through by make soak.
func TestRecall(t *testing.T) {
	const tries, least = 20, 19
	for _, size := range []int{10_000, 49_000, 100_000} {
		text := manual(t, size)
		for _, length := range []int{60, 200, 500, 2000} {
			for _, edits := range []int{1, 2, 5, 10, length / 10} {
				if edits*10 > length || size > 50_000 && edits > 1 && edits < length/10 && os.Getenv("ARTEL_SOAK") == "" {
					continue
				}
				t.Run(fmt.Sprintf("%d/%d/%d", size, length, edits), func(t *testing.T) {
					r := rand.New(rand.NewPCG(uint64(size+length), uint64(edits)))
					found, tried := 0, 0
					for tried < tries {
						tried++
						from := r.IntN(len(text) - length)
						old := slices.Clone(text[from : from+length])
						for range edits {
							i, c := r.IntN(len(old)), rune('a'+r.IntN(26))
							switch r.IntN(3) {
							case 0:
								old = slices.Insert(old, i, c)
							case 1:
								old[i] = c
							default:
								old = slices.Delete(old, i, i+1)
							}
						}
						got, err := edit.Apply(t.Context(), string(text), []edit.Edit{{Old: string(old), New: "new"}}, edit.Options{})
						var refusal *edit.Refusal
						switch {
						case errors.As(err, &refusal):
							if !(reference{text, old, edit.DefaultLimits()}).alone() {
								tried--
							}
						case err != nil:
							t.Fatal(err)
						case abs(got.Hits[0].Start-from) > edits+1 || abs(got.Hits[0].End-from-length) > edits+1:
							t.Errorf("%q was found at %d to %d, was taken at %d", string(old), got.Hits[0].Start, got.Hits[0].End, from)
						default:
							found++
						}
					}
					if found < least {
						t.Errorf("found %d of %d, want %d", found, tries, least)
					}
				})
			}
		}
	}
}

// alone reports whether no place that is apart from the closest is within the
// margin of it.
func (r reference) alone() bool {
	counts := table(r.old, r.text, false)
	d := slices.Min(counts)
	end := slices.Index(counts, d)
	back, head := slices.Clone(r.old), slices.Clone(r.text[:end])
	slices.Reverse(back)
	slices.Reverse(head)
	start := end - slices.Index(table(back, head, true), d)
	before, after := table(r.old, r.text[:start], false), table(r.old, r.text[end:], false)
	return min(slices.Min(before), slices.Min(after)) > d+max(2, len(r.old)/10)
}

func abs(n int) int { return max(n, -n) }
