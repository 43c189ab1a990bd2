// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"cmp"
	"context"
	"mime"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// A FileQuery says how a file is to be shown.
type FileQuery struct {
	Preview bool `query:"preview" doc:"show PDF, SVG, HTML and XML in place, sandboxed, instead of offering them for download"`
}

func fileOp(op huma.Operation) huma.Operation {
	op.Responses["200"] = &huma.Response{
		Description: "the bytes; Range, If-None-Match and HEAD-like caching as RFC 9110 says, ETag is the digest",
		Content:     map[string]*huma.MediaType{"application/octet-stream": {Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}},
	}
	return op
}

func (f *face) files() {
	register(f, fileOp(f.op(http.MethodGet, "/files/{ref}", "read-file", "Read the bytes that a ref points to", http.StatusOK)),
		func(ctx context.Context, in *struct {
			Ref string `path:"ref" doc:"a ref as one percent-encoded segment"`
			FileQuery
		},
		) (*huma.StreamResponse, error) {
			file, err := f.app.Files.Open(ctx, in.Ref)
			if err != nil {
				return nil, err
			}
			return serveFile(file, in.Preview), nil
		})
}

// serveFile streams a file so that nothing in it can act on the page's
// origin: the type is not guessed, scripts are off, and what a browser would
// run or render is offered for download.
func serveFile(file app.File, preview bool) *huma.StreamResponse {
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		defer file.Content.Close()
		r, w := humago.Unwrap(hc)
		h := w.Header()
		h.Set("Content-Type", contentType(file.Info))
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
		h.Set("Content-Disposition", disposition(file, preview))
		h.Set("ETag", `"`+string(file.Digest)+`"`)
		if file.Immutable {
			h.Set("Cache-Control", "private, max-age=31536000, immutable")
		} else {
			h.Set("Cache-Control", "private, no-cache")
		}
		http.ServeContent(w, r, "", file.Modified, file.Content)
	}}
}

func contentType(m artel.MediaInfo) string {
	if m.Kind == artel.KindText && m.Charset != "" {
		if t := mime.FormatMediaType(m.MediaType, map[string]string{"charset": m.Charset}); t != "" {
			return t
		}
	}
	return cmp.Or(m.MediaType, "application/octet-stream")
}

// disposition lets a browser show what is harmless: raster images, audio,
// video and plain text. The rest is for download; PDF, SVG, HTML and XML unless
// a preview is asked for.
func disposition(file app.File, preview bool) string {
	kind := "attachment"
	switch t := file.Info.MediaType; {
	case t == "application/pdf", strings.Contains(t, "html"), strings.Contains(t, "xml"), strings.Contains(t, "xsl"):
		if preview {
			kind = "inline"
		}
	case slices.Contains([]artel.MediaKind{artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindText}, file.Info.Kind):
		kind = "inline"
	}
	if s := mime.FormatMediaType(kind, map[string]string{"filename": file.Filename}); s != "" {
		return s
	}
	return kind
}
