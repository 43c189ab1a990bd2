// SPDX-License-Identifier: Apache-2.0

package media

import (
	"context"
	"io"
	"math"

	"github.com/artelhq/artel"
)

// measureBudget limits the bytes that Measure reads.
const measureBudget = 64 << 20

// Measure sets the width and height of images (as stored, before rotation), the pages
// of PDF, and the duration of audio and video, if these are in few places of the
// file. Other measures stay zero. It never fails, decodes no pixels, and stops when
// ctx ends. r holds info.Size bytes.
func Measure(ctx context.Context, info artel.MediaInfo, r io.ReaderAt) (measured artel.MediaInfo) {
	measured = info
	defer func() {
		// The input is untrusted: a panic of a decoder must not end the process.
		if recover() != nil {
			measured = info
		}
	}()
	src := io.NewSectionReader(&boundedReader{ctx, r, measureBudget}, 0, info.Size)
	switch info.Kind {
	case artel.KindImage:
		measured.Width, measured.Height = imageSize(info.MediaType, src)
	case artel.KindDocument:
		if info.MediaType == "application/pdf" {
			measured.Pages = pdfPages(src)
		}
	case artel.KindAudio, artel.KindVideo:
		if d := duration(info.MediaType, src); d > 0 && !math.IsInf(d, 0) {
			measured.Duration = math.Round(d*1000) / 1000
		}
	}
	return measured
}

// A boundedReader fails at the end of its context or budget.
type boundedReader struct {
	ctx  context.Context
	r    io.ReaderAt
	left int64
}

func (b *boundedReader) ReadAt(p []byte, off int64) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	if b.left -= int64(len(p)); b.left < 0 {
		return 0, io.ErrUnexpectedEOF
	}
	return b.r.ReadAt(p, off)
}

// headOf reads the beginning of src, at most n bytes.
func headOf(src *io.SectionReader, n int64) []byte {
	b := make([]byte, min(n, src.Size()))
	got, _ := src.ReadAt(b, 0)
	return b[:got]
}
