// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// Options are the dependencies of a provider.
type Options = provider.Options

// A Provider calls servers of the dialect.
type Provider struct{ provider.Client }

// New returns the provider of the dialect. It is safe for concurrent use.
func New(o Options) *Provider {
	return &Provider{provider.NewClient(o, provider.Dialect{
		Name: "responses", Encode: Encode, Header: provider.BearerKey, Files: files, ToolNames: toolNames(),
		Reader:   func(w provider.DeltaWriter) func(io.Reader) error { return (&reader{DeltaWriter: w}).read },
		URL:      func(s *model.Service, _ bool) string { return provider.Endpoint(s, "/responses") },
		FilesURL: func(s *model.Service) string { return provider.Endpoint(s, "/files") },
	})}
}

// toolNames are the API's rules on the names of tools.
func toolNames() provider.ToolNames { return provider.ToolNames{Max: maxName, Also: "-"} }

// files describes the Files API, which takes pictures and documents.
func files(c *provider.Client, s *model.Service) provider.FileAPI {
	takes := func(mediaType string, _ bool) bool {
		return strings.HasPrefix(mediaType, "image/") || fileType(mediaType)
	}
	return provider.FileAPI{
		Takes: takes, Fetches: takes,
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			purpose := "user_data"
			if strings.HasPrefix(m.MediaType, "image/") {
				purpose = "vision"
			}
			f := provider.Failures{Op: "responses.Upload", Service: s}
			return c.UploadForm(ctx, f, m, provider.OpenAIUpload(purpose)...)
		},
	}
}
