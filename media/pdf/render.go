// SPDX-License-Identifier: Apache-2.0

package pdf

import (
	"context"
	"image"
	"math"

	"github.com/artelhq/artel"
)

// maxPixels bounds a drawn page: four bytes each, in the memory of the instance and
// outside.
const maxPixels = 25_000_000

// Render draws page n, from 0 on, on white, with its annotations and the values of its
// form: at most as wide and high as the figures in pixels, and at most at the resolution
// in dots per inch. 0 sets no bound, but one of them must be set.
func (d *Document) Render(ctx context.Context, n, width, height, resolution int) (_ *image.RGBA, err error) {
	ctx, cancel := d.within(ctx)
	defer cancel()
	page, err := d.loadPage(ctx, n)
	if err != nil {
		return nil, err
	}
	defer func() {
		if _, e := d.call(ctx, "FPDF_ClosePage", page); err == nil {
			err = e
		}
	}()
	w, h, err := d.pixels(ctx, n, width, height, resolution)
	if err != nil {
		return nil, err
	}
	const bgrx, white, annotations, bytesReversed = 3, 0xFFFFFFFF, 0x01, 0x10
	bitmap, err := d.call(ctx, "FPDFBitmap_CreateEx", uint64(w), uint64(h), bgrx, 0, 0)
	if err == nil && bitmap == 0 {
		err = artel.Errorf(artel.TooLarge, "pdf.Render", "", "page %d is too large to be drawn", n+1)
	}
	if err != nil {
		return nil, err
	}
	if _, err := d.call(ctx, "FPDFBitmap_FillRect", bitmap, 0, 0, uint64(w), uint64(h), white); err != nil {
		return nil, err
	}
	if _, err := d.call(ctx, "FPDF_RenderPageBitmap", bitmap, page, 0, 0, uint64(w), uint64(h), 0, annotations|bytesReversed); err != nil {
		return nil, err
	}
	at, err := d.call(ctx, "FPDFBitmap_GetBuffer", bitmap)
	if err != nil {
		return nil, err
	}
	stride, err := d.call(ctx, "FPDFBitmap_GetStride", bitmap)
	if err != nil {
		return nil, err
	}
	drawn, ok := d.mod.Memory().Read(uint32(at), uint32(stride)*uint32(h))
	if !ok {
		return nil, artel.Errorf(artel.Internal, "pdf.Render", "", "page %d was drawn outside of the memory", n+1)
	}
	img := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		row := img.Pix[y*img.Stride:][:4*w]
		copy(row, drawn[y*int(stride):])
		for x := 3; x < len(row); x += 4 {
			row[x] = 0xFF
		}
	}
	_, err = d.call(ctx, "FPDFBitmap_Destroy", bitmap)
	return img, err
}

// pixels returns the size of a page within the bounds of [Document.Render].
func (d *Document) pixels(ctx context.Context, n, width, height, resolution int) (w, h int, err error) {
	if width <= 0 && height <= 0 && resolution <= 0 {
		return 0, 0, artel.Errorf(artel.Invalid, "pdf.Render", "", "set a width, a height or a resolution")
	}
	if _, err := d.call(ctx, "FPDF_GetPageSizeByIndexF", d.handle, uint64(n), uint64(d.scratch)); err != nil {
		return 0, 0, err
	}
	size := d.floats(0, 2)
	pw, ph := size[0], size[1]
	if !(pw >= 1 && ph >= 1 && pw < 1e6 && ph < 1e6) {
		return 0, 0, artel.Errorf(artel.Invalid, "pdf.Render", "", "page %d has no size", n+1)
	}
	scale := math.Sqrt(maxPixels / (pw * ph))
	for _, bound := range []struct {
		pixels int
		points float64
	}{{width, pw}, {height, ph}, {resolution, 72}} {
		if bound.pixels > 0 {
			scale = min(scale, float64(bound.pixels)/bound.points)
		}
	}
	return max(int(pw*scale), 1), max(int(ph*scale), 1), nil
}
