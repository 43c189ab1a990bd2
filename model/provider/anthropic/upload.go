// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// uploader sends files for the service s to the Files API, which needs no beta
// header anymore.
//
// Source: "Files" of the API's reference.
func (p *Provider) uploader(s model.Service) provider.FileAPI {
	takes := func(mediaType string, _ bool) bool {
		return mediaType == "application/pdf" || slices.Contains(imageTypes(), mediaType)
	}
	return provider.FileAPI{
		Takes: takes, Fetches: takes,
		Upload: func(ctx context.Context, m artel.Media) (string, time.Time, error) {
			f := provider.Failures{Op: "anthropic.Upload", Service: s}
			until := time.Now().Add(provider.UploadLifetime)
			body, contentType, err := provider.FileForm(p.with.Blobs, m, [2]string{"expires_in_seconds", strconv.Itoa(int(provider.UploadLifetime.Seconds()))})
			if err != nil {
				return "", until, f.Refuse(artel.Invalid, "the form of the upload cannot be written: %w", err)
			}
			resp, err := p.post(ctx, f, "/files", body, "application/json", http.Header{"Content-Type": {contentType}})
			if err != nil {
				return "", until, err
			}
			var file struct {
				ID string `json:"id"`
			}
			err = provider.ReadUpload(ctx, f, resp, &file)
			return file.ID, until, err
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
	h := http.Header{VersionHeader: {Version}}
	if key := s.APIKey.Reveal(); key != "" {
		h.Set("X-Api-Key", key)
	}
	return provider.DeleteFile(ctx, p.with.HTTP(), provider.Failures{Op: "anthropic.Drop", Service: s}, endpoint(s.BaseURL)+"/files/"+url.PathEscape(name), h)
}
