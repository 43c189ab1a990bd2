// SPDX-License-Identifier: Apache-2.0

package s3_test

import (
	"bytes"
	"crypto/sha256"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/blob/s3"
	"github.com/artelhq/artel/blob/s3/s3test"
)

// pattern returns n bytes without a short period.
func pattern(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i ^ i>>7 ^ i>>15)
	}
	return b
}

func put(t *testing.T, s blob.Store, b []byte) blob.Info {
	t.Helper()
	info, err := s.Put(t.Context(), bytes.NewReader(b), 0)
	if err != nil {
		t.Fatal(err)
	}
	if info.Digest != artel.NewDigest(sha256.Sum256(b)) || info.Size != int64(len(b)) {
		t.Fatalf("got %+v", info)
	}
	return info
}

// same expects s to have the bytes b.
func same(t *testing.T, s blob.Store, d artel.Digest, b []byte) {
	t.Helper()
	r, err := s.Open(t.Context(), d)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, b) {
		t.Errorf("read %d bytes (equal: %v): %v", len(got), bytes.Equal(got, b), err)
	}
}

// objects lists the objects of a bucket whose folder is dir.
func objects(t *testing.T, dir string) (keys []string) {
	t.Helper()
	all, err := filepath.Glob(filepath.Join(dir, "??", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range all {
		key, err := filepath.Rel(dir, path)
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, filepath.ToSlash(key))
	}
	return keys
}

// TestFaults: what fails for a moment is done again, and what is done twice counts
// once.
func TestFaults(t *testing.T) {
	server := s3test.Start(t)
	dir := server.Bucket(t, bucket)
	proxy := server.Proxy(t)
	s := open(t, s3test.Address(proxy.Endpoint, bucket), newIndex(t), s3.Options{Rest: time.Nanosecond, Stall: 200 * time.Millisecond})
	small, large := pattern(1<<20), pattern(20<<20)
	clean := func() {
		t.Helper()
		proxy.Set(nil)
		if err := s.List(t.Context(), func(i blob.Info) bool {
			_, err := s.Delete(t.Context(), i.Digest, time.Now().Add(time.Hour))
			return err == nil
		}); err != nil {
			t.Fatal(err)
		}
		if gone, err := s.Unstage(t.Context(), time.Now().Add(time.Hour)); err != nil || gone.Files != 0 {
			t.Fatalf("uploads were left: %+v, %v", gone, err)
		}
		if left := objects(t, dir); len(left) != 0 {
			t.Fatalf("objects were left: %q", left)
		}
	}
	for name, fault := range map[string]s3test.Fault{
		"500s":                   s3test.First(2, "", s3test.Status(500)),
		"503":                    s3test.First(1, http.MethodPut, s3test.Status(503)),
		"connections that end":   s3test.First(2, "", s3test.Away),
		"a lost answer of a PUT": s3test.First(1, http.MethodPut, s3test.LoseAnswer),
		"a server that stalls":   s3test.First(1, http.MethodPut, s3test.Stall),
	} {
		t.Run(name, func(t *testing.T) {
			for _, b := range [][]byte{small, large} {
				proxy.Set(fault)
				info := put(t, s, b)
				proxy.Set(nil)
				same(t, s, info.Digest, b)
			}
			if got := objects(t, dir); len(got) != 2 {
				t.Errorf("there are %d objects, want 2", len(got))
			}
			clean()
		})
	}
	t.Run("an answer that breaks off", func(t *testing.T) {
		info := put(t, s, large)
		for _, n := range []int{0, 100, 300 << 10, 7 << 20} {
			proxy.Set(s3test.First(2, http.MethodGet, s3test.Cut(n)))
			same(t, s, info.Digest, large)
		}
		proxy.Set(s3test.Cut(3 << 20)) // each one, so the object comes in many pieces
		same(t, s, info.Digest, large)
		proxy.Set(s3test.First(1, http.MethodGet, s3test.Slow(64<<10, time.Millisecond)))
		same(t, s, info.Digest, large)
		proxy.Set(nil)
		r, err := s.Open(t.Context(), info.Digest)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		for _, at := range []struct{ off, n int }{{5 << 20, 100}, {5<<20 - 50, 200}, {19 << 20, 1 << 20}, {1 << 20, 6 << 20}, {5 << 20, 100}} {
			proxy.Set(s3test.First(1, http.MethodGet, s3test.Cut(10)))
			got := make([]byte, at.n)
			if n, err := r.ReadAt(got, int64(at.off)); err != nil || !bytes.Equal(got, large[at.off:at.off+at.n]) {
				t.Errorf("ReadAt %+v: %d, %v", at, n, err)
			}
		}
		proxy.Set(s3test.Cut(0))
		if _, err := r.ReadAt(make([]byte, 10), 12<<20); artel.KindOf(err) != artel.Unavailable {
			t.Errorf("answers without bytes: %v", err)
		}
		if r, err := s.Open(t.Context(), info.Digest); artel.KindOf(err) != artel.Unavailable {
			t.Errorf("answers without bytes: %v, %v", r, err)
		}
		clean()
	})
	t.Run("a server that is away", func(t *testing.T) {
		info := put(t, s, small)
		proxy.Set(s3test.Away)
		for what, call := range map[string]func() error{
			"Put":       func() error { _, err := s.Put(t.Context(), strings.NewReader("new"), 0); return err },
			"Put again": func() error { _, err := s.Put(t.Context(), bytes.NewReader(small), 0); return err },
			"Put large": func() error { _, err := s.Put(t.Context(), bytes.NewReader(large), 0); return err },
			"Open":      func() error { _, err := s.Open(t.Context(), info.Digest); return err },
			"Unstage":   func() error { _, err := s.Unstage(t.Context(), time.Now()); return err },
		} {
			if err := call(); artel.KindOf(err) != artel.Unavailable || strings.Contains(err.Error(), "127.0.0.1") || !strings.Contains(err.Error(), "does not answer") {
				t.Errorf("%s: %v", what, err)
			}
		}
		if _, err := s.Stat(t.Context(), info.Digest); err != nil {
			t.Errorf("the index needs no bucket: %v", err)
		}
		clean()
	})
}

// TestLost: an object that the bucket lacks is told, with its key, and the bytes are
// stored when they are put again.
func TestLost(t *testing.T) {
	server := s3test.Start(t)
	dir := server.Bucket(t, bucket)
	s := open(t, s3test.Address(server.Endpoint, bucket), newIndex(t), s3.Options{})
	for _, b := range [][]byte{[]byte("small"), pattern(9 << 20)} {
		info := put(t, s, b)
		for what, lose := range map[string]func(path string) error{
			"the bucket lacks it": os.Remove,
			"another size":        func(path string) error { return os.Truncate(path, 3) },
		} {
			key := objects(t, dir)[0]
			if err := lose(filepath.Join(dir, key)); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Open(t.Context(), info.Digest); artel.KindOf(err) != artel.Internal || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), what) {
				t.Errorf("Open: %v", err)
			}
			put(t, s, b)
			same(t, s, info.Digest, b)
			if err := os.RemoveAll(filepath.Join(dir, key)); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.RemoveAll(filepath.Join(dir, objects(t, dir)[0])); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	_, err := s.Put(t.Context(), strings.NewReader("small"), 0)
	_, err2 := s.Put(t.Context(), strings.NewReader("new"), 0)
	for _, err := range []error{err, err2} {
		if artel.KindOf(err) != artel.Unavailable || !strings.Contains(err.Error(), "create it") {
			t.Errorf("Put without a bucket: %v", err)
		}
	}
}
