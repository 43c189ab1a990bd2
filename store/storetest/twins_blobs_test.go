// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"context"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// breakBlobs replaces the index.
func breakBlobs(broken func(blob.Index) blob.Index) func(*twin) {
	return func(t *twin) { t.blobs = broken(t.blobs) }
}

// frozenBlobs never renews a time.
type frozenBlobs struct{ blob.Index }

func (x frozenBlobs) Keep(ctx context.Context, o blob.Object) (blob.Object, error) {
	if found, err := x.Find(ctx, o.Digest); err == nil {
		return found, nil
	}
	return x.Index.Keep(ctx, o)
}

// trustingBlobs keeps keys that nobody has reserved.
type trustingBlobs struct{ blob.Index }

func (x trustingBlobs) Keep(ctx context.Context, o blob.Object) (blob.Object, error) {
	kept, err := x.Index.Keep(ctx, o)
	if artel.KindOf(err) != artel.Conflict || x.Forget(ctx, o.Key) != nil || x.Reserve(ctx, time.Hour, o.Key) != nil {
		return kept, err
	}
	return x.Index.Keep(ctx, o)
}

// restlessBlobs drops for ever at once.
type restlessBlobs struct{ blob.Index }

func (x restlessBlobs) Drop(ctx context.Context, d artel.Digest, before time.Time, _ time.Duration) (bool, error) {
	return x.Index.Drop(ctx, d, before, 0)
}

// firstBlobs lists one page.
type firstBlobs struct{ blob.Index }

func (x firstBlobs) List(ctx context.Context, yield func(blob.Object) bool) error {
	n := 0
	return x.Index.List(ctx, func(o blob.Object) bool { n++; return n <= 1000 && yield(o) })
}

// hastyBlobs looks at the time first, and drops then.
type hastyBlobs struct{ blob.Index }

func (x hastyBlobs) Drop(ctx context.Context, d artel.Digest, before time.Time, rest time.Duration) (bool, error) {
	o, err := x.Find(ctx, d)
	if err == nil && !o.Time.Before(before) {
		return false, nil
	}
	time.Sleep(time.Millisecond)
	return x.Index.Drop(ctx, d, time.Now().Add(time.Hour), rest)
}

func blobTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"blobs/keep":             breakBlobs(func(x blob.Index) blob.Index { return frozenBlobs{x} }),
		"blobs/reserved keys":    breakBlobs(func(x blob.Index) blob.Index { return trustingBlobs{x} }),
		"blobs/drop":             breakBlobs(func(x blob.Index) blob.Index { return restlessBlobs{x} }),
		"blobs/list":             breakBlobs(func(x blob.Index) blob.Index { return firstBlobs{x} }),
		"blobs/keep beside drop": breakBlobs(func(x blob.Index) blob.Index { return hastyBlobs{x} }),
	}
}
