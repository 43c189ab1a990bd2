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

// marksFile is the file of facts tested and learned about services, in a data
// directory. It may be removed at any time; the facts are then learned again.
const marksFile = "marks.json"

// openMarks opens the ledger of a data directory. An unreadable file is logged
// and counts as empty. Unless write is set, nothing is saved.
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

// keepFile writes a file atomically: a reader, and a start after a crash, sees
// the complete new or the complete old content.
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
