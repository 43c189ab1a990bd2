// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

//go:embed diff_artifact.md
var diffDoc string

type diffArgs struct {
	ID     string `json:"id"`
	From   int    `json:"from,omitempty"`
	To     int    `json:"to,omitempty"`
	Offset int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Column int    `json:"column,omitempty"`
}

func diffArtifact() Tool {
	t := Func("diff_artifact", diffDoc, func(ctx context.Context, e *Env, in diffArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		if in.From < 0 || in.To < 0 || in.Offset < 0 || in.Column < 0 {
			return Failed("diff_artifact: from, to, offset and column are numbers from 1"), nil
		}
		d, err := e.Workspace.Diff(ctx, id, in.From, in.To)
		if err != nil {
			return failure(err)
		}
		return Result{Content: diffPage(e, string(id), in, d), Metadata: map[string]any{
			"content_type": "diff", "from": in.From, "to": d.To.Number, "added": d.Stats.Added, "removed": d.Stats.Removed,
		}}, nil
	})
	t.Parallel, t.ShowsContent = true, true
	return t
}

// diffPage formats a page of a diff for the model.
func diffPage(e *Env, id string, in diffArgs, d artifact.Diff) string {
	in.From, in.To = 0, d.To.Number
	if d.From != nil {
		in.From = d.From.Number
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<artifact_diff id="%s" from="%d" to="%d" added="%d" removed="%d"`, attribute(id), in.From, in.To, d.Stats.Added, d.Stats.Removed)
	if len(d.Hunks) == 0 {
		return b.String() + ">\nThe texts are equal.\n</artifact_diff>"
	}
	p := pageAt(d.Unified(artel.ArtifactID(id)), max(in.Offset, 1), max(in.Column, 1), 0, e.Shown.page())
	fmt.Fprintf(&b, ` total_lines="%d" has_more="%t"`, p.total, p.line > 0)
	switch {
	case p.line > 0:
		fmt.Fprintf(&b, ` hint="%s"`, attribute("To continue: "+in.next(id, p)))
	case p.last < p.first:
		fmt.Fprintf(&b, ` hint="The diff ends at line %d."`, p.total)
	}
	fmt.Fprintf(&b, ">\n%s</artifact_diff>", endLine(p.body))
	return b.String()
}

// next returns the call for the next page of the same diff.
func (in diffArgs) next(id string, p page) string {
	from := ""
	if in.From > 0 {
		from = fmt.Sprintf(", from=%d", in.From)
	}
	column := ""
	if p.column > 1 {
		column = fmt.Sprintf(", column=%d", p.column)
	}
	return fmt.Sprintf("diff_artifact(id='%s'%s, to=%d, offset=%d%s)", id, from, in.To, p.line, column)
}

// endLine returns s with a newline at its end.
func endLine(s string) string {
	if s == "" || strings.HasSuffix(s, "\n") {
		return s
	}
	return s + "\n"
}
