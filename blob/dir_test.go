// SPDX-License-Identifier: Apache-2.0

package blob_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/blob/blobtest"
)

// crashDir makes the test binary put an endless blob into the folder it names,
// to be killed in the midst of it.
const crashDir = "BLOB_TEST_CRASH_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(crashDir); dir != "" {
		d, err := blob.OpenDir(dir)
		if err == nil {
			_, err = d.Put(context.Background(), &endless{}, 0)
		}
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// endless gives zeros, and says so on standard output once a megabyte has gone.
type endless struct{ n int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n += len(p); e.n > 1<<20 && e.n-len(p) <= 1<<20 {
		os.Stdout.WriteString("writing\n")
	}
	return len(p), nil
}

func openDir(tb testing.TB, path string) *blob.Dir {
	tb.Helper()
	d, err := blob.OpenDir(path)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

func TestDir(t *testing.T) {
	blobtest.Run(t, func(tb testing.TB) blob.Store { return openDir(tb, filepath.Join(tb.TempDir(), "a [odd] folder*")) })
}

func TestMemory(t *testing.T) {
	blobtest.Run(t, func(testing.TB) blob.Store { return blob.NewMemory() })
}

// files lists what lies under dir, without folders and locks.
func files(tb testing.TB, dir string) (paths []string) {
	tb.Helper()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		if e.IsDir() && info.Mode().Perm() != 0o700 || !e.IsDir() && info.Mode().Perm() != 0o600 {
			tb.Errorf("%s has mode %v", path, info.Mode())
		}
		if !e.IsDir() && e.Name() != "lock" && e.Name() != "turn.lock" {
			paths = append(paths, path)
		}
		return nil
	})
	if err != nil {
		tb.Fatal(err)
	}
	return paths
}

func TestDirLayout(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	d := openDir(t, dir)
	info, err := d.Put(t.Context(), strings.NewReader("hello"), 0)
	if err != nil {
		t.Fatal(err)
	}
	hex := info.Digest.Hex()
	want := filepath.Join(dir, hex[:2], hex[2:4], hex+".5")
	if got := files(t, dir); len(got) != 1 || got[0] != want {
		t.Errorf("got %q, want %q", got, want)
	}
	again := openDir(t, dir)
	if stat, err := again.Stat(t.Context(), info.Digest); err != nil || stat.Size != 5 {
		t.Errorf("after reopening: %+v, %v", stat, err)
	}
}

// A process killed while it writes leaves nothing that is seen, and what it had
// staged is gone after the next start, but not while others are at work.
func TestDirKill(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashDir+"="+dir)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, len("writing\n"))); err != nil {
		t.Error(err)
	}
	beside, err := blob.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("opening beside a writer removed its file: %q", got)
	}
	if err := beside.Close(); err != nil {
		t.Error(err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait() // killed
	if got := files(t, dir); len(got) != 1 {
		t.Errorf("nothing was staged: %q", got)
	}
	d := openDir(t, dir)
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left over: %q", got)
	}
	if err := d.List(t.Context(), func(i blob.Info) bool { t.Errorf("visible: %+v", i); return true }); err != nil {
		t.Error(err)
	}
}

func TestDirFailedPutLeavesNothing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "blobs")
	d := openDir(t, dir)
	if _, err := d.Put(t.Context(), io.LimitReader(&endless{}, 1<<19), 1000); artel.KindOf(err) != artel.TooLarge {
		t.Error(err)
	}
	if _, err := d.Put(t.Context(), io.MultiReader(strings.NewReader("x"), badReader{}), 0); artel.KindOf(err) != artel.Invalid {
		t.Errorf("the source's kind is lost: %v", err)
	}
	if got := files(t, dir); len(got) != 0 {
		t.Errorf("left over: %q", got)
	}
}

type badReader struct{}

func (badReader) Read([]byte) (int, error) {
	return 0, artel.Errorf(artel.Invalid, "test", "", "bad chunk")
}

// A file that is not as long as its name says is never served, and putting the
// bytes again mends it.
func TestDirDamage(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, filepath.Join(dir, "blobs"))
	info, err := d.Put(t.Context(), strings.NewReader("to be cut"), 0)
	if err != nil {
		t.Fatal(err)
	}
	path := files(t, filepath.Join(dir, "blobs"))[0]
	if err := os.Truncate(path, 3); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Stat(t.Context(), info.Digest); artel.KindOf(err) != artel.Internal {
		t.Errorf("Stat: %v", err)
	}
	if _, err := d.Open(t.Context(), info.Digest); artel.KindOf(err) != artel.Internal {
		t.Errorf("Open: %v", err)
	}
	if _, err := d.Put(t.Context(), strings.NewReader("to be cut"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Stat(t.Context(), info.Digest); err != nil {
		t.Errorf("after putting again: %v", err)
	}
	if _, err := d.Delete(t.Context(), info.Digest, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
}

// A link that somebody has laid into the folder leads nowhere, and what is no
// file is not opened.
func TestDirLinks(t *testing.T) {
	base := t.TempDir()
	secret := filepath.Join(base, "secret")
	if err := os.WriteFile(secret, []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "blobs")
	d := openDir(t, dir)
	hex := strings.Repeat("ab", 32)
	leaf := filepath.Join(dir, "ab", "ab")
	if err := os.MkdirAll(leaf, 0o700); err != nil {
		t.Fatal(err)
	}
	for what, lay := range map[string]func(string) error{
		"a link":   func(at string) error { return os.Symlink(secret, at) },
		"a folder": func(at string) error { return os.Mkdir(at, 0o700) },
		"a pipe":   func(at string) error { return syscall.Mkfifo(at, 0o600) },
	} {
		at := filepath.Join(leaf, hex+".6")
		if err := lay(at); err != nil {
			t.Fatal(err)
		}
		if r, err := d.Open(t.Context(), artel.Digest("sha256-"+hex)); artel.KindOf(err) != artel.Internal || strings.Contains(err.Error(), base) {
			t.Errorf("%s: got %v, %v", what, r, err)
		}
		if err := d.List(t.Context(), func(i blob.Info) bool { t.Errorf("%s is listed: %+v", what, i); return true }); err != nil {
			t.Error(err)
		}
		if err := os.Remove(at); err != nil {
			t.Fatal(err)
		}
	}
}

// What a process has left that died while others went on goes by its age.
func TestDirUnstage(t *testing.T) {
	dir := t.TempDir()
	d := openDir(t, dir)
	old := time.Now().Add(-48 * time.Hour)
	for name, at := range map[string]time.Time{"put-1": old, "put-2": time.Now(), "other": old} {
		path := filepath.Join(dir, "staging", name)
		if err := errors.Join(os.WriteFile(path, []byte("half"), 0o600), os.Chtimes(path, at, at)); err != nil {
			t.Fatal(err)
		}
	}
	gone, err := blob.Unstage(t.Context(), d, time.Now().Add(-24*time.Hour))
	if err != nil || gone != (blob.Staged{Files: 1, Bytes: 4}) {
		t.Errorf("got %+v, %v", gone, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "staging", "put-2")); err != nil {
		t.Error(err)
	}
	if gone, err := blob.Unstage(t.Context(), blob.NewMemory(), time.Now()); err != nil || gone != (blob.Staged{}) {
		t.Errorf("got %+v, %v", gone, err)
	}
}

// The disk's troubles are told without its paths.
func TestDirTroubles(t *testing.T) {
	base := t.TempDir()
	file := filepath.Join(base, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := blob.OpenDir(filepath.Join(file, "blobs"))
	if artel.KindOf(err) != artel.Unavailable {
		t.Errorf("a file in the way: %v", err)
	}
	dir := filepath.Join(base, "blobs")
	d := openDir(t, dir)
	if err := os.RemoveAll(filepath.Join(dir, "staging")); err != nil {
		t.Fatal(err)
	}
	_, err = d.Put(t.Context(), strings.NewReader("x"), 0)
	if artel.KindOf(err) != artel.Unavailable || !errors.Is(err, syscall.ENOENT) || strings.Contains(err.Error(), base) {
		t.Errorf("no staging folder: %v", err)
	}
}

// Memory stays flat however much is put.
func TestDirPutIsFlat(t *testing.T) {
	d := openDir(t, t.TempDir())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := d.Put(t.Context(), io.LimitReader(&zeros{}, 32<<20), 0); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 1<<20 {
		t.Errorf("putting 32 MiB allocated %d bytes", used)
	}
}

type zeros struct{}

func (*zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func BenchmarkDirPut200MB(b *testing.B) {
	d := openDir(b, b.TempDir())
	b.SetBytes(200 << 20)
	b.ReportAllocs()
	for b.Loop() {
		info, err := d.Put(b.Context(), io.LimitReader(&zeros{}, 200<<20), 0)
		if err == nil {
			_, err = d.Delete(b.Context(), info.Digest, time.Now().Add(time.Hour))
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkDirOpen(b *testing.B) {
	d := openDir(b, b.TempDir())
	info, err := d.Put(b.Context(), bytes.NewReader(make([]byte, 1000)), 0)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r, err := d.Open(b.Context(), info.Digest)
		if err == nil {
			err = r.Close()
		}
		if err != nil {
			b.Fatal(err)
		}
	}
}
