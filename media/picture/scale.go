// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"context"
	"image"
	"image/draw"
	"math"
)

// render returns m upright with w by h pixels; m itself if nothing changes.
//
// The scaler is our own because libraries keep the whole picture in floating point
// between the two passes; this one keeps only the rows for one row of the result.
func render(ctx context.Context, m image.Image, orientation, w, h int) (image.Image, error) {
	dw, dh := w, h
	if swapsSides(orientation) {
		dw, dh = h, w
	}
	if b := m.Bounds(); b.Dx() != dw || b.Dy() != dh {
		small, err := scale(ctx, m, dw, dh)
		if err != nil {
			return nil, err
		}
		m = small
	}
	if orientation == 1 {
		return m, nil
	}
	return orient(ctx, m, orientation)
}

// swapsSides reports whether an orientation swaps width and height.
func swapsSides(orientation int) bool { return orientation >= 5 }

// orient returns m rotated and mirrored by an EXIF orientation.
func orient(ctx context.Context, m image.Image, orientation int) (image.Image, error) {
	b := m.Bounds()
	w, h := b.Dx(), b.Dy()
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	if swapsSides(orientation) {
		out = image.NewRGBA(image.Rect(0, 0, h, w))
	}
	rows := newRows(m)
	for y := range h {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row := rows.at(y)
		for x := range w {
			var tx, ty int
			switch orientation {
			case 2:
				tx, ty = w-1-x, y
			case 3:
				tx, ty = w-1-x, h-1-y
			case 4:
				tx, ty = x, h-1-y
			case 5:
				tx, ty = y, x
			case 6:
				tx, ty = h-1-y, x
			case 7:
				tx, ty = h-1-y, w-1-x
			case 8:
				tx, ty = y, w-1-x
			}
			copy(out.Pix[ty*out.Stride+4*tx:][:4], row[4*x:])
		}
	}
	return out, nil
}

// rows reads a picture row by row as premultiplied 8-bit RGBA, converted several rows
// at a time.
type rows struct {
	m     image.Image
	strip *image.RGBA
	first int // first row in strip; -1: empty
}

const stripRows = 16

func newRows(m image.Image) *rows {
	return &rows{m: m, strip: image.NewRGBA(image.Rect(0, 0, m.Bounds().Dx(), min(stripRows, m.Bounds().Dy()))), first: -1}
}

// at returns row y, counted from 0, until the next call.
func (r *rows) at(y int) []uint8 {
	n := r.strip.Rect.Dy()
	if r.first < 0 || y < r.first || y >= r.first+n {
		r.first = y - y%n
		from := r.m.Bounds().Min.Add(image.Pt(0, r.first))
		draw.Draw(r.strip, r.strip.Rect, r.m, from, draw.Src)
	}
	return r.strip.Pix[(y-r.first)*r.strip.Stride:][:4*r.strip.Rect.Dx()]
}

// A tap holds the source pixels and weights of one result pixel.
type tap struct {
	from    int
	weights []float32
}

// taps returns the taps for scaling a line of m pixels to n ≤ m, by the Catmull-Rom
// spline stretched by m/n.
func taps(m, n int) []tap {
	ratio := float64(m) / float64(n)
	reach := 2 * max(ratio, 1)
	out := make([]tap, n)
	for i := range out {
		center := (float64(i)+0.5)*ratio - 0.5
		from := max(0, int(math.Ceil(center-reach)))
		to := min(m-1, int(math.Floor(center+reach)))
		weights := make([]float32, to-from+1)
		sum := 0.0
		for j := range weights {
			w := catmullRom((float64(from+j) - center) / max(ratio, 1))
			weights[j] = float32(w)
			sum += w
		}
		for j := range weights {
			weights[j] /= float32(sum)
		}
		out[i] = tap{from, weights}
	}
	return out
}

func catmullRom(t float64) float64 {
	t = math.Abs(t)
	switch {
	case t < 1:
		return (1.5*t-2.5)*t*t + 1
	case t < 2:
		return ((-0.5*t+2.5)*t-4)*t + 2
	}
	return 0
}

// scale returns m with w by h pixels.
func scale(ctx context.Context, m image.Image, w, h int) (*image.RGBA, error) {
	b := m.Bounds()
	across, down := taps(b.Dx(), w), taps(b.Dy(), h)
	held := 0
	for _, t := range down {
		held = max(held, len(t.weights))
	}
	ring := make([][]float32, held) // the needed scaled rows, each at its number modulo held
	for i := range ring {
		ring[i] = make([]float32, 4*w)
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h))
	sum := make([]float32, 4*w)
	rows, next := newRows(m), 0
	for y, t := range down {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for ; next < t.from+len(t.weights); next++ {
			scaleRow(ring[next%held], rows.at(next), across)
		}
		clear(sum)
		for j, weight := range t.weights {
			row := ring[(t.from+j)%held]
			for i, v := range row[:len(sum)] {
				sum[i] += weight * v
			}
		}
		store(out.Pix[y*out.Stride:][:4*w], sum)
	}
	return out, nil
}

// scaleRow scales a row.
func scaleRow(dst []float32, src []uint8, across []tap) {
	for x, t := range across {
		var r, g, b, a float32
		px := src[4*t.from:]
		px = px[:4*len(t.weights)]
		for j, w := range t.weights {
			p := px[4*j : 4*j+4 : 4*j+4]
			r += w * float32(p[0])
			g += w * float32(p[1])
			b += w * float32(p[2])
			a += w * float32(p[3])
		}
		d := dst[4*x : 4*x+4 : 4*x+4]
		d[0], d[1], d[2], d[3] = r, g, b, a
	}
}

// store rounds premultiplied colors and limits them to alpha.
func store(dst []uint8, sum []float32) {
	for i := 0; i+3 < len(dst); i += 4 {
		a := clamp(sum[i+3], 255)
		dst[i], dst[i+1], dst[i+2] = uint8(clamp(sum[i], a)), uint8(clamp(sum[i+1], a)), uint8(clamp(sum[i+2], a))
		dst[i+3] = uint8(a)
	}
}

func clamp(v, most float32) float32 {
	v = float32(int32(v + 0.5))
	return max(0, min(v, most))
}
