// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestStoredOfOldDatabases opens a database from before stored bytes were counted,
// and finds the counts; damaged ones are found and repaired.
func TestStoredOfOldDatabases(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := sqlite.MigrateTo(t.Context(), path, 80); err != nil {
		t.Fatal(err)
	}
	if found, err := sqlite.Recount(t.Context(), path, true); err != nil || found != nil {
		t.Fatalf("of an older schema: %v, %v", found, err)
	}
	raw(t, path, `INSERT INTO conversations (owner, id, title, agent, service, leaf, created_at, updated_at, number) VALUES ('ann', 'cnv_a', '', '', '', '', 1, 1, 1)`)
	raw(t, path, `INSERT INTO artifacts (owner, conversation, id, created_at) VALUES ('ann', 'cnv_a', 'doc', 5), ('ann', 'cnv_a', 'pic', 7), ('ann', 'cnv_a', 'bad', 7)`)
	raw(t, path, `INSERT INTO versions (owner, conversation, artifact, number, parent, message, run, author, update_type, title, filename, source, media, digest, in_blob, created_at, text, changes) VALUES
		('ann', 'cnv_a', 'doc', 1, 0, '', '', 'user', 'create', '', '', 'user', '{"size":7}', 'sha256-x', 0, 8, '中文!', '[1]'),
		('ann', 'cnv_a', 'bad', 1, 0, '', '', 'user', 'create', '', '', 'user', 'damaged', 'sha256-b', 1, 8, NULL, NULL),
		('ann', 'cnv_a', 'pic', 1, 0, '', '', 'user', 'create', '', '', 'user_upload', '{"size":400}', 'sha256-z', 1, 9, NULL, NULL)`)
	raw(t, path, `INSERT INTO edits (owner, conversation, artifact, number, folded, parent, message, run, author, update_type, title, filename, source, media, digest, in_blob, created_at, text, changes) VALUES
		('ann', 'cnv_a', 'pic', 1, 1, 0, '', '', 'user', 'create', '', '', 'user_upload', '{"size":400}', 'sha256-z', 1, 9, NULL, NULL),
		('ann', 'cnv_a', 'doc', 2, 0, 1, '', '', 'user', 'edit', '', '', 'user', '{"size":8}', 'sha256-y', 0, 9, NULL, '["' || printf('%.*c', 5000, 'x') || 'é"]')`)
	raw(t, path, `INSERT INTO files (owner, id, holder, digest, filename, purpose, info, created_at) VALUES
		('ann', 'f', '', 'sha256-z', '', '', '{"size":400}', 1), ('bob', 'f', '', 'sha256-z', '', '', '{"size":400}', 1)`)
	want := map[string]int64{"ann": 7 + 400 + 5006, "bob": 400}
	stored := func() map[string]int64 {
		t.Helper()
		s := open(t, path, sqlite.Options{})
		got := map[string]int64{}
		if err := s.People().View(t.Context(), func(tx store.PeopleTx) error {
			all, err := tx.Ledger.Stored()
			for owner, n := range all {
				got[string(owner)] = n
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		return got
	}
	if d := cmp.Diff(want, stored()); d != "" {
		t.Fatalf("after the migration (-want +got):\n%s", d)
	}
	recount := func(repair bool, want ...sqlite.Miscount) {
		t.Helper()
		found, err := sqlite.Recount(t.Context(), path, repair)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, found); d != "" {
			t.Errorf("repair %v (-want +got):\n%s", repair, d)
		}
	}
	recount(false)
	raw(t, path, `UPDATE stored SET bytes = bytes + 5 WHERE owner = 'ann'; DELETE FROM stored WHERE owner = 'bob'; UPDATE stored_blobs SET uses = 9 WHERE owner = 'ann' AND digest = 'sha256-z'`)
	wrong := []sqlite.Miscount{{Owner: "ann", Counted: 5418, Real: 5413, Blobs: 1}, {Owner: "bob", Real: 400}}
	recount(false, wrong...)
	recount(false, wrong...)
	recount(true, wrong...)
	recount(false)
	if d := cmp.Diff(want, stored()); d != "" {
		t.Errorf("after the repair (-want +got):\n%s", d)
	}
}
