// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/image/draw"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
)

// TestScaleIsCatmullRom holds the scaler to that of x/image.
func TestScaleIsCatmullRom(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, h := rapid.IntRange(1, 60).Draw(t, "w"), rapid.IntRange(1, 60).Draw(t, "h")
		dw, dh := rapid.IntRange(1, w).Draw(t, "dw"), rapid.IntRange(1, h).Draw(t, "dh")
		m := image.NewNRGBA(image.Rect(0, 0, w, h).Add(image.Pt(3, 5)))
		copy(m.Pix, rapid.SliceOfN(rapid.Byte(), len(m.Pix), len(m.Pix)).Draw(t, "pixels"))
		got, err := scale(context.Background(), m, dw, dh)
		if err != nil {
			t.Fatal(err)
		}
		want := image.NewRGBA(image.Rect(0, 0, dw, dh))
		draw.CatmullRom.Scale(want, want.Rect, m, m.Bounds(), draw.Src, nil)
		for i := range got.Pix {
			if a, b := got.Pix[i], want.Pix[i]; max(a, b)-min(a, b) > 3 {
				t.Fatalf("%dx%d to %dx%d: byte %d is %d, want %d", w, h, dw, dh, i, a, b)
			}
		}
	})
}

// TestScaleNeedsLittleMemory scales a large picture in the room of the result
// and some rows.
func TestScaleNeedsLittleMemory(t *testing.T) {
	m := &image.Uniform{C: color.RGBA{9, 8, 7, 255}}
	large := bounded{m, image.Rect(0, 0, 6000, 4000)}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := scale(t.Context(), large, 600, 400)
	runtime.ReadMemStats(&after)
	if err != nil || got.RGBAAt(300, 200) != (color.RGBA{9, 8, 7, 255}) {
		t.Fatalf("got %v, %v", got.RGBAAt(300, 200), err)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 8<<20 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// bounded is an endless picture with an end.
type bounded struct {
	*image.Uniform
	r image.Rectangle
}

func (b bounded) Bounds() image.Rectangle { return b.r }

// FuzzConvert reads whatever comes, with little memory, and makes only what
// the form allows.
func FuzzConvert(f *testing.F) {
	for _, name := range []string{"red.png", "photo.jpg", "pic.bmp", "pic.tiff", "pic.webp", "anim.gif"} {
		data, err := os.ReadFile(filepath.Join("../../testdata/files", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint16(0), uint32(0))
		f.Add(data, uint16(16), uint32(900))
		f.Add(data[:len(data)/2], uint16(16), uint32(0))
	}
	f.Fuzz(func(t *testing.T, data []byte, side uint16, size uint32) {
		form := Form{Side: int(side), Bytes: int64(size)}.clean()
		small := bounds{pixels: 1 << 18, memory: 4 << 20}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		p, err := small.convert(t.Context(), bytes.NewReader(data), int64(len(data)), form)
		runtime.ReadMemStats(&after)
		if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20+32*uint64(len(data)) {
			t.Errorf("%d bytes were allocated for %d", n, len(data))
		}
		if err != nil {
			if k := artel.KindOf(failed(t.Context(), err)); k == artel.Internal {
				t.Errorf("kind %v: %v", k, err)
			}
			return
		}
		decode := png.DecodeConfig
		if p.MediaType == JPEG {
			decode = jpeg.DecodeConfig
		}
		c, err := decode(bytes.NewReader(p.Data))
		if err != nil || c.Width != p.Width || c.Height != p.Height || int64(len(p.Data)) > form.Bytes ||
			side > 0 && max(p.Width, p.Height) > int(side) {
			t.Errorf("%d bytes, %dx%d for %v: %v", len(p.Data), p.Width, p.Height, form, err)
		}
	})
}
