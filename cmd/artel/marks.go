// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// marksFile is where a data directory keeps what was tried out with services
// and learned from them. It may be removed at any time, and is learned again.
const marksFile = "marks.json"

// openMarks returns the ledger of a data directory. A file that cannot be read
// is told and counts as empty. With write unset, nothing is saved.
func openMarks(data string, write bool, log *slog.Logger) *model.Ledger {
	path := filepath.Join(data, marksFile)
	src, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("what was learned about services cannot be read and is learned anew", "err", err)
	}
	o := model.LedgerOptions{Data: src, Log: log}
	if write {
		o.Save = func(data []byte) error { return keepFile(path, data) }
	}
	return model.NewLedger(o)
}

// keepFile writes a file so that a reader, and a start after a crash, sees
// all of it or all of the one before.
func keepFile(path string, data []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return artel.Errorf(artel.Unavailable, "serve", path, "it cannot be written: %w", err)
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	return err
}
