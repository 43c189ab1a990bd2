// SPDX-License-Identifier: Apache-2.0

package media

import (
	"encoding/binary"
	"io"
)

// metaMost limits the bytes read of a meta box. Cameras write a few KB.
const metaMost = 256 << 10

// A heif is the content of the meta box of HEIC and AVIF (ISO/IEC 23008-12): items
// refer to properties in one list by their index.
type heif struct {
	primary    uint32
	properties []heifProperty
	of         map[uint32][]int // item to places, from 1
}

// A heifProperty is the size or the visible part of a picture; zero for other
// properties.
type heifProperty struct {
	width, height int
	crop          bool
}

// heifSize returns the stored size of the primary picture without the encoder's
// margins. If the file names no primary picture, the largest counts: tiles and
// thumbnails are smaller.
func heifSize(src *io.SectionReader) (width, height int) {
	left := mostBoxes
	var meta []byte
	boxes(src, 0, src.Size(), &left, func(kind string, at, end int64) bool {
		if kind == "meta" {
			meta = make([]byte, min(end-at, metaMost))
			n, _ := src.ReadAt(meta, at)
			meta = meta[:n]
		}
		return meta == nil
	})
	if len(meta) < 4 {
		return 0, 0
	}
	h := heif{of: map[uint32][]int{}}
	h.read(meta[4:], &left)
	for _, place := range h.of[h.primary] {
		if place < 1 || place > len(h.properties) {
			continue
		}
		if p := h.properties[place-1]; p.width > 0 && (width == 0 || p.crop) {
			width, height = p.width, p.height
		}
	}
	if width > 0 {
		return width, height
	}
	for _, p := range h.properties {
		if !p.crop && p.width*p.height > width*height {
			width, height = p.width, p.height
		}
	}
	return width, height
}

// read walks the boxes in b.
func (h *heif) read(b []byte, left *int) {
	for ; len(b) >= 8 && *left > 0; *left-- {
		size := int(binary.BigEndian.Uint32(b))
		if size == 0 {
			size = len(b)
		}
		if size < 8 || size > len(b) {
			return
		}
		body := b[8:size]
		switch string(b[4:8]) {
		case "pitm":
			if len(body) >= 6 {
				h.primary = uint32(binary.BigEndian.Uint16(body[4:]))
			}
			if len(body) >= 8 && body[0] > 0 {
				h.primary = binary.BigEndian.Uint32(body[4:])
			}
		case "iprp":
			h.read(body, left)
		case "ipco":
			h.readProperties(body, left)
		case "ipma":
			h.readPlaces(body)
		}
		b = b[size:]
	}
}

func (h *heif) readProperties(b []byte, left *int) {
	for ; len(b) >= 8 && *left > 0; *left-- {
		size := int(binary.BigEndian.Uint32(b))
		if size < 8 || size > len(b) {
			return
		}
		body := b[8:size]
		var p heifProperty
		number := func(i int) int { return min(int(binary.BigEndian.Uint32(body[4*i:])), mostSide) }
		switch kind := string(b[4:8]); {
		case kind == "ispe" && len(body) >= 12:
			p = heifProperty{width: number(1), height: number(2)}
		case kind == "clap" && len(body) >= 16 && number(1) > 0 && number(3) > 0:
			p = heifProperty{width: number(0) / number(1), height: number(2) / number(3), crop: true}
		}
		h.properties = append(h.properties, p)
		b = b[size:]
	}
}

// readPlaces reads which properties each item has (§9.3).
func (h *heif) readPlaces(b []byte) {
	if len(b) < 8 {
		return
	}
	longID, longPlace := b[0] > 0, b[3]&1 == 1
	for b = b[8:]; len(b) >= 3; {
		id := uint32(binary.BigEndian.Uint16(b))
		b = b[2:]
		if longID {
			if len(b) < 3 {
				return
			}
			id = id<<16 | uint32(binary.BigEndian.Uint16(b))
			b = b[2:]
		}
		count := int(b[0])
		b = b[1:]
		for ; count > 0 && len(b) > 0; count-- {
			place := int(b[0] & 0x7F)
			b = b[1:]
			if longPlace {
				if len(b) == 0 {
					return
				}
				place = place<<8 | int(b[0])
				b = b[1:]
			}
			h.of[id] = append(h.of[id], place)
		}
	}
}
