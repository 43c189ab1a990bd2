// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
)

// Decode reads a request. The base64 of images, files and recordings in
// messages is lifted out while it is read; see [provider.Lift].
//
// The error is an [*APIError] for what the client did wrong, else that of r or
// of the sink. Decode does not validate; see [Request.Validate].
func Decode(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	lifting, err := provider.Extract(ctx, r, Payloads, o)
	switch {
	case artel.CodeOf(err) == provider.CodeTextTooLarge:
		return nil, large("", "The request is too large: "+err.Error()+".")
	case artel.CodeOf(err) == provider.CodeTooDeep:
		return nil, unparsed(err)
	case err != nil:
		return nil, err
	}
	req := &Request{}
	if err := json.Unmarshal(lifting.JSON(), req); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, Bad(e.Field, "invalid_type", "Invalid type for '%s': got %s instead.", e.Field, e.Value)
		}
		return nil, unparsed(err)
	}
	req.extraction = lifting
	return req, nil
}

func unparsed(err error) *APIError {
	return Bad("", "", "We could not parse the JSON body of your request. (%v)", err)
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

func large(at, message string) *APIError {
	e := Bad(at, "request_too_large", "%s", message)
	e.Status = http.StatusRequestEntityTooLarge
	return e
}
