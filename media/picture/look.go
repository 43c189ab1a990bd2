// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"image"
	"image/color"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"

	"github.com/artelhq/artel"
)

// MaxFrames limits the counted frames of an animation.
const MaxFrames = 10_000

// lookBudget limits the bytes read of a header.
const lookBudget = 64 << 20

// Look reads the header of the picture in size bytes of r without decoding pixels.
// Errors are those of [Convert].
func Look(ctx context.Context, r io.ReaderAt, size int64) (info Info, err error) {
	src := &source{ctx: ctx, r: r}
	defer func() {
		if recover() != nil {
			info, err = Info{}, failed(ctx, errors.New("its header makes no sense"))
		}
	}()
	if info, err = look(src, size); err != nil {
		return Info{}, failed(ctx, src.cause(err))
	}
	return info, nil
}

var errShort = errors.New("it ends too early")

// look recognises the format by the first bytes.
func look(src io.ReaderAt, size int64) (Info, error) {
	s := io.NewSectionReader(src, 0, min(size, lookBudget))
	var head [16]byte
	n, err := s.ReadAt(head[:], 0)
	if err != nil && err != io.EOF {
		return Info{}, err
	}
	h := string(head[:n])
	var i Info
	switch {
	case has(h, "\x89PNG\r\n\x1a\n"):
		i, err = lookPNG(s)
	case has(h, "\xff\xd8\xff"):
		i, err = lookJPEG(s)
	case has(h, "GIF87a"), has(h, "GIF89a"):
		i, err = lookGIF(s)
	case len(h) >= 12 && has(h, "RIFF") && h[8:12] == "WEBP":
		i, err = lookWebP(s)
	case has(h, "BM"):
		i, err = lookConfig(s, "image/bmp", bmp.DecodeConfig)
	case has(h, "II*\x00"), has(h, "MM\x00*"):
		if i, err = lookConfig(io.NewSectionReader(src, 0, size), "image/tiff", tiff.DecodeConfig); err == nil {
			i.Memory *= 2 // a strip may hold as much as the picture
			i.Orientation = orientationOf(io.NewSectionReader(src, 0, size))
		}
	default:
		return i, artel.Errorf(artel.Unsupported, "picture.Look", "", "the bytes are no PNG, JPEG, GIF, WebP, BMP or TIFF")
	}
	if err != nil {
		return i, err
	}
	if i.Width <= 0 || i.Height <= 0 {
		return i, errors.New("it has no pixels")
	}
	i.Frames, i.Orientation = max(i.Frames, 1), max(i.Orientation, 1)
	if swapsSides(i.Orientation) {
		i.Width, i.Height = i.Height, i.Width
	}
	return i, nil
}

func has(s, prefix string) bool { return len(s) >= len(prefix) && s[:len(prefix)] == prefix }

func lookConfig(s *io.SectionReader, mediaType string, decode func(io.Reader) (image.Config, error)) (Info, error) {
	c, err := decode(s)
	if err != nil {
		return Info{}, err
	}
	perPixel := int64(4)
	switch c.ColorModel {
	case color.GrayModel:
		perPixel = 1
	case color.RGBA64Model, color.NRGBA64Model:
		perPixel = 8
	}
	return Info{MediaType: mediaType, Width: c.Width, Height: c.Height, Memory: int64(c.Width) * int64(c.Height) * perPixel}, nil
}

// lookPNG reads the chunks up to the first one with pixels.
func lookPNG(s *io.SectionReader) (Info, error) {
	i := Info{MediaType: PNG}
	for at, n := int64(8), 0; n < 1000; n++ {
		var h [8 + 13]byte
		got, err := s.ReadAt(h[:], at)
		if got < 8 {
			return i, short(err)
		}
		length := int64(binary.BigEndian.Uint32(h[:]))
		switch string(h[4:8]) {
		case "IHDR":
			if got < len(h) {
				return i, short(err)
			}
			w, ht := binary.BigEndian.Uint32(h[8:]), binary.BigEndian.Uint32(h[12:])
			if w > 1<<30 || ht > 1<<30 {
				return i, artel.Errorf(artel.TooLarge, "picture.Look", "", "its sides are longer than any picture's")
			}
			i.Width, i.Height = int(w), int(ht)
			perPixel := int64(4)
			if h[16] == 16 {
				perPixel = 8
			}
			if h[20] != 0 { // interlaced: the passes and the whole picture
				perPixel += perPixel / 2
			}
			i.Memory = i.Pixels() * perPixel
		case "acTL":
			if got >= 12 {
				i.Frames = int(min(binary.BigEndian.Uint32(h[8:]), MaxFrames))
			}
		case "eXIf":
			i.Orientation = orientationOf(io.NewSectionReader(s, at+8, length))
		case "IDAT", "IEND":
			return i, nil
		}
		at += 12 + length
	}
	return i, errors.New("it has too many chunks before its pixels")
}

// lookJPEG reads the segments up to the first scan.
func lookJPEG(s *io.SectionReader) (Info, error) {
	i := Info{MediaType: JPEG}
	for at, n := int64(2), 0; n < 4000; n++ {
		var h [4 + 6 + 12]byte
		got, err := s.ReadAt(h[:], at)
		if got < 4 {
			return i, short(err)
		}
		if h[0] != 0xff || h[1] == 0 {
			return i, errors.New("a segment is missing")
		}
		marker := h[1]
		if marker == 0xff || marker == 0x01 || marker >= 0xd0 && marker <= 0xd8 {
			at++ // a fill byte, or a marker without a length
			if marker != 0xff {
				at++
			}
			continue
		}
		length := int64(binary.BigEndian.Uint16(h[2:]))
		switch {
		case marker == 0xe1 && i.Orientation == 0 && got >= 10 && string(h[4:10]) == "Exif\x00\x00":
			i.Orientation = orientationOf(io.NewSectionReader(s, at+10, max(0, length-8)))
		case marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 && marker != 0xc8 && marker != 0xcc:
			if got < 10 || int(h[9]) > 4 || got < 10+3*int(h[9]) {
				return i, short(err)
			}
			i.Height, i.Width = int(binary.BigEndian.Uint16(h[5:])), int(binary.BigEndian.Uint16(h[7:]))
			i.Memory = jpegMemory(i.Pixels(), h[10:10+3*int(h[9])], marker == 0xc2)
		case marker == 0xda || marker == 0xd9:
			return i, nil
		}
		at += 2 + length
	}
	return i, errors.New("it has too many segments before its pixels")
}

// jpegMemory returns the memory for a frame: each component has a sample per pixel,
// or fewer by its sampling factors (1 to 4); a progressive picture needs all
// coefficients too.
func jpegMemory(pixels int64, components []byte, progressive bool) int64 {
	most, sum := int64(1), int64(0)
	for c := 0; c+2 < len(components); c += 3 {
		n := int64(components[c+1]>>4) * int64(components[c+1]&15)
		most, sum = max(most, n), sum+n
	}
	samples := pixels * sum / most
	if progressive {
		return samples * 5
	}
	return samples
}

// lookGIF reads the blocks and counts the frames.
func lookGIF(s *io.SectionReader) (Info, error) {
	i := Info{MediaType: "image/gif"}
	r := bufio.NewReader(s)
	var h [13]byte
	if _, err := io.ReadFull(r, h[:]); err != nil {
		return i, short(err)
	}
	i.Width, i.Height = int(binary.LittleEndian.Uint16(h[6:])), int(binary.LittleEndian.Uint16(h[8:]))
	i.Memory = i.Pixels() * 5 // the frame and the canvas
	skip := func(n int) error { _, err := r.Discard(n); return err }
	err := skip(colorTable(h[10]))
	for err == nil && i.Frames < MaxFrames {
		var kind byte
		if kind, err = r.ReadByte(); err != nil {
			break
		}
		switch kind {
		case 0x2c: // an image descriptor
			var d [9]byte
			if _, err = io.ReadFull(r, d[:]); err != nil {
				break
			}
			i.Frames++
			if err = skip(colorTable(d[8]) + 1); err == nil {
				err = skipBlocks(r)
			}
		case 0x21: // an extension
			if err = skip(1); err == nil {
				err = skipBlocks(r)
			}
		default: // the trailer, or an unknown block
			err = io.EOF
		}
	}
	if i.Frames == 0 && err != io.EOF && !errors.Is(err, io.ErrUnexpectedEOF) {
		return i, err
	}
	return i, nil // decoding checks whether the first frame is complete
}

func colorTable(flags byte) int {
	if flags&0x80 == 0 {
		return 0
	}
	return 3 << (flags&7 + 1)
}

func skipBlocks(r *bufio.Reader) error {
	for {
		n, err := r.ReadByte()
		if err != nil || n == 0 {
			return err
		}
		if _, err := r.Discard(int(n)); err != nil {
			return err
		}
	}
}

// short returns errShort for the end of the file, or err.
func short(err error) error {
	if err == nil || err == io.EOF {
		return errShort
	}
	return err
}
