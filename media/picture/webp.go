// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"image"
	"image/draw"
	"io"

	"golang.org/x/image/webp"
)

// A webpFrame locates the first frame of an animated WebP. The library reads only
// still pictures.
type webpFrame struct {
	at, size      int64 // of its chunks
	x, y          int   // on the canvas
	width, height int
}

// lookWebP reads the chunks of a WebP.
func lookWebP(s *io.SectionReader) (Info, error) {
	i, _, err := walkWebP(s)
	return i, err
}

func walkWebP(s *io.SectionReader) (i Info, first *webpFrame, err error) {
	i = Info{MediaType: "image/webp"}
	for at, n := int64(12), 0; n < 2*MaxFrames; n++ {
		var h [8 + 16]byte
		got, err := s.ReadAt(h[:], at)
		if got < 8 {
			if i.Width == 0 || err != io.EOF {
				return i, first, short(err)
			}
			return i, first, nil
		}
		length := int64(binary.LittleEndian.Uint32(h[4:]))
		kind := string(h[:4])
		if got < len(h) && (kind == "VP8X" || kind == "VP8L" || kind == "VP8 " || kind == "ANMF") && int64(got-8) < min(length, 10) {
			return i, first, errShort
		}
		switch kind {
		case "VP8X":
			i.Width, i.Height = 1+uint24(h[12:]), 1+uint24(h[15:])
			i.Memory = i.Pixels() * 9
		case "VP8L":
			if i.Width == 0 {
				bits := binary.LittleEndian.Uint32(h[9:])
				i.Width, i.Height = 1+int(bits&0x3fff), 1+int(bits>>14&0x3fff)
				i.Memory = i.Pixels() * 8
			}
		case "VP8 ":
			if i.Width == 0 {
				i.Width, i.Height = int(binary.LittleEndian.Uint16(h[14:])&0x3fff), int(binary.LittleEndian.Uint16(h[16:])&0x3fff)
				i.Memory = i.Pixels() * 2
			}
		case "ANMF":
			if i.Frames++; first == nil && got == len(h) && length >= 16 {
				first = &webpFrame{at + 24, length - 16, 2 * uint24(h[8:]), 2 * uint24(h[11:]), 1 + uint24(h[14:]), 1 + uint24(h[17:])}
			}
		case "EXIF":
			i.Orientation = orientationOf(io.NewSectionReader(s, at+8, length))
		}
		at += 8 + length + length&1
	}
	return i, first, nil
}

func uint24(b []byte) int { return int(b[0]) | int(b[1])<<8 | int(b[2])<<16 }

// decodeWebP decodes a still WebP, or the first frame of an animated one on its
// canvas.
func decodeWebP(s *io.SectionReader) (image.Image, error) {
	info, frame, err := walkWebP(s)
	if err != nil {
		return nil, err
	}
	if frame == nil {
		return webp.Decode(s)
	}
	if frame.size > lookBudget {
		return nil, errors.New("its first frame is too long")
	}
	if frame.x+frame.width > info.Width || frame.y+frame.height > info.Height {
		return nil, errors.New("its first frame is larger than its canvas")
	}
	chunks := make([]byte, frame.size)
	if _, err := s.ReadAt(chunks, frame.at); err != nil {
		return nil, short(err)
	}
	still := bytes.NewBuffer(make([]byte, 0, len(chunks)+30))
	still.WriteString("RIFF")
	extended := []byte{0, 0, 0, 0}
	if bytes.HasPrefix(chunks, []byte("ALPH")) {
		extended[0] = 0x10
	}
	size := 4 + 18 + len(chunks)
	_ = binary.Write(still, binary.LittleEndian, uint32(size))
	still.WriteString("WEBPVP8X\x0a\x00\x00\x00")
	still.Write(extended)
	for _, n := range []int{frame.width - 1, frame.height - 1} {
		still.Write([]byte{byte(n), byte(n >> 8), byte(n >> 16)})
	}
	still.Write(chunks)
	m, err := webp.Decode(still)
	if err != nil {
		return nil, err
	}
	if b := m.Bounds(); frame.x == 0 && frame.y == 0 && b.Dx() == info.Width && b.Dy() == info.Height {
		return m, nil
	}
	canvas := image.NewRGBA(image.Rect(0, 0, info.Width, info.Height))
	draw.Draw(canvas, m.Bounds().Add(image.Pt(frame.x, frame.y)), m, m.Bounds().Min, draw.Src)
	return canvas, nil
}
