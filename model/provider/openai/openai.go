// SPDX-License-Identifier: Apache-2.0

package openai

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

var _ model.Transcriber = (*Provider)(nil)

// New returns the provider of the dialect. It is safe for concurrent use.
func New(o Options) *Provider {
	return &Provider{provider.NewClient(o, provider.Dialect{
		Name: "openai", Encode: Encode, Header: provider.BearerKey, Files: files, ToolNames: toolNames(),
		Reader:   func(w provider.DeltaWriter) func(io.Reader) error { return (&reader{DeltaWriter: w}).read },
		URL:      func(s *model.Service, _ bool) string { return provider.Endpoint(s, "/chat/completions") },
		FilesURL: func(s *model.Service) string { return provider.Endpoint(s, "/files") },
	})}
}

// toolNames are the API's rules on the names of tools.
func toolNames() provider.ToolNames { return provider.ToolNames{Max: MaxName, Also: "-"} }

// files describes the Files API. Chat Completions takes PDF by its id and pictures
// by their address, and nothing else.
func files(c *provider.Client, s *model.Service) provider.FileAPI {
	return provider.FileAPI{
		Takes: func(mediaType string, _ bool) bool { return mediaType == "application/pdf" },
		Fetches: func(mediaType string, _ bool) bool {
			return strings.HasPrefix(mediaType, "image/") && !s.Quirks().NoURLs
		},
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			f := provider.Failures{Op: "openai.Upload", Service: s}
			return c.UploadForm(ctx, f, m, provider.OpenAIUpload("user_data")...)
		},
	}
}
