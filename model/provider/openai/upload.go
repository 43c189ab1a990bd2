// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// uploader sends files for the service s. Chat Completions takes PDF by its
// id and pictures by their address, and nothing else.
func (p *Provider) uploader(s model.Service) provider.FileAPI {
	return provider.FileAPI{
		Takes: func(mediaType string, _ bool) bool { return mediaType == "application/pdf" },
		Fetches: func(mediaType string, _ bool) bool {
			return strings.HasPrefix(mediaType, "image/") && !s.Quirks().NoURLs
		},
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			return provider.UploadOpenAI(ctx, p.with.HTTP(), provider.Failures{Op: "openai.Upload", Service: s}, p.with.Blobs, m, "user_data")
		},
	}
}

// SendWithUploads implements [provider.Holder].
func (p *Provider) SendWithUploads(ctx context.Context, r *model.Request, send func(*model.Request) (*http.Response, error)) (*http.Response, error) {
	up := p.uploader(r.Service)
	up.Written = true
	return p.with.Uploads.Send(ctx, r, up, send)
}

// DeleteFile implements [provider.Dropper].
func (p *Provider) DeleteFile(ctx context.Context, s model.Service, name string) error {
	return provider.DropOpenAI(ctx, p.with.HTTP(), provider.Failures{Op: "openai.Drop", Service: s}, name)
}
