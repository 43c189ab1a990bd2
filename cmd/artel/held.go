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

// heldFile is where a data directory keeps which files services hold. It may
// be removed at any time; the files are sent again.
const heldFile = "held.json"

// openHeld returns the record of a data directory. address is where services
// fetch media; nil: nowhere.
func openHeld(data string, address func(artel.Media) string, log *slog.Logger) *provider.Uploads {
	path := filepath.Join(data, heldFile)
	src, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("which files services hold cannot be read; they are sent again", "err", err)
	}
	return provider.NewUploads(provider.UploadsOptions{Data: src, Address: address, Log: log, Save: func(data []byte) error { return keepFile(path, data) }})
}
