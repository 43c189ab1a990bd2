// SPDX-License-Identifier: Apache-2.0

package edit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel/edit"
)

var sizes = []int{10_000, 1_000_000, 20_000_000}

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
