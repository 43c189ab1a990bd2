// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"io"
	"net/http"
	"strings"

	"github.com/artelhq/artel/app/health"
)

// readiness answers whether the server can do its work.
func readiness(ready func(context.Context) []health.Cause) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var causes []health.Cause
		if ready != nil {
			causes = ready(r.Context())
		}
		w.Header().Set("Cache-Control", "no-store")
		if len(causes) == 0 {
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, `{"status":"ready"}`+"\n")
			return
		}
		details := make([]string, len(causes))
		for i, c := range causes {
			details[i] = c.Detail
		}
		p := newProblem(http.StatusServiceUnavailable, "not_ready", strings.Join(details, "; "))
		p.Causes = causes
		writeProblem(w, p)
	}
}
