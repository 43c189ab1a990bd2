// SPDX-License-Identifier: Apache-2.0

package fake

import (
	"context"
	"io"
	"iter"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/probe"
)

// Sees is a [Responder] that recognizes the canaries of package probe: it answers
// with the letters of the last one in a request, as a model with vision does.
// Requests without a canary are passed to next. blobs are those of [Options].
func Sees(blobs blob.Store, next Responder) Responder {
	return func(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
		letters := ""
		for _, m := range slices.Backward(allMedia(r)) {
			if letters = read(ctx, blobs, m); letters != "" {
				break
			}
		}
		if letters == "" {
			return next(ctx, r)
		}
		return func(yield func(model.Delta, error) bool) {
			if yield(model.TextDelta("The letters are "+letters+"."), nil) {
				yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{Calls: 1, InputTokens: 300, OutputTokens: 8}}, nil)
			}
		}
	}
}

// maxCanary is more than the size of every canary, in bytes.
const maxCanary = 16 << 10

func read(ctx context.Context, blobs blob.Store, m artel.Media) string {
	if m.Size > maxCanary {
		return ""
	}
	r, err := blobs.Open(ctx, m.Ref.Digest)
	if err != nil {
		return ""
	}
	defer r.Close()
	data, err := io.ReadAll(r)
	if err != nil {
		return ""
	}
	if letters := probe.ReadPicture(data); letters != "" {
		return letters
	}
	return probe.ReadDocument(data)
}
