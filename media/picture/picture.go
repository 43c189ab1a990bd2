// SPDX-License-Identifier: Apache-2.0

// Package picture inspects and converts pictures.
//
// Begin with [Look], which reads a header, and [Convert], which makes a PNG or JPEG
// within the limits of a [Form], upright and without metadata. It reads PNG, JPEG,
// GIF, WebP, BMP and TIFF; of an animation it takes the first frame.
//
// The input is untrusted: the header is checked, and the memory for decoding is
// estimated and limited, before any pixel is decoded. The result is deterministic.
// Color profiles are dropped, so pictures of a wider gamut than sRGB may look paler.
package picture

import (
	"context"
	"errors"
	"fmt"
	"image"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// MaxPixels limits the pixels of a picture to be converted.
const MaxPixels = 50_000_000

// MaxBytes is the default limit on the bytes of a converted picture.
const MaxBytes = 20 << 20

// maxMemory limits the bytes for decoding one picture.
const maxMemory = 512 << 20

// The output media types.
const (
	PNG  = "image/png"
	JPEG = "image/jpeg"
)

// Info is what the header of a picture says. Width and Height are those of the
// picture as it is seen, after the turn that EXIF asks for.
type Info struct {
	MediaType   string
	Width       int // pixels
	Height      int
	Orientation int   // of EXIF, 1 to 8; 1 where nothing is said
	Frames      int   // at least 1; counted up to [MaxFrames]
	Memory      int64 // bytes that decoding it takes, about
}

// Pixels is the area.
func (i Info) Pixels() int64 { return int64(i.Width) * int64(i.Height) }

// A Form says what a converted picture has to be. The zero Form is a PNG or
// JPEG of the same size.
type Form struct {
	Side  int      // pixels of the longer side at most; 0: not limited. Nothing is ever enlarged.
	Bytes int64    // bytes at most; 0: MaxBytes
	Types []string // of PNG and JPEG, which may be written; none: both
}

// String returns a name for the form and the version of the conversion: forms with
// the same name give the same bytes.
func (f Form) String() string {
	f = f.clean()
	return fmt.Sprintf("picture/1;side=%d;bytes=%d;types=%s", f.Side, f.Bytes, strings.Join(f.Types, "+"))
}

// Possible reports whether any picture can have the form.
func (f Form) Possible() bool { return len(f.clean().Types) > 0 }

func (f Form) clean() Form {
	f.Side = max(f.Side, 0)
	if f.Bytes <= 0 || f.Bytes > MaxBytes {
		f.Bytes = MaxBytes
	}
	types := []string{JPEG, PNG}
	if f.Types != nil {
		types = slices.DeleteFunc(types, func(t string) bool { return !slices.Contains(f.Types, t) })
	}
	f.Types = types
	return f
}

func (f Form) may(mediaType string) bool { return slices.Contains(f.Types, mediaType) }

// A Picture is a converted picture. The caller owns it.
type Picture struct {
	Data      []byte
	MediaType string
	Width     int
	Height    int
}

// Supports reports whether pictures of a media type can be converted.
func Supports(mediaType string) bool {
	switch mediaType {
	case PNG, JPEG, "image/gif", "image/webp", "image/bmp", "image/tiff":
		return true
	}
	return false
}

// Convert converts the picture in size bytes of r to form f. Unless f allows only one
// type, pictures with few colors or transparency become PNG and photographs JPEG; in
// a JPEG transparency becomes white. A picture with too many bytes is encoded with
// less quality, then scaled down.
//
// Errors are of kind [artel.Unsupported] for other formats and forms without a type,
// [artel.Invalid] for damaged bytes, [artel.TooLarge] if the picture exceeds
// [MaxPixels] or the memory limit or cannot be made small enough, and
// [artel.Canceled] if ctx ended. Errors of r keep their kind.
func Convert(ctx context.Context, r io.ReaderAt, size int64, f Form) (Picture, error) {
	p, err := bounds{MaxPixels, maxMemory}.convert(ctx, r, size, f.clean())
	if err != nil {
		return Picture{}, failed(ctx, err)
	}
	return p, nil
}

// Encode is [Convert] for a picture that a program has drawn, of at most [MaxPixels].
func Encode(ctx context.Context, m image.Image, f Form) (Picture, error) {
	info := Info{MediaType: PNG, Width: m.Bounds().Dx(), Height: m.Bounds().Dy()}
	f = f.clean()
	if len(f.Types) == 0 {
		return Picture{}, artel.Errorf(artel.Unsupported, "picture.Encode", "", "neither PNG nor JPEG may be written")
	}
	if err := (bounds{MaxPixels, maxMemory}).check(info); err != nil {
		return Picture{}, err
	}
	p, err := fit(ctx, m, info, f)
	if err != nil {
		return Picture{}, failed(ctx, err)
	}
	return p, nil
}

// failed returns err with one of the kinds that Convert documents.
func failed(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return artel.Errorf(artel.Canceled, "picture.Convert", "", "%w", context.Cause(ctx))
	}
	var e *artel.Error
	if errors.As(err, &e) {
		return err
	}
	return artel.Errorf(artel.Invalid, "picture.Convert", "", "the picture is damaged: %w", err)
}

// bounds limits the work for one picture.
type bounds struct {
	pixels int64
	memory int64 // bytes
}

func (b bounds) check(i Info) error {
	if i.Pixels() > b.pixels {
		return artel.Errorf(artel.TooLarge, "picture.Convert", "", "the picture has %d × %d pixels; at most %d million are converted",
			i.Width, i.Height, b.pixels/1_000_000)
	}
	if i.Memory > b.memory {
		return artel.Errorf(artel.TooLarge, "picture.Convert", "", "decoding the picture would take %d MB of memory; at most %d are given",
			i.Memory>>20, b.memory>>20)
	}
	return nil
}

func (b bounds) convert(ctx context.Context, r io.ReaderAt, size int64, f Form) (p Picture, err error) {
	defer func() {
		// The input is untrusted: a panic of a decoder must not end the process.
		if v := recover(); v != nil {
			p, err = Picture{}, fmt.Errorf("its decoder gave up: %v", v)
		}
	}()
	if len(f.Types) == 0 {
		return p, artel.Errorf(artel.Unsupported, "picture.Convert", "", "neither PNG nor JPEG may be written")
	}
	src := &source{ctx: ctx, r: r}
	info, err := look(src, size)
	if err != nil {
		return p, src.cause(err)
	}
	if err := b.check(info); err != nil {
		return p, err
	}
	m, err := decode(info, src, size)
	if err != nil {
		return p, src.cause(err)
	}
	if n := int64(m.Bounds().Dx()) * int64(m.Bounds().Dy()); n != info.Pixels() || n == 0 {
		return p, errTwoSizes
	}
	return fit(ctx, m, info, f)
}

// fit encodes m within the limits of f.
func fit(ctx context.Context, m image.Image, info Info, f Form) (Picture, error) {
	w, h := info.Width, info.Height
	if long := max(w, h); f.Side > 0 && long > f.Side {
		w, h = scaled(w, h, float64(f.Side)/float64(long))
	}
	lossy := info.MediaType == JPEG || !fewColors(m)
	for {
		shown, err := render(ctx, m, info.Orientation, w, h)
		if err != nil {
			return Picture{}, err
		}
		p, err := encode(ctx, shown, lossy, f)
		if err != nil || p.Data != nil {
			return p, err
		}
		const shrink = 0.75
		if max(w, h) <= minSide {
			return Picture{}, artel.Errorf(artel.TooLarge, "picture.Convert", "", "the picture cannot be made as small as %d bytes", f.Bytes)
		}
		w, h = scaled(w, h, shrink)
	}
}

// minSide is the longer side, in pixels, below which a picture is not made
// smaller to save bytes.
const minSide = 64

func scaled(w, h int, by float64) (int, int) {
	side := func(n int) int { return max(1, int(math.Round(float64(n)*by))) }
	return side(w), side(h)
}

// A source reads with a context and records the first error other than io.EOF, which
// decoders tend to hide.
type source struct {
	ctx context.Context
	r   io.ReaderAt
	err error
}

// ReadAt implements [io.ReaderAt].
func (s *source) ReadAt(p []byte, off int64) (int, error) {
	if err := s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := s.r.ReadAt(p, off)
	if err != nil && err != io.EOF && s.err == nil {
		s.err = err
	}
	return n, err
}

// cause returns the recorded read error, or err if the bytes are damaged.
func (s *source) cause(err error) error {
	if s.err != nil {
		kind := artel.KindOf(s.err)
		if kind == artel.Internal {
			kind = artel.Unavailable
		}
		return artel.Errorf(kind, "picture.Convert", "", "the bytes cannot be read: %w", s.err)
	}
	return err
}
