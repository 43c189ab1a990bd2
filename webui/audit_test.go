// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/phrase"
)

// TestAuditPage: the page lists acts in words, filters them, and leads to the same
// entries as CSV.
func TestAuditPage(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{})
	get := func(path string, status int) string {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", "text/html")
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != status {
			t.Fatalf("%s: %s %v\n%s", path, resp.Status, err, b)
		}
		return string(b)
	}
	if page := get("/audit", 200); !strings.Contains(page, phrase.English.Say(phrase.PageAuditNone, nil)) {
		t.Error("the page of an empty log has entries")
	}
	get("/api/v1/audit/export", 200)
	page := get("/audit?action=audit_exported&since=2020-01-02&until=2030-01-02", 200)
	for _, want := range []string{"<td>exported the audit log</td>", "/api/v1/audit/export?action=audit_exported&amp;since=2020-01-0", `value="2030-01-02"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	if page := get("/audit?action=logged_in", 200); strings.Contains(page, "<td>exported the audit log</td>") {
		t.Error("the filter has no effect")
	}
	get("/audit?action=nothing", 422)
	get("/audit?since=yesterday", 422)
	if !strings.Contains(get("/settings", 200), `href="/audit"`) {
		t.Error("the settings do not lead to the page")
	}
}

// Every action has a phrase in both languages.
func TestAuditPhrases(t *testing.T) {
	t.Parallel()
	for _, a := range audit.Actions() {
		key := phrase.Key("page.audit_did_" + string(a))
		for _, l := range phrase.Locales() {
			if l.Say(key, nil) == string(key) {
				t.Errorf("%s has no text in %s", key, l)
			}
		}
	}
}
