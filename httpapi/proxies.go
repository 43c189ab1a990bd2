// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net/http"

	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/peer"
)

// FromProxies gives next the client of each request as trusted proxies report it (see
// [peer.Of]), whose address acts in the audit log have, and requests below prefix
// without it, which redirects get again. It stands before all handlers that look at the path.
func FromProxies(next http.Handler, trusted peer.Trusted, prefix string) http.Handler {
	if len(trusted) == 0 && prefix == "" {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if prefix != "" && r.URL.Path == prefix {
			http.Redirect(w, r, prefix+"/", http.StatusPermanentRedirect)
			return
		}
		direct := peer.Of(r)
		p := trusted.Read(r)
		p.Prefix = prefix
		if p != direct {
			r = peer.With(r, p)
		}
		if p.Address != direct.Address {
			r = r.WithContext(audit.WithAddress(r.Context(), p.Address))
		}
		if prefix != "" {
			w, r = &below{ResponseWriter: w, prefix: prefix}, peer.Strip(r, prefix)
		}
		next.ServeHTTP(w, r)
	})
}
