// SPDX-License-Identifier: Apache-2.0

package audit_test

import (
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestRecord(t *testing.T) {
	now := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	l := audit.New(rowstest.Open(t), func() time.Time { return now })
	ctx := audit.WithAddress(artel.WithOwner(t.Context(), "ann"), "192.0.2.7")
	for _, a := range []audit.Act{
		{Action: audit.ConversationDeleted, Target: "cnv_1"},
		{Action: audit.PermissionDecided, Target: strings.Repeat("中", 300) + "\xff", Detail: "allow", Actor: "bob"},
	} {
		if err := l.Add(ctx, a); err != nil {
			t.Fatal(err)
		}
	}
	got, _, err := l.List(t.Context(), store.AuditQuery{})
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v, %v", got, err)
	}
	if n := utf8.RuneCountInString(got[0].Target); n > 200 || !utf8.ValidString(got[0].Target) {
		t.Errorf("a target of %d code points, valid %t", n, utf8.ValidString(got[0].Target))
	}
	got[0].Target = ""
	want := []store.AuditEntry{
		{Number: 2, Time: now, Actor: "bob", Action: "permission_decided", Detail: "allow", Address: "192.0.2.7"},
		{Number: 1, Time: now, Actor: "ann", Action: "conversation_deleted", Target: "cnv_1", Address: "192.0.2.7"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	now = now.Add(audit.Retention)
	if n, err := l.Prune(t.Context()); n != 0 || err != nil {
		t.Errorf("pruned %d, %v before their time", n, err)
	}
	now = now.Add(time.Second)
	if n, err := l.Prune(t.Context()); n != 2 || err != nil {
		t.Errorf("pruned %d, %v; want both", n, err)
	}
}
