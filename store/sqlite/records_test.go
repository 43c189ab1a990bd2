// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"path/filepath"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestRecordsMoved opens a database whose records stood beside what lists show,
// and the uses of segments beside their bodies.
func TestRecordsMoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := sqlite.MigrateTo(t.Context(), path, 20); err != nil {
		t.Fatal(err)
	}
	raw(t, path, `INSERT INTO conversations (owner, id, title, agent, service, leaf, created_at, updated_at, number) VALUES ('local', 'cnv_old', '', '', '', '', 1, 1, 1);
		INSERT INTO runs (owner, id, conversation, message, agent, service, state, reply, usage, started_at, holder, lease_until)
			VALUES ('local', 'run_old', 'cnv_old', '', '', '', 'done', '', '{}', 1, '', 0);
		INSERT INTO contexts (owner, conversation, run, number, created_at, summary, record, usage) VALUES
			('local', 'cnv_old', 'run_old', 1, 1, '{"a":1}', '{"b":1}', NULL), ('local', 'cnv_old', 'run_old', 2, 1, '{"a":2}', '{"b":2}', '{"calls":7}');
		INSERT INTO segments (owner, conversation, digest, used, body) VALUES ('local', 'cnv_old', 'sha256-a', 1, x'6F6E65'), ('local', 'cnv_old', 'sha256-b', 2, x'74776F')`)
	s := open(t, path, sqlite.Options{})
	err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		got, err := tx.Contexts.Get("run_old", 2)
		if err != nil || string(got.Summary) != `{"a":2}` || string(got.Record) != `{"b":2}` || got.Usage == nil || got.Usage.Calls != 7 {
			t.Errorf("the record is %+v, %v", got, err)
		}
		if err := tx.Contexts.Trim("cnv_old", 1); err != nil {
			return err
		}
		segments, err := tx.Contexts.Segments("cnv_old", []artel.Digest{"sha256-a", "sha256-b"})
		if err != nil || len(segments) != 1 || string(segments[0].Body) != "two" {
			t.Errorf("with the newest record stay the segments %s, %v", segments, err)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	raw(t, path, "CREATE TEMP TABLE check_one (n CHECK (n = 1)); INSERT INTO check_one SELECT count(*) FROM records; INSERT INTO check_one SELECT count(*) FROM segment_uses")
}
