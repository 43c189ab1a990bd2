// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel/app"
)

// versionHeader names the exported version of an artifact.
const versionHeader = "X-Artel-Version"

func (f *server) exports() {
	binary := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	text := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}

	one := f.op(http.MethodGet, artifactPath+"/export", "export-artifact", "Export a text as a document", http.StatusOK)
	one.Responses["200"] = &huma.Response{
		Description: "a file for download; a text that is not Markdown keeps its own type in the format md",
		Headers: map[string]*huma.Param{
			versionHeader: {Description: "the version that it was made of", Schema: &huma.Schema{Type: huma.TypeInteger}},
		},
		Content: map[string]*huma.MediaType{
			"application/vnd.openxmlformats-officedocument.wordprocessingml.document": binary, "text/html": text, "text/markdown": text, "text/*": text,
		},
	}
	register(f, one, func(ctx context.Context, in *struct {
		ArtifactAt
		LiveQuery
		Format  string `query:"format" required:"true" enum:"docx,html,md"`
		Version int    `query:"version" minimum:"1" doc:"a version; absent: the newest visible one"`
	},
	) (*huma.StreamResponse, error) {
		c, id, at, err := in.where()
		if err != nil {
			return nil, err
		}
		return f.serveExport(f.app.Artifacts.Export(ctx, c, id, app.ExportQuery{Format: in.Format, Version: in.Version, At: at, Live: in.Live}))
	})

	all := f.op(http.MethodGet, "/conversations/{cid}/export", "export-conversation", "Export a conversation with all branches and all versions of its artifacts", http.StatusOK)
	all.Responses["200"] = &huma.Response{
		Description: "a file for download, which its README.md explains",
		Content:     map[string]*huma.MediaType{"application/zip": binary},
	}
	register(f, all, func(ctx context.Context, in *struct {
		ConversationPath
		Format   string `query:"format" enum:"zip" default:"zip"`
		Language string `header:"Accept-Language" doc:"of the README.md"`
	},
	) (*huma.StreamResponse, error) {
		id, err := in.id()
		if err != nil {
			return nil, err
		}
		return f.serveExport(f.app.Conversations.Export(ctx, id, in.Language))
	})
}

// serveExport streams a file for download. An error before its first byte is a
// problem; a later one aborts the transfer.
func (f *server) serveExport(e app.Exported, err error) (*huma.StreamResponse, error) {
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(hc huma.Context) {
		_, w := humago.Unwrap(hc)
		late := &lateWriter{w: w, header: func(h http.Header) {
			h.Set("Content-Type", e.MediaType)
			h.Set("Content-Security-Policy", "sandbox; default-src 'none'; style-src 'unsafe-inline'")
			h.Set("Content-Disposition", dispositionOf("attachment", e.Filename))
			h.Set("Cache-Control", "private, no-cache")
			if e.Version > 0 {
				h.Set(versionHeader, strconv.Itoa(e.Version))
			}
		}}
		err := e.Write(hc.Context(), late)
		if err == nil {
			_, err = late.Write(nil) // an empty text is a file too
		}
		if err == nil || late.started {
			abortOn(err)
			return
		}
		if p, ok := f.problem(hc.Context(), err).(*Problem); ok {
			writeProblem(w, p)
		}
	}}, nil
}

// A lateWriter sets its headers at the first byte.
type lateWriter struct {
	w       http.ResponseWriter
	header  func(http.Header)
	started bool
}

// Write implements [io.Writer].
func (l *lateWriter) Write(p []byte) (int, error) {
	if !l.started {
		l.started = true
		l.header(l.w.Header())
	}
	return l.w.Write(p)
}
