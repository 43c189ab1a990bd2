// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"iter"
	"strings"

	"github.com/artelhq/artel"
)

// A layer is one way of finding old text. Layers are tried in order, and the
// first that yields a match decides.
type layer struct {
	name artel.Layer

	// find yields the places of old in text by their beginning. With overlap
	// it yields places that overlap others too; without, each begins at or
	// after the end of the one before. An error ends the sequence; a *Refusal
	// refuses the edit.
	find func(ctx context.Context, text, old string, overlap bool) iter.Seq2[match, error]
}

// A match is one place, in bytes of the text, on the bounds of code points.
type match struct {
	start, end int
	similarity float64
}

// layersOf returns the layers of a mode, closest first.
func layersOf(m Mode) ([]layer, error) {
	all := []layer{
		{artel.LayerExact, findExact},
	}
	switch m {
	case "", Auto:
		return all, nil
	case Exact:
		return all[:1], nil
	}
	return nil, refuse(Invalid, "unknown mode %q: want %s or %s", artel.Shorten(string(m), 40), Auto, Exact)
}

// findExact finds old letter for letter. Between matches it leaps with
// strings.Index; inside a run of overlapping ones it goes by the borders of
// old (Knuth, Morris, Pratt), so that "aaaa…" in "aaaa…" stays linear.
func findExact(_ context.Context, text, old string, overlap bool) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		var border []int32
		matched := 0 // bytes of old that end at i
		for i := 0; i < len(text); {
			if matched == 0 {
				j := strings.Index(text[i:], old)
				if j < 0 {
					return
				}
				i += j + len(old)
				matched = len(old)
			} else {
				for matched > 0 && text[i] != old[matched] {
					matched = int(border[matched-1])
				}
				if matched == 0 {
					continue // text[i] may still begin a match
				}
				matched++
				i++
			}
			if matched < len(old) {
				continue
			}
			if !yield(match{i - len(old), i, 1}, nil) {
				return
			}
			if matched = 0; overlap {
				if border == nil {
					border = borders(old)
				}
				matched = int(border[len(old)-1])
			}
		}
	}
}

// borders returns, for each prefix of s, the length of the longest proper
// prefix of it that is also its suffix.
func borders(s string) []int32 {
	b := make([]int32, len(s))
	k := int32(0)
	for i := 1; i < len(s); i++ {
		for k > 0 && s[i] != s[k] {
			k = b[k-1]
		}
		if s[i] == s[k] {
			k++
		}
		b[i] = k
	}
	return b
}
