// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

//go:generate env ARTEL_MAKE_BLANK=1 go test -count=1 -run ^TestBlank$ .

// blankFile is a database that has nothing but the schema, so that a new one
// need not be taken through all migrations. It may be older than these: what it
// has not is applied to it as to any database.
//
//go:embed blank.db.gz
var blankFile []byte

// blank returns the file of an empty database.
func blank() ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(blankFile))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(z)
}

// makeFile makes a new database at path, if there is no file. It does so before
// SQLite does, which would give it other modes; the files beside it take over
// the modes of this one.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return reachable(path)
	}
	content, err := blank()
	if err != nil {
		return err
	}
	// Another process may be at the same work: the file is there as a whole, or
	// not at all.
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = f.Write(content)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err == nil {
		return nil
	}
	return reachable(path) // it is there meanwhile, or the file system has no links
}

// reachable opens the file for writing, and makes it where it is not there.
func reachable(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// fillBlank makes the database in memory that db has just opened a blank one.
func fillBlank(ctx context.Context, db *sql.DB) error {
	content, err := blank()
	if err != nil {
		return err
	}
	c, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	defer c.Close()
	return c.Raw(func(c any) error {
		d, ok := c.(interface{ Deserialize(content []byte) error })
		if !ok {
			return errors.New("the driver cannot take a database from memory")
		}
		return d.Deserialize(content)
	})
}
