// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"context"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// Blobs implements [store.Unowned].
func (s Store) Blobs() blob.Index { return blobIndex{s} }

type blobIndex struct{ store Store }

const objectColumns = "SELECT digest, key, size, put_at FROM blobs"

func scanObject(o *blob.Object) []any {
	return []any{&o.Digest, &o.Key, &o.Size, (*timeColumn)(&o.Time)}
}

// microsUp rounds a time up to microseconds, so that what is stored now is not
// before a time that was taken earlier.
func microsUp(t time.Time) int64 { return micros(t.Add(time.Microsecond - time.Nanosecond)) }

func (x blobIndex) Find(ctx context.Context, d artel.Digest) (o blob.Object, err error) {
	err = x.store.view(ctx, Deployment, func(t *Tx) error {
		o, err = t.object("store.Blobs.Find", d)
		return err
	})
	return o, err
}

func (t *Tx) object(op string, d artel.Digest) (blob.Object, error) {
	var o blob.Object
	found, err := t.row(op, artel.Shorten(string(d), 80), objectColumns+" WHERE digest = ?", []any{string(d)}, scanObject(&o)...)
	if err == nil && !found {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(string(d), 80), "no such blob")
	}
	if err != nil {
		return blob.Object{}, err
	}
	return o, nil
}

func (x blobIndex) Keep(ctx context.Context, o blob.Object) (kept blob.Object, err error) {
	const op = "store.Blobs.Keep"
	if _, err := artel.ParseDigest(string(o.Digest)); err != nil {
		return kept, artel.Errorf(artel.Invalid, op, artel.Shorten(string(o.Digest), 80), "%w", err)
	}
	err = x.store.db.Write(ctx, Deployment, func(t *Tx) error {
		at, err := t.now(op)
		if err != nil {
			return err
		}
		now := microsUp(at)
		n, err := t.change(op, string(o.Digest), "UPDATE blobs SET put_at = CASE WHEN put_at < ?1 THEN ?1 ELSE put_at END WHERE digest = ?2", now, string(o.Digest))
		if err == nil && n == 0 && o.Key != "" {
			err = t.keepNew(op, o, now)
		}
		if err == nil {
			kept, err = t.object(op, o.Digest)
		}
		return err
	})
	return kept, err
}

func (t *Tx) keepNew(op string, o blob.Object, now int64) error {
	n, err := t.change(op, o.Key, "DELETE FROM blob_trash WHERE key = ? AND due > ?", o.Key, now)
	if err != nil {
		return err
	}
	if n == 0 {
		return artel.Errorf(artel.Conflict, op, o.Key, "the key is not reserved any more, so its object may be gone: write the bytes again")
	}
	_, err = t.change(op, o.Key, "INSERT INTO blobs (digest, key, size, put_at) VALUES (?, ?, ?, ?)", string(o.Digest), o.Key, o.Size, now)
	return err
}

func (x blobIndex) Drop(ctx context.Context, d artel.Digest, before time.Time, rest time.Duration) (gone bool, err error) {
	const op = "store.Blobs.Drop"
	err = x.store.db.Write(ctx, Deployment, func(t *Tx) error {
		o, err := t.object(op, d)
		if artel.KindOf(err) == artel.NotFound {
			gone = true
			return nil
		}
		if gone = err == nil && micros(o.Time) < microsUp(before); !gone {
			return err
		}
		if _, err := t.change(op, string(d), "DELETE FROM blobs WHERE digest = ?", string(d)); err != nil {
			return err
		}
		return t.trash(op, rest, o.Key)
	})
	return gone && err == nil, err
}

func (t *Tx) trash(op string, rest time.Duration, keys ...string) error {
	now, err := t.now(op)
	if err != nil {
		return err
	}
	for _, key := range keys {
		if _, err := t.change(op, key, "INSERT INTO blob_trash (key, due) VALUES (?, ?)", key, microsUp(now.Add(rest))); err != nil {
			return err
		}
	}
	return nil
}

// listedObjects is how many objects are read at once.
const listedObjects = 500

func (x blobIndex) List(ctx context.Context, yield func(blob.Object) bool) error {
	const op = "store.Blobs.List"
	for last := ""; ; {
		var some []blob.Object
		err := x.store.view(ctx, Deployment, func(t *Tx) (err error) {
			some, err = list(t, op, "", objectColumns+" WHERE digest > ? ORDER BY digest LIMIT ?", []any{last, listedObjects},
				func(rows Row, o *blob.Object) error { return rows.Scan(scanObject(o)...) })
			return err
		})
		if err != nil {
			return err
		}
		for _, o := range some {
			if !yield(o) {
				return nil
			}
			last = string(o.Digest)
		}
		if len(some) < listedObjects {
			return nil
		}
	}
}

func (x blobIndex) Reserve(ctx context.Context, rest time.Duration, keys ...string) error {
	const op = "store.Blobs.Reserve"
	if err := checkText(op, "key", keys...); err != nil {
		return err
	}
	return x.store.db.Write(ctx, Deployment, func(t *Tx) error { return t.trash(op, rest, keys...) })
}

func (x blobIndex) Due(ctx context.Context, limit int) (keys []string, err error) {
	const op = "store.Blobs.Due"
	err = x.store.view(ctx, Deployment, func(t *Tx) error {
		now, err := t.now(op)
		if err != nil {
			return err
		}
		keys, err = list(t, op, "", "SELECT key FROM blob_trash WHERE due <= ? ORDER BY due LIMIT ?", []any{micros(now), limit},
			func(rows Row, key *string) error { return rows.Scan(key) })
		return err
	})
	return keys, err
}

func (x blobIndex) Forget(ctx context.Context, keys ...string) error {
	return x.store.db.Write(ctx, Deployment, func(t *Tx) error {
		for _, key := range keys {
			if _, err := t.change("store.Blobs.Forget", key, "DELETE FROM blob_trash WHERE key = ?", key); err != nil {
				return err
			}
		}
		return nil
	})
}
