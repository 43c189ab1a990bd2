// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

func TestSigningKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "signing.key")
	key, err := keyInFile(path)
	if err != nil || len(key) != keyBytes {
		t.Fatalf("got %d bytes, %v", len(key), err)
	}
	if err := os.Chmod(path, 0o644); err != nil {
		t.Fatal(err)
	}
	again, err := keyInFile(path)
	if err != nil || !bytes.Equal(again, key) {
		t.Errorf("the key does not last: %v", err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others can read it: %v, %v", info.Mode(), err)
	}
	if all, _ := os.ReadDir(filepath.Dir(path)); len(all) != 1 {
		t.Errorf("left over: %v", all)
	}
	for _, damaged := range []string{"", "00", strings.Repeat("xy", keyBytes)} {
		if err := os.WriteFile(path, []byte(damaged), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := keyInFile(path); artel.KindOf(err) != artel.Invalid || !strings.Contains(err.Error(), path) {
			t.Errorf("%q: got %v", damaged, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if other, err := keyInFile(path); err != nil || bytes.Equal(other, key) {
		t.Errorf("removing it did not end what was signed: %v", err)
	}
	// A link: what it leads to keeps its mode.
	foreign, link := filepath.Join(t.TempDir(), "foreign"), filepath.Join(t.TempDir(), "signing.key")
	if err := errors.Join(os.WriteFile(foreign, []byte(strings.Repeat("ab", keyBytes)), 0o600), os.Chmod(foreign, 0o644), os.Symlink(foreign, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := keyInFile(link); artel.KindOf(err) != artel.Invalid || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a link: got %v", err)
	}
	if info, err := os.Stat(foreign); err != nil || info.Mode().Perm() != 0o644 {
		t.Errorf("the mode of another file is changed: %v, %v", info.Mode(), err)
	}
	if _, err := keyInFile(filepath.Join(path, "no", "folder")); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("got %v", err)
	}
}
