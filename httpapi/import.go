// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/internal/form"
)

// An importInput takes a ZIP as a stream.
type importInput struct {
	OnceHeader
	RawRequest
}

func (f *server) imports() {
	op := f.op(http.MethodPost, "/conversations/import", "import-conversation", "Make a new conversation of a ZIP that was exported", http.StatusCreated)
	op.Description = "All of it appears at once, or nothing. The ZIP may have twenty times the bytes of the largest upload (`artifacts.upload_limit`)."
	register(f, op, func(ctx context.Context, in *importInput) (*body[app.Imported], error) {
		// Only with nothing left it is refused unread: how much is stored of a ZIP is
		// known when it is unpacked.
		ctx, release, err := f.app.Storage.Reserve(ctx, in.request.ContentLength, max(in.request.ContentLength, 0))
		if err != nil {
			return nil, err
		}
		defer release()
		staged, err := f.app.Imports.Stage(ctx, form.Sent(in.request.Body))
		if err != nil {
			return nil, err
		}
		defer staged.Close()
		return answer(once(ctx, f, in.Key, []any{"import", staged.Digest}, func() (app.Imported, error) {
			return f.app.Imports.Import(ctx, staged)
		}))
	})
	f.describeBody(op, map[string]*huma.MediaType{
		"application/zip": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}},
	})
}
