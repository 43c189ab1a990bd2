// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
)

// TestExportBreaks: what fails before the first byte is a problem and no file,
// and what fails after it is no whole file for anybody.
func TestExportBreaks(t *testing.T) {
	f := &server{o: Options{Log: slog.New(slog.DiscardHandler)}}
	gone := artel.Errorf(artel.Unavailable, "test", "", "the disk is gone")
	for name, tt := range map[string]struct {
		first  string
		err    error
		status int
		code   string
	}{
		"at once":      {"", gone, 503, `"code":"unavailable"`},
		"our fault":    {"", errors.New("secret"), 500, "internal error"},
		"in the midst": {"PK", gone, 0, ""},
		"not at all":   {"PK", nil, 200, "PK"},
		"empty":        {"", nil, 200, ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := httptest.NewRecorder()
			hc := humago.NewContext(&huma.Operation{}, httptest.NewRequest(http.MethodGet, "/", nil), w)
			stream, err := f.serveExport(app.Exported{Filename: "a.zip", MediaType: "application/zip", Write: func(_ context.Context, w io.Writer) error {
				if tt.first != "" {
					_, _ = io.WriteString(w, tt.first)
				}
				return tt.err
			}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if p := recover(); (p == http.ErrAbortHandler) != (tt.status == 0) {
					t.Errorf("got panic %v", p)
				}
			}()
			stream.Body(hc)
			if w.Code != tt.status || !strings.Contains(w.Body.String(), tt.code) || strings.Contains(w.Body.String(), "secret") {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if offered := w.Header().Get("Content-Disposition") != ""; offered != (tt.status == 200) {
				t.Errorf("headers %v", w.Header())
			}
		})
	}
}
