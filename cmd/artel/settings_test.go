// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// TestSettingsImport: what an import changes is told; with --dry-run it is all
// that happens, and else what is replaced is what was compared.
func TestSettingsImport(t *testing.T) {
	t.Parallel()
	var asked []string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = append(asked, fmt.Sprint(r.Method, " ", r.URL.Path, " ", r.Header.Get("If-Match"), " ", string(body)))
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodPost {
			fmt.Fprint(w, `{"etag":"\"t1\"","changes":[{"area":"profile","name":"name","change":"changed","was":"Ada","is":"Eve"},
				{"area":"agent","name":"nobody","processor":"merge-roles","change":"added","is":{"enabled":false},"unknown":true}]}`)
			return
		}
		fmt.Fprint(w, `{"version":1}`)
	}))
	defer s.Close()
	for _, tt := range []struct {
		args  []string
		asked []string
		end   string
	}{
		{[]string{"--dry-run"}, []string{`POST /api/v1/settings/compare  {"version":1}`}, "2 changes, none of them made"},
		{nil, []string{`POST /api/v1/settings/compare  {"version":1}`, `PUT /api/v1/settings "t1" {"version":1}`}, "imported, 2 changes"},
		{[]string{"--if-match", `"t0"`}, []string{`POST /api/v1/settings/compare  {"version":1}`, `PUT /api/v1/settings "t0" {"version":1}`}, "imported, 2 changes"},
	} {
		asked = nil
		var out bytes.Buffer
		root := newRoot()
		root.SetOut(&out)
		root.SetIn(strings.NewReader(`{"version":1}`))
		root.SetArgs(append([]string{"settings", "import", "-", "--server", s.URL}, tt.args...))
		if err := root.ExecuteContext(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(asked, tt.asked) {
			t.Errorf("%v: it asked %q, want %q", tt.args, asked, tt.asked)
		}
		said := strings.Join(strings.Fields(out.String()), " ")
		for _, want := range []string{`changed profile name - "Ada" + "Eve"`, `added agent nobody: merge-roles (not known here) + {"enabled":false}`, tt.end} {
			if !strings.Contains(said, want) {
				t.Errorf("%v: it says %q, want %q", tt.args, said, want)
			}
		}
	}
}
