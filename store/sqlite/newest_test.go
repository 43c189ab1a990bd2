// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestOldArtifactsAreListed opens a database from before artifacts kept their
// newest version.
func TestOldArtifactsAreListed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := sqlite.MigrateTo(t.Context(), path, 5); err != nil {
		t.Fatal(err)
	}
	raw(t, path, `INSERT INTO conversations (owner, id, title, agent, service, leaf, created_at, updated_at, number) VALUES ('local', 'cnv_a', '', '', '', '', 1, 1, 1)`)
	raw(t, path, `INSERT INTO messages (n, parent_n, owner, conversation, id, parent, role, agent, run, muted, summary, created_at) VALUES
		(1, NULL, 'local', 'cnv_a', 'msg_1', '', 'user', '', '', 0, 0, 1), (2, 1, 'local', 'cnv_a', 'msg_2', 'msg_1', 'user', '', '', 0, 0, 1),
		(3, 1, 'local', 'cnv_a', 'msg_3', 'msg_1', 'user', '', '', 0, 0, 1)`)
	raw(t, path, `INSERT INTO artifacts (owner, conversation, id, created_at) VALUES ('local', 'cnv_a', 'doc', 5), ('local', 'cnv_a', 'live', 6), ('local', 'cnv_a', 'pic', 7)`)
	raw(t, path, `INSERT INTO versions (owner, conversation, artifact, number, parent, message, run, author, update_type, title, filename, source, media, digest, in_blob, created_at, text) VALUES
		('local', 'cnv_a', 'doc', 1, 0, 'msg_1', '', 'user', 'create', 'Doc', 'Doc.md', 'user', '{"media_type":"text/markdown","declared_type":"","kind":"text","size":3}', 'sha256-x', 0, 8, NULL),
		('local', 'cnv_a', 'doc', 2, 1, 'msg_2', '', 'user', 'update', 'Doc', 'Doc.md', 'user', '{"media_type":"text/markdown","declared_type":"","kind":"text","size":900}', 'sha256-y', 0, 9, char(0) || '`+strings.Repeat("字", 300)+`'),
		('local', 'cnv_a', 'pic', 1, 0, '', '', 'user', 'create', 'Pic', 'pic.png', 'user_upload', '{"media_type":"image/png","declared_type":"","kind":"image","size":4,"width":5}', 'sha256-z', 1, 9, NULL)`)
	raw(t, path, `INSERT INTO edits (owner, conversation, artifact, number, folded, parent, message, run, author, update_type, title, filename, source, media, digest, in_blob, created_at, text) VALUES
		('local', 'cnv_a', 'live', 1, 0, 0, 'msg_1', 'run_1', 'lead', 'create', 'Live', '', 'agent', '{"media_type":"text/markdown","declared_type":"","kind":"text","size":3}', 'sha256-x', 0, 8, 'new')`)
	s := open(t, path, sqlite.Options{})
	heads := func(at artel.MessageID) (out []string) {
		t.Helper()
		if err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
			list, err := tx.Artifacts.Heads("cnv_a", at)
			for _, a := range list {
				one, err := tx.Artifacts.Head("cnv_a", a.ID, at)
				if err != nil {
					return err
				}
				out = append(out, string(a.Ref.String())+" "+string(rune('0'+a.Version))+" "+a.Title+" "+a.Filename+" "+string(a.Source)+" "+a.MediaType+" "+a.Preview)
				a.Preview = one.Preview // which the rows have not
				if d := cmp.Diff(one, a); d != "" {
					t.Errorf("Heads beside Head (-want +got):\n%s", d)
				}
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return out
	}
	live, pic := "artifact:cnv_a/live 1 Live  agent text/markdown ", "artifact:cnv_a/pic 1 Pic pic.png user_upload image/png "
	for at, want := range map[artel.MessageID][]string{
		"":      {pic},
		"msg_1": {"artifact:cnv_a/doc 1 Doc Doc.md user text/markdown ", live, pic},
		"msg_2": {"artifact:cnv_a/doc 2 Doc Doc.md user text/markdown \x00" + strings.Repeat("字", 199), live, pic},
		"msg_3": {"artifact:cnv_a/doc 1 Doc Doc.md user text/markdown ", live, pic},
	} {
		if d := cmp.Diff(want, heads(at)); d != "" {
			t.Errorf("at %q (-want +got):\n%s", at, d)
		}
	}
}

// TestOldNotesOfRuns opens a database from before ended runs left no note: theirs are
// removed, and those of others stay.
func TestOldNotesOfRuns(t *testing.T) {
	path := filepath.Join(t.TempDir(), "data.db")
	if err := sqlite.MigrateTo(t.Context(), path, 40); err != nil {
		t.Fatal(err)
	}
	raw(t, path, `INSERT INTO conversations (owner, id, title, agent, service, leaf, created_at, updated_at, number) VALUES ('local', 'cnv_a', '', '', '', '', 1, 1, 1)`)
	raw(t, path, `INSERT INTO notes (owner, id, conversation, run, message, kind, open, body, created_at) VALUES
		('local', 'heads_1', 'cnv_a', '1', '', 'heads', 0, '{}', 1), ('local', 'heads_2', 'cnv_a', '2', '', 'heads', 0, '{"a":1}', 1),
		('local', 'compaction_1', 'cnv_a', '1', '', 'compaction', 0, '{}', 1)`)
	s := open(t, path, sqlite.Options{})
	var left []string
	if err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
		list, err := tx.Notes.List(store.NoteQuery{Conversation: "cnv_a"})
		for _, n := range list {
			left = append(left, n.ID)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"heads_2", "compaction_1"}, left); d != "" {
		t.Errorf("notes (-want +got):\n%s", d)
	}
}
