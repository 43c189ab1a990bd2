// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"iter"

	"github.com/artelhq/artel"
)

// A layer is one kind of match. Layers are tried in order, and the first with a
// match decides.
type layer struct {
	name artel.Layer

	// find yields the places of an edit's old text by their beginning. With
	// overlap it yields places that overlap others too; without, each begins
	// at or after the end of the one before. An error ends the sequence; a
	// *Refusal refuses the edit.
	find func(ctx context.Context, j *job, e Edit, overlap bool) iter.Seq2[match, error]
}

// A job is the shared state of the edits of one call.
type job struct {
	doc    *Document // after the edits so far
	indent bool
	limits Limits
	meter  meter
	most   int // bytes of a text
}

// A match is a span of the text in bytes, at boundaries of code points.
type match struct {
	start, end int
	similarity float64
	put        string // the new text for this place
}

// layersOf returns the layers of a mode, strictest first.
func layersOf(m Mode) ([]layer, error) {
	all := []layer{
		{artel.LayerExact, findExact},
		{artel.LayerNormalized, findNormalized},
		{artel.LayerApproximate, findApproximate},
	}
	switch m {
	case "", Auto:
		return all, nil
	case Normalized:
		return all[:2], nil
	case Exact:
		return all[:1], nil
	}
	return nil, refuse(Invalid, "unknown mode %q: want %s, %s or %s", artel.Shorten(string(m), 40), Auto, Exact, Normalized)
}
