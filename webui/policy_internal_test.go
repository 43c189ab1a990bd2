// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestPolicyOfCDN lets pictures, sound and film come from one other origin, and
// nothing else.
func TestPolicyOfCDN(t *testing.T) {
	for address, want := range map[string]string{
		"": "", "https://cdn.example/files": " https://cdn.example", "http://127.0.0.1:9000": " http://127.0.0.1:9000", "nonsense": "",
	} {
		if got := origin(address); got != want {
			t.Errorf("%q: got %q, want %q", address, got, want)
		}
		w := httptest.NewRecorder()
		secured(http.NotFoundHandler(), origin(address), " u.example").ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		for directive := range strings.SplitSeq(w.Header().Get("Content-Security-Policy"), ";") {
			name, sources, _ := strings.Cut(strings.TrimSpace(directive), " ")
			media := name == "img-src" || name == "media-src"
			if got := strings.Contains(" "+sources+" ", want+" "); want != "" && got != media {
				t.Errorf("%q: got %s", address, directive)
			}
			if got := strings.Contains(sources, "u.example"); got != (name == "frame-src") {
				t.Errorf("the host for content: got %s", directive)
			}
		}
	}
}
