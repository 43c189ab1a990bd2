// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// signingKey returns the key that signs addresses: that of the data directory, or of the
// database that several machines can serve.
func (o serverOptions) signingKey(ctx context.Context, db store.Store) ([]byte, error) {
	if o.config.database == "" {
		return keyInFile(filepath.Join(o.data, "signing.key"))
	}
	return sharedKey(ctx, db)
}

// sharedKey returns the key in a database. The first server makes it.
func sharedKey(ctx context.Context, db store.Store) (key []byte, err error) {
	err = db.People().Update(ctx, func(tx store.PeopleTx) error {
		e, err := tx.Entries.Get(store.SharedKey, signingID)
		if err == nil {
			key = e.Secrets
			return nil
		}
		if artel.KindOf(err) != artel.NotFound {
			return err
		}
		key = make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails
		return tx.Entries.Create(sharedEntry(key))
	})
	if err == nil && len(key) != keyBytes {
		err = artel.Errorf(artel.Invalid, "serve", "database", "the key that signs addresses has %d bytes, want %d", len(key), keyBytes)
	}
	return key, err
}

// signingID is the id of the entry with the key.
const signingID = "signing"

func sharedEntry(key []byte) store.Entry {
	now := time.Now()
	return store.Entry{Kind: store.SharedKey, ID: signingID, Fields: []byte("{}"), Secrets: key, CreatedAt: now, UpdatedAt: now}
}

// setSharedKey replaces the key of a database.
func setSharedKey(ctx context.Context, db store.Store, key []byte) error {
	return db.People().Update(ctx, func(tx store.PeopleTx) error {
		if err := tx.Entries.Delete(store.SharedKey, signingID); err != nil && artel.KindOf(err) != artel.NotFound {
			return err
		}
		return tx.Entries.Create(sharedEntry(key))
	})
}

// keyInFile reads the key that signs file URLs, or creates one. Only its owner
// can read the file; removing it invalidates all signed URLs at the next start.
func keyInFile(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newSigningKey(path)
	}
	if err == nil && !info.Mode().IsRegular() { // the mode of what a link leads to would be changed
		return nil, artel.Errorf(artel.Invalid, "serve", path, "it is no file of its own, but a link or a folder; remove it, and a new key is made")
	}
	var src []byte
	if err == nil {
		src, err = os.ReadFile(path)
	}
	if err == nil {
		err = os.Chmod(path, 0o600) // a copy may have lost its mode
	}
	if err != nil {
		return nil, artel.Errorf(artel.Unavailable, "serve", path, "the key that signs addresses cannot be read: %w", err)
	}
	key, err := hex.DecodeString(strings.TrimSpace(string(src)))
	if err != nil || len(key) != keyBytes {
		return nil, artel.Errorf(artel.Invalid, "serve", path, "want %d hexadecimal digits; remove the file, and a new key is made", 2*keyBytes)
	}
	return key, nil
}

const keyBytes = 32

// secretFile is the file of the key that encrypts stored secrets, in a data directory,
// unless ARTEL_SECRET_KEY has the key.
const secretFile = "secret.key"

// newSigningKey creates the file.
func newSigningKey(path string) ([]byte, error) {
	key := make([]byte, keyBytes)
	_, _ = rand.Read(key) // never fails
	return key, writeKey(path, key)
}

// writeKey writes the file atomically.
func writeKey(path string, key []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), "signing-*") // mode 0600
	if err == nil {
		defer func() { _ = os.Remove(f.Name()) }() // after the rename there is none
		_, err = f.WriteString(hex.EncodeToString(key) + "\n")
		err = errors.Join(err, f.Sync(), f.Close())
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return artel.Errorf(artel.Unavailable, "serve", path, "the key that signs addresses cannot be kept: %w", err)
	}
	return nil
}
