// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"encoding/binary"
	"errors"
	"image"
	"image/draw"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"

	"golang.org/x/image/bmp"
	"golang.org/x/image/tiff"
)

// decode returns the stored pixels of an inspected picture. The size must be the same
// for the decoder, because a header can state two sizes.
func decode(i Info, src io.ReaderAt, size int64) (image.Image, error) {
	s := io.NewSectionReader(src, 0, size)
	config, whole := png.DecodeConfig, png.Decode
	switch i.MediaType {
	case PNG:
	case JPEG:
		config, whole = jpeg.DecodeConfig, jpeg.Decode
	case "image/gif":
		config, whole = gif.DecodeConfig, gif.Decode
	case "image/webp":
		return decodeWebP(s)
	case "image/bmp":
		config, whole = bmp.DecodeConfig, bmp.Decode
	default:
		config, whole = tiff.DecodeConfig, tiff.Decode
	}
	c, err := config(s)
	if err != nil {
		return nil, err
	}
	w, h := i.Width, i.Height
	if swapsSides(i.Orientation) {
		w, h = h, w
	}
	if c.Width != w || c.Height != h {
		return nil, errTwoSizes
	}
	if _, err := s.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	m, err := whole(s)
	if err != nil || m.Bounds() == image.Rect(0, 0, w, h) {
		return m, err
	}
	if !m.Bounds().In(image.Rect(0, 0, w, h)) {
		return nil, errTwoSizes
	}
	out := image.NewRGBA(image.Rect(0, 0, w, h)) // a GIF frame smaller than its canvas
	draw.Draw(out, m.Bounds(), m, m.Bounds().Min, draw.Src)
	return out, nil
}

var errTwoSizes = errors.New("its header states two sizes")

// orientationOf returns the EXIF orientation in the first directory of a TIFF header;
// 1 if it is missing or invalid.
func orientationOf(s *io.SectionReader) int {
	var head [8]byte
	if _, err := s.ReadAt(head[:], 0); err != nil {
		return 1
	}
	var order binary.ByteOrder
	switch string(head[:4]) {
	case "II*\x00":
		order = binary.LittleEndian
	case "MM\x00*":
		order = binary.BigEndian
	default:
		return 1
	}
	at := int64(order.Uint32(head[4:]))
	var count [2]byte
	if _, err := s.ReadAt(count[:], at); err != nil {
		return 1
	}
	const orientation, short = 0x0112, 3
	for n := range int64(min(order.Uint16(count[:]), 512)) {
		var entry [12]byte
		if _, err := s.ReadAt(entry[:], at+2+12*n); err != nil {
			return 1
		}
		if order.Uint16(entry[:]) != orientation {
			continue
		}
		v := int(order.Uint16(entry[8:]))
		if order.Uint16(entry[2:]) != short || v < 1 || v > 8 {
			return 1
		}
		return v
	}
	return 1
}
