// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed rewrite_artifact.md
var rewriteDoc string

type rewriteArgs struct {
	ID        string `json:"id" jsonschema:"the artifact"`
	Content   string `json:"content" jsonschema:"the whole new text"`
	IfVersion int    `json:"if_version,omitempty" jsonschema:"refuse unless the artifact is at this version"`
}

func rewriteArtifact() Tool {
	t := Func("rewrite_artifact", rewriteDoc, func(ctx context.Context, e *Env, in rewriteArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		a, err := e.Workspace.Rewrite(ctx, id, in.Content, in.IfVersion)
		if err != nil {
			return failure(err)
		}
		return editResult(a, "", fmt.Sprintf("Successfully rewrote artifact '%s' (v%d)", a.ID, a.Version)), nil
	})
	t.TakesContent = true
	return t
}
