// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// maxHeader limits the header of a data URI, up to its comma.
const maxHeader = 512

// dataURI replaces the data URI (RFC 2397) at pos, if there is one.
func (s *scanner) dataURI() bool {
	header, at, ok := s.w.header()
	if !ok {
		return false
	}
	h, encoded := readHeader(header)
	if !encoded {
		return s.percent(h, at)
	}
	p := base64Reader{w: &s.w, place: inURI, at: at}
	head, all := p.peek(minBytes * 2)
	if all && len(head) == 0 && !s.valueEnds(at) {
		return false // prose about data URIs, or code that builds one
	}
	if all && len(head) < 2*minBytes && s.elided(p) {
		return false
	}
	s.declared(p, h)
	return true
}

// declared replaces a payload with a declared type after checking the type.
func (s *scanner) declared(p base64Reader, h Hint) {
	h, size := s.shown(p, h)
	if size > 0 {
		if why := contradicts(h); why != "" {
			s.replaceInvalid(&p, why)
			return
		}
	}
	s.replaceBase64(p, h)
}

// shown sets h.Signature from the first bytes of p, and returns their number.
func (s *scanner) shown(p base64Reader, h Hint) (Hint, int) {
	head, all := p.peek(minBytes * 2)
	if h.Signature = s.t.signature(head); h.Signature == "" && !all && len(head) > 1 && s.t.wantsMore(head) {
		head, _ = p.peek(headSize)
		h.Signature = s.t.signature(head)
	}
	return h, len(head)
}

// contradicts returns why the signature contradicts the declared type, or "".
func contradicts(h Hint) string {
	claim := h.MediaType
	if claim == "" {
		return ""
	}
	wants := media.KindOf(claim)
	if strings.HasSuffix(claim, "/*") || claim == "image" || claim == "audio" || claim == "video" {
		wants = artel.MediaKind(strings.TrimSuffix(claim, "/*"))
	}
	switch {
	case h.Signature != "" && related(media.KindOf(h.Signature), wants):
		return ""
	case h.Signature != "":
		return fmt.Sprintf("it says %s and is %s", claim, h.Signature)
	case hasSignature(claim):
		return fmt.Sprintf("it says %s and is not", claim)
	}
	return ""
}

// related reports whether bytes of one kind may be declared as another.
func related(shown, said artel.MediaKind) bool {
	switch said {
	case shown, artel.KindOther:
		return true
	case artel.KindAudio, artel.KindVideo: // containers hold either
		return shown == artel.KindAudio || shown == artel.KindVideo
	case artel.KindDocument, artel.KindArchive: // office files are archives
		return shown == artel.KindDocument || shown == artel.KindArchive
	}
	return false
}

// hasSignature reports media types whose bytes always show a signature.
func hasSignature(mediaType string) bool {
	switch mediaType {
	case "image/*", "image/png", "image/x-png", "image/jpeg", "image/jpg", "image/gif", "image/webp", "image/bmp", "image/tiff", "image/heic", "image/heif", "image/avif",
		"audio/wav", "audio/x-wav", "audio/wave", "audio/flac", "audio/ogg", "video/mp4", "video/webm", "application/pdf", "application/zip", "application/gzip":
		return true
	}
	return false
}

// header reads the header of a data URI up to its comma, and resolves escapes.
func (w *window) header() (header string, at int, ok bool) {
	var b strings.Builder
	inside := false // of quotes around a parameter
	at = len("data:")
	for at < maxHeader {
		if !w.need(at + 1) {
			return "", 0, false
		}
		switch c := w.buf[w.pos+at]; {
		case c == ',' && !inside:
			return b.String(), at + 1, true
		case classes[c] != 0, c == ';', c == '=', c == '.', inside && c >= ' ' && c != '"' && c != '\\':
			b.WriteByte(c)
			at++
		case strings.IndexByte("!#$&^~'*`", c) >= 0 && b.Len() > 0:
			b.WriteByte(c)
			at++
		case c == ' ' && strings.HasSuffix(b.String(), ";"): // "; base64" occurs
			at++
		case c == '%', c == '\\', c == '"', c == '&':
			sign, n := w.charAt(at, true)
			if sign == charQuote && (inside || strings.HasSuffix(b.String(), "=")) {
				inside = !inside
			} else if sign > charOther && classes[byte(sign)] != 0 || sign == charPad || inside && sign == charSpace {
				b.WriteByte(byte(sign))
			} else {
				return "", 0, false
			}
			at += n
		default:
			return "", 0, false
		}
	}
	return "", 0, false
}

// readHeader parses a header.
func readHeader(header string) (h Hint, encoded bool) {
	parts := strings.Split(header, ";")
	for i, p := range parts {
		p = strings.TrimSpace(p)
		key, value, _ := strings.Cut(p, "=")
		switch {
		case i == 0:
			if strings.Contains(p, "/") {
				h.MediaType = strings.ToLower(p)
			}
		case strings.EqualFold(p, "base64"):
			encoded = true
		case strings.EqualFold(key, "name"), strings.EqualFold(key, "filename"):
			h.Filename = value
		}
	}
	if len(parts) == 1 && strings.EqualFold(parts[0], "base64") { // "data:base64," occurs
		encoded = true
	}
	return h, encoded
}

// elided reports a payload followed by dots: an example in prose about data URIs.
func (s *scanner) elided(p base64Reader) bool {
	p.peeking = true
	p.collect(4 * minBytes)
	w := &s.w
	if !p.ended || p.why != "" || !w.need(p.at+3) {
		return false
	}
	rest := string(w.buf[w.pos+p.at : w.pos+p.at+3])
	return rest == "..." || rest == "…" || rest == `\u2`
}

// valueEnds reports whether the data URI at pos with an empty payload at an offset
// is a complete value: a JSON string, an attribute, a link, or the whole text.
// Otherwise it is prose about data URIs, or code that builds one.
func (s *scanner) valueEnds(at int) bool {
	w := &s.w
	before := w.before(64)
	if len(before) == 0 {
		return true
	}
	last := before[len(before)-1]
	first, n := w.charAt(at, true)
	switch last {
	case '(':
		return w.need(at+1) && w.buf[w.pos+at] == ')'
	case '\'', '"':
	default:
		return false
	}
	value := before[:len(before)-1]
	attribute := false
	for len(value) > 0 && (value[len(value)-1] == '\\' || value[len(value)-1] == ' ') {
		value = value[:len(value)-1]
	}
	if len(value) > 0 {
		attribute = value[len(value)-1] == '='
		if strings.IndexByte(":[,=", value[len(value)-1]) < 0 {
			return false
		}
	}
	if last == '\'' {
		if !w.need(at+1) || w.buf[w.pos+at] != '\'' {
			return false
		}
		n = 1
	} else if first != charQuote {
		// A string value without any base64; recognised in JSON only.
		return len(value) > 0 && value[len(value)-1] == ':' && s.junkValue(at)
	}
	for at += n; ; at += n {
		first, n = w.charAt(at, false)
		if first != charSpace && first != charBreak {
			break
		}
	}
	if first == charEnd {
		return true
	}
	closing := ",}]"
	if attribute {
		closing = ">/"
	}
	return w.need(at+1) && strings.IndexByte(closing, w.buf[w.pos+at]) >= 0
}

// junkValue reports whether a string value ends within maxHeader characters.
func (s *scanner) junkValue(at int) bool {
	for range maxHeader {
		sign, n := s.w.charAt(at, false)
		switch sign {
		case charQuote:
			return true
		case charEnd, charBreak:
			return false
		}
		at += n
	}
	return false
}

// percent replaces a percent-encoded data URI if its bytes have a known signature.
// Otherwise it is text.
func (s *scanner) percent(h Hint, at int) bool {
	p := percentReader{w: &s.w, at: at}
	head := p.peek(minBytes * 2)
	if h.Signature = s.t.signature(head); h.Signature == "" || len(head) < minBytes {
		return false
	}
	s.replacePercent(p, h)
	return true
}

func (s *scanner) replacePercent(p percentReader, h Hint) { s.replace(&p, h) }

// percentReader reads percent-encoded bytes of a URI.
type percentReader struct {
	w       *window
	at      int
	peeking bool
}

// byte reads the next byte; -1 at the end.
func (p *percentReader) byte() int {
	if !p.w.need(p.at + 1) {
		return -1
	}
	if !p.peeking && p.at >= windowSize/2 {
		p.w.drop(p.at)
		p.at = 0
	}
	switch c := p.w.buf[p.w.pos+p.at]; {
	case c == '%':
		if !p.w.need(p.at + 3) {
			return -1
		}
		v := hexByte(p.w.buf[p.w.pos+p.at+1:])
		if v >= 0 {
			p.at += 3
		}
		return v
	case classes[c] != 0, strings.IndexByte("!$&*.:;=?@~,", c) >= 0:
		p.at++
		return int(c)
	case c == '\\':
		if s, n := p.w.charAt(p.at, false); s == '/' {
			p.at += n
			return '/'
		}
	}
	return -1
}

func (p percentReader) peek(most int) []byte {
	p.peeking = true
	return firstBytes(most, p.byte)
}

// Read implements io.Reader.
func (p *percentReader) Read(dst []byte) (int, error) { return readBytes(dst, p.w, p.byte) }

func (p *percentReader) finish() {
	for p.byte() >= 0 {
		continue
	}
	p.w.drop(p.at)
	p.at = 0
}

func (p *percentReader) flawed() string { return "" }
