// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// TestSums compares with a plain search, in texts of digits and others where
// runs of about 64 are frequent.
func TestSums(t *testing.T) {
	runs := regexp.MustCompile(`[0-9a-f]{64,}`)
	rapid.Check(t, func(t *rapid.T) {
		var b strings.Builder
		for range rapid.IntRange(0, 8).Draw(t, "pieces") {
			b.WriteString(rapid.StringMatching(`[ -~]{0,70}`).Draw(t, "other"))
			b.WriteString(rapid.StringMatching(`[0-9a-f]{60,68}|[0-9a-f]{120,130}`).Draw(t, "digits"))
			b.WriteString(rapid.SampledFrom([]string{"", "g", " ", "\"", "F"}).Draw(t, "end"))
		}
		text := b.String()
		var want, got []string
		for _, run := range runs.FindAllString(text, -1) {
			want = append(want, run[:64])
			if len(run) > 64 {
				want = append(want, run[len(run)-64:])
			}
		}
		for sum := range sums([]byte(text)) {
			got = append(got, string(sum))
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("%q (-want +got):\n%s", text, d)
		}
	})
}

func BenchmarkSums(b *testing.B) {
	text := []byte(strings.Repeat("The quick brown fox jumps over the lazy dog, 0123456789 deadbeef times. ", 14_000))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		for range sums(text) {
			b.Fatal("there is none")
		}
	}
}
