// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/edit"
)

//go:embed update_artifact.md
var updateDoc string

type updateArgs struct {
	ID        string     `json:"id"`
	Edits     []editArgs `json:"edits,omitempty"`
	OldStr    *string    `json:"old_str,omitempty"`
	NewStr    *string    `json:"new_str,omitempty"`
	IfVersion int        `json:"if_version,omitempty"`
}

type editArgs struct {
	Old        string `json:"old"`
	New        string `json:"new"`
	ReplaceAll bool   `json:"replace_all,omitempty"`
}

func updateArtifact() Tool {
	t := Func("update_artifact", updateDoc, func(ctx context.Context, e *Env, in updateArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		edits, err := in.edits()
		if err != nil {
			return failure(err)
		}
		a, applied, err := e.Workspace.Edit.Update(ctx, id, edits, artifact.UpdateOptions{IfVersion: in.IfVersion})
		if behind(err, in.IfVersion) {
			return updateBehind(ctx, e, id, in.IfVersion, edits, err)
		}
		if err != nil {
			return refusalResult(err, len(edits))
		}
		r := editResult(a, matchAttribute(applied.Hits), fmt.Sprintf("Successfully updated artifact '%s' (v%d)%s", a.ID, a.Version, matchDetails(edits, applied.Hits)))
		r.Metadata["edits"] = hits(applied.Hits)
		return r, nil
	})
	t.TakesContent = true
	return t
}

// updateBehind applies edits to the version that they were made from, and merges the
// result with the newest.
func updateBehind(ctx context.Context, e *Env, id artel.ArtifactID, base int, edits []edit.Edit, stale error) (Result, error) {
	text, _, err := e.Workspace.Text(ctx, id, base)
	if err != nil {
		return failure(stale)
	}
	applied, err := edit.NewDocument(text).Apply(ctx, edits, edit.Options{})
	if err != nil {
		return refusalResult(err, len(edits))
	}
	r, err := mergedInto(ctx, e, id, base, applied.Text, stale)
	if err == nil && !r.IsError {
		r.Content += matchDetails(edits, applied.Hits)
		r.Metadata["edits"] = hits(applied.Hits)
	}
	return r, err
}

func (in updateArgs) edits() ([]edit.Edit, error) {
	single := in.OldStr != nil || in.NewStr != nil
	switch {
	case single && len(in.Edits) > 0:
		return nil, artel.Errorf(artel.Invalid, "tool.Call", "update_artifact", "give edits, or old_str and new_str, not both")
	case single && (in.OldStr == nil || in.NewStr == nil):
		return nil, artel.Errorf(artel.Invalid, "tool.Call", "update_artifact", "old_str and new_str go together; an empty new_str deletes")
	case single:
		return []edit.Edit{{Old: *in.OldStr, New: *in.NewStr}}, nil
	case len(in.Edits) == 0:
		return nil, artel.Errorf(artel.Invalid, "tool.Call", "update_artifact", "nothing to do: give edits, or old_str and new_str")
	}
	edits := make([]edit.Edit, len(in.Edits))
	for i, x := range in.Edits {
		edits[i] = edit.Edit(x)
	}
	return edits, nil
}

// refusalResult says which edit failed, and that none was made.
func refusalResult(err error, n int) (Result, error) {
	r, failure := failure(err)
	if refusal, ok := errors.AsType[*edit.Refusal](err); ok {
		if n > 1 {
			r.Content = fmt.Sprintf("edit %d of %d: %s; none of the edits was made", refusal.Edit+1, n, r.Content)
		}
		r.Metadata["refused"], r.Metadata["edit"] = refusal.Kind, refusal.Edit
	}
	return r, failure
}

// matchAttribute returns the attribute with the similarity of the loosest
// match; "" if all edits matched exactly.
func matchAttribute(hs []edit.Hit) string {
	layer, least := artel.LayerExact, 1.0
	for _, h := range hs {
		switch {
		case h.Layer == artel.LayerApproximate, h.Layer == artel.LayerNormalized && layer == artel.LayerExact:
			layer = h.Layer
		}
		least = min(least, h.Similarity)
	}
	switch layer {
	case artel.LayerNormalized:
		return fmt.Sprintf(` normalized="%.1f%%"`, 100*least)
	case artel.LayerApproximate:
		return fmt.Sprintf(` fuzzy="%.1f%%"`, 100*least)
	}
	return ""
}

// matchDetails shows the expected and the matched text of every edit that did
// not match exactly.
func matchDetails(edits []edit.Edit, hs []edit.Hit) string {
	var b strings.Builder
	for i, h := range hs {
		tag := "normalize_detail"
		switch h.Layer {
		case artel.LayerExact:
			continue
		case artel.LayerApproximate:
			tag = "fuzzy_detail"
		}
		fmt.Fprintf(&b, "\n<%s edit=\"%d\"><expected>%s</expected><matched>%s</matched></%s>", tag, i+1, middle(edits[i].Old), middle(h.Matched), tag)
	}
	return b.String()
}

// middle removes the middle of a long text.
func middle(s string) string {
	const longest, side = 200, 97
	r := []rune(s)
	if len(r) <= longest {
		return s
	}
	return string(r[:side]) + "\n...\n" + string(r[len(r)-side:])
}

// hits returns how the edits matched, without the texts, as metadata.
func hits(hs []edit.Hit) []map[string]any {
	out := make([]map[string]any, len(hs))
	for i, h := range hs {
		out[i] = map[string]any{"layer": h.Layer, "similarity": h.Similarity, "start": h.Start, "end": h.End, "count": h.Count}
	}
	return out
}
