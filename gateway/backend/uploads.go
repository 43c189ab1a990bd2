// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"context"
	"crypto/rand"
	"io"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// An Upload is a file that a client has uploaded to send it by id. Its bytes are
// stored unchanged.
type Upload = store.File

// uploadPrefix begins the ids of uploaded files.
const uploadPrefix = "file-"

// IsUploadID reports whether s may be the id of a file that was uploaded here.
// The files of services have ids of that form too.
func IsUploadID(s string) bool { return strings.HasPrefix(s, uploadPrefix) && len(s) < 100 }

// Uploads stores the files that clients upload. A file belongs to the key with
// which it was uploaded; for any other key it is of kind NotFound.
type Uploads struct{ parts app.Parts }

// Stage stores the bytes of a file, up to the size of an artifact (kind
// TooLarge). They have no id before [Uploads.Create].
func (u *Uploads) Stage(ctx context.Context, body io.Reader, filename, declared string) (Upload, error) {
	owner, quota, now := artel.OwnerOf(ctx), u.parts.Artifacts.Quota, u.parts.Now()
	if err := quota.AdmitPassing(owner, now); err != nil {
		return Upload{}, err
	}
	b, err := u.parts.Blobs.Put(ctx, artifact.Reserved(ctx, body), artifact.DefaultMaxBytes)
	if err != nil {
		return Upload{}, err
	}
	quota.Passed(owner, b.Digest, b.Size, now)
	info, err := inspect(ctx, u.parts.Blobs, b.Digest, b.Size, media.Hint{DeclaredType: declared, Filename: filename})
	return Upload{Digest: b.Digest, Filename: media.ShortFilename(filename), Info: info}, err
}

// Reserve admits the upload of a request; see [artifact.Quota.Reserve].
func (u *Uploads) Reserve(ctx context.Context, size, spare int64) (context.Context, func(), error) {
	return u.parts.Artifacts.Quota.Reserve(ctx, size, spare)
}

// Create gives a staged file an id. expires 0 means never.
func (u *Uploads) Create(ctx context.Context, f Upload, key Key, expires time.Duration) (Upload, error) {
	now := u.parts.Now()
	f.ID, f.Holder, f.CreatedAt = uploadPrefix+strings.ToLower(rand.Text()), key.Name, now.UTC().Truncate(time.Microsecond)
	if expires > 0 {
		f.ExpiresAt = f.CreatedAt.Add(expires)
	}
	err := u.parts.Store.Update(ctx, artel.OwnerOf(ctx), func(tx store.Tx) error {
		if err := tx.Files.Purge(now); err != nil {
			return err
		}
		return u.parts.Artifacts.Quota.Within(tx, func() error { return tx.Files.Create(f) })
	})
	if err == nil {
		u.parts.Artifacts.Quota.Kept(artel.OwnerOf(ctx), f.Digest)
	}
	return f, err
}

// Find returns the file with an id.
func (u *Uploads) Find(ctx context.Context, id string, key Key) (f Upload, err error) {
	err = u.parts.Store.View(ctx, artel.OwnerOf(ctx), func(tx store.Tx) (err error) {
		f, err = findUpload(tx, id, key, u.parts.Now())
		return err
	})
	return f, err
}

func findUpload(tx store.Tx, id string, key Key, now time.Time) (Upload, error) {
	f, err := tx.Files.Get(id, now)
	if err == nil && f.Holder != key.Name {
		return Upload{}, artel.Errorf(artel.NotFound, "backend.Uploads.Find", artel.Shorten(id, 80), "no such file")
	}
	return f, err
}

// List returns at most limit files after the one with the id after, and whether
// there are more.
func (u *Uploads) List(ctx context.Context, key Key, after string, oldest bool, limit int) (items []Upload, more bool, err error) {
	err = u.parts.Store.View(ctx, artel.OwnerOf(ctx), func(tx store.Tx) (err error) {
		items, err = tx.Files.List(store.FileQuery{Holder: key.Name, Now: u.parts.Now(), After: after, Oldest: oldest, Limit: limit + 1})
		return err
	})
	if len(items) > limit {
		return items[:limit], true, err
	}
	return items, false, err
}

// Delete removes a file. Model services that have a copy are asked to delete it;
// garbage collection removes the bytes if nothing else refers to them.
func (u *Uploads) Delete(ctx context.Context, id string, key Key) error {
	var f Upload
	err := u.parts.Store.Update(ctx, artel.OwnerOf(ctx), func(tx store.Tx) (err error) {
		if f, err = findUpload(tx, id, key, u.parts.Now()); err != nil {
			return err
		}
		return tx.Files.Delete(id, u.parts.Now())
	})
	if err == nil {
		u.parts.ServiceFiles.Drop(f.Digest)
	}
	return err
}

// Open returns the bytes of a file; the caller closes them.
func (u *Uploads) Open(ctx context.Context, f Upload) (blob.Reader, error) {
	return u.parts.Blobs.Open(ctx, f.Digest)
}
