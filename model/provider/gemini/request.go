// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
)

// Decode reads a request; the caller sets its Model and Stream, which the
// address says. The base64 of inline data is lifted out while it is read; see
// [provider.Lift]. Fields are read under both of their names, functionCall and
// function_call.
//
// The error is an [*APIError] for what the client did wrong, else that of r or
// of the sink. Decode does not validate; see [Request.Validate].
func Decode(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	req := &Request{}
	if err := decode(ctx, r, o, "GenerateContentRequest", req, req); err != nil {
		return nil, err
	}
	return req, nil
}

// DecodeCount is [Decode] for the body of :countTokens: contents alone, or a
// whole request under generateContentRequest.
func DecodeCount(ctx context.Context, r io.Reader, o provider.DecodeOptions) (*Request, error) {
	var body struct {
		Contents []Content `json:"contents"`
		Whole    *Request  `json:"generateContentRequest"`
	}
	req := &Request{}
	if err := decode(ctx, r, o, "CountTokensRequest", &body, req); err != nil {
		return nil, err
	}
	if body.Whole != nil {
		body.Whole.extraction, body.Whole.unknown = req.extraction, req.unknown
		return body.Whole, nil
	}
	req.Contents = body.Contents
	return req, nil
}

// decode reads a message of a kind into out, and what goes with it into req.
func decode(ctx context.Context, r io.Reader, o provider.DecodeOptions, kind string, out any, req *Request) error {
	lifting, err := provider.Extract(ctx, r, Payloads, o)
	switch {
	case artel.CodeOf(err) == provider.CodeTextTooLarge:
		limit := o.MaxText
		if limit <= 0 {
			limit = 32 << 20
		}
		return Fail(http.StatusRequestEntityTooLarge, "Request payload size exceeds the limit: %d bytes.", limit)
	case artel.CodeOf(err) == provider.CodeTooDeep:
		return Bad("Invalid JSON payload received. Message too deep. Max recursion depth reached for key 'parts'")
	case err != nil:
		return err
	}
	text := bytes.TrimSpace(lifting.JSON())
	switch {
	case !json.Valid(text):
		return Bad("Invalid JSON payload received. %s", syntax(text))
	case text[0] != '{':
		return Bad("Invalid JSON payload received. Unknown name \"\": Root element must be a message.")
	}
	var read reading
	normal := read.message(text, kind, "")
	if len(read.wrong) > 0 {
		return Violated(read.wrong)
	}
	if err := json.Unmarshal(normal, out); err != nil {
		return Bad("Invalid JSON payload received. %v", err)
	}
	req.extraction, req.unknown = lifting, read.unknown
	return nil
}

func syntax(text []byte) string {
	var v any
	if err := json.Unmarshal(text, &v); err != nil {
		return err.Error()
	}
	return "It is empty."
}

// Payloads is the dialect's [provider.Rule].
func Payloads(path []string) provider.Encoding {
	at := make([]string, 0, 9)
	for _, key := range path {
		if key != "" { // lists are optional around a single element
			at = append(at, key)
		}
	}
	if len(at) > 0 && is(at[0], "generateContentRequest") { // to be counted
		at = at[1:]
	}
	if len(at) < 4 || at[len(at)-1] != "data" || !is(at[len(at)-2], "inlineData") {
		return provider.NoEncoding
	}
	switch at = at[:len(at)-2]; {
	case len(at) == 2 && (at[0] == "contents" || is(at[0], "systemInstruction")) && at[1] == "parts",
		len(at) == 4 && at[0] == "contents" && at[1] == "parts" && is(at[2], "functionResponse") && at[3] == "parts":
		return provider.WebBase64
	}
	return provider.NoEncoding
}

// is reports whether key is one of the two names of a field.
func is(key, name string) bool {
	return key == name || strings.Contains(key, "_") && key == snake(name)
}

// Extraction returns what Decode took out of the request, and the JSON without
// it.
func (r *Request) Extraction() *provider.Extraction {
	if r.extraction == nil {
		return &provider.Extraction{}
	}
	return r.extraction
}

// Unknown says which fields of the request the API does not know, in the
// API's own words.
func (r *Request) Unknown() []string {
	var out []string
	for _, v := range r.unknown {
		out = append(out, v.Description)
	}
	return out
}

// UnknownFields returns the error with which the API refuses the fields of the
// request that it does not know; nil: there are none.
func (r *Request) UnknownFields() error {
	if len(r.unknown) == 0 {
		return nil
	}
	return Violated(r.unknown)
}
