// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"io"
	"strings"

	"github.com/artelhq/artel/model/provider"
)

// Decode reads a request. The base64 of images, files and recordings in
// messages is lifted out while it is read; see [provider.Lift].
//
// The error is an [*APIError] for what the client did wrong, else that of r or
// of the sink. Decode does not validate; see [Request.Validate].
func Decode(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	req := &Request{}
	extraction, err := provider.DecodeOpenAI(ctx, r, Payloads, o, req)
	if err != nil {
		return nil, err
	}
	req.extraction = extraction
	return req, nil
}

// Payloads is the dialect's [provider.Rule].
func Payloads(path []string) provider.Encoding {
	if len(path) < 5 || path[0] != "messages" || path[2] != "content" {
		return provider.NoEncoding
	}
	switch strings.Join(path[4:], ".") {
	case "input_audio.data":
		return provider.PlainBase64
	case "image_url.url", "image_url", "file.file_data", "video_url.url":
		return provider.DataURL
	}
	return provider.NoEncoding
}

// Extraction returns what Decode took out of the request, and the JSON without
// it.
func (r *Request) Extraction() *provider.Extraction {
	if r.extraction == nil {
		return &provider.Extraction{}
	}
	return r.extraction
}
