// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// standbyEvery is how often a standby server tries to take over.
const standbyEvery = 100 * time.Millisecond

// errInUse reports that another process has locked a data directory.
var errInUse = errors.New("another server uses this data directory")

const (
	databaseFile = "artel.db"
	lockFile     = "lock" // locked by the process that uses the data directory
)

// spoolDir is the folder of temporary request bodies.
func (o serverOptions) spoolDir() string { return filepath.Join(o.data, "spool") }

// pdfDir is the folder of the compiled PDF reader.
func (o serverOptions) pdfDir() string { return filepath.Join(o.data, "pdfium") }

// openData locks the data directory for this process and opens its contents;
// closing the server unlocks it.
func (s *server) openData(ctx context.Context, o serverOptions) (store.Store, blob.Store, error) {
	if o.config.blobs == "" && slices.Contains(o.config.withheld, "blobs") { // the bytes may be elsewhere
		return nil, nil, o.config.errUntrusted()
	}
	if err := os.MkdirAll(o.data, 0o700); err != nil {
		return nil, nil, artel.Errorf(artel.Unavailable, "serve", o.data, "the data directory cannot be made: %w", err)
	}
	warnOfWriters(o.data, o.log)
	lock := flock.New(filepath.Join(o.data, lockFile))
	held, err := lock.TryLock()
	if !held && err == nil && o.standby {
		o.log.Info("another server uses the data directory; this one waits and takes over when it ends", "data", o.data)
		held, err = lock.TryLockContext(ctx, standbyEvery)
	}
	if err != nil {
		return nil, nil, artel.Errorf(artel.Unavailable, "serve", o.data, "the data directory cannot be locked: %w", err)
	}
	if !held {
		return nil, nil, artel.Errorf(artel.Conflict, "serve", o.data, "%w; stop it, or choose another with --data", errInUse)
	}
	s.close = append(s.close, lock.Unlock)
	if err := removeFile(filepath.Join(o.data, addressFile)); err != nil { // of a killed server
		return nil, nil, artel.Errorf(artel.Unavailable, "serve", o.data, "the data directory cannot be written: %w", err)
	}
	// Remove the spool files of a killed server.
	spool := o.spoolDir()
	if err := errors.Join(os.RemoveAll(spool), os.Mkdir(spool, 0o700)); err != nil {
		return nil, nil, artel.Errorf(artel.Unavailable, "serve", o.data, "the data directory cannot be written: %w", err)
	}
	s.database = filepath.Join(o.data, databaseFile)
	db, err := sqlite.Open(ctx, s.database, sqlite.Options{})
	if err != nil {
		return nil, nil, err
	}
	s.close = append(s.close, db.Close)
	if s.opened, err = os.Stat(s.database); err != nil {
		return nil, nil, artel.Errorf(artel.Unavailable, "serve", s.database, "the database cannot be read: %w", err)
	}
	blobs, err := s.openBlobs(ctx, o, db)
	if err != nil {
		return nil, nil, err
	}
	return db, blobs, nil
}

// warnOfWriters says if other accounts can replace the files of a data directory,
// although they cannot read them. It does not refuse them: some file systems of
// other systems have these modes always.
func warnOfWriters(data string, log *slog.Logger) {
	info, err := os.Stat(data)
	if err == nil && runtime.GOOS != "windows" && info.Mode().Perm()&0o002 != 0 && info.Mode()&os.ModeSticky == 0 {
		log.Warn("every account of this machine can replace the files in the data directory; run: chmod 700 "+data, "data", data, "mode", info.Mode().String())
	}
}

// usersFile is a file in a configured folder of blobs that lists the data
// directories using it, one per line.
const usersFile = "data-directories"

// checkAlone returns an error if other data directories share the blob folder: bytes
// that their rows refer to would look like garbage. In a bucket, each database has
// objects of its own.
func (o serverOptions) checkAlone() error {
	bucket, dir, err := o.blobPlace()
	if err != nil || bucket != nil {
		return err
	}
	others, err := otherUsers(dir, o.data)
	if err != nil {
		return artel.Errorf(artel.Unavailable, "gc", dir, "the users of this folder cannot be read: %w", err)
	}
	if len(others) > 0 {
		return artel.Errorf(artel.Conflict, "gc", dir, "the data directory %s stores its bytes in this folder too, so nothing is removed; give each its own folder (blobs.dir)", others[0])
	}
	return nil
}

// claimBlobs records that a data directory uses a folder of blobs.
func claimBlobs(dir, data string) error {
	path, err := filepath.Abs(data)
	if err != nil {
		return err
	}
	users, err := readUsers(dir)
	if err != nil || users[path] {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, usersFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(path + "\n")
	return errors.Join(err, f.Close())
}

// otherUsers returns the other existing data directories that share a folder of
// blobs: those that claimed it, and the one that contains it.
func otherUsers(dir, data string) (others []string, err error) {
	path, err := filepath.Abs(data)
	if err != nil {
		return nil, err
	}
	around, err := filepath.Abs(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	users, err := readUsers(dir)
	others = append(slices.Sorted(maps.Keys(users)), around)
	return slices.DeleteFunc(others, func(user string) bool {
		_, err := os.Stat(filepath.Join(user, databaseFile))
		return err != nil || user == path
	}), err
}

func readUsers(dir string) (map[string]bool, error) {
	f, err := os.Open(filepath.Join(dir, usersFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	users := map[string]bool{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if line := strings.TrimSpace(lines.Text()); line != "" {
			users[line] = true
		}
	}
	return users, lines.Err()
}
