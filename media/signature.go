// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"encoding/binary"
	"strings"

	"github.com/gabriel-vasile/mimetype"
)

const octetStream = "application/octet-stream"

// A signed is what the first bytes say; the zero value when they say nothing.
type signed struct {
	mediaType string
	strong    bool // beyond chance
}

// asciiSignature finds the formats that are documents although their bytes may
// be text.
func asciiSignature(head []byte) signed {
	switch {
	case isPDF(head):
		return signed{"application/pdf", true}
	case isRTF(head):
		return signed{"application/rtf", true}
	}
	return signed{}
}

// signature reads the head of bytes that are text or not, as text says. Only
// JPEG is believed against an old charset, whose letters its mark could be.
func signature(head []byte, text textVerdict) signed {
	switch {
	case text.charset == "utf-8" || strings.HasPrefix(text.charset, "utf-16"):
		return signed{}
	case text.charset != "" && !bytes.HasPrefix(head, []byte("\xFF\xD8\xFF")):
		return signed{}
	}
	for _, f := range frequent {
		if bytes.HasPrefix(head, []byte(f.mark)) {
			return signed{f.mediaType, true}
		}
	}
	found := mimetype.Detect(head)
	for m := found; m != nil; m = m.Parent() {
		if m.Is("text/plain") {
			return signed{}
		}
	}
	name, _, _ := strings.Cut(found.String(), ";")
	switch name {
	case octetStream:
		return signed{}
	case "application/zip":
		name = insideZip(head)
	case "image/apng":
		name = "image/png" // every reader of PNG shows its first frame
	case "video/webm", "video/matroska":
		name = matroska(head)
	}
	return signed{canonical(name), strong(name, head)}
}

// frequent spares the most frequent formats the library's long walk.
var frequent = [...]struct{ mark, mediaType string }{
	{"\x89PNG\r\n\x1a\n", "image/png"},
	{"\xFF\xD8\xFF", "image/jpeg"},
	{"GIF87a", "image/gif"},
	{"GIF89a", "image/gif"},
	{"ID3\x03\x00", "audio/mpeg"},
	{"ID3\x04\x00", "audio/mpeg"},
}

// isPDF wants the header line and an object, so that prose about PDF stays prose.
func isPDF(head []byte) bool {
	v, ok := bytes.CutPrefix(head, []byte("%PDF-"))
	if !ok || len(v) < 4 || v[0] < '1' || v[0] > '2' || v[1] != '.' || v[2] < '0' || v[2] > '9' {
		return false
	}
	return bytes.Contains(v, []byte(" obj"))
}

// isRTF wants the version and then a control word, a group or a space.
func isRTF(head []byte) bool {
	v, ok := bytes.CutPrefix(head, []byte(`{\rtf`))
	return ok && len(v) >= 2 && v[0] >= '0' && v[0] <= '9' && bytes.IndexByte([]byte("\\{} \r\n"), v[1]) >= 0
}

// insideZip looks for the names by which formats that are made of ZIP give
// themselves away, further than the library looks.
func insideZip(head []byte) string {
	const office = "application/vnd.openxmlformats-officedocument."
	for _, f := range []struct{ entry, mediaType string }{
		{"word/", office + "wordprocessingml.document"},
		{"xl/", office + "spreadsheetml.sheet"},
		{"ppt/", office + "presentationml.presentation"},
	} {
		for rest := head; ; {
			i := bytes.Index(rest, []byte("PK\x03\x04"))
			if i < 0 || len(rest) < i+30 {
				break
			}
			rest = rest[i+30:]
			if bytes.HasPrefix(rest, []byte(f.entry)) && bytes.Contains(head, []byte("[Content_Types].xml")) {
				return f.mediaType
			}
		}
	}
	return "application/zip"
}

// matroska reads the document type that the EBML header holds.
func matroska(head []byte) string {
	if bytes.Contains(head[:min(len(head), 64)], []byte("webm")) {
		return "video/webm"
	}
	return "video/x-matroska"
}

// strong reports whether the signature of a type is long enough to overrule
// what somebody declared.
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

// agrees reports whether bytes with this signature may be what is claimed, and
// what to call them: a claim may be narrower than its container's signature,
// or another name of it.
func (s signed) agrees(claim string) (string, bool) {
	if claim == s.mediaType {
		return claim, true
	}
	for _, family := range zipFamily {
		if s.mediaType == "application/zip" && strings.HasPrefix(claim, family) {
			return claim, true
		}
	}
	// The same container holds sound alone or pictures too.
	if a, b, ok := strings.Cut(claim, "/"); ok {
		c, d, _ := strings.Cut(s.mediaType, "/")
		if b == d && (a == "audio" && c == "video" || a == "video" && c == "audio" && b != "mpeg") {
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

// zipFamily are types that are ZIP inside and that the library does not know.
var zipFamily = [...]string{
	"application/vnd.openxmlformats-officedocument.", "application/vnd.oasis.opendocument.", "application/vnd.ms-",
	"application/epub+zip", "application/vnd.apple.", "application/x-iwork-", "application/java-archive",
	"application/vnd.android.package-archive", "application/vnd.comicbook+zip",
}
