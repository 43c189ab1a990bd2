// SPDX-License-Identifier: Apache-2.0

package sweep_test

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"iter"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/sweep"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
)

func numbered(n int) artel.Digest {
	return artel.NewDigest(sha256.Sum256(binary.BigEndian.AppendUint64(nil, uint64(n))))
}

// manyUses refers to every second of so many digests, in two places.
type manyUses struct {
	store.Store
	n int
}

// Digests implements [store.Store].
func (s manyUses) Digests(context.Context) iter.Seq2[store.Use, error] {
	return func(yield func(store.Use, error) bool) {
		for i := range s.n {
			if !yield(store.Use{Owner: "me", Digest: numbered(i / 2 * 2), Bytes: true}, nil) {
				return
			}
		}
	}
}

// manyBlobs lists so many blobs that it has not, and deletes them.
type manyBlobs struct {
	blob.Store
	n int
}

// List implements [blob.Store].
func (b manyBlobs) List(_ context.Context, yield func(blob.Info) bool) error {
	for i := range b.n {
		if !yield(blob.Info{Digest: numbered(i), Size: 1}) {
			break
		}
	}
	return nil
}

// Delete implements [blob.Store].
func (manyBlobs) Delete(context.Context, artel.Digest, time.Time) (bool, error) { return true, nil }

// BenchmarkSweep is what a sweep itself costs, without disk and database, and
// how much memory it keeps for each digest that is wanted.
func BenchmarkSweep(b *testing.B) {
	for _, n := range []int{10_000, 100_000, 1_000_000} {
		b.Run(strconv.Itoa(n), func(b *testing.B) {
			for b.Loop() {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				peak := uint64(0)
				r, err := sweep.Run(b.Context(), manyUses{n: n}, manyBlobs{n: n}, time.Now(), sweep.Options{Progress: func(sweep.Report) {
					runtime.GC()
					runtime.ReadMemStats(&after)
					peak = max(peak, after.HeapAlloc-min(before.HeapAlloc, after.HeapAlloc))
				}})
				if err != nil || r.Removed.Count != int64(n/2) {
					b.Fatal(r, err)
				}
				b.ReportMetric(float64(peak)/float64(n/2), "bytes/wanted")
			}
		})
	}
}
