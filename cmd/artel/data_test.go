// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestOtherUsers(t *testing.T) {
	base := t.TempDir()
	blobs := filepath.Join(base, "one", "blobs")
	for _, dir := range []string{blobs, filepath.Join(base, "two"), filepath.Join(base, "three")} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	check := func(what, data string, want int) {
		t.Helper()
		if others, err := otherUsers(blobs, filepath.Join(base, data)); err != nil || len(others) != want {
			t.Errorf("%s: got %q, %v, want %d", what, others, err, want)
		}
	}
	check("nobody", "one", 0)
	for _, data := range []string{"two", "two", "three"} { // a second time is no second user
		if err := claimBlobs(blobs, filepath.Join(base, data)); err != nil {
			t.Fatal(err)
		}
	}
	check("a directory that was removed", "two", 0)
	for _, data := range []string{"one", "three"} {
		if err := os.WriteFile(filepath.Join(base, data, databaseFile), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	check("the one around it", "one", 1)
	check("one that claimed it", "three", 1)
	check("one of three", "two", 2)
	if others, err := otherUsers(blobs, databaseUser+"1"); err != nil || len(others) != 2 {
		t.Errorf("a database beside them: %q, %v", others, err)
	}
	if err := claimBlobs(blobs, databaseUser+"1"); err != nil {
		t.Fatal(err)
	}
	check("a database that claimed it", "two", 3)
	if others, err := otherUsers(blobs, databaseUser+"1"); err != nil || len(others) != 2 {
		t.Errorf("that database itself: %q, %v", others, err)
	}
	if text, err := os.ReadFile(filepath.Join(blobs, usersFile)); err != nil || string(text) != filepath.Join(base, "two")+"\n"+filepath.Join(base, "three")+"\n"+databaseUser+"1\n" {
		t.Errorf("got %q, %v", text, err)
	}
}

// TestOpenToWriters: a data directory that other users can write to is reported.
func TestOpenToWriters(t *testing.T) {
	for mode, want := range map[os.FileMode]bool{0o700: false, 0o755: false, 0o777: true, 0o777 | os.ModeSticky: false} {
		dir := t.TempDir()
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		warnOfWriters(dir, slog.New(slog.NewTextHandler(&said, nil)))
		if got := strings.Contains(said.String(), "chmod 700"); got != want {
			t.Errorf("%v: %s", mode, said.String())
		}
	}
}
