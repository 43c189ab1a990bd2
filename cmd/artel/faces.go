// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"strings"

	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/gateway/mcpserver"
	"github.com/artelhq/artel/gateway/mcpwrapped"
	"github.com/artelhq/artel/httpapi"
)

// faces are the handlers of a server. They are not routed by a ServeMux, because
// that redirects unclean paths itself, without a problem document.
type faces struct {
	gateway, api, mcp, wrapped, metrics, page http.Handler
}

// Names of the faces, for metrics.
const (
	gatewayFace = "gateway"
	apiFace     = "api"
	mcpFace     = "mcp"
	metricsFace = "metrics"
	pageFace    = "page"
)

// faceOf returns the name of the face that answers r.
func faceOf(r *http.Request) string {
	switch p := r.URL.Path; {
	case p == httpapi.DocsPath:
		return pageFace
	case gateway.Serves(r):
		return gatewayFace
	case strings.HasPrefix(p, httpapi.Base+"/"), p == "/healthz", p == "/readyz":
		return apiFace
	case mcpserver.Serves(r):
		return mcpFace
	case p == "/metrics":
		return metricsFace
	}
	return pageFace
}

// ServeHTTP implements [http.Handler].
func (f faces) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch faceOf(r) {
	case gatewayFace:
		f.gateway.ServeHTTP(w, r)
	case apiFace:
		f.api.ServeHTTP(w, r)
	case mcpFace:
		if mcpwrapped.Serves(r) {
			f.wrapped.ServeHTTP(w, r)
			return
		}
		f.mcp.ServeHTTP(w, r)
	case metricsFace:
		f.metrics.ServeHTTP(w, r)
	default:
		f.page.ServeHTTP(w, r)
	}
}
