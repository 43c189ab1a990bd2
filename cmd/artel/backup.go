// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres"
	"github.com/artelhq/artel/store/rows"
	"github.com/artelhq/artel/store/sqlite"
)

// A manifest describes a backup.
type manifest struct {
	Version string        `json:"version"` // of the program
	Made    time.Time     `json:"made"`
	Tables  []rows.Copied `json:"tables"`
	Blobs   int64         `json:"blobs"`
	Bytes   int64         `json:"bytes"`
}

const manifestFile = "backup.json"

func backupCommand(g *globals) *cobra.Command {
	cmd := &cobra.Command{
		Use: "backup", Short: "Make, verify and restore backups", Args: usage(cobra.NoArgs),
		Long: `A backup is a data directory: a SQLite database with the blobs beside it,
whatever the server uses. artel serve --data BACKUP shows what is in one (make a copy first).`,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(backupCreateCommand(g), backupVerifyCommand(g), backupRestoreCommand(g))
	return cmd
}

func backupCreateCommand(g *globals) *cobra.Command {
	var from place
	cmd := &cobra.Command{
		Use: "create FOLDER", Short: "Write a backup, also while the server works", Args: usage(cobra.ExactArgs(1)),
		Long: `Writes one state of the database, and the blobs that belong to it, into a new
folder, which gets its name when it is complete. With a folder that has a backup already, that
backup is replaced, and blobs that are in it are not copied again.`,
		Example: "  artel backup create /backup/artel\n  artel backup create /backup/artel --database postgres://artel@db/artel --blobs s3://files",
		RunE: func(cmd *cobra.Command, args []string) error {
			far, end := farOf(cmd.ErrOrStderr())
			m, err := from.backUp(cmd.Context(), g, args[0], far)
			if end(); err != nil {
				return err
			}
			return g.print(cmd, m, moved{Tables: m.Tables, Blobs: m.Blobs, Bytes: m.Bytes}.lines)
		},
	}
	from.flags(cmd)
	return cmd
}

// backUp writes a backup beside its folder, and puts it in its place at the end.
func (p place) backUp(ctx context.Context, g *globals, to string, far func(string)) (m manifest, err error) {
	const op = "backup"
	if err := mayReplace(to); err != nil {
		return m, err
	}
	conf, err := loadConfig(g.config)
	if err != nil {
		return m, err
	}
	partial := to + ".partial"
	if err := errors.Join(os.RemoveAll(partial), os.MkdirAll(partial, 0o700)); err != nil {
		return m, artel.Errorf(artel.Unavailable, op, partial, "the backup cannot be written: %w", err)
	}
	file := filepath.Join(partial, databaseFile)
	far("the database")
	conf.database = p.database
	source := &server{config: conf, log: newLog(conf)}
	defer source.shut()
	db, err := p.snapshot(ctx, file)
	if err != nil {
		return m, err
	}
	if db != nil {
		defer db.Close()
	}
	copied, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return m, err
	}
	defer copied.Close()
	source.config.blobs = cmp.Or(p.blobs, source.config.blobs)
	index := store.Store(copied) // of the blobs
	if db != nil {
		index = db
	}
	from, err := source.openBlobs(ctx, serverOptions{data: p.data, config: source.config, log: source.log}, index)
	if err != nil {
		return m, err
	}
	if err := linkAll(filepath.Join(to, "blobs"), filepath.Join(partial, "blobs")); err != nil {
		return m, artel.Errorf(artel.Unavailable, op, to, "the blobs of the backup before cannot be read: %w", err)
	}
	into, err := blob.OpenDir(filepath.Join(partial, "blobs"))
	if err != nil {
		return m, err
	}
	defer into.Close()
	if m.Blobs, m.Bytes, err = copyBlobs(ctx, copied, from, into, far); err != nil {
		return m, err
	}
	if err := removeOthers(ctx, copied, into); err != nil {
		return m, err
	}
	if err := rows.ForgetObjects(ctx, copied.Store); err != nil {
		return m, err
	}
	if m.Tables, err = rows.Sum(ctx, copied.Store, false); err != nil {
		return m, err
	}
	m.Version, m.Made = version, time.Now().UTC().Truncate(time.Second)
	if err := p.copyKeys(ctx, db, partial); err != nil {
		return m, err
	}
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return m, err
	}
	if err := errors.Join(copied.Close(), into.Close(), os.WriteFile(filepath.Join(partial, manifestFile), append(text, '\n'), 0o600)); err != nil {
		return m, artel.Errorf(artel.Unavailable, op, partial, "the backup cannot be written: %w", err)
	}
	// One after the other: the backup before stays until this one is on disk.
	if err = syncAll(partial); err == nil {
		err = swap(partial, to)
	}
	if err == nil {
		err = syncPath(filepath.Dir(to))
	}
	if err != nil {
		return m, artel.Errorf(artel.Unavailable, op, to, "the backup cannot be put in its place: %w", err)
	}
	return m, nil
}

// linkAll gives the files of a folder a second name in another one, so that blobs of the backup
// before are not copied again. Where that is not possible, they are; also those whose bytes are
// damaged, which would be in every later backup otherwise.
func linkAll(from, to string) error {
	err := filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.Name() == "staging" {
			return cmp.Or(err, fs.SkipDir)
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if e.IsDir() {
			return os.MkdirAll(filepath.Join(to, rel), 0o700)
		}
		hex, _, _ := strings.Cut(e.Name(), ".")
		f, err := os.Open(path)
		if err != nil {
			return nil // it is copied
		}
		defer f.Close()
		if info, err := (reader{}).Put(context.Background(), f, 0); err == nil && info.Digest.Hex() == hex {
			_ = os.Link(path, filepath.Join(to, rel))
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// removeOthers removes the blobs that a store does not refer to.
func removeOthers(ctx context.Context, s store.Store, blobs *blob.Dir) error {
	used := map[artel.Digest]bool{}
	for use, err := range s.Digests(ctx) {
		if err != nil {
			return err
		}
		used[use.Digest] = true
	}
	var others []artel.Digest
	err := blobs.List(ctx, func(i blob.Info) bool {
		if !used[i.Digest] {
			others = append(others, i.Digest)
		}
		return true
	})
	for _, d := range others {
		if err == nil {
			_, err = blobs.Delete(ctx, d, time.Now().Add(time.Hour))
		}
	}
	return err
}

// swap puts a folder in the place of another one, which is there until then.
func swap(made, place string) error {
	old := place + ".old"
	if err := os.RemoveAll(old); err != nil {
		return err
	}
	if err := os.Rename(place, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(made, place); err != nil {
		_ = os.Rename(old, place) // there may be none
		return err
	}
	return os.RemoveAll(old)
}

// mayReplace returns an error if something else than a backup is at a path.
func mayReplace(path string) error {
	entries, err := os.ReadDir(path)
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(entries) == 0 {
		return nil
	}
	if err == nil && !exists(filepath.Join(path, manifestFile)) {
		err = errors.New("it has other files and no backup: choose another folder")
	}
	if err != nil {
		return artel.Errorf(artel.Conflict, "backup", path, "%w", err)
	}
	return nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

// snapshot writes one state of the database to a file of SQLite. It returns a database of
// PostgreSQL, whose index says where the blobs are, to be closed; nil for SQLite.
func (p place) snapshot(ctx context.Context, file string) (*postgres.Store, error) {
	if p.database == "" {
		path := filepath.Join(p.data, databaseFile)
		if !exists(path) {
			return nil, usageError{fmt.Errorf("--data %s: there is no database in it", p.data)}
		}
		return nil, sqlite.Snapshot(ctx, path, file)
	}
	db, err := postgres.Open(ctx, p.database, postgres.Options{Existing: true, Connections: 4})
	if err != nil {
		return nil, err
	}
	into, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err == nil {
		_, err = rows.Copy(ctx, db.Store, into.Store, rows.CopyOptions{})
		err = errors.Join(err, into.Close())
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// copyKeys copies the files with keys of a data directory, or writes those of a database if there
// is one.
func (p place) copyKeys(ctx context.Context, db *postgres.Store, to string) error {
	if db != nil {
		key, err := sharedKey(ctx, db)
		if err != nil {
			return err
		}
		return errors.Join(writeKey(filepath.Join(to, "signing.key"), key), copyFiles(p.data, to, append([]string{secretFile}, besides...)...))
	}
	return copyFiles(p.data, to, append([]string{"signing.key", secretFile}, besides...)...)
}

// besides are the files and folders of a data directory that are neither rows nor blobs nor
// keys, and no caches: what was learned about services, what is stored at them, certificates.
var besides = []string{"marks.json", "held.json", "acme"}

// copyFiles copies files and folders of a folder that are there.
func copyFiles(from, to string, names ...string) error {
	for _, name := range names {
		info, err := os.Stat(filepath.Join(from, name))
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue
		case err == nil && info.IsDir():
			err = errors.Join(os.RemoveAll(filepath.Join(to, name)), os.CopyFS(filepath.Join(to, name), os.DirFS(filepath.Join(from, name))))
		case err == nil:
			var text []byte
			if text, err = os.ReadFile(filepath.Join(from, name)); err == nil {
				err = os.WriteFile(filepath.Join(to, name), text, 0o600)
			}
		}
		if err != nil {
			return artel.Errorf(artel.Unavailable, "backup", name, "it cannot be copied: %w", err)
		}
	}
	return nil
}

// syncAll has the files and folders of a backup on disk. The bytes of blobs are already.
func syncAll(dir string) error {
	blobs := filepath.Join(dir, "blobs") + string(filepath.Separator)
	return filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.IsDir() && (!e.Type().IsRegular() || strings.HasPrefix(path, blobs)) {
			return err
		}
		return syncPath(path)
	})
}

// syncPath has a file, or the list of a folder, on disk.
func syncPath(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// readManifest reads that of a backup.
func readManifest(backup string) (m manifest, err error) {
	text, err := os.ReadFile(filepath.Join(backup, manifestFile))
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	if err != nil {
		return m, artel.Errorf(artel.Invalid, "backup", backup, "it is no complete backup: %w", err)
	}
	return m, nil
}

func backupVerifyCommand(g *globals) *cobra.Command {
	return &cobra.Command{
		Use: "verify FOLDER", Short: "Compare a backup with what was written", Args: usage(cobra.ExactArgs(1)),
		Long: "Reads every row and every byte of a backup and compares them with its list of digests.",
		RunE: func(cmd *cobra.Command, args []string) error {
			far, end := farOf(cmd.ErrOrStderr())
			m, err := verifyBackup(cmd.Context(), g, args[0], far)
			if end(); err != nil {
				return err
			}
			return g.print(cmd, m, func(w printer) {
				w.linef("the backup of %s is whole: %d files (%s)", m.Made.Format("2006-01-02 15:04:05 MST"), m.Blobs, phrase.Size(m.Bytes))
			})
		},
	}
}

// openBackup opens a copy of the database of a backup, so that nothing of the backup changes,
// and its blobs. The rows are those that were written.
func openBackup(ctx context.Context, g *globals, backup string) (o *openPlace, m manifest, err error) {
	const op = "backup"
	if m, err = readManifest(backup); err != nil {
		return nil, m, err
	}
	conf, err := loadConfig(g.config)
	if err != nil {
		return nil, m, err
	}
	conf.Blobs.URL, conf.Blobs.Dir = "", ""
	dir, err := os.MkdirTemp("", "artel-backup-")
	if err != nil {
		return nil, m, err
	}
	s := &server{config: conf, log: newLog(conf)}
	s.close = append(s.close, func() error { return os.RemoveAll(dir) })
	defer func() {
		if err != nil {
			s.shut()
		}
	}()
	// Not by SQLite, which writes beside a file that it reads.
	file := filepath.Join(dir, databaseFile)
	f, err := os.Open(filepath.Join(backup, databaseFile))
	if err == nil {
		err = errors.Join(writeTo(file, f), f.Close())
	}
	if err != nil {
		return nil, m, artel.Errorf(artel.Unavailable, op, backup, "the database of the backup cannot be copied to %s: %w", dir, err)
	}
	db, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return nil, m, err
	}
	s.close = append(s.close, db.Close)
	tables, err := rows.Sum(ctx, db.Store, false)
	if err != nil {
		return nil, m, err
	}
	if m.Version == version { // another one may have more columns
		for i, t := range tables {
			if i >= len(m.Tables) || t != m.Tables[i] {
				return nil, m, artel.Errorf(artel.Internal, op, t.Table, "the rows of this table differ from those that were written")
			}
		}
	}
	blobs, err := blob.OpenDir(filepath.Join(backup, "blobs"))
	if err != nil {
		return nil, m, err
	}
	s.close = append(s.close, blobs.Close)
	err = copyFiles(backup, dir, append([]string{"signing.key", secretFile}, besides...)...)
	return &openPlace{place: place{data: dir}, server: s, store: db, blobs: blobs}, m, err
}

// complete returns an error unless a backup has the blobs that were written.
func (m manifest) complete(backup string, n, size int64) error {
	if n == m.Blobs && size == m.Bytes {
		return nil
	}
	return artel.Errorf(artel.Internal, "backup", backup, "it has %d files of %d bytes, and was written with %d of %d", n, size, m.Blobs, m.Bytes)
}

// verifyBackup reads a backup.
func verifyBackup(ctx context.Context, g *globals, backup string, far func(string)) (manifest, error) {
	far("the database")
	o, m, err := openBackup(ctx, g, backup)
	if err != nil {
		return m, err
	}
	defer o.server.shut()
	n, size, err := copyBlobs(ctx, o.store, o.blobs, reader{}, far)
	if err != nil {
		return m, err
	}
	return m, m.complete(backup, n, size)
}

func backupRestoreCommand(g *globals) *cobra.Command {
	var to place
	var resume bool
	cmd := &cobra.Command{
		Use: "restore FOLDER", Short: "Bring a backup into an empty data directory or database", Args: usage(cobra.ExactArgs(1)),
		Example: "  artel backup restore /backup/artel --data data\n  artel backup restore /backup/artel --data data --database postgres://artel@db/artel --blobs s3://files",
		RunE: func(cmd *cobra.Command, args []string) error {
			o, m, err := openBackup(cmd.Context(), g, args[0])
			if err != nil {
				return err
			}
			defer o.server.shut()
			made, err := o.moveTo(cmd, g, to, true, resume)
			if err == nil {
				err = m.complete(args[0], made.Blobs, made.Bytes)
			}
			if err != nil {
				return err
			}
			return g.print(cmd, made, made.lines)
		},
	}
	to.flags(cmd)
	cmd.Flags().BoolVar(&resume, "resume", false, "continue a restore that was broken off")
	return cmd
}
