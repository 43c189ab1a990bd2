// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// TestAudit: what is decided, exported and deleted is in the audit log, with who
// did it and from where; what failed is not.
func TestAudit(t *testing.T) {
	b := newBench(t, play(t, `-- turn 1 --
@call create_artifact {"id": "a", "title": "A", "content": "one"}
-- turn 2 --
Done.
`), func(c *app.Config) { c.Permissions = agent.Permissions{"create_artifact": agent.Ask} })
	ctx := audit.WithAddress(apptest.Context(t), "192.0.2.7")
	c := b.conversation()
	r := b.send(c, run.Input{Text: "write a"})
	b.until(c, ofType(artel.EventPermissionRequested))
	asked, err := b.Permissions.List(ctx, c)
	if err != nil || len(asked) != 1 {
		t.Fatalf("got %v, %v", asked, err)
	}
	if _, err := b.Permissions.Decide(ctx, r.ID, asked[0].ID, artel.Allow, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Permissions.Decide(ctx, r.ID, asked[0].ID, artel.Deny, ""); artel.KindOf(err) != artel.Conflict {
		t.Fatalf("decided twice: %v", err)
	}
	b.ended(r)
	if _, err := b.Artifacts.Export(ctx, c, "a", app.ExportQuery{Format: app.FormatHTML}); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Conversations.Export(ctx, c, ""); err != nil {
		t.Fatal(err)
	}
	if err := b.Conversations.Delete(ctx, c); err != nil {
		t.Fatal(err)
	}
	if err := b.Conversations.Delete(ctx, c); artel.KindOf(err) != artel.NotFound {
		t.Fatalf("deleted twice: %v", err)
	}
	if _, err := b.Conversations.Restore(ctx, c); err != nil {
		t.Fatal(err)
	}
	got, _, err := b.Audit.List(ctx, store.AuditQuery{})
	if err != nil {
		t.Fatal(err)
	}
	slices.Reverse(got)
	want := [][3]string{
		{"permission_decided", string(r.ID) + "/" + string(asked[0].ID), "allow"},
		{"artifact_exported", string(c) + "/a", "html"},
		{"conversation_exported", string(c), ""},
		{"conversation_deleted", string(c), ""},
		{"conversation_restored", string(c), ""},
	}
	var acts [][3]string
	for _, e := range got {
		acts = append(acts, [3]string{e.Action, e.Target, e.Detail})
		if e.Actor != artel.Local || e.Address != "192.0.2.7" || e.Time.IsZero() {
			t.Errorf("%s: by %q from %q at %v", e.Action, e.Actor, e.Address, e.Time)
		}
	}
	if d := cmp.Diff(want, acts); d != "" {
		t.Error(d)
	}
}
