// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model/provider"
)

// heldFile is the record of uploaded files in a data directory. It may be
// removed at any time; the files are then uploaded again.
const heldFile = "held.json"

// openHeld opens the record of uploaded files of a data directory. address
// returns the public URL of media for services; nil: none.
func openHeld(data string, address func(artel.Media) string, log *slog.Logger) *provider.Uploads {
	path := filepath.Join(data, heldFile)
	src, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("which files services hold cannot be read; they are sent again", "err", err)
	}
	return provider.NewUploads(provider.UploadsOptions{Data: src, Address: address, Log: log, Save: func(data []byte) error { return keepFile(path, data) }})
}
