// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/provider"
)

// uploader sends files for the service s.
func (p *Provider) uploader(s model.Service) provider.Uploader {
	return provider.Uploader{
		Takes: func(mediaType string, _ bool) bool {
			return strings.HasPrefix(mediaType, "image/") || fileType(mediaType)
		},
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			purpose := "user_data"
			if strings.HasPrefix(m.MediaType, "image/") {
				purpose = "vision"
			}
			return provider.UploadOpenAI(ctx, p.with.HTTP(), provider.Failures{Op: "responses.Upload", Service: s}, p.with.Blobs, m, purpose)
		},
	}
}
