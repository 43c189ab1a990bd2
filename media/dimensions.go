// SPDX-License-Identifier: Apache-2.0

package media

import (
	"encoding/binary"
	"image"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"strconv"

	"golang.org/x/image/tiff"
	"golang.org/x/image/webp"
)

// mostSide is the longest plausible side, in pixels.
const mostSide = 1 << 30

func imageSize(mediaType string, src *io.SectionReader) (width, height int) {
	switch mediaType {
	case "image/png":
		width, height = configOf(png.DecodeConfig, src)
	case "image/jpeg":
		width, height = configOf(jpeg.DecodeConfig, src)
	case "image/gif":
		width, height = configOf(gif.DecodeConfig, src)
	case "image/webp":
		width, height = configOf(webp.DecodeConfig, src)
	case "image/tiff":
		width, height = configOf(tiff.DecodeConfig, src)
	case "image/bmp":
		width, height = bmpSize(headOf(src, 26))
	case "image/x-icon", "image/x-win-bitmap":
		width, height = iconSize(headOf(src, 6+16*64))
	case "image/vnd.adobe.photoshop":
		width, height = psdSize(headOf(src, 26))
	case "image/heic", "image/heif", "image/heic-sequence", "image/heif-sequence", "image/avif":
		width, height = heifSize(src)
	case "image/jp2", "image/jpx", "image/jpm":
		width, height = jp2Size(src)
	case "image/j2c":
		width, height = j2cSize(headOf(src, 24))
	case "image/jxl":
		width, height = jxlSize(src)
	case "image/x-portable-bitmap", "image/x-portable-graymap", "image/x-portable-pixmap":
		width, height = netpbmSize(headOf(src, 512))
	}
	if width <= 0 || height <= 0 || width > mostSide || height > mostSide {
		return 0, 0
	}
	return width, height
}

func configOf(decode func(io.Reader) (image.Config, error), src io.Reader) (width, height int) {
	c, err := decode(src)
	if err != nil {
		return 0, 0
	}
	return c.Width, c.Height
}

// bmpSize reads the second header, of which the oldest has 16-bit numbers. The
// height of a picture that is stored from the top is negative.
func bmpSize(b []byte) (width, height int) {
	switch {
	case len(b) < 26:
		return 0, 0
	case b[14] == 12:
		return int(binary.LittleEndian.Uint16(b[18:])), int(binary.LittleEndian.Uint16(b[20:]))
	}
	width, height = int(int32(binary.LittleEndian.Uint32(b[18:]))), int(int32(binary.LittleEndian.Uint32(b[22:])))
	return width, max(height, -height)
}

// iconSize returns the largest picture of an icon; 0 stands for 256.
func iconSize(b []byte) (width, height int) {
	if len(b) < 6 {
		return 0, 0
	}
	entries := int(binary.LittleEndian.Uint16(b[4:]))
	for b = b[6:]; entries > 0 && len(b) >= 16; entries, b = entries-1, b[16:] {
		w, h := int(b[0]), int(b[1])
		if w == 0 {
			w = 256
		}
		if h == 0 {
			h = 256
		}
		if w*h > width*height {
			width, height = w, h
		}
	}
	return width, height
}

func psdSize(b []byte) (width, height int) {
	if len(b) < 22 {
		return 0, 0
	}
	return int(binary.BigEndian.Uint32(b[18:])), int(binary.BigEndian.Uint32(b[14:]))
}

// jp2Size reads the image header box (ISO/IEC 15444-1 §I.5.3.1).
func jp2Size(src *io.SectionReader) (width, height int) {
	left := mostBoxes
	boxes(src, 0, src.Size(), &left, func(kind string, at, end int64) bool {
		if kind != "jp2h" {
			return true
		}
		boxes(src, at, end, &left, func(kind string, at, _ int64) bool {
			if kind != "ihdr" {
				return true
			}
			var b [8]byte
			if _, err := src.ReadAt(b[:], at); err == nil {
				height, width = int(binary.BigEndian.Uint32(b[:])), int(binary.BigEndian.Uint32(b[4:]))
			}
			return false
		})
		return false
	})
	return width, height
}

// j2cSize reads the SIZ marker, which comes first (ISO/IEC 15444-1 §A.5.1).
func j2cSize(b []byte) (width, height int) {
	if len(b) < 24 {
		return 0, 0
	}
	number := func(at int) int { return int(binary.BigEndian.Uint32(b[at:])) }
	return number(8) - number(16), number(12) - number(20)
}

// jxlSize reads the size header of a codestream (ISO/IEC 18181-1 §D.2), which
// stands alone or in a box.
func jxlSize(src *io.SectionReader) (width, height int) {
	b := headOf(src, 16)
	if len(b) > 2 && b[0] == 0xFF {
		return jxlHeader(b[2:])
	}
	left := mostBoxes
	boxes(src, 0, src.Size(), &left, func(kind string, at, _ int64) bool {
		switch kind {
		case "jxlp":
			at += 4 // which part it is
		case "jxlc":
		default:
			return true
		}
		var b [16]byte
		if n, _ := src.ReadAt(b[:], at); n > 2 && b[0] == 0xFF {
			width, height = jxlHeader(b[2:n])
		}
		return false
	})
	return width, height
}

func jxlHeader(b []byte) (width, height int) {
	var all [8]byte
	copy(all[:], b)
	stream := binary.LittleEndian.Uint64(all[:])
	bits := func(n int) int {
		v := int(stream & (1<<n - 1))
		stream >>= n
		return v
	}
	small := bits(1) == 1
	side := func() int {
		if small {
			return 8 * (bits(5) + 1)
		}
		return bits([...]int{9, 13, 18, 30}[bits(2)]) + 1
	}
	height = side()
	switch ratio := bits(3); ratio {
	case 0:
		return side(), height
	default:
		by := [...][2]int{{1, 1}, {12, 10}, {4, 3}, {3, 2}, {16, 9}, {5, 4}, {2, 1}}[ratio-1]
		return height * by[0] / by[1], height
	}
}

// netpbmSize reads the two numbers after the mark, which comments may precede.
func netpbmSize(b []byte) (width, height int) {
	if len(b) < 3 {
		return 0, 0
	}
	var sides [2]int
	found := 0
	for i := 2; i < len(b) && found < len(sides); {
		switch c := b[i]; {
		case c == '#':
			for i < len(b) && b[i] != '\n' {
				i++
			}
		case c >= '0' && c <= '9':
			from := i
			for i < len(b) && b[i] >= '0' && b[i] <= '9' {
				i++
			}
			n, err := strconv.Atoi(string(b[from:i]))
			if err != nil || i == len(b) {
				return 0, 0
			}
			sides[found] = n
			found++
		default:
			i++
		}
	}
	if found < len(sides) {
		return 0, 0
	}
	return sides[0], sides[1]
}

// mostBoxes limits the boxes visited in one file.
const mostBoxes = 4096

// boxes visits the boxes of ISO/IEC 14496-12 §4.2 between two offsets with their kind
// and the offsets of their content, until visit returns false, a box is invalid, or
// left is used up.
func boxes(src *io.SectionReader, at, end int64, left *int, visit func(kind string, at, end int64) bool) {
	for ; at+8 <= end && *left > 0; *left-- {
		var h [16]byte
		got, _ := src.ReadAt(h[:min(int64(len(h)), end-at)], at)
		if got < 8 {
			return
		}
		size, body := int64(binary.BigEndian.Uint32(h[:])), int64(8)
		switch size {
		case 0:
			size = end - at
		case 1:
			size, body = int64(binary.BigEndian.Uint64(h[8:])), 16
		}
		if size < body || size > end-at || !visit(string(h[4:8]), at+body, at+size) {
			return
		}
		at += size
	}
}
