// SPDX-License-Identifier: Apache-2.0

// Package media detects the media type, the kind and the charset of bytes, and
// measures such as the size of a picture.
//
// Begin with [Sniffer] for a stream or [Detect] for bytes in memory. [Measure]
// reads the measures of stored bytes, and [DecodeText] converts text to UTF-8.
//
// Bytes are text if all of them are valid UTF-8 without NUL, UTF-16, UTF-32, or
// decode without error in a declared, self-declared (XML, HTML, ISO-2022-JP) or
// guessed charset. A truncated last character of UTF-8 is allowed. Text wins over
// declarations and signatures, except for PDF, RTF, and bytes of a guessed charset
// with a signature that no text has.
//
// Other bytes get their type from the first of these: a signature that contradicts
// the declaration, the declared type, the extension, the signature. Declarations of
// text or of "unknown" are ignored for them. Unknown bytes are
// application/octet-stream with confidence 0. No bytes at all are text, unless
// declared otherwise; then they are of kind other.
//
// The package has no I/O, and results do not depend on how a stream is cut into
// pieces.
package media

import (
	"bytes"

	"github.com/artelhq/artel"
)

// headSize is the number of leading bytes that a Sniffer keeps.
const headSize = 64 << 10

// A Hint is an external claim about bytes. The zero value claims nothing.
type Hint struct {
	DeclaredType string // an uncleaned media type; parameters and stray quotes are tolerated
	Filename     string // only its extension counts
}

// A Sniffer detects the type of a stream written to it. It keeps at most 64 KB and
// does constant work per byte. It is for one goroutine.
type Sniffer struct {
	hint Hint
	head []byte
	size int64

	nul   bool
	utf8  utf8Check
	utf16 [2]utf16Check
	wide  bool        // the bytes may be UTF-16
	utf32 *utf32Check // not nil after a byte order mark of UTF-32
	jis   *trial      // not nil after an escape sequence of ISO-2022-JP
	guess legacyCheck
}

// NewSniffer returns a Sniffer for one stream.
func NewSniffer(h Hint) *Sniffer { return &Sniffer{hint: h} }

// Detect detects the type of b, which it neither changes nor keeps.
func Detect(b []byte, h Hint) artel.MediaInfo {
	s := Sniffer{hint: h, head: b[:min(len(b), headSize):min(len(b), headSize)]}
	s.watch(b)
	return s.Info()
}

// Write takes the next bytes of the stream. It never fails and never keeps p.
func (s *Sniffer) Write(p []byte) (int, error) {
	if room := headSize - len(s.head); room > 0 {
		s.head = append(s.head, p[:min(room, len(p))]...)
	}
	s.watch(p)
	return len(p), nil
}

// watch feeds p to every check. The head contains p already, up to its size.
func (s *Sniffer) watch(p []byte) {
	before := s.size
	s.size += int64(len(p))
	if !s.nul {
		if i := bytes.IndexByte(p, 0); i >= 0 {
			s.nul = true
			if !s.wide && before+int64(i) < headSize && !bytes.HasPrefix(s.head, []byte("%PDF-")) {
				s.startUTF16(before)
			}
		}
	}
	if !s.wide && before < 2 && len(s.head) >= 2 && hasUTF16BOM(s.head) {
		s.startUTF16(before)
	}
	if s.wide {
		s.utf16[0].feed(p)
		s.utf16[1].feed(p)
	}
	switch {
	case s.utf32 != nil:
		s.utf32.feed(p)
	case before < 4 && len(s.head) >= 4:
		if s.utf32 = startUTF32(s.head); s.utf32 != nil {
			s.utf32.feed(s.head[:before])
			s.utf32.feed(p)
		}
	}
	high := firstHigh(p)
	if high >= 0 || s.utf8.n > 0 { // ASCII needs no check
		s.utf8.feed(p)
	}
	if !s.nul {
		s.guess.feed(p, high, s)
	}
	switch {
	case s.jis != nil:
		s.jis.feed(p)
	case before < headSize && !s.nul && hasShift(s.head[max(0, before-2):]):
		s.jis = startTrial("iso-2022-jp", 0.95, new(scratch))
		s.jis.feed(s.head[:before])
		s.jis.feed(p)
	}
}

// startUTF16 starts the checks of both byte orders with the bytes so far.
func (s *Sniffer) startUTF16(passed int64) {
	s.wide = true
	s.utf16[1].bigEndian = true
	marked := hasUTF16BOM(s.head)
	s.utf16[0].marked, s.utf16[1].marked = marked, marked
	s.utf16[0].feed(s.head[:passed])
	s.utf16[1].feed(s.head[:passed])
}

// Info returns the result for the bytes so far. It may be called at any time.
func (s *Sniffer) Info() artel.MediaInfo {
	declared, charset := cleanType(s.hint.DeclaredType)
	info := artel.MediaInfo{DeclaredType: declared, Size: s.size}
	if isUninformative(declared) {
		declared = ""
	}
	if s.size == 0 {
		return nameEmpty(info, declared, s.hint.Filename)
	}
	sig := asciiSignature(s.head)
	if claimed := Canonical(declared) == typePDF || declared == "" && binaryExtension(s.hint.Filename) == typePDF; sig.mediaType == "" && isLatePDF(s.head, claimed) {
		sig = signatureMatch{mediaType: typePDF, strong: true}
	}
	if sig.strong {
		return nameBinary(info, declared, s.hint.Filename, sig)
	}
	text := s.text(charset, isText(declared) || isText(textExtension(s.hint.Filename)))
	sig = signature(s.head, text)
	if sig.failed {
		info.MediaType, info.Kind, info.DetectedBy = octetStream, artel.KindOther, artel.FromContent
		return info
	}
	if text.charset != "" && sig.mediaType == "" {
		return nameText(info, declared, s.hint.Filename, text, s.head)
	}
	return nameBinary(info, declared, s.hint.Filename, sig)
}

// text decides whether the stream is text, and in which charset.
func (s *Sniffer) text(declaredCharset string, claimed bool) textVerdict {
	// ISO-2022-JP is ASCII as a whole, so require the escape back to ASCII too.
	if s.jis != nil && !s.nul && declaredCharset != "utf-8" && bytes.Contains(s.head, []byte("\x1B(")) && s.jis.holds() {
		return s.jis.textVerdict
	}
	if s.utf8.valid() && !s.nul {
		return textVerdict{charset: "utf-8", confidence: 1}
	}
	if s.utf32 != nil && s.utf32.valid() {
		return textVerdict{charset: s.utf32.name(), confidence: 1}
	}
	if s.wide {
		if v := judgeUTF16(&s.utf16, hasUTF16BOM(s.head)); v.charset != "" {
			return v
		}
	}
	if s.nul {
		return textVerdict{}
	}
	if s.utf8.cut() {
		return textVerdict{charset: "utf-8", confidence: 0.9}
	}
	return s.guess.verdict(s, declaredCharset, claimed)
}

func nameEmpty(info artel.MediaInfo, declared, filename string) artel.MediaInfo {
	switch {
	case declared != "" && !isText(declared):
		info.DetectedBy = artel.FromDeclared
	case declared == "" && textExtension(filename) == "" && binaryExtension(filename) != "":
		info.DetectedBy = artel.FromExtension
	default:
		return nameText(info, declared, filename, textVerdict{charset: "utf-8", confidence: 1}, nil)
	}
	info.MediaType, info.Kind = octetStream, artel.KindOther
	return info
}

func nameText(info artel.MediaInfo, declared, filename string, v textVerdict, head []byte) artel.MediaInfo {
	info.Kind, info.Charset, info.Confidence = artel.KindText, v.charset, v.confidence
	if isText(declared) {
		info.MediaType, info.DetectedBy = Canonical(declared), artel.FromDeclared
		return info
	}
	if t := textExtension(filename); t != "" {
		info.MediaType, info.DetectedBy = t, artel.FromExtension
		return info
	}
	info.MediaType, info.DetectedBy = textType(head, v.charset, info.Size > int64(len(head))), artel.FromContent
	return info
}

// The confidences of types for bytes that are not text.
const (
	signatureConfidence = 1.0 // a signature
	declaredConfidence  = 0.7 // a declaration without a signature
	extensionConfidence = 0.6 // an extension without a signature
	weakConfidence      = 0.5 // a signature short enough for chance
)

func nameBinary(info artel.MediaInfo, declared, filename string, sig signatureMatch) artel.MediaInfo {
	set := func(mediaType string, by artel.MediaSource, confidence float64) artel.MediaInfo {
		info.MediaType, info.DetectedBy, info.Confidence = mediaType, by, confidence
		info.Kind = KindOf(mediaType)
		return info
	}
	claims := []struct {
		mediaType  string
		by         artel.MediaSource
		confidence float64
	}{
		{Canonical(declared), artel.FromDeclared, declaredConfidence},
		{binaryExtension(filename), artel.FromExtension, extensionConfidence},
	}
	for _, c := range claims {
		if c.mediaType == "" || isText(c.mediaType) {
			continue
		}
		if !sig.strong {
			return set(c.mediaType, c.by, c.confidence)
		}
		if t, ok := sig.agrees(c.mediaType); ok {
			return set(t, c.by, signatureConfidence)
		}
		if c.by == artel.FromDeclared {
			break // contradicted: the extension is no better evidence
		}
	}
	switch {
	case sig.mediaType == "":
		return set(octetStream, artel.FromContent, 0)
	case sig.strong:
		return set(sig.mediaType, artel.FromSignature, signatureConfidence)
	default:
		return set(sig.mediaType, artel.FromSignature, weakConfidence)
	}
}
