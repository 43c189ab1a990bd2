// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
)

// Decode reads a request. The base64 of images and documents in messages is
// decoded and handed to the sink while it is read; see [provider.Lift].
//
// The error is an [*APIError] for what the client did wrong, else that of r or
// of the sink. Decode does not validate; see [Request.Validate].
func Decode(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	lifting, err := provider.Extract(ctx, r, Payloads, o)
	switch {
	case artel.CodeOf(err) == provider.CodeTextTooLarge:
		return nil, Refused(http.StatusRequestEntityTooLarge, "Request exceeds the maximum size")
	case artel.CodeOf(err) == provider.CodeTooDeep:
		return nil, Bad("", "The request body is not valid JSON: %v", err)
	case err != nil:
		return nil, err
	}
	req := &Request{}
	if err := json.Unmarshal(lifting.JSON(), req); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, Bad(e.Field, "Input should be a valid %s", wanted(e.Type.Kind().String()))
		}
		if errors.Is(err, errContent) {
			return nil, Bad("messages", "Input should be a valid list")
		}
		return nil, Bad("", "The request body is not valid JSON: %v", err)
	}
	req.extraction = lifting
	return req, nil
}

// wanted names a kind of Go value as the API names what it wants.
func wanted(kind string) string {
	switch kind {
	case "int", "int64":
		return "integer"
	case "float64":
		return "number"
	case "bool":
		return "boolean"
	case "slice":
		return "list"
	case "struct", "map":
		return "dictionary"
	}
	return "string"
}

// Payloads is the dialect's [provider.Rule]: the data of base64 sources,
// wherever blocks stand in messages. Arguments of tools are none of its
// business, whatever they look like.
func Payloads(path []string) provider.Encoding {
	n := len(path)
	if n < 6 || path[0] != "messages" || path[n-1] != "data" || path[n-2] != "source" {
		return provider.NoEncoding
	}
	for _, key := range path[1 : n-2] {
		if key != "" && key != "content" && key != "source" {
			return provider.NoEncoding
		}
	}
	return provider.TypedBase64
}

// Extraction returns the request as it came, without its payloads; it is empty
// for a request that was not decoded.
func (r *Request) Extraction() *provider.Extraction {
	if r.extraction == nil {
		return &provider.Extraction{}
	}
	return r.extraction
}

// payload returns the bytes of a base64 source, lifted or not.
func (r *Request) payload(s *Source) provider.Payload { return r.Extraction().Base64(s.Data) }
