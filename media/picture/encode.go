// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/draw"
	"image/jpeg"
	"image/png"
)

// maxColors is the most colors of a picture that counts as a drawing.
const maxColors = 1024

// fewColors reports whether m is a drawing rather than a photograph. Photographs
// exceed the limit within a few rows.
func fewColors(m image.Image) bool {
	if p, ok := m.(*image.Paletted); ok && len(p.Palette) <= maxColors {
		return true
	}
	seen := make(map[[4]uint8]struct{}, maxColors)
	var last [4]uint8
	rows := newRows(m)
	for y := range m.Bounds().Dy() {
		row := rows.at(y)
		for i := 0; i+3 < len(row); i += 4 {
			c := [4]uint8(row[i:])
			if c == last {
				continue
			}
			last = c
			if seen[c] = struct{}{}; len(seen) > maxColors {
				return false
			}
		}
	}
	return true
}

// qualities are JPEG qualities, best first. Below the last one scaling down looks
// better.
var qualities = [...]int{90, 80, 70, 60}

// encode encodes m as f allows; Data is nil if it has too many bytes.
func encode(ctx context.Context, m image.Image, lossy bool, f Form) (Picture, error) {
	p := Picture{Width: m.Bounds().Dx(), Height: m.Bounds().Dy()}
	solid := opaque(m)
	if f.may(PNG) && (!lossy || !solid || !f.may(JPEG)) {
		data, err := within(ctx, f.Bytes, func(w *limited) error {
			return (&png.Encoder{CompressionLevel: png.DefaultCompression}).Encode(w, m)
		})
		if err != nil || data != nil {
			p.Data, p.MediaType = data, PNG
			return p, err
		}
	}
	if !f.may(JPEG) {
		return p, nil
	}
	if !solid {
		m = onWhite(m)
	}
	for _, q := range qualities {
		data, err := within(ctx, f.Bytes, func(w *limited) error { return jpeg.Encode(w, m, &jpeg.Options{Quality: q}) })
		if err != nil || data != nil {
			p.Data, p.MediaType = data, JPEG
			return p, err
		}
	}
	return p, nil
}

func opaque(m image.Image) bool {
	o, ok := m.(interface{ Opaque() bool })
	return ok && o.Opaque()
}

// onWhite returns m over white.
func onWhite(m image.Image) image.Image {
	out := image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), m.Bounds().Dy()))
	draw.Draw(out, out.Rect, image.White, image.Point{}, draw.Src)
	draw.Draw(out, out.Rect, m, m.Bounds().Min, draw.Over)
	return out
}

var errFull = errors.New("more than the form allows")

// A limited buffer fails beyond its limit and after the end of its context.
type limited struct {
	buf  bytes.Buffer
	ctx  context.Context // of one call
	left int64
}

// Write implements [io.Writer].
func (l *limited) Write(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	if l.left -= int64(len(p)); l.left < 0 {
		return 0, errFull
	}
	return l.buf.Write(p)
}

// within returns the bytes written by write, or nil if there are more than limit.
func within(ctx context.Context, limit int64, write func(*limited) error) ([]byte, error) {
	w := &limited{ctx: ctx, left: limit}
	switch err := write(w); {
	case err == nil:
		return w.buf.Bytes(), nil
	case w.left < 0 && ctx.Err() == nil:
		return nil, nil
	default:
		return nil, err
	}
}
