// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"context"
	"html/template"
	"net/url"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/diff"
	"github.com/artelhq/artel/internal/render"
)

// A Comparison is the diff of two versions of a text.
type Comparison struct {
	From, To       int // 0: the text is new
	Added, Removed int // lines
	Rows           []CompareRow
	Cut            bool // more lines follow
	Split          bool // side by side
	InlineURL      string
	SplitURL       string
	Bases          []Listing // versions to compare with
}

// A CompareRow is a row of the comparison: a gap between two hunks, one line
// (inline), or two lines side by side (split; either may be nil).
type CompareRow struct {
	Gap         bool
	Left, Right *CompareLine // inline: only Right
}

// A CompareLine is a line of one side.
type CompareLine struct {
	Op       string // equal, added, removed
	Old, New int    // line numbers; 0: not on that side
	HTML     template.HTML
}

// comparedLines is the maximum number of lines of a comparison on a page.
const comparedLines = 4000

func (v view) compare(ctx context.Context, id artel.ArtifactID, shown int, query url.Values) (*Comparison, error) {
	q := artifact.DiffQuery{To: shown, Limit: comparedLines}
	if shown == 0 {
		q.Scope = artifact.WithLive
	}
	if q.From = atoi(query.Get("from")); q.From < 0 {
		q.From = 0
	}
	d, err := v.app.Versions.Diff(ctx, v.conversation, id, q)
	if err != nil {
		return nil, err
	}
	out := &Comparison{
		To: d.To.Number, Added: d.Stats.Added, Removed: d.Stats.Removed, Cut: d.Cut, Split: query.Get("split") != "",
	}
	if d.From != nil {
		out.From = d.From.Number
	}
	address := func(split bool, from int) string {
		to := url.Values{"view": {tabDiff}}
		if shown > 0 {
			to.Set("v", itoa(shown))
		}
		if from > 0 {
			to.Set("from", itoa(from))
		}
		if split {
			to.Set("split", "1")
		}
		return artifactURL(v.conversation, artel.Ref{Artifact: id}) + "?" + to.Encode()
	}
	out.InlineURL, out.SplitURL = address(false, q.From), address(true, q.From)
	list, _, err := v.versions(ctx, id, out.From, "")
	if err != nil {
		return nil, err
	}
	for _, l := range list {
		if l.Number != out.To {
			l.URL = address(out.Split, l.Number)
			out.Bases = append(out.Bases, l)
		}
	}
	out.Rows = rowsOf(d.Hunks, out.Split)
	return out, nil
}

// rowsOf renders hunks, with the changed words marked.
func rowsOf(hunks []diff.Hunk, split bool) (rows []CompareRow) {
	for i, h := range hunks {
		if i > 0 || h.OldStart > 1 || h.NewStart > 1 {
			rows = append(rows, CompareRow{Gap: true})
		}
		lines := make([]CompareLine, len(h.Lines))
		pairs := make([]int, len(h.Lines))
		for j, l := range h.Lines {
			var changed [][2]int
			for _, span := range l.Spans {
				if span.Changed {
					changed = append(changed, [2]int{span.Start, span.End})
				}
			}
			lines[j] = CompareLine{Op: string(l.Op), Old: l.Old, New: l.New, HTML: marked(l.Text, changed)}
			pairs[j] = l.Pair
		}
		if split {
			rows = append(rows, beside(lines, pairs)...)
			continue
		}
		for j := range lines {
			rows = append(rows, CompareRow{Right: &lines[j]})
		}
	}
	return rows
}

// beside aligns the lines of a hunk: equal lines in one row, removed lines next
// to the added lines that replace them.
func beside(lines []CompareLine, pairs []int) []CompareRow {
	var rows []CompareRow
	for i := 0; i < len(lines); {
		if lines[i].Op == opEqual {
			rows = append(rows, CompareRow{Left: &lines[i], Right: &lines[i]})
			i++
			continue
		}
		removed := i
		for i < len(lines) && lines[i].Op == opRemoved {
			i++
		}
		added := i
		for i < len(lines) && lines[i].Op == opAdded {
			i++
		}
		j := added
		for ; removed < added; removed++ {
			row := CompareRow{Left: &lines[removed]}
			if k := slices.IndexFunc(lines[j:i], func(l CompareLine) bool { return l.New == pairs[removed] }); pairs[removed] > 0 && k >= 0 {
				for ; k > 0; k-- {
					rows = append(rows, CompareRow{Right: &lines[j]})
					j++
				}
				row.Right = &lines[j]
				j++
			} else if pairs[removed] == 0 && j < i && pairs[j] == 0 {
				row.Right = &lines[j]
				j++
			}
			rows = append(rows, row)
		}
		for ; j < i; j++ {
			rows = append(rows, CompareRow{Right: &lines[j]})
		}
	}
	return rows
}

// The ops of lines, as package diff writes them.
const (
	opEqual   = "equal"
	opAdded   = "added"
	opRemoved = "removed"
)

// marked renders a line with spans marked; a span is begin and end in code
// points.
func marked(text string, spans [][2]int) template.HTML {
	if len(spans) == 0 {
		return render.Text(text)
	}
	runes := []rune(text)
	var b strings.Builder
	at := 0
	for _, s := range spans {
		begin, end := min(s[0], len(runes)), min(s[1], len(runes))
		b.WriteString(string(render.Text(string(runes[at:begin]))))
		b.WriteString("<mark>" + string(render.Text(string(runes[begin:end]))) + "</mark>")
		at = end
	}
	b.WriteString(string(render.Text(string(runes[at:]))))
	return template.HTML(b.String()) //nolint:gosec // escaped pieces and one element
}
