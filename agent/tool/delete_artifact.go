// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/artelhq/artel"
)

//go:embed delete_artifact.md
var deleteDoc string

type deleteArgs struct {
	artifactArg
	IfVersion int `json:"if_version,omitempty"`
}

func deleteArtifact() Tool {
	return effectOf(changing("delete_artifact", deleteDoc, func(ctx context.Context, e *Env, id artel.ArtifactID, in deleteArgs) (artel.Artifact, string, error) {
		a, err := e.Workspace.Edit.Delete(ctx, id, in.IfVersion)
		return a, fmt.Sprintf("Deleted artifact '%s' (v%d). To bring it back: restore_artifact(id='%s')", a.ID, a.Version, a.ID), err
	}), deleteEffect)
}
