// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
)

//go:embed put_artifact.md
var putDoc string

type putArgs struct {
	Ref   string `json:"ref" jsonschema:"what to make an artifact of: a blob: ref, artifact:conversation/id@version, or id@version of this conversation"`
	ID    string `json:"id,omitempty" jsonschema:"the new artifact; absent: made from the file name"`
	Title string `json:"title,omitempty" jsonschema:"what people see; absent: the title that it has"`
}

func putArtifact() Tool {
	return Func("put_artifact", putDoc, func(ctx context.Context, e *Env, in putArgs) (Result, error) {
		ref, err := artel.ParseRef(strings.TrimSpace(in.Ref))
		if err != nil {
			return mend(err)
		}
		if here := !ref.IsBlob() && (ref.Conversation == "" || ref.Conversation == e.Conversation); !here && e.Artifacts == nil {
			return mend(outOfReach(ref))
		}
		id := artel.ArtifactID("")
		if strings.TrimSpace(in.ID) != "" {
			if id, err = own(e, in.ID); err != nil {
				return mend(err)
			}
		}
		a, err := e.Workspace.Put(ctx, id, in.Title, ref)
		if err != nil {
			return mend(err)
		}
		return done(a, "", fmt.Sprintf("Put '%s' as artifact '%s'", attribute(ref.String()), a.ID)), nil
	})
}
