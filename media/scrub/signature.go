// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"bytes"
	"encoding/binary"
	"sync"
)

// A format is recognised by its first bytes. Unlike files, strings have no other
// evidence of being media, so the magic bytes and checks are strict enough not to
// match random keys, hashes and tokens.
type format struct {
	magic     string // the first bytes
	mask      string // "?": any byte; "": all of magic counts
	mediaType string

	// check examines more than the magic bytes. head may be shorter than it needs.
	// Nil: the magic bytes suffice.
	check func(head []byte) bool
}

// headSize limits the argument of signature, in bytes.
const headSize = 4 << 10

// minBytes is the shortest undeclared media, in bytes.
const minBytes = 24

// formats returns the recognised formats. Formats that could be text are excluded.
func formats() []format {
	return []format{
		{magic: "\x89PNG\r\n\x1a\n", mediaType: "image/png"},
		{magic: "\xff\xd8\xff", mediaType: "image/jpeg", check: isJPEG},
		{magic: "GIF87a", mediaType: "image/gif"},
		{magic: "GIF89a", mediaType: "image/gif"},
		{magic: "RIFF????WEBP", mask: "xxxx????xxxx", mediaType: "image/webp"},
		{magic: "RIFF????WAVE", mask: "xxxx????xxxx", mediaType: "audio/wav"},
		{magic: "RIFF????AVI ", mask: "xxxx????xxxx", mediaType: "video/x-msvideo"},
		{magic: "BM", mediaType: "image/bmp", check: isBMP},
		{magic: "II*\x00", mediaType: "image/tiff", check: isTIFF},
		{magic: "MM\x00*", mediaType: "image/tiff", check: isTIFF},
		{magic: "\x00\x00\x01\x00", mediaType: "image/x-icon", check: isICO},
		{magic: "\x00\x00\x02\x00", mediaType: "image/x-win-bitmap", check: isCursor},
		{magic: "\xff\x4f\xff\x51\x00", mediaType: "image/j2c"},
		{magic: "#?RADIANCE\n", mediaType: "image/vnd.radiance"},
		{magic: "SIMPLE  =  ", mediaType: "application/fits"},
		{magic: "8BPS\x00\x01\x00\x00", mediaType: "image/vnd.adobe.photoshop"},
		{magic: "\x00\x00\x00\x0cjP  \r\n\x87\n", mediaType: "image/jp2"},
		{magic: "\x00\x00\x00\x0cJXL \r\n\x87\n", mediaType: "image/jxl"},
		{magic: "icns\x00", mediaType: "image/x-icns"},
		{magic: "\x00\x00??ftyp", mask: "xx??xxxx", mediaType: "video/mp4"},
		{magic: "%PDF-1.", mediaType: "application/pdf"},
		{magic: "%PDF-2.", mediaType: "application/pdf"},
		{magic: "PK\x03\x04", mediaType: "application/zip", check: isZIP},
		{magic: "PK\x05\x06\x00\x00\x00\x00", mediaType: "application/zip"},
		{magic: "\x1f\x8b\x08", mediaType: "application/gzip", check: isGZIP},
		{magic: "BZh?1AY&SY", mask: "xxx?xxxxxx", mediaType: "application/x-bzip2"},
		{magic: "\xfd7zXZ\x00", mediaType: "application/x-xz"},
		{magic: "7z\xbc\xaf\x27\x1c", mediaType: "application/x-7z-compressed"},
		{magic: "\x28\xb5\x2f\xfd", mediaType: "application/zstd"},
		{magic: "\x04\x22\x4d\x18", mediaType: "application/x-lz4"},
		{magic: "Rar!\x1a\x07", mediaType: "application/vnd.rar"},
		{magic: "LZIP\x01", mediaType: "application/x-lzip"},
		{magic: "07070", mediaType: "application/x-cpio", check: isCPIO},
		{magic: "\xed\xab\xee\xdb", mediaType: "application/x-rpm"},
		{magic: "d8:announce", mediaType: "application/x-bittorrent"},
		{magic: "PAR1", mediaType: "application/vnd.apache.parquet"},
		{magic: "\xd4\xc3\xb2\xa1\x02\x00", mediaType: "application/vnd.tcpdump.pcap"},
		{magic: "\xa1\xb2\xc3\xd4\x00\x02", mediaType: "application/vnd.tcpdump.pcap"},
		{magic: "glTF\x02\x00\x00\x00", mediaType: "model/gltf-binary"},
		{magic: "MSCF\x00\x00\x00\x00", mediaType: "application/vnd.ms-cab-compressed"},
		{magic: "!<arch>\n", mediaType: "application/x-archive"},
		{magic: "ID3", mediaType: "audio/mpeg", check: isID3},
		{magic: "\xff", mediaType: "audio/mpeg", check: isMPEGAudio},
		{magic: "\xff", mediaType: "audio/aac", check: isADTS},
		{magic: "OggS\x00", mediaType: "audio/ogg"},
		{magic: "fLaC", mediaType: "audio/flac", check: isFLAC},
		{magic: "RF64????WAVE", mask: "xxxx????xxxx", mediaType: "audio/wav"},
		{magic: "caff\x00\x01", mediaType: "audio/x-caf"},
		{magic: "FORM????AIF", mask: "xxxx????xxx", mediaType: "audio/aiff"},
		{magic: "MThd\x00\x00\x00\x06", mediaType: "audio/midi"},
		{magic: "#!AMR", mediaType: "audio/amr"},
		{magic: ".snd\x00\x00\x00", mediaType: "audio/basic"},
		{magic: "\x1a\x45\xdf\xa3", mediaType: "video/x-matroska"},
		{magic: "FLV\x01", mediaType: "video/x-flv", check: isFLV},
		{magic: "\x00\x00\x01\xba", mediaType: "video/mpeg", check: isMPEG},
		{magic: "\x00\x00\x01\xb3", mediaType: "video/mpeg", check: isMPEG},
		{magic: "\x47", mediaType: "video/mp2t", check: isTS},
		{magic: ".RMF\x00\x00\x00", mediaType: "application/vnd.rn-realmedia"},
		{magic: "\x30\x26\xb2\x75\x8e\x66\xcf\x11", mediaType: "video/x-ms-asf"},
		{magic: "wOFF", mediaType: "font/woff", check: isWOFF},
		{magic: "wOF2", mediaType: "font/woff2", check: isWOFF},
		{magic: "OTTO\x00", mediaType: "font/otf"},
		{magic: "\x00\x01\x00\x00\x00", mediaType: "font/ttf", check: isTTF},
		{magic: "ttcf\x00", mediaType: "font/collection"},
		{magic: "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", mediaType: "application/x-ole-storage"},
		{magic: "SQLite format 3\x00", mediaType: "application/vnd.sqlite3"},
		{magic: "\x7fELF", mediaType: "application/x-elf", check: isELF},
		{magic: "\xcf\xfa\xed\xfe", mediaType: "application/x-mach-binary"},
		{magic: "\xce\xfa\xed\xfe", mediaType: "application/x-mach-binary"},
		{magic: "\x00asm\x01\x00\x00\x00", mediaType: "application/wasm"},
		{magic: "\xca\xfe\xba\xbe\x00\x00\x00", mediaType: "application/x-java-applet"},
		{magic: "MZ", mediaType: "application/vnd.microsoft.portable-executable", check: isPE},
		{magic: "AT&TFORM????DJV", mask: "xxxxxxxx????xxx", mediaType: "image/vnd.djvu"},
		{magic: `{\rtf1`, mediaType: "application/rtf"},
	}
}

// signature returns the media type by the first bytes; "" if unknown.
func (t *tables) signature(head []byte) string {
	if len(head) == 0 {
		return ""
	}
	if c := head[0]; c <= ' ' && bytes.HasPrefix(bytes.TrimLeft(head, "\x00 \t\r\n"), []byte("%PDF-")) {
		return "application/pdf"
	}
	for _, i := range t.byFirst[head[0]] {
		f := &t.formats[i]
		if f.fits(head) && (f.check == nil || f.check(head)) {
			return f.refined(head)
		}
	}
	return ""
}

func (f *format) fits(head []byte) bool {
	if len(head) < len(f.magic) {
		return false
	}
	if f.mask == "" {
		return string(head[:len(f.magic)]) == f.magic
	}
	for i := range len(f.magic) {
		if f.mask[i] == 'x' && head[i] != f.magic[i] {
			return false
		}
	}
	return true
}

// refined distinguishes formats with the same container.
func (f *format) refined(head []byte) string {
	if f.mediaType != "video/mp4" || len(head) < 12 {
		return f.mediaType
	}
	switch string(head[8:12]) {
	case "avif", "avis":
		return "image/avif"
	case "heic", "heix", "heim", "heis", "hevc", "mif1", "msf1":
		return "image/heic"
	case "M4A ", "M4B ":
		return "audio/mp4"
	}
	return f.mediaType
}

// tables are computed once from the formats.
type tables struct {
	formats []format
	byFirst [256][]int
	pairs   [64]uint64 // first two sextets of the base64 of a format
	hex     [64]uint64 // first two characters of a hex dump of an image, as sextets
}

var theTables = sync.OnceValue(func() *tables {
	t := &tables{formats: formats()}
	pair := func(set *[64]uint64, a, b byte) { set[a] |= 1 << b }
	for i, f := range t.formats {
		t.byFirst[f.magic[0]] = append(t.byFirst[f.magic[0]], i)
		second := []byte(nil)
		switch {
		case len(f.magic) > 1 && (f.mask == "" || f.mask[1] == 'x'):
			second = []byte{f.magic[1]}
		default:
			for c := range 256 {
				second = append(second, byte(c))
			}
		}
		for _, c := range second {
			pair(&t.pairs, f.magic[0]>>2, f.magic[0]&3<<4|c>>4)
		}
	}
	for _, s := range []string{"89", "ff", "FF", "Ff", "47", "52", "42", "49", "4d", "4D", "00", "0x", "0X"} {
		pair(&t.hex, sextets[s[0]]-1, sextets[s[1]]-1)
	}
	return t
})

func isJPEG(h []byte) bool {
	return len(h) > 3 && (h[3] >= 0xe0 && h[3] <= 0xef || h[3] == 0xdb || h[3] == 0xfe || h[3] == 0xc0 || h[3] == 0xc2 || h[3] == 0xc4) &&
		len(h) > 5 && h[4] < 0x40 // the first segment is short
}

func isBMP(h []byte) bool {
	if len(h) < 18 || binary.LittleEndian.Uint32(h[6:]) != 0 {
		return false
	}
	switch binary.LittleEndian.Uint32(h[14:]) {
	case 12, 16, 40, 52, 56, 64, 108, 124:
		return binary.LittleEndian.Uint32(h[10:]) < 1<<16
	}
	return false
}

func isTIFF(h []byte) bool {
	if len(h) < 8 {
		return false
	}
	if h[0] == 'I' {
		return binary.LittleEndian.Uint32(h[4:]) >= 8
	}
	return binary.BigEndian.Uint32(h[4:]) >= 8
}

func isICO(h []byte) bool {
	if len(h) < 22 {
		return false
	}
	n, planes, bits := binary.LittleEndian.Uint16(h[4:]), binary.LittleEndian.Uint16(h[10:]), binary.LittleEndian.Uint16(h[12:])
	at := binary.LittleEndian.Uint32(h[18:])
	return n > 0 && n <= 256 && h[9] == 0 && planes <= 1 && bits <= 32 && at >= 6+16*uint32(n) && at < 1<<24
}

func isCursor(h []byte) bool {
	if len(h) < 22 {
		return false
	}
	n, at := binary.LittleEndian.Uint16(h[4:]), binary.LittleEndian.Uint32(h[18:])
	return n > 0 && n <= 256 && h[9] == 0 && at >= 6+16*uint32(n) && at < 1<<24
}

func isCPIO(h []byte) bool {
	for _, c := range h[5:min(len(h), minBytes)] {
		if hexDigit(c) < 0 {
			return false
		}
	}
	return len(h) >= minBytes
}

func isZIP(h []byte) bool {
	return len(h) > 8 && h[4] < 64 && h[5] == 0 && h[9] == 0 && h[8] < 100
}

func isGZIP(h []byte) bool {
	return len(h) > 9 && h[3] < 0x20 && (h[8] == 0 || h[8] == 2 || h[8] == 4) && (h[9] <= 13 || h[9] == 255)
}

func isID3(h []byte) bool {
	return len(h) > 9 && h[3] >= 2 && h[3] <= 4 && h[4] < 10 && h[5]&0x0f == 0 && h[6]|h[7]|h[8]|h[9] < 0x80
}

// isMPEGAudio requires two consecutive frames.
func isMPEGAudio(h []byte) bool {
	n := mpegFrame(h)
	return n > 0 && n+4 <= len(h) && mpegFrame(h[n:]) > 0 && h[n+1] == h[1] && h[n+2]&0x0c == h[2]&0x0c
}

// mpegFrame returns the length of the MPEG audio layer III frame at the beginning of
// h; 0 if there is none.
func mpegFrame(h []byte) int {
	if len(h) < 4 || h[0] != 0xff || h[1]&0xe6 != 0xe2 || h[1]>>3&3 == 1 {
		return 0
	}
	version := h[1] >> 3 & 3 // 3: MPEG 1, 2: MPEG 2, 0: MPEG 2.5
	rates := [...]int{0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 0}
	samples, frequency := 144, [...]int{44100, 48000, 32000, 0}[h[2]>>2&3]
	if version != 3 {
		rates = [...]int{0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160, 0}
		samples = 72
		frequency /= 2
		if version == 0 {
			frequency /= 2
		}
	}
	rate := rates[h[2]>>4]
	if rate == 0 || frequency == 0 {
		return 0
	}
	return samples*rate*1000/frequency + int(h[2]>>1&1)
}

// isADTS requires two consecutive AAC frames.
func isADTS(h []byte) bool {
	frame := func(h []byte) int {
		if len(h) < 7 || h[0] != 0xff || h[1]&0xf6 != 0xf0 || h[2]>>2&0x0f > 12 {
			return 0
		}
		return int(h[3]&3)<<11 | int(h[4])<<3 | int(h[5])>>5
	}
	n := frame(h)
	return n > 7 && n < len(h) && frame(h[n:]) > 0
}

func isFLAC(h []byte) bool {
	return len(h) > 8 && h[4]&0x7f == 0 && h[5] == 0 && h[6] == 0 && h[7] == 34
}

func isFLV(h []byte) bool { return len(h) > 8 && h[4]&0xfa == 0 && h[5]|h[6]|h[7] == 0 && h[8] == 9 }

func isMPEG(h []byte) bool {
	return len(h) > 12 && (h[3] == 0xba && (h[4]>>6 == 1 || h[4]>>4 == 2) || h[3] == 0xb3 && h[7]&0x0f > 0 && h[7]>>4 > 0 && h[7]>>4 < 15)
}

func isTS(h []byte) bool {
	return len(h) > 4*188 && h[188] == 0x47 && h[2*188] == 0x47 && h[3*188] == 0x47 && h[4*188] == 0x47
}

func isWOFF(h []byte) bool {
	if len(h) < 16 {
		return false
	}
	flavor := string(h[4:8])
	return (flavor == "OTTO" || flavor == "\x00\x01\x00\x00" || flavor == "true" || flavor == "ttcf") && h[14]|h[15] == 0
}

func isTTF(h []byte) bool {
	if len(h) < 16 || h[5] == 0 || h[5] > 64 {
		return false
	}
	for _, c := range h[12:16] { // the tag of the first table
		if (c < '0' || c > '9') && (c|0x20 < 'a' || c|0x20 > 'z') && c != '/' && c != ' ' {
			return false
		}
	}
	return binary.BigEndian.Uint16(h[6:])%16 == 0
}

func isELF(h []byte) bool {
	return len(h) > 6 && h[4] >= 1 && h[4] <= 2 && h[5] >= 1 && h[5] <= 2 && h[6] == 1
}

func isPE(h []byte) bool {
	if len(h) < 64 {
		return false
	}
	at := int64(binary.LittleEndian.Uint32(h[60:]))
	return at < int64(len(h)) && bytes.HasPrefix(h[at:], []byte("PE\x00\x00"))
}
