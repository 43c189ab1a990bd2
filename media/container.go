// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"encoding/binary"
)

// The office formats based on ZIP.
const (
	office     = "application/vnd.openxmlformats-officedocument."
	word       = office + "wordprocessingml.document"
	excel      = office + "spreadsheetml.sheet"
	powerpoint = office + "presentationml.presentation"
)

// insideZip recognises formats based on ZIP by the names of their files, in more of
// the head than the library reads.
func insideZip(head []byte) string {
	types := bytes.Contains(head, []byte("[Content_Types].xml"))
	for rest := head; types; {
		i := bytes.Index(rest, []byte("PK\x03\x04"))
		if i < 0 || len(rest) < i+30 {
			break
		}
		rest = rest[i+30:]
		switch {
		case bytes.HasPrefix(rest, []byte("word/")):
			return word
		case bytes.HasPrefix(rest, []byte("xl/")):
			return excel
		case bytes.HasPrefix(rest, []byte("ppt/")):
			return powerpoint
		}
	}
	return "application/zip"
}

// insideOLE reads the directory of a compound file ([MS-CFB] 2.6), as far as it is in
// the head, and recognises the document by its stream.
func insideOLE(head []byte) string {
	const ole = "application/x-ole-storage"
	if len(head) < 512 {
		return ole
	}
	shift := binary.LittleEndian.Uint16(head[30:])
	if shift != 9 && shift != 12 {
		return ole
	}
	at := (int64(binary.LittleEndian.Uint32(head[48:])) + 1) << shift
	if at >= int64(len(head)) {
		return ole
	}
	for folder := head[at:]; len(folder) >= 128; folder = folder[128:] {
		switch {
		case entryIs(folder, "WordDocument"):
			return "application/msword"
		case entryIs(folder, "Workbook"), entryIs(folder, "Book"):
			return "application/vnd.ms-excel"
		case entryIs(folder, "PowerPoint Document"):
			return "application/vnd.ms-powerpoint"
		case entryIs(folder, "VisioDocument"):
			return "application/vnd.visio"
		case entryIs(folder, "__properties_version1.0"):
			return "application/vnd.ms-outlook"
		}
	}
	return ole
}

// entryIs compares the name of a directory entry, in UTF-16 with a final NUL.
func entryIs(entry []byte, name string) bool {
	if int(binary.LittleEndian.Uint16(entry[64:])) != 2*len(name)+2 {
		return false
	}
	for i := range len(name) {
		if entry[2*i] != name[i] || entry[2*i+1] != 0 {
			return false
		}
	}
	return true
}

// The GUIDs of streams in an ASF header (§10.2), in file order.
const (
	asfVideo = "\xC0\xEF\x19\xBC\x4D\x5B\xCF\x11\xA8\xFD\x00\x80\x5F\x5C\x44\x2B"
	asfAudio = "\x40\x9E\x69\xF8\x4D\x5B\xCF\x11\xA8\xFD\x00\x80\x5F\x5C\x44\x2B"
)

// asf tells sound alone from pictures, where it sees the streams.
func asf(head []byte) (mediaType string, tracks bool) {
	switch {
	case bytes.Contains(head, []byte(asfVideo)):
		return "video/x-ms-asf", true
	case bytes.Contains(head, []byte(asfAudio)):
		return "audio/x-ms-wma", true
	}
	return "video/x-ms-asf", false
}

// The elements of Matroska that are looked at (RFC 9559).
const (
	ebmlHeader    = 0x1A45DFA3
	ebmlDocType   = 0x4282
	mkvSegment    = 0x18538067
	mkvInfo       = 0x1549A966
	mkvScale      = 0x2AD7B1
	mkvDuration   = 0x4489
	mkvTracks     = 0x1654AE6B
	mkvTrack      = 0xAE
	mkvTrackType  = 0x83
	mkvVideoTrack = 1
	mkvAudioTrack = 2
)

// A matroskaHead is what the first bytes of a Matroska file tell.
type matroskaHead struct {
	docType      string // "webm", "matroska"; "" when b ended before it
	audio, video bool
	scale        uint64  // nanoseconds in a unit of time
	duration     float64 // units of time
}

// readMatroska walks the elements in b as far as they go.
func readMatroska(b []byte) matroskaHead {
	h := matroskaHead{scale: 1e6}
	left := 4096 // elements; more are nonsense in a head
	h.walk(b, &left)
	return h
}

func (h *matroskaHead) walk(b []byte, left *int) {
	for len(b) > 0 && *left > 0 {
		*left--
		id, n := ebmlNumber(b, true)
		size, m := ebmlNumber(b[n:], false)
		if n == 0 || m == 0 {
			return
		}
		b = b[n+m:]
		body := b
		if size < uint64(len(b)) {
			body = b[:size]
		}
		b = b[len(body):]
		switch id {
		case ebmlHeader, mkvSegment, mkvInfo, mkvTracks, mkvTrack: // no deeper than these four
			h.walk(body, left)
		case ebmlDocType:
			h.docType = string(bytes.TrimRight(body[:min(len(body), 16)], "\x00"))
		case mkvScale:
			h.scale = bigEndian(body)
		case mkvDuration:
			h.duration = bigFloat(body)
		case mkvTrackType:
			h.video = h.video || bigEndian(body) == mkvVideoTrack
			h.audio = h.audio || bigEndian(body) == mkvAudioTrack
		}
	}
}

// ebmlNumber reads a number of one to eight bytes and how many they are, 0 when
// b does not hold it; keep leaves the bits that tell its length, as in ids. A
// size that is not known is the greatest.
func ebmlNumber(b []byte, keep bool) (v uint64, n int) {
	if len(b) == 0 || b[0] == 0 {
		return 0, 0
	}
	n = 1
	for mask := byte(0x80); b[0]&mask == 0; mask >>= 1 {
		n++
	}
	if len(b) < n || keep && n > 4 {
		return 0, 0
	}
	v = uint64(b[0])
	if !keep {
		v &= 0xFF >> n
	}
	for _, c := range b[1:n] {
		v = v<<8 | uint64(c)
	}
	if !keep && v == 1<<(7*n)-1 {
		v = 1<<64 - 1
	}
	return v, n
}

// bigEndian reads an unsigned number of at most eight bytes.
func bigEndian(b []byte) (v uint64) {
	for _, c := range b[:min(len(b), 8)] {
		v = v<<8 | uint64(c)
	}
	return v
}

// matroska reads the document type and, where it sees them, the tracks.
func matroska(head []byte) signatureMatch {
	h := readMatroska(head)
	kind, minor := "video/", "x-matroska"
	if h.audio && !h.video {
		kind = "audio/"
	}
	if h.docType == "webm" {
		minor = "webm"
	}
	return signatureMatch{mediaType: kind + minor, strong: h.docType != "", tracks: h.audio || h.video}
}
