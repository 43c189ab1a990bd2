// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestReadLarge reads the same pages from a stream as from a text in memory.
func TestReadLarge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		piece := rapid.SampledFrom([]string{"", "a", "é", "\r", "\n", "\r\n", "line\n", "zeile 行\r\n", strings.Repeat("x", 70_000), strings.Repeat("y\n", 30_000)})
		text := strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "text"), "")
		offset, column := rapid.IntRange(1, 8).Draw(t, "offset"), rapid.SampledFrom([]int{1, 2, 5, 60_000}).Draw(t, "column")
		limit := rapid.IntRange(0, 5).Draw(t, "limit")
		want := pageAt(text, offset, column, limit, maxShown)
		got, chars, err := readLarge(struct{ io.Reader }{strings.NewReader(text)}, offset, column, limit)
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(page{})); diff != "" || err != nil || chars != utf8.RuneCountInString(text) {
			t.Fatalf("%d characters, %v: %.2000s", chars, err, diff)
		}
	})
}
