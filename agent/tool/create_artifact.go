// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/scrub"
)

//go:embed create_artifact.md
var createDoc string

// defaultType is the media type of a text without one.
const defaultType = "text/markdown"

type createArgs struct {
	artifactArg
	Title       string `json:"title"`
	Content     string `json:"content"`
	MediaType   string `json:"media_type,omitempty" jsonschema:"default text/markdown"`
	ContentType string `json:"content_type,omitempty"`
}

func createArtifact() Tool {
	t := changing("create_artifact", createDoc, func(ctx context.Context, e *Env, id artel.ArtifactID, in createArgs) (artel.Artifact, string, error) {
		a, err := e.Workspace.Create(ctx, id, scrub.Line(in.Title), in.Content, cmp.Or(in.MediaType, in.ContentType, defaultType))
		return a, fmt.Sprintf("Created artifact '%s'", a.ID), err
	})
	t.TakesContent = true
	return t
}
