// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// uploader sends files for the service s.
func (p *Provider) uploader(s model.Service) provider.Uploader {
	takes := func(mediaType string, _ bool) bool {
		return strings.HasPrefix(mediaType, "image/") || fileType(mediaType)
	}
	return provider.Uploader{
		Takes: takes, Fetches: takes,
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			purpose := "user_data"
			if strings.HasPrefix(m.MediaType, "image/") {
				purpose = "vision"
			}
			return provider.UploadOpenAI(ctx, p.with.HTTP(), provider.Failures{Op: "responses.Upload", Service: s}, p.with.Blobs, m, purpose)
		},
	}
}

// Hold implements [provider.Holder].
func (p *Provider) Hold(ctx context.Context, r *model.Request, send func(*model.Request) (*http.Response, error)) (*http.Response, error) {
	up := p.uploader(r.Service)
	up.Written = true
	return p.with.Held.Send(ctx, r, up, send)
}

// Drop implements [provider.Dropper].
func (p *Provider) Drop(ctx context.Context, s model.Service, name string) error {
	return provider.DropOpenAI(ctx, p.with.HTTP(), provider.Failures{Op: "responses.Drop", Service: s}, name)
}
