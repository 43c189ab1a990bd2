// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/scrub"
)

//go:embed rename_artifact.md
var renameDoc string

type renameArgs struct {
	artifactArg
	Title     string `json:"title"`
	IfVersion int    `json:"if_version,omitempty"`
}

func renameArtifact() Tool {
	return changing("rename_artifact", renameDoc, func(ctx context.Context, e *Env, id artel.ArtifactID, in renameArgs) (artel.Artifact, string, error) {
		a, err := e.Workspace.Edit.Rename(ctx, id, scrub.Line(in.Title), in.IfVersion)
		return a, fmt.Sprintf("The title of artifact '%s' is '%s' (v%d)", a.ID, attribute(a.Title), a.Version), err
	})
}
