// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/artelhq/artel"
)

//go:embed restore_artifact.md
var restoreDoc string

type restoreArgs struct {
	artifactArg
	Version   int `json:"version,omitempty"`
	IfVersion int `json:"if_version,omitempty"`
}

func restoreArtifact() Tool {
	return changing("restore_artifact", restoreDoc, func(ctx context.Context, e *Env, id artel.ArtifactID, in restoreArgs) (artel.Artifact, string, error) {
		if in.Version < 0 {
			return artel.Artifact{}, "", artel.Errorf(artel.Invalid, "tool.Call", "restore_artifact", "versions are numbers from 1")
		}
		a, err := e.Workspace.Edit.Restore(ctx, id, in.Version, in.IfVersion)
		what := "as it was before it was deleted"
		if in.Version > 0 {
			what = fmt.Sprintf("as it was at version %d", in.Version)
		}
		return a, fmt.Sprintf("Restored artifact '%s' %s (v%d)", a.ID, what, a.Version), err
	})
}
