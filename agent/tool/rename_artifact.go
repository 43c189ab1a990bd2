// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/artelhq/artel/media/scrub"
)

//go:embed rename_artifact.md
var renameDoc string

type renameArgs struct {
	ID        string `json:"id" jsonschema:"the artifact"`
	Title     string `json:"title" jsonschema:"what people are to see, 1 to 256 characters"`
	IfVersion int    `json:"if_version,omitempty" jsonschema:"refuse unless the artifact is at this version"`
}

func renameArtifact() Tool {
	return Func("rename_artifact", renameDoc, func(ctx context.Context, e *Env, in renameArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		a, err := e.Workspace.Rename(ctx, id, scrub.Line(in.Title), in.IfVersion)
		if err != nil {
			return failure(err)
		}
		return editResult(a, "", fmt.Sprintf("The title of artifact '%s' is '%s' (v%d)", a.ID, attribute(a.Title), a.Version)), nil
	})
}
