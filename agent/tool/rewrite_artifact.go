// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/artelhq/artel"
)

//go:embed rewrite_artifact.md
var rewriteDoc string

type rewriteArgs struct {
	artifactArg
	Content   string `json:"content"`
	IfVersion int    `json:"if_version,omitempty"`
}

func rewriteArtifact() Tool {
	t := changing("rewrite_artifact", rewriteDoc, func(ctx context.Context, e *Env, id artel.ArtifactID, in rewriteArgs) (artel.Artifact, string, error) {
		a, err := e.Workspace.Edit.Rewrite(ctx, id, in.Content, in.IfVersion)
		return a, fmt.Sprintf("Successfully rewrote artifact '%s' (v%d)", a.ID, a.Version), err
	})
	t.TakesContent = true
	return t
}
