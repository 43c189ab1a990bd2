// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/internal/fetch"
)

// What a model may have fetched: public addresses, in bounds, as they came.
func TestPutFromTheWeb(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/report.csv":
			w.Header().Set("Content-Type", "text/csv")
			_, _ = io.WriteString(w, "a,b\n1,2\n")
		case "/named":
			w.Header().Set("Content-Disposition", `attachment; filename="../Bild 1.txt"`)
			_, _ = io.WriteString(w, "hello")
		case "/":
			_, _ = io.WriteString(w, "hello")
		case "/large":
			_, _ = io.WriteString(w, strings.Repeat("x", 2<<20))
		case "/broken":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "hello")
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	b := newBench(t, nil, func(c *app.Config) {
		c.Web = fetch.NewClient(fetch.Options{AllowPrivate: true})
		c.Options.Artifacts = artifact.Options{MaxBytes: 1 << 20}
	})
	defer b.config.Web.CloseIdleConnections()
	c := b.conversation()
	put := func(address string) (string, bool) {
		t.Helper()
		args, err := json.Marshal(m{"url": address})
		if err != nil {
			t.Fatal(err)
		}
		r, err := b.Tools.Call(apptest.Context(t), c, "put_artifact", args, app.Target{}, false)
		if err != nil {
			t.Fatalf("%s: %v", address, err)
		}
		return r.Content, !r.IsError
	}
	for path, want := range map[string]string{
		"/report.csv": "<id>report.csv</id>", "/named": "<id>bild_1.txt</id>", "/": "<id>127.0.0.1</id>",
	} {
		if got, ok := put(server.URL + path); !ok || !strings.Contains(got, want) {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got := b.text(c, "report.csv", ""); got != "a,b\n1,2\n" {
		t.Errorf("got %q", got)
	}
	for address, want := range map[string]string{
		server.URL + "/nothing": "404 Not Found", server.URL + "/large": "limit", server.URL + "/broken": "broke off",
		"http://user:secret@127.0.0.1/": "password", "file:///etc/passwd": "not an address", "nonsense": "not an address",
		"http://127.0.0.1:1/": "no answer came",
	} {
		if got, ok := put(address); ok || !strings.Contains(got, want) || strings.Contains(got, "secret") {
			t.Errorf("%s: %s", address, got)
		}
	}

	b.config.Web = fetch.NewClient(fetch.Options{})
	b.App = b.open()
	if got, ok := put(server.URL + "/report.csv"); ok || !strings.Contains(got, "127.0.0.1") {
		t.Errorf("an address of this machine: %s", got)
	}
}
