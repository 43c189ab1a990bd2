// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/csv"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/store"
)

// TestAudit: the log is read in pages and as CSV, by operators alone.
func TestAudit(t *testing.T) {
	b := newBench(t, "")
	h := httpapi.New(b.app, httpapi.Options{})
	ctx := audit.WithAddress(artel.WithOwner(t.Context(), "ann"), "192.0.2.1")
	for _, target := range []string{"cnv_1", "=1+1", "cnv_3"} {
		if err := b.app.Audit.Add(ctx, audit.Act{Action: audit.ConversationDeleted, Target: target}); err != nil {
			t.Fatal(err)
		}
	}
	operator := access.Operator()
	get := func(query string, a *access.Actor) *httptest.ResponseRecorder {
		ctx := artel.WithOwner(t.Context(), "ann")
		if a != nil {
			ctx = access.With(ctx, *a)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, httpapi.Base+"/audit"+query, nil))
		return w
	}
	var targets []string
	for cursor := ""; ; {
		w := get("?limit=2&actor=ann&action=conversation_deleted&cursor="+cursor, &operator)
		var page httpapi.List[httpapi.AuditEntry]
		if err := json.Unmarshal(w.Body.Bytes(), &page); err != nil || w.Code != http.StatusOK || len(page.Items) > 2 {
			t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
		}
		for _, e := range page.Items {
			targets = append(targets, e.Target)
			if e.Actor != "ann" || e.Address != "192.0.2.1" {
				t.Errorf("got %+v", e)
			}
		}
		if cursor = page.Next; cursor == "" {
			break
		}
	}
	if d := cmp.Diff([]string{"cnv_3", "=1+1", "cnv_1"}, targets); d != "" {
		t.Error(d)
	}
	w := get("/export?actor=ann", &operator)
	rows, err := csv.NewReader(w.Body).ReadAll()
	if err != nil || len(rows) != 4 || strings.Join(rows[0], " ") != "n time actor action target detail address" || rows[2][4] != "'=1+1" {
		t.Errorf("%v, %v", rows, err)
	}
	if list := get("", &operator).Body.String(); !strings.Contains(list, `"audit_exported"`) {
		t.Error("the export is not in the log: " + list)
	}
	member := access.Actor{Owner: "ann", Role: store.Member}
	for what, c := range map[string]struct {
		query string
		actor *access.Actor
		want  int
	}{
		"a member":            {"", &member, http.StatusForbidden},
		"a member's export":   {"/export", &member, http.StatusForbidden},
		"no actor":            {"", nil, http.StatusUnauthorized},
		"an unknown action":   {"?action=x", &operator, http.StatusUnprocessableEntity},
		"one in the export":   {"/export?action=x", &operator, http.StatusUnprocessableEntity},
		"a time that is none": {"?since=yesterday", &operator, http.StatusUnprocessableEntity},
	} {
		if w := get(c.query, c.actor); w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", what, w.Code, c.want, w.Body)
		}
	}
}
