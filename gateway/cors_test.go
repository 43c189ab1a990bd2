// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/httpapi"
)

// TestOrigins: pages of the configured origins may call the gateway, and nothing else;
// others may not, and the host is checked all the same.
func TestOrigins(t *testing.T) {
	b := newBench(t)
	origins := gateway.Origins{"https://app.example"}
	h := apptest.As(httpapi.GuardAllowing(httpapi.Inert(gateway.New(b.app, gateway.Options{Origins: origins})), origins.Allow))
	for _, c := range []struct {
		name, method, path, origin, host string
		want                             int
		allowed                          string
	}{
		{"preflight", "OPTIONS", "/v1/chat/completions", "https://app.example", "localhost", 204, "https://app.example"},
		{"request", "GET", "/v1/models", "https://app.example", "localhost", 200, "https://app.example"},
		{"error", "POST", "/v1/chat/completions", "https://app.example", "localhost", 400, "https://app.example"},
		{"other origin", "OPTIONS", "/v1/chat/completions", "https://evil.example", "localhost", 403, ""},
		{"other origin's request", "GET", "/v1/models", "https://evil.example", "localhost", 403, ""},
		{"other path", "OPTIONS", "/api/v1/services", "https://app.example", "localhost", 403, ""},
		{"other host", "GET", "/v1/models", "https://app.example", "evil.example", 403, ""},
		{"no origin", "GET", "/v1/models", "", "localhost", 200, ""},
	} {
		r := httptest.NewRequest(c.method, "http://"+c.host+c.path, strings.NewReader("{}"))
		r.Header.Set("Sec-Fetch-Dest", "empty")
		if c.origin != "" {
			r.Header.Set("Origin", c.origin)
			r.Header.Set("Sec-Fetch-Site", "cross-site")
		}
		if c.method == http.MethodOptions {
			r.Header.Set("Access-Control-Request-Method", "POST")
			r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,x-stainless-os")
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Header()
		if w.Code != c.want || got.Get("Access-Control-Allow-Origin") != c.allowed || got.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: %d %v", c.name, w.Code, got)
		}
		if c.want == 204 && got.Get("Access-Control-Allow-Headers") != "authorization,content-type,x-stainless-os" {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}
