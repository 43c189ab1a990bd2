// SPDX-License-Identifier: Apache-2.0

package token

import (
	"strings"
	"testing"

	"github.com/tiktoken-go/tokenizer"
	"pgregory.net/rapid"
)

// TestSegmentsAddUp cuts at every place where it is allowed, which from
// outside would take texts too long for many tries.
func TestSegmentsAddUp(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"word", "I'll", "WE'VE", "x's", " ", "  ", "\n", "\r\n", "\t", "12", "7", "上下文", "。", "，", "é", "e\u0301", "\u0301", "🎉", "ʼ",
		"'", "'S", "”", "(", "//", "/", "_", "<|endoftext|>", "\u00a0", "\u3000", "\xff", "\xe4\xb8", "a", "B", "ǅ", "ª", "Ⅷ",
	})
	for _, e := range []tokenizer.Encoding{tokenizer.O200kBase, tokenizer.Cl100kBase} {
		codec, err := tokenizer.Get(e)
		if err != nil {
			t.Fatal(err)
		}
		codec.SetErrorMode(tokenizer.ErrorModeReplace)
		rapid.Check(t, func(t *rapid.T) {
			text := strings.Join(rapid.SliceOfN(piece, 0, 40).Draw(t, "pieces"), "")
			want, err := codec.Count(text)
			if err != nil {
				t.Fatal(err)
			}
			sum, joined := 0, ""
			for s := range segments(text, rapid.IntRange(1, 20).Draw(t, "size"), len(text)) {
				n, err := codec.Count(s)
				if err != nil || s == "" {
					t.Fatalf("segment %q: %v", s, err)
				}
				sum, joined = sum+n, joined+s
			}
			if joined != text {
				t.Fatalf("%q became %q", text, joined)
			}
			if sum != want {
				t.Fatalf("%q: %d tokens in segments, %d in all", text, sum, want)
			}
		})
	}
}

func TestLongBlanksAreCut(t *testing.T) {
	n, longest := 0, 0
	for s := range segments("a"+strings.Repeat(" \n", 1000)+"b", segmentSize, 100) {
		n, longest = n+1, max(longest, len(s))
	}
	if n < 20 || longest > 101 {
		t.Errorf("%d segments of up to %d bytes", n, longest)
	}
	for range segments("a b c d", 1, 1) {
		break // a reader may leave
	}
}
