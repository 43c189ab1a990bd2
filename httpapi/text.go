// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
)

// A TextView is the readable text of a version.
type TextView struct {
	Text      string         `json:"text"`
	MediaType string         `json:"media_type" doc:"of the text: text/markdown where it was taken out of a document, a page or a table, else that of the artifact"`
	Derived   bool           `json:"derived" doc:"the text was taken out of the bytes; false: it is the artifact's own"`
	Pages     int            `json:"pages" doc:"pages, slides, sheets or chapters of the document; 0: it has none or does not say"`
	Cut       bool           `json:"cut" doc:"a limit ended the text before the document did"`
	LeftOut   map[string]int `json:"left_out" doc:"how many of what, as pictures or charts, cannot be said in text"`
	Version   int            `json:"version" doc:"the version whose text it is"`
	Digest    artel.Digest   `json:"digest" doc:"of the bytes of that version"`
}

const markdownType = "text/markdown"

func (f *server) texts() {
	op := f.op(http.MethodGet, artifactPath+"/text", "read-text", "Read the text of an artifact, which of a document is taken out of its bytes as Markdown", http.StatusOK)
	op.Responses["200"] = &huma.Response{
		Description: "the text and what is known about it, or with Accept: " + markdownType + " or format=text the text alone",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: f.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[TextView](), true, "TextView")},
			markdownType:       {Schema: &huma.Schema{Type: huma.TypeString}},
			"text/plain":       {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}
	register(f, op, func(ctx context.Context, in *struct {
		ArtifactAt
		Version int    `query:"version" minimum:"1" doc:"a visible version; absent: the artifact as it is now"`
		Format  string `query:"format" enum:"json,text" doc:"in the place of Accept"`
		Accept  string `header:"Accept"`
	},
	) (*huma.StreamResponse, error) {
		c, id, at, err := in.where()
		if err != nil {
			return nil, err
		}
		d, err := f.app.Artifacts.Text(ctx, c, id, in.Version, at)
		if err != nil {
			return nil, err
		}
		alone := in.Format == "text" || in.Format == "" && strings.Contains(in.Accept, markdownType)
		return &huma.StreamResponse{Body: func(hc huma.Context) {
			hc.AppendHeader("Vary", "Accept")
			if alone {
				// Other types, which a browser might run, are sent as plain text.
				kind := "text/plain"
				if d.MediaType == markdownType {
					kind = markdownType
				}
				hc.SetHeader("X-Content-Type-Options", "nosniff")
				sendText(hc, kind, d.Text)
				return
			}
			left := make(map[string]int, len(d.LeftOut))
			for what, n := range d.LeftOut {
				left[string(what)] = n
			}
			sendJSON(hc, TextView{
				Text: d.Text, MediaType: d.MediaType, Derived: d.Made, Pages: d.Pages, Cut: d.Cut, LeftOut: left,
				Version: d.Version.Number, Digest: d.Version.Digest,
			})
		}}, nil
	})
}
