// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"bytes"
	"context"
	"crypto/sha256"
	"io"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/media"
)

// payloadInfo holds the media info of the payloads of a request, by digest.
type payloadInfo map[artel.Digest]artel.MediaInfo

func (l payloadInfo) look(d artel.Digest) (artel.MediaInfo, bool) {
	info, ok := l[d]
	return info, ok
}

// inspectedHead is how much of a payload is inspected if it is not stored.
const inspectedHead = 64 << 10

// while returns a sink that inspects payloads on their way to sink; nil: they are
// hashed and dropped. Payloads in blobs are measured in full.
func (l payloadInfo) while(sink func(context.Context, io.Reader) (artel.Digest, int64, error), blobs blob.Store) func(context.Context, io.Reader) (artel.Digest, int64, error) {
	if sink == nil {
		sink = func(_ context.Context, r io.Reader) (artel.Digest, int64, error) {
			h := sha256.New()
			n, err := io.Copy(h, r)
			return artel.NewDigest([32]byte(h.Sum(nil))), n, err
		}
	}
	return func(ctx context.Context, r io.Reader) (artel.Digest, int64, error) {
		sniffer := media.NewSniffer(media.Hint{})
		head := &head{}
		digest, size, err := sink(ctx, io.TeeReader(r, io.MultiWriter(sniffer, head)))
		if err != nil {
			return digest, size, err
		}
		info := sniffer.Info()
		seen := info
		seen.Size = int64(len(head.kept))
		measured := media.Measure(ctx, seen, bytes.NewReader(head.kept))
		if blobs != nil {
			if kept, err := blobs.Open(ctx, digest); err == nil {
				measured = media.Measure(ctx, info, kept)
				_ = kept.Close() // closing a reader does not lose data
			}
		}
		measured.Size = size
		l[digest] = measured
		return digest, size, nil
	}
}

// head keeps the beginning of its input.
type head struct{ kept []byte }

func (h *head) Write(p []byte) (int, error) {
	h.kept = append(h.kept, p[:min(len(p), inspectedHead-len(h.kept))]...)
	return len(p), nil
}
