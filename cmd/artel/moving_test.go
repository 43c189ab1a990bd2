// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"bytes"
	"context"
	"database/sql"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres"
	"github.com/artelhq/artel/store/postgres/postgrestest"
	"github.com/artelhq/artel/store/rows"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
)

// stored fills a store with a conversation that has a file, whose bytes go to a folder.
func stored(t *testing.T, s store.Store, blobs, title string) artel.Digest {
	t.Helper()
	folder, err := blob.OpenDir(blobs)
	if err != nil {
		t.Fatal(err)
	}
	defer folder.Close()
	info, err := folder.Put(t.Context(), strings.NewReader("bytes of "+title), 0)
	if err != nil {
		t.Fatal(err)
	}
	c := artel.Conversation{ID: artel.NewConversationID(time.Now()), Title: title}
	v := artel.Version{InBlob: true, Digest: info.Digest, MediaInfo: artel.MediaInfo{MediaType: "image/png", Kind: artel.KindImage, Size: info.Size}}
	err = s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
		if err := tx.Conversations.Create(c); err != nil {
			return err
		}
		n, err := tx.Journal.Append(c.ID, "pic", v, nil)
		if v.Number = n; err != nil {
			return err
		}
		return tx.Journal.Fold(c.ID, "pic", v, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	return info.Digest
}

// inProcess runs a command in this process.
func inProcess(t *testing.T, args ...string) error {
	t.Helper()
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(io.Discard)
	root.SetErr(io.Discard)
	return root.ExecuteContext(t.Context())
}

// filesIn returns the contents of all files of a folder.
func filesIn(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		all[strings.TrimPrefix(path, dir)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestBackupIsKept: a restore changes nothing in the backup, and refuses one whose rows are not
// those that were written; a damaged file of a backup is not carried over into the next one.
func TestBackupIsKept(t *testing.T) {
	dir := t.TempDir()
	data, backup := filepath.Join(dir, "data"), filepath.Join(dir, "backup")
	s := sqlitetest.Open(t, filepath.Join(mkdir(t, data), databaseFile))
	digest := stored(t, s, filepath.Join(data, "blobs"), "Tides")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := inProcess(t, "backup", "create", backup, "--data", data); err != nil {
		t.Fatal(err)
	}
	before := filesIn(t, backup)
	if err := inProcess(t, "backup", "restore", backup, "--data", filepath.Join(dir, "restored")); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(before, filesIn(t, backup)); d != "" {
		t.Errorf("the restore has changed the backup: %.500s", d)
	}

	// Damaged, with its size: named by verify, and written anew by the next backup.
	hex := digest.Hex()
	files, err := filepath.Glob(filepath.Join(backup, "blobs", hex[:2], hex[2:4], hex+"*"))
	if err != nil || len(files) != 1 {
		t.Fatalf("%q, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err == nil {
		err = os.WriteFile(files[0], bytes.ToUpper(text), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := inProcess(t, "backup", "verify", backup); err == nil || !strings.Contains(err.Error(), string(digest)) {
		t.Errorf("verify: %v", err)
	}
	if err := inProcess(t, "backup", "create", backup, "--data", data); err != nil {
		t.Fatal(err)
	}
	if err := inProcess(t, "backup", "verify", backup); err != nil {
		t.Errorf("verify after the next backup: %v", err)
	}

	// Rows that were not written by the backup.
	db, err := sql.Open("sqlite", filepath.Join(backup, databaseFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Exec("UPDATE conversations SET title = 'Ebbs'"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	refused := filepath.Join(dir, "refused")
	if err := inProcess(t, "backup", "restore", backup, "--data", refused); err == nil || !strings.Contains(err.Error(), "conversations") {
		t.Errorf("rows that differ from those that were written were restored: %v", err)
	}
	if exists(filepath.Join(refused, databaseFile)) {
		t.Error("a refused restore has made a database")
	}
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestMoveRefused: a destination with rows of its own is refused before anything of it is
// changed, also to continue a copy; and a copy from PostgreSQL, which has a signing key among
// its rows, can be continued.
func TestMoveRefused(t *testing.T) {
	pg, err := postgrestest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	dir := t.TempDir()
	data := mkdir(t, filepath.Join(dir, "data"))
	s := sqlitetest.Open(t, filepath.Join(data, databaseFile))
	stored(t, s, filepath.Join(data, "blobs"), "Tides")
	stored(t, s, filepath.Join(data, "blobs"), "Ebbs")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}

	database, shared := pg.Schema(t), filepath.Join(dir, "shared")
	state := func() (key []byte, all []rows.Copied) {
		t.Helper()
		db, err := postgres.Open(context.WithoutCancel(t.Context()), database, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		if key, err = sharedKey(t.Context(), db); err != nil {
			t.Fatal(err)
		}
		if all, err = rows.Sum(t.Context(), db.Store, true); err != nil {
			t.Fatal(err)
		}
		return key, all
	}
	own := postgrestest.Open(t, database)
	stored(t, own, shared, "Of its own")
	if err := own.Close(); err != nil {
		t.Fatal(err)
	}
	key, all := state()
	for _, more := range [][]string{nil, {"--resume"}} {
		args := append([]string{"migrate", "--data", data, "--to-data", filepath.Join(dir, "second"), "--to-database", database, "--to-blobs", "file://" + shared}, more...)
		if err := inProcess(t, args...); artel.KindOf(err) != artel.Conflict {
			t.Errorf("%q: %v", more, err)
		}
		nowKey, now := state()
		if !bytes.Equal(key, nowKey) {
			t.Errorf("%q: the destination has lost its signing key", more)
		}
		if d := cmp.Diff(all, now); d != "" {
			t.Errorf("%q: the rows of the destination were changed: %s", more, d)
		}
		key, all = nowKey, now
	}

	// As after a kill while files were copied: all rows are there.
	third := filepath.Join(dir, "third")
	args := []string{"migrate", "--data", filepath.Join(dir, "second"), "--database", database, "--blobs", "file://" + shared, "--to-data", third}
	if err := inProcess(t, args...); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(filepath.Join(third, "blobs")); err != nil {
		t.Fatal(err)
	}
	if err := inProcess(t, append(args, "--resume")...); err != nil {
		t.Errorf("a copy from PostgreSQL to SQLite is not continued: %v", err)
	}
	fourth, again := pg.Schema(t), []string{"--resume"}
	args = []string{"migrate", "--data", filepath.Join(dir, "second"), "--database", database, "--blobs", "file://" + shared, "--to-data", filepath.Join(dir, "fourth"), "--to-database", fourth}
	if err := inProcess(t, args...); err != nil {
		t.Fatal(err)
	}
	if err := inProcess(t, append(args, again...)...); err != nil {
		t.Errorf("a copy from PostgreSQL to PostgreSQL is not continued: %v", err)
	}
	key, _ = state()
	db := postgrestest.Open(t, fourth)
	if moved, err := sharedKey(t.Context(), db); err != nil || !bytes.Equal(key, moved) {
		t.Errorf("signed addresses are not valid there: %v", err)
	}
}
