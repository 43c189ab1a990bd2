// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

const (
	octetStream = "application/octet-stream"
	typePDF     = "application/pdf"
)

// A signatureMatch is the result of a signature check; the zero value: unknown.
type signatureMatch struct {
	mediaType string
	strong    bool // beyond chance
	tracks    bool // audio and video are distinguished
	failed    bool // the detector panicked
}

// asciiSignature recognises document formats whose bytes may be text.
func asciiSignature(head []byte) signatureMatch {
	switch {
	case isPDF(head):
		return signatureMatch{mediaType: typePDF, strong: true}
	case isRTF(head):
		return signatureMatch{mediaType: "application/rtf", strong: true}
	}
	return signatureMatch{}
}

// signature checks the head of bytes; text is the result of the text checks. Valid
// UTF-8 and text with a byte order mark have no signature; text of a guessed charset
// only one that no text begins with.
func signature(head []byte, text textVerdict) signatureMatch {
	if text.charset != "" {
		if text.guessed {
			return unmistakable(head)
		}
		return signatureMatch{}
	}
	if s := ownSignature(head); s.mediaType != "" {
		return s
	}
	found, ok := lookUp(head)
	if !ok {
		return signatureMatch{failed: true}
	}
	for m := found; m != nil; m = m.Parent() {
		if strings.HasPrefix(m.String(), "text/plain") {
			return signatureMatch{}
		}
	}
	name, _, _ := strings.Cut(found.String(), ";")
	tracks := false
	switch name {
	case octetStream, "image/x-icon": // which has a check of its own
		return signatureMatch{}
	case "application/zip":
		name = insideZip(head)
	case "image/apng":
		name = "image/png" // all PNG readers show its first frame
	case "video/x-ms-asf":
		name, tracks = asf(head)
	}
	return signatureMatch{mediaType: Canonical(name), strong: strong(name, head), tracks: tracks}
}

// lookUp asks the library. It recovers from panics, because the input is untrusted;
// ok is false then.
func lookUp(head []byte) (found *mimetype.MIME, ok bool) {
	defer func() {
		if recover() != nil {
			found, ok = nil, false
		}
	}()
	return mimetype.Detect(head), true
}

// unmistakable recognises signatures that are valid in some charsets, but begin no
// text.
func unmistakable(head []byte) signatureMatch {
	for _, m := range marks {
		if m.beatsText && bytes.HasPrefix(head, []byte(m.bytes)) {
			return signatureMatch{mediaType: m.mediaType, strong: true}
		}
	}
	// The second line of a PDF is a comment of non-ASCII characters.
	if first, rest, ok := bytes.Cut(head[:min(len(head), 16)], []byte("%PDF-")); ok && len(first) == 0 {
		if i := bytes.IndexByte(rest, '%'); i > 0 && len(rest) > i+2 && rest[i+1] >= 0x80 && rest[i+2] >= 0x80 {
			return signatureMatch{mediaType: typePDF, strong: true}
		}
	}
	return signatureMatch{}
}

// A mark is the prefix of all files of a format.
type mark struct {
	bytes, mediaType string
	beatsText        bool
}

// marks are the prefixes of frequent formats, for speed, and of those unknown to the
// library.
var marks = [...]mark{
	{"\x89PNG\r\n\x1a\n", "image/png", true},
	{"\xFF\xD8\xFF", "image/jpeg", true},
	{"GIF87a", "image/gif", false},
	{"GIF89a", "image/gif", false},
	{"ID3\x03\x00", "audio/mpeg", false},
	{"ID3\x04\x00", "audio/mpeg", false},
	{"\xFF\x4F\xFF\x51\x00", "image/j2c", false},
	{"caff\x00\x01", "audio/x-caf", false},
	{"#!AMR\n", "audio/amr", true},
	{"#!AMR-WB\n", "audio/amr-wb", true},
	{"\x04\x22\x4D\x18", "application/x-lz4", false},
	{"\x02\x21\x4C\x18", "application/x-lz4", false},
}

// ownSignature recognises the formats of marks, and those that the library does not
// recognise or confuses.
func ownSignature(head []byte) signatureMatch {
	for _, m := range marks {
		if head[0] == m.bytes[0] && len(head) >= len(m.bytes) && string(head[:len(m.bytes)]) == m.bytes {
			return signatureMatch{mediaType: m.mediaType, strong: true}
		}
	}
	found := ""
	switch head[0] {
	case 0:
		if found = ftyp(head); found == "" {
			found = icon(head)
		}
	case 'B':
		found = when(isBMP(head), "image/bmp")
		if bigWAV(head, "BW64") {
			found = "audio/wav"
		}
	case 'P':
		found = netpbm(head)
	case 'R':
		found = riff(head)
		if bigWAV(head, "RF64") {
			found = "audio/wav"
		}
	case 0x1A:
		if bytes.HasPrefix(head, []byte("\x1A\x45\xDF\xA3")) {
			return matroska(head)
		}
	case 0xD0:
		if bytes.HasPrefix(head, []byte("\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1")) {
			found = insideOLE(head)
		}
	case 'G':
		found = when(isTransportStream(head), "video/mp2t")
	}
	switch {
	case found != "":
	case len(head) > 35 && head[34] == 'L' && head[35] == 'P' && isEOT(head):
		found = "application/vnd.ms-fontobject"
	case len(head) >= 196 && isTransportStream(head[4:]): // with a clock before each packet
		found = "video/mp2t"
	case len(head) > isoMark+6 && string(head[isoMark+1:isoMark+6]) == "CD001":
		found = "application/x-iso9660-image"
	}
	return signatureMatch{mediaType: found, strong: found != ""}
}

func when(yes bool, mediaType string) string {
	if yes {
		return mediaType
	}
	return ""
}

// riff and ftyp name the most frequent contents of their containers; the
// library knows the others.
func riff(head []byte) string {
	if len(head) < 16 || string(head[:4]) != "RIFF" {
		return ""
	}
	switch string(head[8:12]) {
	case "WAVE":
		return "audio/wav"
	case "WEBP":
		return when(string(head[12:15]) == "VP8", "image/webp")
	case "AVI ":
		return when(string(head[12:16]) == "LIST", "video/x-msvideo")
	}
	return ""
}

func ftyp(head []byte) string {
	if len(head) < 12 || string(head[4:8]) != "ftyp" {
		return ""
	}
	switch string(head[8:12]) {
	case "isom", "iso2", "iso4", "iso5", "iso6", "mp41", "mp42", "avc1":
		return "video/mp4"
	case "qt  ":
		return "video/quicktime"
	case "M4A ":
		return "audio/mp4"
	case "heic", "heix":
		return "image/heic"
	case "avif":
		return "image/avif"
	}
	return ""
}

// isoMark is where the first descriptor of a volume stands (ECMA-119 §8).
const isoMark = 32 << 10

// icon wants the first entry of the directory to lie in the right place, since
// two small numbers alone begin many files.
func icon(head []byte) string {
	if len(head) < 22 || head[1] != 0 || head[3] != 0 || head[9] != 0 {
		return ""
	}
	entries := int(binary.LittleEndian.Uint16(head[4:]))
	size, at := binary.LittleEndian.Uint32(head[14:]), binary.LittleEndian.Uint32(head[18:])
	if entries == 0 || entries > 1024 || size < 12 || size > 64<<20 || at < uint32(6+16*entries) || at > 64<<20 {
		return ""
	}
	switch head[2] {
	case 1:
		return "image/x-icon"
	case 2:
		return "image/x-win-bitmap"
	}
	return ""
}

// isBMP requires a known size of the second header.
func isBMP(head []byte) bool {
	if len(head) < 18 || head[1] != 'M' || !zero(head[15:18]) {
		return false
	}
	switch head[14] {
	case 12, 16, 40, 52, 56, 64, 108, 124:
		return true
	}
	return false
}

func zero(b []byte) bool {
	for _, c := range b {
		if c != 0 {
			return false
		}
	}
	return true
}

// bigWAV reports the two forms of WAV with 64-bit lengths.
func bigWAV(head []byte, mark string) bool {
	return len(head) >= 16 && string(head[:4]) == mark && string(head[8:12]) == "WAVE"
}

// netpbm recognises the raw forms; the plain ones are text.
func netpbm(head []byte) string {
	if len(head) < 8 || head[2] != '\n' && head[2] != ' ' || head[3] != '#' && (head[3] < '0' || head[3] > '9') && string(head[3:8]) != "WIDTH" {
		return ""
	}
	switch head[1] {
	case '4':
		return "image/x-portable-bitmap"
	case '5':
		return "image/x-portable-graymap"
	case '6':
		return "image/x-portable-pixmap"
	case '7':
		return "image/x-portable-arbitrarymap"
	}
	return ""
}

// isTransportStream requires the sync bytes of three consecutive packets of either
// length.
func isTransportStream(head []byte) bool {
	for _, packet := range [...]int{188, 192} {
		if len(head) > 2*packet && head[0] == 'G' && head[packet] == 'G' && head[2*packet] == 'G' {
			return true
		}
	}
	return false
}

func isEOT(head []byte) bool {
	switch binary.LittleEndian.Uint32(head[8:]) {
	case 0x10000, 0x20001, 0x20002:
		return true
	}
	return false
}

// isPDF requires the header line and an object, to exclude prose about PDF.
func isPDF(head []byte) bool {
	v, ok := bytes.CutPrefix(head, []byte("%PDF-"))
	if !ok || len(v) < 4 || v[0] < '1' || v[0] > '2' || v[1] != '.' || v[2] < '0' || v[2] > '9' {
		return false
	}
	return bytes.Contains(v, []byte(" obj"))
}

// pdfHeader is how far into a file readers accept the header of a PDF, in bytes.
const pdfHeader = 1024

// isLatePDF recognises a PDF after other bytes, as print systems and mail programs add
// them. Text about PDF may quote the same lines, so a name or a declared type must agree,
// or a comment of non-ASCII characters must follow.
func isLatePDF(head []byte, claimed bool) bool {
	for at := 0; ; at++ {
		i := bytes.Index(head[at:min(len(head), at+pdfHeader)], []byte("%PDF-"))
		if i < 0 || at+i >= pdfHeader {
			return false
		}
		at += i
		v := head[at:]
		if at == 0 || head[at-1] != '\n' && head[at-1] != '\r' && head[at-1] != 0 || !isPDF(v) {
			continue
		}
		end := bytes.IndexAny(v, "\r\n")
		if end < 0 {
			return false
		}
		next := bytes.TrimLeft(v[end:], "\r\n")
		return claimed || len(next) > 2 && next[0] == '%' && next[1] >= 0x80 && next[2] >= 0x80
	}
}

// isRTF requires the version and then a control word, a group or a space.
func isRTF(head []byte) bool {
	v, ok := bytes.CutPrefix(head, []byte(`{\rtf`))
	return ok && len(v) >= 2 && v[0] >= '0' && v[0] <= '9' && bytes.IndexByte([]byte("\\{} \r\n"), v[1]) >= 0
}

// strong reports whether the signature of a type overrules a declaration.
func strong(mediaType string, head []byte) bool {
	switch mediaType {
	case "audio/mpeg":
		return bytes.HasPrefix(head, []byte("ID3")) || len(head) > 1 && head[0] == 0xFF && head[1] >= 0xE0
	case "application/vnd.microsoft.portable-executable":
		if len(head) < 64 {
			return false
		}
		at := int64(binary.LittleEndian.Uint32(head[60:]))
		return at < int64(len(head)) && bytes.HasPrefix(head[at:], []byte("PE\x00\x00"))
	case "application/pdf": // not at the very beginning, or without an object
		return bytes.HasPrefix(head, []byte("%PDF-"))
	case "audio/aac", "application/x-shockwave-flash", "application/zlib", "application/cbor", "application/x-dbf",
		"application/vnd.shx", "application/vnd.shp", "application/vnd.lotus-1-2-3", "application/x-bytecode.python",
		"application/x-coredump", "application/x-ms-reader", "application/marc", "application/tzif", "audio/qcelp":
		return false
	}
	return true
}

// agrees reports whether a claim is compatible with the signature, and the type to
// use: a claim may be narrower than the signature of its container, or a synonym.
func (s signatureMatch) agrees(claim string) (string, bool) {
	if claim == s.mediaType {
		return claim, true
	}
	for _, f := range families {
		if s.mediaType == f.container && !s.tracks && strings.HasPrefix(claim, f.claim) {
			return claim, true
		}
	}
	// The container may hold audio or video.
	if a, b, ok := strings.Cut(claim, "/"); ok {
		c, d, _ := strings.Cut(s.mediaType, "/")
		if b == d && !s.tracks && (a == "audio" && c == "video" || a == "video" && c == "audio" && b != "mpeg") {
			return claim, true
		}
	}
	known := mimetype.Lookup(claim)
	if known == nil {
		return "", false
	}
	if known.Is(s.mediaType) {
		return s.mediaType, true
	}
	for m := known.Parent(); m != nil && m.Parent() != nil; m = m.Parent() {
		if m.Is(s.mediaType) {
			return claim, true
		}
	}
	return "", false
}

// families are prefixes of claims compatible with a container's signature that the
// library does not know.
var families = [...]struct{ container, claim string }{
	{"application/zip", "application/vnd.openxmlformats-officedocument."},
	{"application/zip", "application/vnd.oasis.opendocument."},
	{"application/zip", "application/vnd.ms-"},
	{"application/zip", "application/epub+zip"},
	{"application/zip", "application/vnd.apple."},
	{"application/zip", "application/x-iwork-"},
	{"application/zip", "application/java-archive"},
	{"application/zip", "application/vnd.android.package-archive"},
	{"application/zip", "application/vnd.comicbook+zip"},
	{"application/x-ole-storage", "application/vnd.ms-"},
	{"application/x-ole-storage", "application/msword"},
	{word, "application/vnd.ms-word."},
	{word, "application/vnd.openxmlformats-officedocument.wordprocessingml."},
	{excel, "application/vnd.ms-excel."},
	{excel, "application/vnd.openxmlformats-officedocument.spreadsheetml."},
	{powerpoint, "application/vnd.ms-powerpoint."},
	{powerpoint, "application/vnd.openxmlformats-officedocument.presentationml."},
	{"video/x-ms-asf", "audio/x-ms-wma"},
	{"application/ogg", "audio/ogg"},
	{"application/ogg", "video/ogg"},
	{"video/mpeg", "video/mp2p"},
}
