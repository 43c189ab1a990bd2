// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
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

// A place is where a deployment keeps its data.
type place struct{ data, database, blobs string }

// flags adds the flags of the place that the variables of the environment and the configuration
// are about.
func (p *place) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.data, "data", envOr("ARTEL_DATA", defaultData), "data directory")
	databaseFlag(cmd, &p.database)
	blobsFlag(cmd, &p.blobs)
}

// destinationFlags adds the flags of the place that data are moved to.
func (p *place) destinationFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&p.data, "to-data", "", "data directory")
	cmd.Flags().StringVar(&p.database, "to-database", "", "PostgreSQL in place of a file in the data directory: postgres://USER:PASSWORD@HOST/NAME")
	cmd.Flags().StringVar(&p.blobs, "to-blobs", "", "where the bytes of files go: s3://BUCKET?endpoint=…, or file:///FOLDER (default: blobs in the data directory)")
}

// An openPlace is open for this process alone.
type openPlace struct {
	place
	server *server
	store  store.Store
	blobs  blob.Store
}

// open opens a place, and makes what is missing of it. The blobs of a server that is configured
// may be where its configuration says.
func (p place) open(ctx context.Context, g *globals, configured bool) (*openPlace, error) {
	conf, err := loadConfig(g.config)
	if err != nil {
		return nil, err
	}
	if conf.blobs, conf.database = p.blobs, p.database; !configured {
		conf.Blobs.URL, conf.Blobs.Dir = "", ""
	}
	o := &openPlace{place: p, server: &server{config: conf, log: newLog(conf)}}
	if o.store, o.blobs, err = o.server.openData(ctx, serverOptions{data: p.data, config: conf, log: o.server.log}); err != nil {
		o.server.shut()
		return nil, err
	}
	return o, nil
}

// blobPlace returns where the blobs are, to compare it with that of another place.
func (o *openPlace) blobPlace() (string, error) {
	bucket, dir, err := serverOptions{data: o.data, config: o.server.config}.blobPlace()
	if err != nil || bucket != nil {
		return fmt.Sprint(bucket), err
	}
	return filepath.Abs(dir)
}

// rowsOf returns the rows of a database.
func rowsOf(s store.Store) rows.Store {
	switch s := s.(type) {
	case *postgres.Store:
		return s.Store
	case *sqlite.Store:
		return s.Store
	}
	panic("unknown database")
}

// A moved is what was copied.
type moved struct {
	Tables []rows.Copied `json:"tables"`
	Blobs  int64         `json:"blobs"`
	Bytes  int64         `json:"bytes"` // of blobs
	Notes  []string      `json:"notes,omitempty"`
}

// move copies everything of a place into another one.
func (o *openPlace) move(ctx context.Context, to *openPlace, resume bool, far func(string)) (m moved, err error) {
	source, err := o.blobPlace()
	if err != nil {
		return m, err
	}
	destination, err := to.blobPlace()
	if err != nil {
		return m, err
	}
	sameBlobs := source == destination
	m.Tables, err = rows.Copy(ctx, rowsOf(o.store), rowsOf(to.store), rows.CopyOptions{
		Objects: sameBlobs, Resume: resume, Far: func(table string, n int64) { far(fmt.Sprintf("%s: %d rows", table, n)) },
	})
	if err != nil {
		return m, err
	}
	if !sameBlobs {
		if m.Blobs, m.Bytes, err = copyBlobs(ctx, to.store, o.blobs, to.blobs, far); err != nil {
			return m, err
		}
	}
	if m.Notes, err = o.moveKeys(ctx, to); err != nil {
		return m, err
	}
	return m, to.renameUser(ctx)
}

// A taker is the part of a store of blobs that takes copies.
type taker interface {
	Put(ctx context.Context, r io.Reader, limit int64) (blob.Info, error)
	Stat(ctx context.Context, d artel.Digest) (blob.Info, error)
}

// A reader takes blobs only to read them.
type reader struct{}

// Put computes the digest.
func (reader) Put(_ context.Context, r io.Reader, _ int64) (blob.Info, error) {
	sum := sha256.New()
	n, err := io.Copy(sum, r)
	return blob.Info{Digest: artel.NewDigest([sha256.Size]byte(sum.Sum(nil))), Size: n}, err
}

// Stat finds nothing.
func (reader) Stat(context.Context, artel.Digest) (blob.Info, error) {
	return blob.Info{}, artel.NotFound
}

// copyBlobs copies the blobs that the rows of a store refer to. Those that are there are not
// copied again.
func copyBlobs(ctx context.Context, s store.Store, from blob.Store, to taker, far func(string)) (n, size int64, err error) {
	needed, err := rows.Kept(ctx, rowsOf(s))
	if err != nil {
		return 0, 0, err
	}
	all := map[artel.Digest]bool{}
	for use, err := range s.Digests(ctx) {
		if err != nil {
			return 0, 0, err
		}
		all[use.Digest] = true
	}
	for d := range all {
		info, err := from.Stat(ctx, d)
		if errors.Is(err, artel.NotFound) {
			if _, must := needed[d]; must {
				return n, size, artel.Errorf(artel.NotFound, "migrate", string(d), "a file is missing that it should have: run this again if it was deleted just now, else upload it again, or bring it back from a backup")
			}
			continue // a text, or what can be made again
		}
		if err != nil {
			return n, size, err
		}
		if there, err := to.Stat(ctx, d); err != nil || there.Size != info.Size {
			if err := copyBlob(ctx, d, from, to); err != nil {
				return n, size, err
			}
		}
		n, size = n+1, size+info.Size
		far(fmt.Sprintf("%d files, %s", n, phrase.Size(size)))
	}
	return n, size, nil
}

func copyBlob(ctx context.Context, d artel.Digest, from blob.Store, to taker) error {
	r, err := from.Open(ctx, d)
	if err != nil {
		return err
	}
	defer r.Close()
	info, err := to.Put(ctx, r, 0)
	if err == nil && info.Digest != d {
		err = artel.Errorf(artel.Internal, "migrate", string(d), "the bytes of this file are damaged in the source: upload it again, or bring it back from a backup")
	}
	return err
}

// moveKeys has addresses that were signed stay valid, and stored secrets readable.
func (o *openPlace) moveKeys(ctx context.Context, to *openPlace) (notes []string, err error) {
	var key []byte
	switch file := filepath.Join(o.data, "signing.key"); {
	case o.database != "":
		key, err = sharedKey(ctx, o.store)
	case exists(file):
		key, err = keyInFile(file)
	}
	switch {
	case err != nil || key == nil: // without one, the first server makes it
	case to.database != "":
		err = setSharedKey(ctx, to.store, key)
	default:
		err = writeKey(filepath.Join(to.data, "signing.key"), key)
	}
	if err != nil {
		return nil, err
	}
	if err := copyFiles(o.data, to.data, append([]string{secretFile}, besides...)...); err != nil {
		return nil, err
	}
	if exists(filepath.Join(to.data, secretFile)) && to.database != "" {
		notes = append(notes, "the key that opens stored secrets is in "+filepath.Join(to.data, secretFile)+"; give it to servers on other machines as ARTEL_SECRET_KEY")
	}
	return notes, nil
}

// renameUser has the folder of the blobs know its database by the key that it has now.
func (o *openPlace) renameUser(ctx context.Context) error {
	bucket, dir, err := serverOptions{data: o.data, config: o.server.config}.blobPlace()
	if err != nil || bucket != nil || o.database == "" {
		return err
	}
	now, err := serverOptions{data: o.data, config: o.server.config}.blobsUser(ctx, o.store)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, usersFile)
	text, err := os.ReadFile(path)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}
	return os.WriteFile(path, []byte(strings.Replace(string(text), o.server.user+"\n", now+"\n", 1)), 0o600)
}

// lines prints the report.
func (m moved) lines(w printer) {
	var n int64
	for _, t := range m.Tables {
		n += t.Rows
	}
	w.linef("%d rows, %d files (%s), compared with the source", n, m.Blobs, phrase.Size(m.Bytes))
	for _, note := range m.Notes {
		w.line(note)
	}
}

// farOf returns a function that shows on a terminal how far long work is, and one that ends
// the line.
func farOf(w io.Writer) (far func(string), end func()) {
	f, ok := w.(*os.File)
	if ok {
		stat, err := f.Stat()
		ok = err == nil && stat.Mode()&os.ModeCharDevice != 0
	}
	if !ok {
		return func(string) {}, func() {}
	}
	var last time.Time
	return func(text string) {
		if time.Since(last) > 100*time.Millisecond {
			last = time.Now()
			fmt.Fprint(f, "\r\x1b[K"+text)
		}
	}, func() { fmt.Fprint(f, "\r\x1b[K") }
}

func migrateCommand(g *globals) *cobra.Command {
	var from, to place
	var resume bool
	cmd := &cobra.Command{
		Use: "migrate", Short: "Copy all data into another database or bucket", Args: usage(cobra.NoArgs),
		Long: `Copies everything that a stopped server keeps into another database, bucket or
data directory, which must be empty, and compares both afterwards. The source is
not changed: start the server with the new flags when the copy is complete.
A copy that was broken off is continued with --resume.`,
		Example: `  artel migrate --data data --to-data data2 --to-database postgres://artel@db/artel --to-blobs s3://files
  artel migrate --data data2 --database postgres://artel@db/artel --blobs s3://files --to-data back`,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if to.data == "" || to.data == from.data {
				return usageError{errors.New("--to-data: want another data directory than that of the source, which servers with a database need too")}
			}
			if from.database == "" {
				if _, err := os.Stat(filepath.Join(from.data, databaseFile)); err != nil {
					return usageError{fmt.Errorf("--data %s: there is no database in it", from.data)}
				}
			}
			source, err := from.open(cmd.Context(), g, true)
			if err != nil {
				return err
			}
			defer source.server.shut()
			m, err := source.moveTo(cmd, g, to, false, resume)
			if err != nil {
				return err
			}
			return g.print(cmd, m, m.lines)
		},
	}
	from.flags(cmd)
	to.destinationFlags(cmd)
	cmd.Flags().BoolVar(&resume, "resume", false, "continue a copy that was broken off, if the source has not changed")
	return cmd
}

// moveTo opens the destination, and shows how far the copy is. That of a server that is
// configured may have its blobs where its configuration says.
func (o *openPlace) moveTo(cmd *cobra.Command, g *globals, to place, configured, resume bool) (moved, error) {
	destination, err := to.open(cmd.Context(), g, configured)
	if err != nil {
		return moved{}, err
	}
	defer destination.server.shut()
	far, end := farOf(cmd.ErrOrStderr())
	defer end()
	return o.move(cmd.Context(), destination, resume, far)
}
