// SPDX-License-Identifier: Apache-2.0

package picture_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/picture"
)

func file(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("../../testdata/files", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// convert returns a picture and its pixels.
func convert(t *testing.T, data []byte, f picture.Form) (picture.Picture, image.Image) {
	t.Helper()
	p, err := picture.Convert(t.Context(), bytes.NewReader(data), int64(len(data)), f)
	if err != nil {
		t.Fatal(err)
	}
	m, format, err := image.Decode(bytes.NewReader(p.Data))
	if err != nil || "image/"+format != p.MediaType || m.Bounds() != image.Rect(0, 0, p.Width, p.Height) {
		t.Fatalf("got %s %s %v, said %s %dx%d: %v", format, m, m.Bounds(), p.MediaType, p.Width, p.Height, err)
	}
	return p, m
}

func look(t *testing.T, data []byte) picture.Info {
	t.Helper()
	i, err := picture.Look(t.Context(), bytes.NewReader(data), int64(len(data)))
	if err != nil {
		t.Fatal(err)
	}
	i.Memory = 0
	return i
}

func encoded(t testing.TB, encode func(io.Writer) error) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := encode(&b); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func pngOf(t testing.TB, m image.Image) []byte {
	return encoded(t, func(w io.Writer) error { return png.Encode(w, m) })
}

func jpegOf(t testing.TB, m image.Image) []byte {
	return encoded(t, func(w io.Writer) error { return jpeg.Encode(w, m, &jpeg.Options{Quality: 95}) })
}

// noise is a picture that compresses badly.
func noise(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	r := rand.New(rand.NewPCG(1, 2))
	for i := range m.Pix {
		m.Pix[i] = uint8(r.Uint32())
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	return m
}

var corners = [4]color.RGBA{{255, 0, 0, 255}, {0, 255, 0, 255}, {0, 0, 255, 255}, {255, 255, 255, 255}}

// quarters is red, green, blue and white, from the top left to the bottom right.
func quarters(w, h int) *image.RGBA {
	m := image.NewRGBA(image.Rect(0, 0, w, h))
	for y := range h {
		for x := range w {
			m.SetRGBA(x, y, corners[2*(2*y/h)+2*x/w])
		}
	}
	return m
}

func TestLook(t *testing.T) {
	for name, want := range map[string]picture.Info{
		"red.png":   {MediaType: "image/png"},
		"photo.jpg": {MediaType: "image/jpeg"},
		"pic.bmp":   {MediaType: "image/bmp"},
		"pic.tiff":  {MediaType: "image/tiff"},
		"pic.webp":  {MediaType: "image/webp"},
		"anim.gif":  {MediaType: "image/gif"},
	} {
		data := file(t, name)
		c, err := config(name, data)
		if err != nil {
			t.Fatal(err)
		}
		want.Width, want.Height, want.Orientation, want.Frames = c.Width, c.Height, 1, 1
		if g, err := gif.DecodeAll(bytes.NewReader(data)); err == nil {
			want.Frames = len(g.Image)
		}
		if diff := cmp.Diff(want, look(t, data)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func config(name string, data []byte) (image.Config, error) {
	c, _, err := image.DecodeConfig(bytes.NewReader(data))
	return c, err
}

func TestConvertEachFormat(t *testing.T) {
	for _, name := range []string{"red.png", "photo.jpg", "pic.bmp", "pic.tiff", "pic.webp", "anim.gif"} {
		data := file(t, name)
		i := look(t, data)
		p, _ := convert(t, data, picture.Form{})
		if p.Width != i.Width || p.Height != i.Height {
			t.Errorf("%s: %dx%d became %dx%d", name, i.Width, i.Height, p.Width, p.Height)
		}
		side := max(i.Width, i.Height) / 2
		p, _ = convert(t, data, picture.Form{Side: side})
		if max(p.Width, p.Height) != side {
			t.Errorf("%s: got %dx%d for a side of %d", name, p.Width, p.Height, side)
		}
		again, _ := convert(t, data, picture.Form{Side: side})
		if !bytes.Equal(p.Data, again.Data) {
			t.Errorf("%s: the second conversion is another one", name)
		}
	}
}

func TestTypes(t *testing.T) {
	photo, drawing := jpegOf(t, noise(90, 60)), pngOf(t, quarters(90, 60))
	glass := quarters(90, 60)
	for i := 3; i < len(glass.Pix)/2; i += 4 {
		glass.Pix[i-3], glass.Pix[i-2], glass.Pix[i-1], glass.Pix[i] = 0, 0, 0, 0
	}
	clear := pngOf(t, glass)
	for name, c := range map[string]struct {
		data  []byte
		types []string
		want  string
	}{
		"a photograph":                 {photo, nil, picture.JPEG},
		"a photograph as PNG":          {pngOf(t, noise(90, 60)), nil, picture.JPEG},
		"a drawing":                    {drawing, nil, picture.PNG},
		"a drawing, JPEG alone":        {drawing, []string{picture.JPEG, "image/webp"}, picture.JPEG},
		"a photograph, PNG alone":      {photo, []string{picture.PNG}, picture.PNG},
		"something clear":              {clear, nil, picture.PNG},
		"something clear, JPEG alone":  {clear, []string{picture.JPEG}, picture.JPEG},
		"a drawing with many types ok": {drawing, []string{"image/gif", picture.PNG}, picture.PNG},
	} {
		p, m := convert(t, c.data, picture.Form{Side: 45, Types: c.types})
		if p.MediaType != c.want {
			t.Errorf("%s: got %s, want %s", name, p.MediaType, c.want)
		}
		if r, g, b, a := m.At(20, 2).RGBA(); strings.HasPrefix(name, "something clear") && (p.MediaType == picture.JPEG && min(r, g, b) < 0xf000 || p.MediaType == picture.PNG && a != 0) {
			t.Errorf("%s: the hole is %x %x %x %x", name, r, g, b, a)
		}
	}
	_, err := picture.Convert(t.Context(), bytes.NewReader(photo), int64(len(photo)), picture.Form{Types: []string{"image/webp"}})
	if artel.KindOf(err) != artel.Unsupported || (picture.Form{Types: []string{}}).Possible() || !(picture.Form{}).Possible() {
		t.Errorf("no type is allowed: got %v", err)
	}
}

// TestByteLimit sees quality and size go down until a picture fits.
func TestByteLimit(t *testing.T) {
	for name, data := range map[string][]byte{"photograph": jpegOf(t, noise(600, 400)), "clear": pngOf(t, func() image.Image {
		m := image.NewNRGBA(image.Rect(0, 0, 600, 400))
		copy(m.Pix, noise(600, 400).Pix)
		m.Pix[3] = 7
		return m
	}())} {
		last := picture.Picture{Width: 601}
		for _, limit := range []int64{200_000, 60_000, 20_000, 5_000} {
			p, _ := convert(t, data, picture.Form{Bytes: limit})
			if int64(len(p.Data)) > limit || p.Width > last.Width || last.Data != nil && len(p.Data) > len(last.Data) {
				t.Errorf("%s: %d bytes allowed: got %d, %dx%d", name, limit, len(p.Data), p.Width, p.Height)
			}
			last = p
		}
		if last.Width == 600 {
			t.Errorf("%s: it was never made smaller", name)
		}
		_, err := picture.Convert(t.Context(), bytes.NewReader(data), int64(len(data)), picture.Form{Bytes: 10})
		if artel.KindOf(err) != artel.TooLarge {
			t.Errorf("%s: ten bytes: got %v", name, err)
		}
	}
}

// exif is what a camera says of a turn, in either order of bytes.
func exif(order binary.AppendByteOrder, orientation uint16) []byte {
	b := []byte("II*\x00")
	if order == binary.AppendByteOrder(binary.BigEndian) {
		b = []byte("MM\x00*")
	}
	b = order.AppendUint32(b, 8)
	b = order.AppendUint16(b, 2)
	for _, e := range [][2]uint16{{0x010f, 1}, {0x0112, orientation}} {
		b = order.AppendUint16(b, e[0])
		b = order.AppendUint16(b, 3)
		b = order.AppendUint32(b, 1)
		b = order.AppendUint16(b, e[1])
		b = append(b, 0, 0)
	}
	return b
}

func withEXIF(photo, tiff []byte) []byte {
	body := append([]byte("Exif\x00\x00"), tiff...)
	head := binary.BigEndian.AppendUint16([]byte{0xff, 0xd8, 0xff, 0xe1}, uint16(len(body)+2))
	return slices.Concat(head, body, photo[2:])
}

func TestOrientation(t *testing.T) {
	// Where the corners of a picture stand after the turn, from the top left.
	for orientation, want := range map[uint16][4]int{
		1: {0, 1, 2, 3}, 2: {1, 0, 3, 2}, 3: {3, 2, 1, 0}, 4: {2, 3, 0, 1},
		5: {0, 2, 1, 3}, 6: {2, 0, 3, 1}, 7: {3, 1, 2, 0}, 8: {1, 3, 0, 2},
		9: {0, 1, 2, 3},
	} {
		for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
			data := withEXIF(jpegOf(t, quarters(80, 40)), exif(order, orientation))
			w, h := 80, 40
			if orientation >= 5 && orientation <= 8 {
				w, h = 40, 80
			}
			if i := look(t, data); i.Width != w || i.Height != h {
				t.Errorf("orientation %d: it is %dx%d", orientation, i.Width, i.Height)
			}
			for _, side := range []int{0, 40} {
				p, m := convert(t, data, picture.Form{Side: side, Types: []string{picture.PNG}})
				for n, corner := range want {
					at := image.Pt(p.Width/8+n%2*p.Width*3/4, p.Height/8+n/2*p.Height*3/4)
					if got, c := m.At(at.X, at.Y), corners[corner]; !near(got, c, 12) {
						t.Errorf("orientation %d, side %d: corner %d is %v, want %v", orientation, side, n, got, c)
					}
				}
				if bytes.Contains(p.Data, []byte("Exif")) || bytes.Contains(p.Data, []byte("eXIf")) {
					t.Error("metadata was kept")
				}
			}
		}
	}
}

func near(a, b color.Color, by int) bool {
	x, y := color.RGBAModel.Convert(a).(color.RGBA), color.RGBAModel.Convert(b).(color.RGBA)
	far := func(p, q uint8) bool { return max(p, q)-min(p, q) > uint8(by) }
	return !far(x.R, y.R) && !far(x.G, y.G) && !far(x.B, y.B) && !far(x.A, y.A)
}

// TestEXIFOfOtherFormats reads the turn out of PNG, WebP and TIFF.
func TestEXIFOfOtherFormats(t *testing.T) {
	turn := exif(binary.LittleEndian, 6)
	chunk := func(kind string, body []byte) []byte {
		b := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
		return append(append(append(b, kind...), body...), 0, 0, 0, 0) // Look checks no sum
	}
	plain := pngOf(t, quarters(80, 40))
	still := file(t, "pic.webp")
	w := look(t, still)
	riff := func(chunks ...[]byte) []byte {
		body := slices.Concat(chunks...)
		return slices.Concat([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, uint32(4+len(body))), []byte("WEBP"), body)
	}
	for name, c := range map[string]struct {
		data []byte
		w, h int
	}{
		"PNG":  {slices.Concat(plain[:33], chunk("eXIf", turn), plain[33:]), 40, 80},
		"WebP": {riff(extendedHeader(8, w), still[12:], little("EXIF", turn)), w.Height, w.Width},
	} {
		if i := look(t, c.data); i.Width != c.w || i.Height != c.h || i.Orientation != 6 {
			t.Errorf("%s: got %+v", name, i)
		}
	}
	tif := encoded(t, func(w io.Writer) error { return tiff.Encode(w, quarters(80, 40), nil) })
	at := bytes.Index(tif, []byte{0x15, 0x01, 3, 0}) // samples for each pixel, which Look does not need
	if at < 0 {
		t.Fatal("the writer of TIFF has changed")
	}
	copy(tif[at:], []byte{0x12, 0x01, 3, 0, 1, 0, 0, 0, 6, 0, 0, 0})
	if i := look(t, tif); i.Width != 40 || i.Height != 80 {
		t.Errorf("TIFF: got %+v", i)
	}
}

func little(kind string, body []byte) []byte {
	b := binary.LittleEndian.AppendUint32([]byte(kind), uint32(len(body)))
	b = append(b, body...)
	return append(b, make([]byte, len(body)%2)...)
}

func extendedHeader(flags byte, i picture.Info) []byte {
	b := []byte{flags, 0, 0, 0}
	for _, n := range []int{i.Width - 1, i.Height - 1} {
		b = append(b, byte(n), byte(n>>8), byte(n>>16))
	}
	return little("VP8X", b)
}

// TestFirstFrame takes the first frame of animations, on their canvas.
func TestFirstFrame(t *testing.T) {
	palette := color.Palette{color.Transparent, corners[0], corners[1]}
	g := &gif.GIF{Config: image.Config{Width: 40, Height: 20, ColorModel: palette}, LoopCount: 0}
	for n := range 3 {
		m := image.NewPaletted(image.Rect(0, 0, 20, 20).Add(image.Pt(10*n, 0)), palette)
		for i := range m.Pix {
			m.Pix[i] = uint8(1 + n%2)
		}
		g.Image, g.Delay = append(g.Image, m), append(g.Delay, 1)
	}
	data := encoded(t, func(w io.Writer) error { return gif.EncodeAll(w, g) })
	if i := look(t, data); i.Frames != 3 || i.Width != 40 {
		t.Errorf("got %+v", i)
	}
	p, m := convert(t, data, picture.Form{})
	if p.MediaType != picture.PNG || !near(m.At(5, 5), corners[0], 0) || !near(m.At(30, 5), color.Transparent, 0) {
		t.Errorf("got %s, %v and %v", p.MediaType, m.At(5, 5), m.At(30, 5))
	}

	still := file(t, "pic.webp")
	i := look(t, still)
	frame := func(x, y int) []byte {
		b := []byte{}
		for _, n := range []int{x / 2, y / 2, i.Width - 1, i.Height - 1, 100} {
			b = append(b, byte(n), byte(n>>8), byte(n>>16))
		}
		return little("ANMF", slices.Concat(b, []byte{0}, still[12:]))
	}
	canvas := picture.Info{Width: i.Width + 10, Height: i.Height + 6}
	body := slices.Concat([]byte("WEBP"), extendedHeader(2, canvas), little("ANIM", make([]byte, 6)), frame(10, 6), frame(0, 0))
	data = slices.Concat([]byte("RIFF"), binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body)
	if got := look(t, data); got.Frames != 2 || got.Width != canvas.Width {
		t.Errorf("got %+v", got)
	}
	if p, m := convert(t, data, picture.Form{}); p.Width != canvas.Width || !near(m.At(2, 2), color.Transparent, 0) || near(m.At(12, 12), color.Transparent, 0) {
		t.Errorf("got %dx%d, %v and %v", p.Width, p.Height, m.At(2, 2), m.At(12, 12))
	}
}

// TestHeaderComesFirst refuses what a header promises before anything is
// decoded or allocated.
func TestHeaderComesFirst(t *testing.T) {
	huge := pngOf(t, quarters(4, 4))
	binary.BigEndian.PutUint32(huge[16:], 60_000)
	binary.BigEndian.PutUint32(huge[20:], 60_000)
	bitmap := encoded(t, func(w io.Writer) error { return bmp.Encode(w, quarters(4, 4)) })
	binary.LittleEndian.PutUint32(bitmap[18:], 60_000)
	binary.LittleEndian.PutUint32(bitmap[22:], 60_000)
	photo := jpegOf(t, noise(8, 8))
	frame := bytes.Index(photo, []byte{0xff, 0xc0})
	copy(photo[frame+5:], []byte{0xea, 0x60, 0xea, 0x60})
	progressive := bytes.Clone(photo)
	progressive[frame+1] = 0xc2
	copy(progressive[frame+5:], []byte{0x1b, 0x00, 0x1b, 0x00})
	progressive[frame+11] = 0x11 // no component has fewer samples
	animated := slices.Concat([]byte("GIF89a"), []byte{0x60, 0xea, 0x60, 0xea, 0, 0, 0, 0x3b})
	for name, data := range map[string][]byte{"PNG": huge, "BMP": bitmap, "JPEG": photo, "progressive JPEG": progressive, "GIF": animated} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := picture.Convert(t.Context(), bytes.NewReader(data), int64(len(data)), picture.Form{})
		runtime.ReadMemStats(&after)
		if artel.KindOf(err) != artel.TooLarge {
			t.Errorf("%s: got %v", name, err)
		}
		if n := after.TotalAlloc - before.TotalAlloc; n > 1<<20 {
			t.Errorf("%s: %d bytes were allocated", name, n)
		}
	}
}

func TestErrors(t *testing.T) {
	photo := file(t, "photo.jpg")
	ended, end := context.WithCancel(t.Context())
	end()
	broken := artel.Errorf(artel.NotFound, "", "", "gone")
	for name, c := range map[string]struct {
		ctx  context.Context
		r    io.ReaderAt
		want artel.Kind
	}{
		"nothing":      {t.Context(), strings.NewReader(""), artel.Unsupported},
		"no picture":   {t.Context(), strings.NewReader("BMW is a maker of cars, and this is text"), artel.Invalid},
		"text":         {t.Context(), strings.NewReader("hello"), artel.Unsupported},
		"cut":          {t.Context(), bytes.NewReader(photo[:len(photo)/2]), artel.Invalid},
		"the head":     {t.Context(), bytes.NewReader(photo[:20]), artel.Invalid},
		"no time left": {ended, bytes.NewReader(photo), artel.Canceled},
		"unreadable":   {t.Context(), failing{broken}, artel.NotFound},
		"disk":         {t.Context(), failing{errors.New("disk on fire")}, artel.Unavailable},
	} {
		_, err := picture.Convert(c.ctx, c.r, 1<<20, picture.Form{})
		if artel.KindOf(err) != c.want {
			t.Errorf("%s: got %v (%v), want %v", name, artel.KindOf(err), err, c.want)
		}
	}
}

type failing struct{ err error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.err }

func TestFormNames(t *testing.T) {
	for want, f := range map[string]picture.Form{
		"picture/1;side=0;bytes=20971520;types=image/jpeg+image/png": {},
		"picture/1;side=128;bytes=9;types=image/png":                 {Side: 128, Bytes: 9, Types: []string{"image/webp", picture.PNG}},
	} {
		if got := f.String(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
