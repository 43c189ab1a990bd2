// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/rand"
	"io"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/store"
)

// A GatewayFile is what a program has uploaded to send it by id. Its bytes stay
// as they came.
type GatewayFile = store.File

// filePrefix begins the ids of uploaded files.
const filePrefix = "file-"

// IsFileID reports whether s may be the id of a file that was uploaded here.
// Services have ids of that form too.
func IsFileID(s string) bool { return strings.HasPrefix(s, filePrefix) && len(s) < 100 }

// Stage keeps the bytes of a file, of any size up to that of an artifact (kind
// TooLarge). They belong to nobody before [Gateway.Keep].
func (g *Gateway) Stage(ctx context.Context, r io.Reader, filename, declared string) (GatewayFile, error) {
	b, err := g.blobs.Put(ctx, r, artifact.DefaultMaxBytes)
	if err != nil {
		return GatewayFile{}, err
	}
	info, err := detected(ctx, g.blobs, b, media.Hint{DeclaredType: declared, Filename: filename})
	return GatewayFile{Digest: b.Digest, Filename: filename, Info: info}, err
}

func detected(ctx context.Context, blobs blob.Store, b blob.Info, h media.Hint) (artel.MediaInfo, error) {
	r, err := blobs.Open(ctx, b.Digest)
	if err != nil {
		return artel.MediaInfo{}, err
	}
	defer r.Close()
	head, err := io.ReadAll(io.LimitReader(r, MaxHead))
	if err != nil {
		return artel.MediaInfo{}, err
	}
	info := media.Detect(head, h)
	info.Size = b.Size
	return media.Measure(ctx, info, r), nil
}

// Keep gives a staged file an id, for the program with the key. expires 0 means
// never.
func (g *Gateway) Keep(ctx context.Context, f GatewayFile, key GatewayKey, expires time.Duration) (GatewayFile, error) {
	now := g.now()
	f.ID, f.Holder, f.CreatedAt = filePrefix+strings.ToLower(rand.Text()), key.Name, now.UTC().Truncate(time.Microsecond)
	if expires > 0 {
		f.ExpiresAt = f.CreatedAt.Add(expires)
	}
	err := g.store.Update(ctx, ownerOf(ctx), func(tx store.Tx) error {
		if err := tx.Files.Purge(now); err != nil {
			return err
		}
		return tx.Files.Create(f)
	})
	return f, err
}

// File finds a file of the program with the key. Another's is of kind NotFound.
func (g *Gateway) File(ctx context.Context, id string, key GatewayKey) (f GatewayFile, err error) {
	err = g.store.View(ctx, ownerOf(ctx), func(tx store.Tx) (err error) {
		f, err = heldFile(tx, id, key, g.now())
		return err
	})
	return f, err
}

func heldFile(tx store.Tx, id string, key GatewayKey, now time.Time) (GatewayFile, error) {
	f, err := tx.Files.Get(id, now)
	if err == nil && f.Holder != key.Name {
		return GatewayFile{}, artel.Errorf(artel.NotFound, "app.Gateway.File", artel.Shorten(id, 80), "no such file")
	}
	return f, err
}

// Files returns the files of the program with the key, and whether there are
// more than limit.
func (g *Gateway) Files(ctx context.Context, key GatewayKey, after string, oldest bool, limit int) (items []GatewayFile, more bool, err error) {
	err = g.store.View(ctx, ownerOf(ctx), func(tx store.Tx) (err error) {
		items, err = tx.Files.List(store.FileQuery{Holder: key.Name, Now: g.now(), After: after, Oldest: oldest, Limit: limit + 1})
		return err
	})
	if len(items) > limit {
		return items[:limit], true, err
	}
	return items, false, err
}

// Forget removes a file of the program with the key. Its bytes go with the
// garbage when nothing else refers to them; model services that hold them are
// told at once.
func (g *Gateway) Forget(ctx context.Context, id string, key GatewayKey) error {
	var f GatewayFile
	err := g.store.Update(ctx, ownerOf(ctx), func(tx store.Tx) (err error) {
		if f, err = heldFile(tx, id, key, g.now()); err != nil {
			return err
		}
		return tx.Files.Delete(id, g.now())
	})
	if err == nil {
		g.held.Drop(f.Digest)
	}
	return err
}

// Open returns the bytes of a file, which the caller closes.
func (g *Gateway) Open(ctx context.Context, f GatewayFile) (blob.Reader, error) {
	return g.blobs.Open(ctx, f.Digest)
}

// Named finds what the id of a file means; kind NotFound where it is none of
// the program's, as the ids of a service's own files are.
func (p *Passage) Named(ctx context.Context, id string, key GatewayKey) (artel.Media, error) {
	f, err := p.File(ctx, id, key)
	if err != nil {
		return artel.Media{}, err
	}
	p.held[f.Digest] = f.Info
	return artel.Media{
		Ref: artel.BlobRef(f.Digest), MediaType: f.Info.MediaType, Kind: f.Info.Kind, Filename: f.Filename, Size: f.Info.Size,
		Width: f.Info.Width, Height: f.Info.Height, Pages: f.Info.Pages, Duration: f.Info.Duration,
	}, nil
}
