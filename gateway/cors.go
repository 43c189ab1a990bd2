// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"slices"
	"strings"
)

// Origins are the origins whose pages may call the gateway from a browser, such as
// https://app.example; "*" stands for all.
type Origins []string

// Allow reports whether a request to the gateway comes from a page of one of the
// origins.
func (o Origins) Allow(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	return origin != "" && (slices.Contains(o, origin) || slices.Contains(o, "*")) && Serves(r)
}

// serve answers a preflight request and adds the headers by which a browser lets the
// page read the answer (Fetch standard, section 3.2). It reports whether it has
// answered. Requests carry their key in a header of their own: cookies are not allowed.
func (o Origins) serve(w http.ResponseWriter, r *http.Request) bool {
	if !o.Allow(r) {
		return false
	}
	h := w.Header()
	h.Add("Vary", "Origin")
	h.Set("Access-Control-Allow-Origin", r.Header.Get("Origin"))
	h.Set("Access-Control-Expose-Headers", "*")
	h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}
	h.Set("Access-Control-Allow-Methods", "GET, POST, DELETE")
	if asked := strings.TrimSpace(r.Header.Get("Access-Control-Request-Headers")); asked != "" {
		h.Set("Access-Control-Allow-Headers", asked) // * would not include Authorization
	}
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" {
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
	h.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}
