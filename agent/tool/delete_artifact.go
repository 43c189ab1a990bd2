// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed delete_artifact.md
var deleteDoc string

type deleteArgs struct {
	ID        string `json:"id" jsonschema:"the artifact"`
	IfVersion int    `json:"if_version,omitempty" jsonschema:"refuse unless the artifact is at this version"`
}

func deleteArtifact() Tool {
	return Func("delete_artifact", deleteDoc, func(ctx context.Context, e *Env, in deleteArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		a, err := e.Workspace.Delete(ctx, id, in.IfVersion)
		if err != nil {
			return failure(err)
		}
		return editResult(a, "", fmt.Sprintf("Deleted artifact '%s' (v%d). To bring it back: restore_artifact(id='%s')", a.ID, a.Version, a.ID)), nil
	})
}
