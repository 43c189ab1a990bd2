// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/artelhq/artel/artifact/edit"
)

var sizes = []int{10_000, 100_000, 1_000_000, 20_000_000}

// prose returns n bytes in which the last words stand nowhere else.
func prose(n int) (text, last string) {
	last = "and that was the end of it"
	const s = "All happy families are alike; every unhappy family is unhappy in its own way.\n"
	return strings.Repeat(s, n/len(s)+1)[:n-len(last)] + last, last
}

func BenchmarkApply(b *testing.B) {
	for _, n := range sizes {
		text, last := prose(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, err := edit.Apply(b.Context(), text, []edit.Edit{{Old: last, New: "to be continued"}}, edit.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkReplaceAll(b *testing.B) {
	for _, n := range sizes {
		text, _ := prose(n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, err := edit.Apply(b.Context(), text, []edit.Edit{{Old: "family", New: "clan", ReplaceAll: true}}, edit.Options{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// The worst there is: the longest pattern matches nearly everywhere.
func BenchmarkOverlaps(b *testing.B) {
	old := strings.Repeat("a", edit.MaxOld)
	for _, n := range sizes {
		text := strings.Repeat("a", n+edit.MaxOld)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				var r *edit.Refusal
				if _, err := edit.Apply(b.Context(), text, []edit.Edit{{Old: old, New: "b"}}, edit.Options{MaxText: 30 << 20}); !errors.As(err, &r) {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkApplyChanges(b *testing.B) {
	for _, n := range sizes {
		text, _ := prose(n)
		r, err := edit.Apply(b.Context(), text[:n/100], []edit.Edit{{Old: "family", New: "clan", ReplaceAll: true}}, edit.Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			b.SetBytes(int64(n))
			for b.Loop() {
				if _, err := edit.ApplyChanges(text, r.Changes); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// dictated returns n bytes of sentences that hardly repeat, of an alphabet.
func dictated(alphabet string, n int) []rune {
	r := rand.New(rand.NewPCG(1, uint64(n)))
	letters := []rune(alphabet)
	var text []rune
	for size := 0; size < n; {
		c := letters[min(r.IntN(len(letters)), r.IntN(len(letters)))] // some more often than others
		text = append(text, c)
		size += utf8.RuneLen(c)
	}
	return text
}

// Old texts with an edit in twenty characters, and old texts that are nowhere.
// What edlib does with the same is measured by the module in bench.
func BenchmarkApproximate(b *testing.B) {
	for name, alphabet := range map[string]string{
		"English": " etaoinshrdlcumwfgypbvk,.\n",
		"Chinese": "的一是不了人我在有他这为之大来以个中上们到说国和地也子时道出而要于就下得可你年生自会那后能对着事其里所去行过家十用发天如然作方成者多日都三小军二无同么经法当起与好看学进种将还分此心前面又定见只主没公从，。",
	} {
		for _, n := range sizes {
			text := dictated(alphabet, n)
			for _, length := range []int{200, 2000} {
				r := rand.New(rand.NewPCG(2, 3))
				from := len(text) / 2
				old := slices.Clone(text[from : from+length])
				for range length / 20 {
					old[1+r.IntN(length-2)] = '#'
				}
				none := edit.DefaultLimits()
				none.Margin = 0
				for _, work := range []struct {
					name   string
					old    string
					limits *edit.Limits
					found  bool
				}{{"hit", string(old), nil, true}, {"hit without margin", string(old), &none, true}, {"miss", strings.Repeat("QX#Z", length/4), nil, false}} {
					b.Run(fmt.Sprintf("%s/%d/%d/%s", name, n, length, work.name), func(b *testing.B) {
						text := string(text)
						b.SetBytes(int64(len(text)))
						for b.Loop() {
							_, err := edit.Apply(b.Context(), text, []edit.Edit{{Old: work.old, New: "x"}}, edit.Options{Limits: work.limits, MaxText: 30 << 20})
							var refusal *edit.Refusal
							if work.found && err != nil || !work.found && !errors.As(err, &refusal) {
								b.Fatal(err)
							}
						}
					})
				}
			}
		}
	}
}

func BenchmarkNormalized(b *testing.B) {
	for _, n := range sizes {
		text, last := prose(n)
		text = strings.ReplaceAll(text, "; every", "; “every”")
		again := edit.NewDocument(text)
		for name, doc := range map[string]func() *edit.Document{
			"first": func() *edit.Document { return edit.NewDocument(text) },
			"kept":  func() *edit.Document { return again },
		} {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.SetBytes(int64(len(text)))
				b.ReportAllocs()
				for b.Loop() {
					if _, err := doc().Apply(b.Context(), []edit.Edit{{Old: strings.ReplaceAll(last, " ", "\u00a0"), New: "x"}}, edit.Options{Mode: edit.Normalized, MaxText: 30 << 20}); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}
