// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
)

//go:embed restore_artifact.md
var restoreDoc string

type restoreArgs struct {
	ID        string `json:"id" jsonschema:"the artifact"`
	Version   int    `json:"version,omitempty" jsonschema:"the version to go back to; absent: what a deleted artifact was before"`
	IfVersion int    `json:"if_version,omitempty" jsonschema:"refuse unless the artifact is at this version"`
}

func restoreArtifact() Tool {
	return Func("restore_artifact", restoreDoc, func(ctx context.Context, e *Env, in restoreArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		if in.Version < 0 {
			return Failed("restore_artifact: versions are numbers from 1"), nil
		}
		a, err := e.Workspace.Restore(ctx, id, in.Version, in.IfVersion)
		if err != nil {
			return failure(err)
		}
		what := "as it was before it was deleted"
		if in.Version > 0 {
			what = fmt.Sprintf("as it was at version %d", in.Version)
		}
		return editResult(a, "", fmt.Sprintf("Restored artifact '%s' %s (v%d)", a.ID, what, a.Version)), nil
	})
}
