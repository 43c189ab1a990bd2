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
	artifactArg
	Content   string `json:"content"`
	IfVersion int    `json:"if_version,omitempty"`
}

func rewriteArtifact() Tool {
	t := Func("rewrite_artifact", rewriteDoc, func(ctx context.Context, e *Env, in rewriteArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		a, err := e.Workspace.Edit.Rewrite(ctx, id, in.Content, in.IfVersion)
		if behind(err, in.IfVersion) {
			return mergedInto(ctx, e, id, in.IfVersion, in.Content, err)
		}
		if err != nil {
			return failure(err)
		}
		return editResult(a, "", fmt.Sprintf("Successfully rewrote artifact '%s' (v%d)", a.ID, a.Version)), nil
	})
	t.TakesContent = true
	return t
}
