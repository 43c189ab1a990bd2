// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob/s3/s3test"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/store/postgres/postgrestest"
)

// TestBackup makes a backup of a server at work, restores it into PostgreSQL and a bucket,
// makes one from there, and moves everything back into a data directory: each server has the
// conversation, the file, and an address that the first one signed.
func TestBackup(t *testing.T) {
	t.Parallel()
	pg, err := postgrestest.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pg.Stop)
	bucket := s3test.Start(t)
	bucket.Bucket(t, "files")
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"s.txtar": "-- turn 1 --\n@call create_artifact {\"id\": \"report\", \"title\": \"Report\", \"content\": \"High at noon.\"}\n-- turn 2 --\nDone.\n"})
	env := bareEnvironment(dir)
	p := serving(t, dir, env, "--scenario", filepath.Join(dir, "s.txtar"))
	client := httpapi.NewClient(p.url, nil)
	c, err := client.CreateConversation(t.Context(), httpapi.NewConversation{Title: "Tides"})
	if err != nil {
		t.Fatal(err)
	}
	const photo = "\x89PNG\r\n\x1a\n\x00\x00 not a picture"
	file, err := client.Upload(t.Context(), c.ID, "tide.bin", "application/octet-stream", strings.NewReader(photo), int64(len(photo)))
	if err != nil {
		t.Fatal(err)
	}
	sent, err := client.Send(t.Context(), c.ID, httpapi.NewMessage{Text: "Write."})
	if err != nil {
		t.Fatal(err)
	}
	if state := waitForEnd(t.Context(), t, client, c.ID, sent.RunID); state != artel.RunDone {
		t.Fatalf("the run is %s", state)
	}
	signed, err := client.Sign(t.Context(), artel.Ref{Conversation: c.ID, Artifact: file.ID}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	artelOut := func(args ...string) string {
		t.Helper()
		out, _, err := verb(t.Context(), dir, env, args...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	refused := func(want string, args ...string) {
		t.Helper()
		if _, _, err := verb(t.Context(), dir, env, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %q", err, want)
		}
	}
	check := func(what, url string) {
		t.Helper()
		a, err := httpapi.NewClient(url, nil).Artifact(t.Context(), artel.Ref{Conversation: c.ID, Artifact: "report"})
		if err != nil || a.Content == nil || *a.Content != "High at noon." {
			t.Errorf("%s: the report is %+v, %v", what, a, err)
		}
		if got := body(t, url+strings.TrimPrefix(signed.URL, p.url)); got != photo {
			t.Errorf("%s: the file is %q", what, got)
		}
	}

	backup := filepath.Join(dir, "backup")
	artelOut("backup", "create", backup, "--data", "data") // while the server works
	if out := artelOut("backup", "verify", backup); !strings.Contains(out, "is whole") {
		t.Errorf("verify: %s", out)
	}
	again := artelOut("backup", "create", backup, "--data", "data")
	if !strings.Contains(again, "1 files") {
		t.Errorf("again: %s", again)
	}
	refused("it has other files", "backup", "create", filepath.Join(dir, "data"), "--data", "data")
	refused("another server uses this data directory", "migrate", "--data", "data", "--to-data", filepath.Join(dir, "x"))

	// What is damaged is found.
	damaged := filepath.Join(dir, "damaged")
	if err := os.CopyFS(damaged, os.DirFS(backup)); err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(filepath.Join(damaged, "blobs"), func(path string, e os.DirEntry, _ error) error {
		if e.Type().IsRegular() && e.Name() != "lock" {
			if err := os.WriteFile(path, []byte(strings.Replace(photo, "picture", "PICTURE", 1)), 0o600); err != nil {
				t.Error(err)
			}
		}
		return nil
	})
	refused("damaged", "backup", "verify", damaged)
	// Mended where it can be: the bytes go aside, and the same file is uploaded again.
	artelOut("fsck", "--data", damaged) // the sizes are right
	for _, repair := range []string{"", " --repair"} {
		out, code, err := verb(t.Context(), dir, env, strings.Fields("fsck --deep --data "+damaged+repair)...)
		if code != 1 || !strings.Contains(out, "bytes of the file are damaged") {
			t.Errorf("fsck%s: %d, %v, %s", repair, code, err, out)
		}
	}
	mend, err := launch(dir, env, "serve", "--addr", "127.0.0.1:0", "--data", damaged)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(mend.kill)
	if _, err := httpapi.NewClient(mend.url, nil).Upload(t.Context(), c.ID, "again.bin", "application/octet-stream", strings.NewReader(photo), int64(len(photo))); err != nil {
		t.Error(err)
	}
	check("mended", mend.url)
	if err := mend.stop(); err != nil {
		t.Error(err)
	}
	if out := artelOut("fsck", "--deep", "--data", damaged); !strings.Contains(out, "everything is there: 1 files") {
		t.Errorf("fsck after that: %s", out)
	}
	refused("no complete backup", "backup", "restore", filepath.Join(dir, "data"), "--data", filepath.Join(dir, "x"))

	database, objects := pg.Schema(t), s3test.Address(bucket.Endpoint, "files")
	second := filepath.Join(dir, "second")
	artelOut("backup", "restore", backup, "--data", second, "--database", database, "--blobs", objects)
	refused("--resume", "backup", "restore", backup, "--data", second, "--database", database, "--blobs", objects)
	artelOut("backup", "restore", backup, "--data", second, "--database", database, "--blobs", objects, "--resume")
	there, err := launch(dir, env, "serve", "--addr", "127.0.0.1:0", "--data", second, "--database", database, "--blobs", objects)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(there.kill)
	check("PostgreSQL and a bucket", there.url)
	other := filepath.Join(dir, "other")
	artelOut("backup", "create", other, "--data", second, "--database", database, "--blobs", objects)
	artelOut("backup", "verify", other)
	if err := there.stop(); err != nil {
		t.Error(err)
	}

	// In a folder, the blobs are those of the database with its new key: they can be collected.
	shared := filepath.Join(dir, "shared")
	fourth := []string{"--data", filepath.Join(dir, "fourth"), "--database", pg.Schema(t), "--blobs", "file://" + shared}
	artelOut(append([]string{"backup", "restore", backup}, fourth...)...)
	artelOut(append([]string{"gc", "--dry-run"}, fourth...)...)

	third := filepath.Join(dir, "third")
	artelOut("migrate", "--data", second, "--database", database, "--blobs", objects, "--to-data", third)
	back, err := launch(dir, env, "serve", "--addr", "127.0.0.1:0", "--data", third)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(back.kill)
	check("back in a data directory", back.url)
	whole, err := launch(dir, env, "serve", "--addr", "127.0.0.1:0", "--data", other)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(whole.kill)
	check("a backup of PostgreSQL as a data directory", whole.url)
}
