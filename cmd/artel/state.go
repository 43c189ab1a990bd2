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
	"github.com/artelhq/artel/model/provider"
)

// marksFile is the file of facts tested and learned about services, in a data
// directory. It may be removed at any time; the facts are then learned again.
const marksFile = "marks.json"

// openMarks opens the ledger of a data directory. An unreadable file is logged
// and counts as empty. Unless write is set, nothing is saved.
func openMarks(data string, write bool, log *slog.Logger) *model.Ledger {
	src, save := stateFile(filepath.Join(data, marksFile), log)
	o := model.LedgerOptions{Data: src, Log: log}
	if write {
		o.Save = save
	}
	return model.NewLedger(o)
}

// stateFile reads a file that may be missing, and returns the function that
// replaces it. An unreadable file is logged and counts as empty.
func stateFile(path string, log *slog.Logger) (src []byte, save func([]byte) error) {
	src, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("a state file cannot be read and starts empty", "path", path, "err", err)
	}
	return src, func(data []byte) error { return keepFile(path, data) }
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

// uploadsFile is the record of uploaded files in a data directory. It may be
// removed at any time; the files are then uploaded again.
const uploadsFile = "held.json"

// openUploads opens the record of uploaded files of a data directory. address
// returns the public URL of media for services; nil: none.
func openUploads(data string, address func(artel.Media) string, log *slog.Logger) *provider.Uploads {
	src, save := stateFile(filepath.Join(data, uploadsFile), log)
	return provider.NewUploads(provider.UploadsOptions{Data: src, Address: address, Log: log, Save: save})
}
