// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres"
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
	db, err := s.openDatabase(ctx, o)
	if err != nil {
		return nil, nil, err
	}
	blobs, err := s.openBlobs(ctx, o, db)
	if err != nil {
		return nil, nil, err
	}
	return db, blobs, nil
}

// openDatabase opens the file in the data directory, or the database of --database, which it
// claims for this process.
func (s *server) openDatabase(ctx context.Context, o serverOptions) (store.Store, error) {
	file := filepath.Join(o.data, databaseFile)
	address := o.config.database
	if address == "" {
		db, err := sqlite.Open(ctx, file, sqlite.Options{})
		if err != nil {
			return nil, err
		}
		s.close = append(s.close, db.Close)
		opened, err := os.Stat(file)
		if err != nil {
			return nil, artel.Errorf(artel.Unavailable, "serve", file, "the database cannot be read: %w", err)
		}
		s.watch = func(ctx context.Context) error { return watchFile(ctx, file, opened) }
		return db, nil
	}
	if _, err := os.Stat(file); err == nil {
		o.log.Warn("the data directory has a database of its own, which is not used with --database", "file", file)
	}
	if o.standby {
		o.log.Info("if another server uses the database, this one waits and takes over when it ends")
	}
	claim, err := postgres.Take(ctx, address, postgres.TakeOptions{Wait: o.standby, Shared: o.config.replica.shares()})
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, claim.Release)
	s.watch = func(ctx context.Context) error {
		select {
		case err := <-claim.Lost():
			return err
		case <-ctx.Done():
			return nil
		}
	}
	db, err := postgres.Open(ctx, address, postgres.Options{})
	if err != nil {
		return nil, err
	}
	s.close = append(s.close, db.Close)
	return db, nil
}

// databaseVariable names the database, like --database.
const databaseVariable = "ARTEL_DATABASE"

// databaseFlag adds --database to the verbs that open a data directory.
func databaseFlag(cmd *cobra.Command, address *string) {
	cmd.Flags().StringVar(address, "database", os.Getenv(databaseVariable), "PostgreSQL in place of the file in the data directory: postgres://USER:PASSWORD@HOST/NAME")
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

// usersFile is a file in a configured folder of blobs that lists who uses it, one per
// line: data directories, and databases by [databaseUser].
const usersFile = "data-directories"

// checkAlone returns an error if others share the blob folder: bytes that their rows
// refer to would look like garbage. In a bucket, each database has objects of its own.
// Servers with one database are one user.
func (s *server) checkAlone(o serverOptions) error {
	bucket, dir, err := o.blobPlace()
	if err != nil || bucket != nil {
		return err
	}
	others, err := otherUsers(dir, s.user)
	if err != nil {
		return artel.Errorf(artel.Unavailable, "gc", dir, "the users of this folder cannot be read: %w", err)
	}
	if len(others) > 0 {
		return artel.Errorf(artel.Conflict, "gc", dir, "%s stores its bytes in this folder too, so nothing is removed; give each its own folder (blobs.dir)", others[0])
	}
	return nil
}

// databaseUser is how the users of a folder of blobs begin that are no data directory: with
// it and the hash of a key of the database, since its address differs between machines.
const databaseUser = "the database "

// blobsUser names the user of a folder of blobs.
func (o serverOptions) blobsUser(ctx context.Context, db store.Store) (string, error) {
	if o.config.database == "" {
		return filepath.Abs(o.data)
	}
	key, err := sharedKey(ctx, db)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(key)
	return databaseUser + hex.EncodeToString(sum[:8]), nil
}

// claimBlobs records who uses a folder of blobs.
func claimBlobs(dir, user string) error {
	users, err := readUsers(dir)
	if err != nil || users[user] {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, usersFile), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = f.WriteString(user + "\n")
	return errors.Join(err, f.Close())
}

// otherUsers returns the others that share a folder of blobs: those that claimed it, and
// the data directory that contains it.
func otherUsers(dir, self string) (others []string, err error) {
	around, err := filepath.Abs(filepath.Dir(dir))
	if err != nil {
		return nil, err
	}
	users, err := readUsers(dir)
	others = append(slices.Sorted(maps.Keys(users)), around)
	return slices.DeleteFunc(others, func(user string) bool {
		if user == self || strings.HasPrefix(user, databaseUser) {
			return user == self
		}
		_, err := os.Stat(filepath.Join(user, databaseFile))
		return err != nil
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
