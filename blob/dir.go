// SPDX-License-Identifier: Apache-2.0

package blob

import (
	"context"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/gofrs/flock"

	"github.com/artelhq/artel"
)

// copyBuffer is large enough that hashing costs more than the system calls.
const copyBuffer = 128 << 10

// A Dir stores blobs in a folder, one plain file each:
//
//	ab/cd/abcd….1234     the blob with SHA-256 abcd…, 1,234 bytes long
//	staging/put-…        an unfinished file
//	staging/lock         held, shared, by every open Dir
//	staging/turn.lock    held, shared, while a file gets its name or a new
//	                     time, and alone while one is deleted
//
// A file gets its name once it is complete and on disk, so a crashed process
// leaves at most a staged file, which the next OpenDir removes. The size in the
// name reveals a file that was truncated or grew; the modification time is that
// of the last Put. Only plain files are opened, so a link cannot lead out of the
// folder. Several processes may share a folder. Folders have mode 0700 and files
// 0600.
type Dir struct {
	root    string
	lock    *flock.Flock
	buffers sync.Pool // of *[copyBuffer]byte
	durable sync.Map  // leaf folders whose directory entries are on disk
}

var _ Store = (*Dir)(nil)

// OpenDir opens the folder at path, and creates it if it is missing. It removes
// the staged files of crashed processes.
func OpenDir(path string) (*Dir, error) {
	const op = "blob.OpenDir"
	root, err := filepath.Abs(path)
	if err != nil {
		return nil, diskError(op, path, err)
	}
	d := &Dir{root: root}
	d.buffers.New = func() any { return new([copyBuffer]byte) }
	if err := os.MkdirAll(d.staging(), 0o700); err != nil {
		return nil, diskError(op, path, err)
	}
	d.lock = flock.New(filepath.Join(d.staging(), "lock"), flock.SetPermissions(0o600))
	alone, err := d.lock.TryLock()
	if err == nil && alone {
		err = errors.Join(d.clearStaging(), d.lock.Unlock())
	}
	if err == nil {
		err = d.lock.RLock()
	}
	if err != nil {
		return nil, diskError(op, path, errors.Join(err, d.lock.Close()))
	}
	return d, nil
}

// Close releases the folder's lock. It does not wait for calls in progress.
func (d *Dir) Close() error {
	if err := d.lock.Close(); err != nil {
		return diskError("blob.Close", "", err)
	}
	return nil
}

func (d *Dir) staging() string { return filepath.Join(d.root, "staging") }

// clearStaging is called with the exclusive lock, so that no file is being
// written.
func (d *Dir) clearStaging() error {
	entries, err := os.ReadDir(d.staging())
	if err != nil {
		return err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), "put-") {
			if err := os.Remove(filepath.Join(d.staging(), e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	return nil
}

// Put implements [Store]. It is durable when it returns.
func (d *Dir) Put(ctx context.Context, r io.Reader, limit int64) (Info, error) {
	const op = "blob.Put"
	staged, err := os.CreateTemp(d.staging(), "put-")
	if err != nil {
		return Info{}, diskError(op, "", err)
	}
	defer func() {
		// After the rename both fail, which is as it should be.
		_ = staged.Close()
		_ = os.Remove(staged.Name())
	}()
	digest, size, err := d.fill(ctx, staged, r, limit)
	if err != nil {
		return Info{}, err
	}
	leaf, name := d.place(digest)
	name += "." + strconv.FormatInt(size, 10)
	info := Info{Digest: digest, Size: size}
	if _, err := d.Stat(ctx, digest); err == nil {
		if info.Time, err = d.touch(filepath.Join(leaf, name)); err == nil {
			// The first writer may have crashed before syncing the directory.
			if err := syncDir(leaf); err != nil {
				return Info{}, diskError(op, string(digest), err)
			}
			return info, d.settle(op, leaf)
		}
		// Deleted in between: fall through and keep the new copy.
	}
	err = staged.Sync()
	if err == nil {
		err = os.MkdirAll(leaf, 0o700)
	}
	if err == nil {
		info.Time, err = d.name(staged.Name(), filepath.Join(leaf, name))
	}
	if err == nil {
		err = syncDir(leaf)
	}
	if err != nil {
		return Info{}, diskError(op, string(digest), err)
	}
	return info, d.settle(op, leaf)
}

// turn takes the lock under which files get their names and times (shared), or
// go (alone). Each taking has a handle of its own, so that goroutines keep each
// other out as processes do.
func (d *Dir) turn(shared bool) (done func(), err error) {
	l := flock.New(filepath.Join(d.staging(), "turn.lock"), flock.SetPermissions(0o600))
	if shared {
		err = l.RLock()
	} else {
		err = l.Lock()
	}
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return func() { _ = l.Close() }, nil
}

// touch gives a file that is there the time of now.
func (d *Dir) touch(path string) (time.Time, error) {
	done, err := d.turn(true)
	if err != nil {
		return time.Time{}, err
	}
	defer done()
	now := time.Now()
	return now, os.Chtimes(path, now, now)
}

// name gives a file that is whole and on disk its name, and the time of now:
// what it took to come does not count as age.
func (d *Dir) name(staged, path string) (time.Time, error) {
	done, err := d.turn(true)
	if err != nil {
		return time.Time{}, err
	}
	defer done()
	now := time.Now()
	return now, errors.Join(os.Chtimes(staged, now, now), os.Rename(staged, path))
}

// fill copies r into staged while it counts and hashes.
func (d *Dir) fill(ctx context.Context, staged *os.File, r io.Reader, limit int64) (artel.Digest, int64, error) {
	const op = "blob.Put"
	buf := d.buffers.Get().(*[copyBuffer]byte)
	defer d.buffers.Put(buf)
	hash := sha256.New()
	var size int64
	for {
		if err := ctx.Err(); err != nil {
			return "", 0, SourceError(op, err)
		}
		n, err := r.Read(buf[:])
		size += int64(n)
		if limit > 0 && size > limit {
			return "", 0, LimitError(op, limit)
		}
		hash.Write(buf[:n])
		if _, err := staged.Write(buf[:n]); err != nil {
			return "", 0, diskError(op, "", err)
		}
		if err == io.EOF { // a wrapped EOF is a failure, not the end
			return artel.NewDigest([32]byte(hash.Sum(nil))), size, nil
		}
		if err != nil {
			return "", 0, SourceError(op, err)
		}
	}
}

// settle makes sure that the folders above a leaf survive a power failure:
// once per leaf and process, because the process that made them may have crashed.
func (d *Dir) settle(op, leaf string) error {
	if _, done := d.durable.Load(leaf); done {
		return nil
	}
	for _, dir := range []string{filepath.Dir(leaf), d.root} {
		if err := syncDir(dir); err != nil {
			return diskError(op, "", err)
		}
	}
	d.durable.Store(leaf, true)
	return nil
}

// Open implements [Store].
func (d *Dir) Open(ctx context.Context, digest artel.Digest) (Reader, error) {
	const op = "blob.Open"
	path, info, err := d.find(ctx, op, digest)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(op, digest)
	}
	if err != nil {
		return nil, diskError(op, string(digest), err)
	}
	// What was looked at may have been changed for something else.
	if stat, err := f.Stat(); err != nil || !stat.Mode().IsRegular() || stat.Size() != info.Size {
		_ = f.Close()
		return nil, artel.Errorf(artel.Internal, op, string(digest), "the stored file is not what was put")
	}
	return &fileReader{f, info.Size}, nil
}

// Stat implements [Store].
func (d *Dir) Stat(ctx context.Context, digest artel.Digest) (Info, error) {
	_, info, err := d.find(ctx, "blob.Stat", digest)
	return info, err
}

// Delete implements [Store].
func (d *Dir) Delete(ctx context.Context, digest artel.Digest, before time.Time) (bool, error) {
	const op = "blob.Delete"
	done, err := d.turn(false)
	if err != nil {
		return false, diskError(op, string(digest), err)
	}
	defer done()
	paths, err := d.paths(ctx, op, digest)
	if err != nil {
		return false, err
	}
	for _, path := range paths {
		stat, err := os.Lstat(path)
		if err == nil && !stat.ModTime().Before(before) {
			return false, nil
		}
		if err == nil {
			err = os.Remove(path)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, diskError(op, string(digest), err)
		}
	}
	return true, nil
}

// Unstage implements [Stager].
func (d *Dir) Unstage(ctx context.Context, before time.Time) (Staged, error) {
	const op = "blob.Unstage"
	var gone Staged
	entries, err := os.ReadDir(d.staging())
	if err != nil {
		return gone, diskError(op, "", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return gone, SourceError(op, err)
		}
		stat, err := e.Info()
		if err != nil || !strings.HasPrefix(e.Name(), "put-") || !stat.ModTime().Before(before) {
			continue // another process may have come to it first
		}
		if err := os.Remove(filepath.Join(d.staging(), e.Name())); err == nil {
			gone.Files, gone.Bytes = gone.Files+1, gone.Bytes+stat.Size()
		} else if !errors.Is(err, fs.ErrNotExist) {
			return gone, diskError(op, "", err)
		}
	}
	return gone, nil
}

// List implements [Store]. Blobs that come or go meanwhile may be left out.
// Folders are read one at a time, so that the memory does not grow with them.
func (d *Dir) List(ctx context.Context, yield func(Info) bool) error {
	const op = "blob.List"
	for upper, err := range foldersIn(d.root) {
		if err != nil {
			return diskError(op, "", err)
		}
		for leaf, err := range foldersIn(upper) {
			if err != nil {
				return diskError(op, "", err)
			}
			if more, err := listLeaf(ctx, leaf, yield); err != nil || !more {
				return err
			}
		}
	}
	return nil
}

// foldersIn yields the folders of a fan-out.
func foldersIn(path string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		entries, err := os.ReadDir(path)
		if err != nil {
			yield("", err)
			return
		}
		for _, e := range entries {
			if name := e.Name(); len(name) == 2 && strings.Trim(name, "0123456789abcdef") == "" && !yield(filepath.Join(path, name), nil) {
				return
			}
		}
	}
}

func listLeaf(ctx context.Context, leaf string, yield func(Info) bool) (more bool, err error) {
	const op = "blob.List"
	entries, err := os.ReadDir(leaf)
	if err != nil {
		return false, diskError(op, "", err)
	}
	for _, e := range entries {
		if err := ctx.Err(); err != nil {
			return false, SourceError(op, err)
		}
		digest, size, ok := parseName(e.Name())
		if !ok {
			continue
		}
		stat, err := e.Info()
		if err != nil || !stat.Mode().IsRegular() {
			continue
		}
		if !yield(Info{Digest: digest, Size: size, Time: stat.ModTime()}) {
			return false, nil
		}
	}
	return true, nil
}

// MoveAside moves the files of a digest into a folder of the same file system, as when their
// bytes are damaged, so that the blob is missing and can be put again.
func (d *Dir) MoveAside(ctx context.Context, digest artel.Digest, folder string) error {
	const op = "blob.MoveAside"
	paths, err := d.paths(ctx, op, digest)
	if err != nil {
		return err
	}
	for _, path := range paths {
		if err := os.Rename(path, filepath.Join(folder, filepath.Base(path))); err != nil {
			return diskError(op, string(digest), err)
		}
	}
	return nil
}

// place returns the folder of a digest that has the right form, and the beginning of its file's name.
func (d *Dir) place(digest artel.Digest) (leaf, name string) {
	hex := digest.Hex()
	return filepath.Join(d.root, hex[:2], hex[2:4]), hex
}

// paths lists the files of a digest: one, unless the folder was changed from outside.
func (d *Dir) paths(ctx context.Context, op string, digest artel.Digest) ([]string, error) {
	if err := ctx.Err(); err != nil {
		return nil, SourceError(op, err)
	}
	if _, err := artel.ParseDigest(string(digest)); err != nil {
		return nil, nil // what cannot exist is not there
	}
	leaf, prefix := d.place(digest)
	f, err := os.Open(leaf)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, diskError(op, string(digest), err)
	}
	defer f.Close()
	all, err := f.Readdirnames(-1)
	if err != nil {
		return nil, diskError(op, string(digest), err)
	}
	var mine []string
	for _, name := range all {
		if strings.HasPrefix(name, prefix) {
			mine = append(mine, filepath.Join(leaf, name))
		}
	}
	return mine, nil
}

func (d *Dir) find(ctx context.Context, op string, digest artel.Digest) (string, Info, error) {
	paths, err := d.paths(ctx, op, digest)
	if err != nil {
		return "", Info{}, err
	}
	for _, path := range paths {
		_, size, ok := parseName(filepath.Base(path))
		stat, err := os.Lstat(path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // deleted in between
		case err != nil:
			return "", Info{}, diskError(op, string(digest), err)
		case !stat.Mode().IsRegular():
			return "", Info{}, artel.Errorf(artel.Internal, op, string(digest), "what is stored there is no plain file")
		case !ok || stat.Size() != size:
			return "", Info{}, artel.Errorf(artel.Internal, op, string(digest),
				"the stored file has %d bytes, which is not what was put", stat.Size())
		}
		return path, Info{Digest: digest, Size: size, Time: stat.ModTime()}, nil
	}
	return "", Info{}, notFound(op, digest)
}

func parseName(name string) (artel.Digest, int64, bool) {
	hex, tail, _ := strings.Cut(name, ".")
	digest, err := artel.ParseDigest("sha256-" + hex)
	if err != nil {
		return "", 0, false
	}
	size, err := strconv.ParseInt(tail, 10, 64)
	return digest, size, err == nil && size >= 0 && strconv.FormatInt(size, 10) == tail
}

func syncDir(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

type fileReader struct {
	*os.File
	size int64
}

// Size implements [Reader].
func (r *fileReader) Size() int64 { return r.size }
