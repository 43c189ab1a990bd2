// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"cmp"
	"context"
	_ "embed"
	"fmt"

	"github.com/artelhq/artel/media/scrub"
)

//go:embed create_artifact.md
var createDoc string

// defaultType is the media type of a text without one.
const defaultType = "text/markdown"

type createArgs struct {
	ID          string `json:"id" jsonschema:"1 to 64 letters, digits, _ . or -; never changes, e.g. task_plan or market_report"`
	Title       string `json:"title" jsonschema:"what people see"`
	Content     string `json:"content" jsonschema:"the whole text"`
	MediaType   string `json:"media_type,omitempty" jsonschema:"such as text/markdown (the default), text/plain, text/html, text/csv, application/json, text/x-python"`
	ContentType string `json:"content_type,omitempty" jsonschema:"another name for media_type"`
}

func createArtifact() Tool {
	t := Func("create_artifact", createDoc, func(ctx context.Context, e *Env, in createArgs) (Result, error) {
		id, err := parseID(e, in.ID)
		if err != nil {
			return failure(err)
		}
		a, err := e.Workspace.Create(ctx, id, scrub.Line(in.Title), in.Content, cmp.Or(in.MediaType, in.ContentType, defaultType))
		if err != nil {
			return failure(err)
		}
		return editResult(a, "", fmt.Sprintf("Created artifact '%s'", a.ID)), nil
	})
	t.TakesContent = true
	return t
}
