// SPDX-License-Identifier: Apache-2.0

// Package diff compares two texts and merges two changed copies of a text. It is
// pure: no I/O, no goroutines, no state between calls, and so safe for concurrent
// use.
//
// Begin with [Lines], which returns hunks of lines and the changed words in them.
// [Diff.Unified] writes them in the format of patch and git apply. [Merge] is the
// three-way merge.
//
// Lines are those of package edit. Invalid UTF-8, NUL and single carriage returns
// are content. Two lines are equal if their text and end are.
//
// A hunk turns its lines of the old text into those of the new text, and lines
// outside of hunks are equal. The number of changed lines is minimal unless
// [Diff.Minimal] is false, which needs about 8,000 differing lines. Time grows
// with the size of the texts, not with the square of their differences. Equal
// arguments give equal results.
//
// Lines use Myers, "An O(ND) Difference Algorithm" (1986, section 4b), with
// patience anchors (lines that occur once) if that would cost too much, and Merge
// follows Khanna, Kunal and Pierce, "A Formal Investigation of Diff3" (2007).
// Words are those of Unicode Standard Annex 29.
package diff

import (
	"context"
	"math"

	"github.com/artelhq/artel"
)

// Options are the options of [Lines]. The zero value gives a usual diff.
type Options struct {
	Context int  // equal lines around a change; 0: 3, negative: none
	Limit   int  // maximum number of lines in hunks; 0: no limit. See [Diff.Cut].
	Plain   bool // do not compare words: no pairs and no spans
}

// A Diff is the difference between an old and a new text. Its lines share memory
// with the texts.
type Diff struct {
	Hunks   []Hunk `json:"hunks"`   // in order, apart from each other; empty, not nil, if the texts are equal
	Stats   Stats  `json:"stats"`   // of all changes, including those cut
	Minimal bool   `json:"minimal"` // no diff with fewer changed lines exists
	Cut     bool   `json:"cut"`     // Options.Limit was reached: the hunks are the beginning of the diff
}

// Stats counts changed lines. A line that was replaced counts on both sides.
type Stats struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// A Hunk is a run of changes with the equal lines around them. Starts are the
// numbers of the first line, from 1. If a side has no lines, its start is
// the number of the line after which the hunk stands, 0 for the beginning, as
// in the unified format.
type Hunk struct {
	OldStart int    `json:"old_start"`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start"`
	NewLines int    `json:"new_lines"`
	Lines    []Line `json:"lines"` // within a run of changes, removed lines come first
}

// An Op is the side of a line.
type Op string

// The ops.
const (
	Equal   Op = "equal"   // on both sides
	Added   Op = "added"   // in the new text only
	Removed Op = "removed" // in the old text only
)

// A Line is one line of a hunk.
type Line struct {
	Op   Op     `json:"op"`
	Old  int    `json:"old,omitzero"` // number in the old text, from 1; 0: not in it
	New  int    `json:"new,omitzero"` // number in the new text, from 1; 0: not in it
	Text string `json:"text"`         // without its end; JSON shows invalid UTF-8 as U+FFFD
	End  string `json:"end"`          // "\n", "\r\n", or "" if the text stops without a line end

	// Pair is the number of the added line that replaced this removed line, or
	// of the removed line that this added line replaced; 0: none is similar.
	Pair int `json:"pair,omitzero"`
	// Spans cover Text without gaps, changed and unchanged in turn, if the line
	// has a pair and the two were compared by words. The unchanged spans of a
	// pair hold the same text on both sides.
	Spans []Span `json:"spans,omitempty"`
}

// A Span is a part of a line, in code points, an invalid byte counting as one.
type Span struct {
	Start   int  `json:"start"` // from 0
	End     int  `json:"end"`   // after the last
	Changed bool `json:"changed"`
}

// Lines compares two texts line by line. It fails only when ctx ends, with
// [artel.Canceled].
func Lines(ctx context.Context, old, new string, o Options) (Diff, error) {
	d, err := lines(ctx, old, new, o, lineLimits)
	if err != nil {
		return Diff{}, artel.Errorf(artel.Canceled, "diff.Lines", "", "the comparison was stopped before its end: %w", err)
	}
	return d, nil
}

func lines(ctx context.Context, old, new string, o Options, limit func(n int) limits) (Diff, error) {
	if o.Context == 0 {
		o.Context = 3
	}
	o.Context = min(max(o.Context, 0), len(old)) // no text has more lines than bytes
	if o.Limit <= 0 {
		o.Limit = math.MaxInt
	}
	texts, err := narrow(ctx, max(margin, o.Context), old, new)
	if err != nil {
		return Diff{}, err
	}
	ids, count, err := number(ctx, texts)
	if err != nil {
		return Diff{}, err
	}
	c, err := compare(ctx, ids[0], ids[1], count, limit(len(ids[0])+len(ids[1])))
	if err != nil {
		return Diff{}, err
	}
	slide(&texts[0], ids[0], c.removed, c.added)
	slide(&texts[1], ids[1], c.added, c.removed)
	d := Diff{Hunks: []Hunk{}, Minimal: c.minimal}
	d.hunks(&texts[0], &texts[1], c.runs(), o)
	if o.Plain {
		return d, nil
	}
	return d, spell(ctx, d.Hunks)
}
