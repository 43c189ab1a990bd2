// SPDX-License-Identifier: Apache-2.0

package model

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"
)

// ExtraFields change the requests of one service beyond its dialect.
type ExtraFields struct {
	// Header holds fields that every request to the service has, by their canonical
	// names. They replace those of the dialect, such as the key.
	Header map[string]Secret
	// Body is a JSON object that is merged into the body of each request for an answer,
	// as a JSON merge patch (RFC 7396); nil: none.
	Body json.RawMessage
	// Forwarded are the names of the fields of a client's header that the gateway sends
	// to the service, canonical; one may end with an asterisk, for any characters.
	Forwarded []string
}

func (x ExtraFields) clone() ExtraFields {
	return ExtraFields{maps.Clone(x.Header), slices.Clone(x.Body), slices.Clone(x.Forwarded)}
}

// Forwards reports whether a field of a client's header, by its canonical name, is
// sent to the service.
func (x ExtraFields) Forwards(name string) bool {
	return slices.ContainsFunc(x.Forwarded, func(pattern string) bool {
		head, open := strings.CutSuffix(pattern, "*")
		return pattern == name || open && strings.HasPrefix(name, head)
	})
}

// extras reads headers, body and forward_headers.
func (e *entry) extras(getenv func(string) string) ExtraFields {
	var x ExtraFields
	if h, ok := e.object("headers"); ok {
		x.Header = map[string]Secret{}
		for _, name := range slices.Sorted(maps.Keys(h.fields)) {
			value := h.secret(name, getenv)
			if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value.Reveal()) {
				h.mistyped(name, wantHeader)
				continue
			}
			if value == "" {
				continue // it is reported already
			}
			x.Header[http.CanonicalHeaderKey(name)] = value
		}
		h.rest()
	}
	if b, ok := e.object("body"); ok {
		body, err := json.Marshal(b.fields)
		if err != nil {
			e.mistyped("body", wantObject)
		} else if len(b.fields) > 0 {
			x.Body = body
		}
	}
	for _, name := range e.texts("forward_headers") {
		if !httpguts.ValidHeaderFieldName(strings.TrimSuffix(name, "*")) {
			e.mistyped("forward_headers", wantHeader)
			continue
		}
		x.Forwarded = append(x.Forwarded, http.CanonicalHeaderKey(name))
	}
	return x
}
