// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"strings"
	"testing"
)

// document gives a text of about size bytes in lines of 20, and what it became
// when every so many lines one was changed, one added and one removed.
func document(size, every int) (old, new string) {
	var a, b strings.Builder
	for i := 0; a.Len() < size; i++ {
		line := fmt.Sprintf("line %08d, text\n", i)
		a.WriteString(line)
		switch i % every {
		case 1:
			line = fmt.Sprintf("line %08d, more\n", i)
		case every / 3:
			line += "an added line\n"
		case every / 2:
			line = ""
		}
		b.WriteString(line)
	}
	return a.String(), b.String()
}

func benchmarkLines(b *testing.B, old, new string) {
	b.Helper()
	b.SetBytes(int64(len(old) + len(new)))
	b.ReportAllocs()
	for b.Loop() {
		mustLines(b, old, new, Options{})
	}
}

func BenchmarkLines(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000, 20_000_000} {
		old, new := document(size, 100)
		b.Run(fmt.Sprintf("changes=1%%/bytes=%d", size), func(b *testing.B) { benchmarkLines(b, old, new) })
		old, new = document(size, size)
		b.Run(fmt.Sprintf("changes=3/bytes=%d", size), func(b *testing.B) { benchmarkLines(b, old, new) })
	}
	old, new := document(20_000_000, 100)
	b.Run("different/bytes=20000000", func(b *testing.B) { benchmarkLines(b, old, strings.ReplaceAll(new, "line", "other")) })
	b.Run("one line/bytes=20000000", func(b *testing.B) {
		benchmarkLines(b, strings.ReplaceAll(old, "\n", " "), strings.ReplaceAll(new, "\n", " "))
	})
}

// BenchmarkHostile compares a million short lines that are hard to compare.
func BenchmarkHostile(b *testing.B) {
	const n = 1_000_000
	for name, in := range hostile(n) {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := compare(b.Context(), in[0], in[1], 2*n, lineLimits(2*n)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkMerge(b *testing.B) {
	for _, size := range []int{100_000, 1_000_000, 20_000_000} {
		base, mine := document(size, 100)
		_, theirs := document(size, 130)
		b.Run(fmt.Sprintf("bytes=%d", size), func(b *testing.B) {
			b.SetBytes(int64(len(base) + len(mine) + len(theirs)))
			b.ReportAllocs()
			for b.Loop() {
				mustMerge(b, base, mine, theirs, MergeOptions{})
			}
		})
	}
}

func BenchmarkUnified(b *testing.B) {
	old, new := document(1_000_000, 100)
	d := mustLines(b, old, new, Options{})
	b.SetBytes(int64(len(d.Unified("a", "b"))))
	for b.Loop() {
		_ = d.Unified("a", "b")
	}
}
