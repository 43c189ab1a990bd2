// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/app/health"
	"github.com/artelhq/artel/httpapi"
)

// TestReady: what a server lacks is in a problem; it is alive all the same.
func TestReady(t *testing.T) {
	var causes []health.Cause
	h := httpapi.New(newBench(t, "").app, httpapi.Options{Ready: func(context.Context) []health.Cause { return causes }})
	get := func(path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		return w
	}
	if w := get("/readyz"); w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" {
		t.Errorf("status %d, %v", w.Code, w.Header())
	}
	causes = []health.Cause{{Code: "database", Detail: "it is closed"}, {Code: "disk", Detail: "it is full"}}
	w := get("/readyz")
	var p httpapi.Problem
	if err := json.Unmarshal(w.Body.Bytes(), &p); err != nil {
		t.Fatal(err)
	}
	want := httpapi.Problem{Type: "about:blank", Title: "Service Unavailable", Status: 503, Code: "not_ready", Detail: "it is closed; it is full", Causes: causes}
	if d := cmp.Diff(want, p); d != "" || w.Code != http.StatusServiceUnavailable || w.Header().Get("Content-Type") != "application/problem+json" {
		t.Errorf("status %d, %v: %s", w.Code, w.Header(), d)
	}
	if w := get("/healthz"); w.Code != http.StatusOK {
		t.Errorf("status %d of /healthz", w.Code)
	}
}

// TestOperators: only programs of this machine are operators.
func TestOperators(t *testing.T) {
	h := httpapi.Operators(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }))
	for what, c := range map[string]struct {
		from, host, header string
		want               int
	}{
		"this machine":          {"127.0.0.1:5000", "localhost:7420", "", http.StatusNoContent},
		"this machine, IPv6":    {"[::1]:5000", "[::1]:7420", "", http.StatusNoContent},
		"another machine":       {"192.0.2.1:5000", "localhost:7420", "", http.StatusForbidden},
		"another name":          {"127.0.0.1:5000", "artel.example", "", http.StatusForbidden},
		"a proxy":               {"127.0.0.1:5000", "localhost:7420", "X-Forwarded-For", http.StatusForbidden},
		"a proxy of RFC 7239":   {"127.0.0.1:5000", "localhost:7420", "Forwarded", http.StatusForbidden},
		"an address of nothing": {"", "localhost:7420", "", http.StatusForbidden},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/metrics", nil)
		r.RemoteAddr, r.Host = c.from, c.host
		if c.header != "" {
			r.Header.Set(c.header, "192.0.2.1")
		}
		w := httptest.NewRecorder()
		if h.ServeHTTP(w, r); w.Code != c.want {
			t.Errorf("%s: status %d, want %d", what, w.Code, c.want)
		}
		if c.want == http.StatusForbidden && !strings.Contains(w.Body.String(), "loopback address") {
			t.Errorf("%s: it does not say from where: %s", what, w.Body)
		}
	}
}
