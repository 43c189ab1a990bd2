// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel/artifact"
)

// A VersionView is one version, with its text if it is one.
type VersionView struct {
	artifact.Entry
	Content *string `json:"content,omitempty"`
}

// A DiffView compares two versions of a text. Lines count from 1, spans in
// lines are code points from 0.
type DiffView struct {
	From    int        `json:"from" doc:"0: there was nothing before"`
	To      int        `json:"to"`
	Hunks   []DiffHunk `json:"hunks"`
	Stats   DiffStats  `json:"stats"`
	Minimal bool       `json:"minimal" doc:"no diff with fewer changed lines exists"`
	Cut     bool       `json:"cut" doc:"there are more lines than were asked for"`
	Unified string     `json:"unified" doc:"the same as patch reads it"`
}

// DiffStats counts changed lines.
type DiffStats struct {
	Added   int `json:"added"`
	Removed int `json:"removed"`
}

// A DiffHunk is a run of changes with equal lines around it.
type DiffHunk struct {
	OldStart int        `json:"old_start"`
	OldLines int        `json:"old_lines"`
	NewStart int        `json:"new_start"`
	NewLines int        `json:"new_lines"`
	Lines    []DiffLine `json:"lines"`
}

// A DiffLine is one line of a hunk.
type DiffLine struct {
	Op    string     `json:"op" enum:"equal,added,removed"`
	Old   int        `json:"old,omitempty" doc:"its number in the old text"`
	New   int        `json:"new,omitempty" doc:"its number in the new text"`
	Text  string     `json:"text"`
	End   string     `json:"end" doc:"\\n, \\r\\n, or nothing"`
	Pair  int        `json:"pair,omitempty" doc:"of a changed line: the number of its other form"`
	Spans []DiffSpan `json:"spans,omitempty" doc:"what changed within the line"`
}

// A DiffSpan is a part of a line.
type DiffSpan struct {
	Start   int  `json:"start"`
	End     int  `json:"end"`
	Changed bool `json:"changed"`
}

func diffView(d artifact.Diff, unified string) DiffView {
	v := DiffView{
		To: d.To.Number, Hunks: make([]DiffHunk, len(d.Hunks)), Stats: DiffStats(d.Stats),
		Minimal: d.Minimal, Cut: d.Cut, Unified: unified,
	}
	if d.From != nil {
		v.From = d.From.Number
	}
	for i, h := range d.Hunks {
		lines := make([]DiffLine, len(h.Lines))
		for j, l := range h.Lines {
			lines[j] = DiffLine{Op: string(l.Op), Old: l.Old, New: l.New, Text: l.Text, End: l.End, Pair: l.Pair}
			for _, s := range l.Spans {
				lines[j].Spans = append(lines[j].Spans, DiffSpan(s))
			}
		}
		v.Hunks[i] = DiffHunk{OldStart: h.OldStart, OldLines: h.OldLines, NewStart: h.NewStart, NewLines: h.NewLines, Lines: lines}
	}
	return v
}

// A LiveQuery includes the edits of an active run.
type LiveQuery struct {
	Live bool `query:"live" doc:"also what only the journal has: the edits of an active run, and by number any edit that there ever was"`
}

func (q LiveQuery) scope() artifact.Scope {
	if q.Live {
		return artifact.WithLive
	}
	return artifact.Visible
}

const unifiedType = "text/x-diff"

func (f *server) history() {
	register(f, f.op(http.MethodGet, artifactPath+"/versions", "list-versions", "List the versions of an artifact, oldest first", http.StatusOK),
		func(ctx context.Context, in *struct {
			ArtifactPath
			LiveQuery
			Edits bool `query:"edits" doc:"every single edit in the place of the versions that they were folded into"`
		},
		) (*body[List[artifact.Entry]], error) {
			c, id, err := in.parse()
			if err != nil {
				return nil, err
			}
			scope := in.scope()
			if in.Edits {
				scope = artifact.Journal
			}
			items, err := f.app.Versions.History(ctx, c, id, scope)
			return answer(listOf(items, ""), err)
		})

	register(f, f.op(http.MethodGet, artifactPath+"/versions/{n}", "read-version", "Read one version of an artifact", http.StatusOK),
		func(ctx context.Context, in *struct {
			ArtifactPath
			LiveQuery
			Number int `path:"n" minimum:"1"`
		},
		) (*body[VersionView], error) {
			c, id, err := in.parse()
			if err != nil {
				return nil, err
			}
			v, text, err := f.app.Versions.State(ctx, c, id, in.Number, in.scope())
			return answer(VersionView{v, text}, err)
		})

	op := f.op(http.MethodGet, artifactPath+"/diff", "diff-artifact", "Compare two versions of a text", http.StatusOK)
	op.Responses["200"] = &huma.Response{
		Description: "hunks of lines, or with Accept: " + unifiedType + " or format=unified a patch",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: f.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[DiffView](), true, "DiffView")},
			unifiedType:        {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}
	register(f, op, func(ctx context.Context, in *struct {
		ArtifactAt
		LiveQuery
		From    int    `query:"from" minimum:"0" doc:"absent: the version that the other was made from"`
		To      int    `query:"to" minimum:"0" doc:"absent: the newest"`
		Context int    `query:"context" minimum:"0" maximum:"1000" default:"3" doc:"equal lines around a change"`
		Limit   int    `query:"limit" minimum:"0" maximum:"1000000" default:"20000" doc:"lines told at most in JSON; 0: no limit"`
		Format  string `query:"format" enum:"json,unified" doc:"in the place of Accept"`
		Accept  string `header:"Accept"`
	},
	) (*huma.StreamResponse, error) {
		c, id, at, err := in.where()
		if err != nil {
			return nil, err
		}
		unified := in.Format == "unified" || in.Format == "" && strings.Contains(in.Accept, unifiedType)
		q := artifact.DiffQuery{From: in.From, To: in.To, At: at, Scope: in.scope(), Context: in.Context, Limit: in.Limit}
		if in.Context == 0 {
			q.Context = -1
		}
		if unified {
			q.Limit = 0 // a patch is never cut
		}
		d, err := f.app.Versions.Diff(ctx, c, id, q)
		if err != nil {
			return nil, err
		}
		patch := d.Unified(id)
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			hc.AppendHeader("Vary", "Accept")
			if unified {
				sendText(hc, unifiedType, patch)
				return
			}
			sendJSON(hc, diffView(d, patch))
		}}, nil
	})
}
