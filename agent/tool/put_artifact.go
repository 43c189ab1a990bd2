// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/scrub"
)

//go:embed put_artifact.md
var putDoc string

type putArgs struct {
	Ref   string `json:"ref,omitempty" jsonschema:"blob:…, id@version or artifact:conversation/id@version"`
	URL   string `json:"url,omitempty"`
	ID    string `json:"id,omitempty"`
	Title string `json:"title,omitempty"`
}

func putArtifact() Tool {
	t := Func("put_artifact", putDoc, func(ctx context.Context, e *Env, in putArgs) (Result, error) {
		if (in.Ref == "") == (in.URL == "") {
			return Failed("put_artifact: give ref or url"), nil
		}
		id := artel.ArtifactID("")
		if strings.TrimSpace(in.ID) != "" {
			var err error
			if id, err = parseID(e, in.ID); err != nil {
				return failure(err)
			}
		}
		if in.URL != "" {
			return putFetched(ctx, e, in, id)
		}
		ref, err := artel.ParseRef(strings.TrimSpace(in.Ref))
		if err != nil {
			return failure(err)
		}
		if here := !ref.IsBlob() && (ref.Conversation == "" || ref.Conversation == e.Conversation); !here && e.Artifacts == nil {
			return failure(errOutOfReach(ref))
		}
		a, err := e.Workspace.Put(ctx, id, scrub.Line(in.Title), ref)
		if err != nil {
			return failure(err)
		}
		return editResult(a, "", fmt.Sprintf("Put '%s' as artifact '%s'", attribute(ref.String()), a.ID)), nil
	})
	return effectOf(t, func(_ context.Context, e *Env, in putArgs) (Effect, error) {
		if in.URL != "" {
			return urlEffect(in.URL), nil
		}
		return refEffect(e, in.Ref), nil
	})
}

// putFetched makes an artifact of the content at an address.
func putFetched(ctx context.Context, e *Env, in putArgs, id artel.ArtifactID) (Result, error) {
	address := strings.TrimSpace(in.URL)
	if e.Fetch == nil {
		return Failed("%s: addresses are not fetched here; ask for the file to be uploaded", artel.Shorten(address, 200)), nil
	}
	if len(address) > maxAddress {
		return Failed("%s: the address has %d bytes, and at most %d are fetched", artel.Shorten(address, 200), len(address), maxAddress), nil
	}
	staged, err := e.Fetch(ctx, address)
	if err != nil {
		return failure(err)
	}
	a, err := e.Workspace.Add(ctx, id, scrub.Line(in.Title), staged)
	if err != nil {
		return failure(err)
	}
	return editResult(a, "", fmt.Sprintf("Put '%s' as artifact '%s' (%s, %d bytes)", attribute(artel.Shorten(address, 200)), a.ID, a.MediaType, a.Size)), nil
}
