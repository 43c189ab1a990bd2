// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"net"
	"net/http"
	"net/netip"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/store"
)

// Operators lets only requests pass that come from a loopback address and not through a
// proxy, or with the scope admin. It guards what is the business of operators and has no owner.
func Operators(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a, _ := access.Of(r.Context())
		if !isLocal(r) && (a.Token+a.Session == "" || !a.May(store.ScopeAdmin)) {
			writeProblem(w, newProblem(http.StatusForbidden, string(artel.Denied), r.URL.Path+" is for operators: ask from a loopback address such as 127.0.0.1 or localhost on the machine of the server, without a proxy, or with a token of the scope admin"))
			return
		}
		next.ServeHTTP(w, r)
	})
}

// isLocal reports whether a program on this machine sent r itself. A proxy on
// this machine says that it passes on the request of another, trusted or not.
func isLocal(r *http.Request) bool {
	if peer.IsForwarded(r) {
		return false
	}
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Unmap().IsLoopback() && knownHost(r.Host, nil)
}
