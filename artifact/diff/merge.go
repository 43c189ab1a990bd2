// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"cmp"
	"context"
	"strings"

	"github.com/artelhq/artel"
)

// MergeOptions name the sides in conflict marks. The zero value names them
// mine, base and theirs.
type MergeOptions struct {
	Mine, Base, Theirs string
}

// Merged is the result of [Merge].
type Merged struct {
	// Text is the merged text. Each conflict stands in it between marks, the
	// three sides one after the other:
	//
	//	<<<<<<< mine
	//	||||||| base
	//	=======
	//	>>>>>>> theirs
	Text      string     `json:"text"`
	Conflicts []Conflict `json:"conflicts"` // in order; empty, not nil, if the merge is clean
}

// Clean reports whether there is no conflict.
func (m Merged) Clean() bool { return len(m.Conflicts) == 0 }

// A Conflict is a place that both sides changed, differently. Starts are line
// numbers from 1; where a side has no lines there, its start is the number of
// the line after which they would stand, 0 for the beginning.
type Conflict struct {
	Start       int    `json:"start"` // of the first mark in Merged.Text
	Lines       int    `json:"lines"` // marks included
	BaseStart   int    `json:"base_start"`
	BaseLines   int    `json:"base_lines"`
	MineStart   int    `json:"mine_start"`
	MineLines   int    `json:"mine_lines"`
	TheirsStart int    `json:"theirs_start"`
	TheirsLines int    `json:"theirs_lines"`
	Base        string `json:"base"` // the lines, with their ends
	Mine        string `json:"mine"`
	Theirs      string `json:"theirs"`
}

// Markers counts the conflicts that stand in a text between the marks of [Merge]
// or of Git, and returns the line of the first, from 1. A mark without the others
// is text as any other.
func Markers(text string) (count, first int) {
	if !strings.Contains(text, "<<<<<<<") {
		return 0, 0
	}
	start, middle, n := 0, false, 0
	for line := range strings.Lines(text) {
		n++
		line = strings.TrimRight(line, "\r\n")
		switch {
		case strings.HasPrefix(line, "<<<<<<< "):
			start, middle = n, false
		case start > 0 && line == "=======":
			middle = true
		case middle && strings.HasPrefix(line, ">>>>>>> "):
			if count++; count == 1 {
				first = start
			}
			start, middle = 0, false
		}
	}
	return count, first
}

// Merge combines the changes from base to mine and from base to theirs. A change
// of one side is applied, an equal change of both sides is applied once, and
// different changes without a line between them that all three texts share are a
// conflict. Swapping mine and theirs only swaps them in the conflicts. Lines keep
// their ends; marks have the line end of the first line of base. The only error is
// of kind [artel.Canceled].
func Merge(ctx context.Context, base, mine, theirs string, o MergeOptions) (Merged, error) {
	m, err := merge(ctx, base, mine, theirs, o)
	if err != nil {
		return Merged{}, artel.Errorf(artel.Canceled, "diff.Merge", "", "the merge was stopped before its end: %w", err)
	}
	return m, nil
}

func merge(ctx context.Context, base, mine, theirs string, o MergeOptions) (Merged, error) {
	texts, err := narrow(ctx, margin, base, mine, theirs)
	if err != nil {
		return Merged{}, err
	}
	ids, count, err := number(ctx, texts)
	if err != nil {
		return Merged{}, err
	}
	w := merger{base: &texts[0], mine: &texts[1], theirs: &texts[2], options: o, end: markEnd(base, mine, theirs)}
	toMine, err := partners(ctx, texts, ids, 1, count)
	if err != nil {
		return Merged{}, err
	}
	toTheirs, err := partners(ctx, texts, ids, 2, count)
	if err != nil {
		return Merged{}, err
	}
	w.out.Conflicts = []Conflict{}
	w.write(base[:w.base.starts[0]])
	n := w.base.count()
	for i, j, k := 0, 0, 0; ; {
		from := i
		for i < n && toMine[i] == j && toTheirs[i] == k {
			i, j, k = i+1, j+1, k+1
		}
		w.write(w.base.span(from, i))
		if i == n && j == w.mine.count() && k == w.theirs.count() {
			break
		}
		// What follows is unstable up to the next line that all three share.
		next := i
		for next < n && (toMine[next] < 0 || toTheirs[next] < 0) {
			next++
		}
		nextMine, nextTheirs := w.mine.count(), w.theirs.count()
		if next < n {
			nextMine, nextTheirs = toMine[next], toTheirs[next]
		}
		w.chunk(part{i, next}, part{j, nextMine}, part{k, nextTheirs})
		i, j, k = next, nextMine, nextTheirs
	}
	w.write(base[w.base.starts[n]:])
	w.out.Text = w.text.String()
	return w.out, nil
}

// partners returns, for each line of the base, the equal line of another text, or
// -1.
func partners(ctx context.Context, texts []text, ids [][]int32, side, count int) ([]int, error) {
	c, err := compare(ctx, ids[0], ids[side], count, lineLimits(len(ids[0])+len(ids[side])))
	if err != nil {
		return nil, err
	}
	slide(&texts[0], ids[0], c.removed, c.added)
	slide(&texts[side], ids[side], c.added, c.removed)
	out := make([]int, len(ids[0]))
	j := 0
	for i := range out {
		if c.removed[i] {
			out[i] = -1
			continue
		}
		for c.added[j] {
			j++
		}
		out[i] = j
		j++
	}
	return out, nil
}

// A part is the lines of a side from one to before another.
type part struct{ from, to int }

// A merger writes the merged text.
type merger struct {
	base, mine, theirs *text
	options            MergeOptions
	end                string // of marks
	out                Merged
	text               strings.Builder
	lines              int // in text
}

func (w *merger) write(s string) {
	w.text.WriteString(s)
	w.lines += strings.Count(s, lineEnd)
}

// chunk writes a region in which the three texts differ.
func (w *merger) chunk(base, mine, theirs part) {
	c := Conflict{
		Base:   w.base.span(base.from, base.to),
		Mine:   w.mine.span(mine.from, mine.to),
		Theirs: w.theirs.span(theirs.from, theirs.to),
	}
	switch {
	case c.Mine == c.Theirs || c.Theirs == c.Base:
		w.write(c.Mine)
		return
	case c.Mine == c.Base:
		w.write(c.Theirs)
		return
	}
	c.Start = w.lines + 1
	c.BaseStart, c.BaseLines = place(w.base, base)
	c.MineStart, c.MineLines = place(w.mine, mine)
	c.TheirsStart, c.TheirsLines = place(w.theirs, theirs)
	w.mark("<<<<<<<", cmp.Or(w.options.Mine, "mine"))
	w.side(c.Mine)
	w.mark("|||||||", cmp.Or(w.options.Base, "base"))
	w.side(c.Base)
	w.mark("=======", "")
	w.side(c.Theirs)
	w.mark(">>>>>>>", cmp.Or(w.options.Theirs, "theirs"))
	c.Lines = w.lines + 1 - c.Start
	w.out.Conflicts = append(w.out.Conflicts, c)
}

func place(t *text, p part) (start, lines int) {
	start, lines = t.before+p.from, p.to-p.from
	if lines > 0 {
		start++
	}
	return start, lines
}

// mark writes a line that bounds a side of a conflict.
func (w *merger) mark(sign, name string) {
	if name != "" {
		sign += " " + artel.Shorten(name, longestName)
	}
	w.write(sign + w.end)
}

// longestName is the bytes of a name that a mark shows.
const longestName = 200

// side writes one side of a conflict. A last line without an end gets one, because
// a mark follows; the Conflict has it unchanged.
func (w *merger) side(s string) {
	w.write(s)
	if s != "" && !strings.HasSuffix(s, lineEnd) {
		w.write(w.end)
	}
}

// markEnd returns how the first line of the base ends. If it does not, the
// sides decide if they agree.
func markEnd(base, mine, theirs string) string {
	if end := firstEnd(base); end != "" {
		return end
	}
	if end := firstEnd(mine); end != "" && end == firstEnd(theirs) {
		return end
	}
	return lineEnd
}

func firstEnd(s string) string {
	switch i := strings.Index(s, lineEnd); {
	case i < 0:
		return ""
	case i > 0 && s[i-1] == '\r':
		return "\r\n"
	}
	return lineEnd
}
