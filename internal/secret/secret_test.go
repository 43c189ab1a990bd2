// SPDX-License-Identifier: Apache-2.0

package secret_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/secret"
)

func open(t *testing.T, text, path string) *secret.Box {
	t.Helper()
	b, err := secret.New(text, path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func seal(t *testing.T, b *secret.Box, purpose, id, plain string) []byte {
	t.Helper()
	c, err := b.Seal(purpose, id, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestSealAndOpen: the file is made once with mode 0600, and another box reads it.
func TestSealAndOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	b := open(t, "", path)
	one, two := seal(t, b, "service", "a", "sk-123"), seal(t, b, "service", "a", "sk-123")
	if bytes.Equal(one, two) || bytes.Contains(one, []byte("sk-123")) {
		t.Errorf("%x and %x: want different ciphertexts without the text", one, two)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v: want mode 0600", info.Mode(), err)
	}
	for _, c := range [][]byte{one, two} {
		if plain, err := open(t, "", path).Open("service", "a", c); err != nil || string(plain) != "sk-123" {
			t.Errorf("%q, %v", plain, err)
		}
	}
}

// TestOnlyItsRow: a ciphertext opens only unchanged, and for its purpose and id.
func TestOnlyItsRow(t *testing.T) {
	b := open(t, strings.Repeat("k", 32), "")
	c := seal(t, b, "service", "a", "sk-123")
	for name, try := range map[string]func() ([]byte, error){
		"other id":      func() ([]byte, error) { return b.Open("service", "b", c) },
		"other purpose": func() ([]byte, error) { return b.Open("tool", "a", c) },
		"moved border":  func() ([]byte, error) { return b.Open("servic", "ea", c) },
		"changed": func() ([]byte, error) {
			return b.Open("service", "a", append(bytes.Clone(c[:len(c)-1]), c[len(c)-1]^1))
		},
		"cut":   func() ([]byte, error) { return b.Open("service", "a", c[:9]) },
		"empty": func() ([]byte, error) { return b.Open("service", "a", nil) },
	} {
		if plain, err := try(); artel.KindOf(err) != artel.Internal || plain != nil {
			t.Errorf("%s: %q, %v", name, plain, err)
		}
	}
}

// TestKeys: a missing and another key are told apart, and no key is made to read.
func TestKeys(t *testing.T) {
	dir := t.TempDir()
	sealed := seal(t, open(t, "", filepath.Join(dir, "one")), "service", "a", "sk-123")
	seal(t, open(t, "", filepath.Join(dir, "two")), "service", "a", "sk-123")
	for path, want := range map[string]error{"none": secret.ErrNoKey, "two": secret.ErrOtherKey, "one": nil} {
		b := open(t, "", filepath.Join(dir, path))
		if err := b.Check(sealed); !errors.Is(err, want) || err != nil && artel.KindOf(err) != artel.Unavailable {
			t.Errorf("Check with %s: %v, want %v", path, err, want)
		}
		if _, err := b.Open("service", "a", sealed); !errors.Is(err, want) {
			t.Errorf("Open with %s: %v, want %v", path, err, want)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "none")); err == nil {
		t.Error("reading has made a key")
	}
	if err := open(t, strings.Repeat("x", 40), "").Check(sealed); !errors.Is(err, secret.ErrOtherKey) || !strings.Contains(err.Error(), secret.Variable) {
		t.Errorf("%v: want the name of the variable", err)
	}
	if _, err := secret.New("short", ""); artel.KindOf(err) != artel.Invalid {
		t.Errorf("a short key: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, "bad"), []byte("zz"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := open(t, "", filepath.Join(dir, "bad")).Seal("service", "a", nil); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("a file without a key: %v", err)
	}
	if src, err := os.ReadFile(filepath.Join(dir, "bad")); err != nil || string(src) != "zz" {
		t.Error("a file that is no key was replaced")
	}
}
