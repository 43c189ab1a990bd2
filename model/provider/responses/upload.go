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
func (p *Provider) uploader(s model.Service) provider.FileAPI {
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
			return provider.UploadOpenAI(ctx, p.with.HTTP(), provider.Failures{Op: "responses.Upload", Service: s}, p.with.Blobs, m, purpose)
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
	return provider.DropOpenAI(ctx, p.with.HTTP(), provider.Failures{Op: "responses.Drop", Service: s}, name)
}
