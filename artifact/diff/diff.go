// SPDX-License-Identifier: Apache-2.0

// Package diff says what differs between two texts, and merges two changed
// copies of one text. It is pure: no I/O, no goroutines, nothing kept between
// calls, so everything is safe for concurrent use.
//
// Begin with [Lines], which gives hunks of lines with the words that changed
// inside them, as HTTP and the page show them. [Diff.Unified] writes them as
// patch and git apply read them. [Merge] is the three-way merge.
//
// # Lines
//
// A line is what package edit says it is: "\n" ends it, "\r\n" is an end of its
// own kind, and what follows the last end is a line unless it is empty. Texts
// are bytes: invalid UTF-8, NUL and single carriage returns are content, and no
// byte is lost, since Text and End of the lines of a side, one after the other,
// are that side. Two lines are equal if text and end are.
//
// A diff of great texts can be greater than both: [Options.Limit] says how many
// lines are told, and [Options.Plain] leaves the words out. Words are compared
// as far as a few megabytes of changed lines; the lines after that have neither
// pairs nor spans.
//
// # What is promised
//
//   - Correct: a hunk turns its lines of the old text into those of the new one,
//     and what is in no hunk is equal.
//   - Minimal: no fewer lines can be told as removed and added, unless
//     [Diff.Minimal] is false. Lines that only one side has cost nothing; of the
//     others, about 8,000 may differ before the bound is reached.
//   - Bounded: time grows with the size of the texts and not with the square of
//     their differences; memory beside the result is a few words for each line
//     between the first and the last change. The context is looked at while
//     lines are read, compared and cut into words.
//   - Deterministic: equal texts and options give equal results.
//
// # How
//
// Texts are cut down to what lies between their common beginning and end, lines
// become numbers, and lines that one side alone has are set aside. The rest is
// solved in linear space by the algorithm of Eugene W. Myers, "An O(ND)
// Difference Algorithm and Its Variations" (Algorithmica 1, 1986, section 4b).
// Where that would cost too much, a part is divided at the lines that occur
// once on each side, longest increasing sequence first (patience, Bram Cohen),
// and failing that at the point that was reached farthest. Then changes that
// may stand in several places are moved to where a reader expects them: after
// an empty line, or where the indentation is least.
//
// The unified format is that of GNU diffutils, "Detailed Description of Unified
// Format". The merge follows Khanna, Kunal and Pierce, "A Formal Investigation
// of Diff3" (FSTTCS 2007). Words are those of Unicode Standard Annex 29, which
// makes every Chinese character a word.
package diff

import (
	"context"
	"math"

	"github.com/artelhq/artel"
)

// Options tune [Lines]. The zero value is what people expect of a diff.
type Options struct {
	Context int  // equal lines around a change; 0: 3, negative: none
	Limit   int  // lines told in hunks at most; 0: no limit. See [Diff.Cut].
	Plain   bool // leave out what changed inside lines: no pairs and no spans
}

// A Diff is what differs between an old and a new text. Its lines share memory
// with the texts.
type Diff struct {
	Hunks   []Hunk `json:"hunks"`   // in order, apart from each other; empty, not nil, if the texts are equal
	Stats   Stats  `json:"stats"`   // of all changes, also of those that were cut
	Minimal bool   `json:"minimal"` // no diff with fewer changed lines exists
	Cut     bool   `json:"cut"`     // Options.Limit was reached: the hunks are the beginning of the diff
}

// Stats counts changed lines. A line that was replaced counts on both sides.
type Stats struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// A Hunk is a run of changes with the equal lines around them. Starts are the
// numbers of the first line, from 1. Where a side has no lines, its start is
// the number of the line after which the hunk stands, 0 for the beginning, as
// in the unified format.
type Hunk struct {
	OldStart int    `json:"old_start"`
	OldLines int    `json:"old_lines"`
	NewStart int    `json:"new_start"`
	NewLines int    `json:"new_lines"`
	Lines    []Line `json:"lines"` // within a run of changes, removed lines come first
}

// An Op says on which side a line stands.
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
	Old  int    `json:"old,omitzero"` // number in the old text, from 1; 0: not there
	New  int    `json:"new,omitzero"` // number in the new text, from 1; 0: not there
	Text string `json:"text"`         // without its end, as it is in the text; JSON shows invalid UTF-8 as U+FFFD
	End  string `json:"end"`          // "\n", "\r\n", or "" if the text stops without a line end

	// Pair is, on a removed line, the number of the added line that it became,
	// and on an added line that of the removed one; 0: none resembles it enough.
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
