// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"fmt"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// maxHeader is the longest beginning of a data URI, up to its comma.
const maxHeader = 512

// dataURI takes the data URI (RFC 2397) that may begin at pos.
func (s *scanner) dataURI() bool {
	header, at, ok := s.w.header()
	if !ok {
		return false
	}
	h, encoded := readHeader(header)
	if !encoded {
		return s.percent(h, at)
	}
	p := payload{w: &s.w, place: inURI, at: at}
	head, all := p.peek(leastBytes * 2)
	if all && len(head) == 0 && !s.valueEnds(at) {
		return false // somebody writes about data URIs, or a program makes one
	}
	if all && len(head) < 2*leastBytes && s.elided(p) {
		return false
	}
	s.declared(p, h)
	return true
}

// declared takes a payload that says what it is, after holding it to that.
func (s *scanner) declared(p payload, h Hint) {
	h, size := s.shown(p, h)
	if size > 0 {
		if why := contradicts(h); why != "" {
			s.refuse(&p, why)
			return
		}
	}
	s.take(p, h)
}

// shown adds to h what the first bytes of p show, and returns how many of them
// were looked at.
func (s *scanner) shown(p payload, h Hint) (Hint, int) {
	head, all := p.peek(leastBytes * 2)
	if h.Signature = s.t.signature(head); h.Signature == "" && !all && len(head) > 1 && s.t.wantsMore(head) {
		head, _ = p.peek(headSize)
		h.Signature = s.t.signature(head)
	}
	return h, len(head)
}

// contradicts says why bytes are not what they are declared to be; "" where
// they may be.
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
	case signed(claim):
		return fmt.Sprintf("it says %s and is not", claim)
	}
	return ""
}

// related reports whether bytes that show one kind may be declared as another.
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

// signed reports media types whose bytes always show a signature.
func signed(mediaType string) bool {
	switch mediaType {
	case "image/*", "image/png", "image/x-png", "image/jpeg", "image/jpg", "image/gif", "image/webp", "image/bmp", "image/tiff", "image/heic", "image/heif", "image/avif",
		"audio/wav", "audio/x-wav", "audio/wave", "audio/flac", "audio/ogg", "video/mp4", "video/webm", "application/pdf", "application/zip", "application/gzip":
		return true
	}
	return false
}

// header reads the beginning of a data URI up to its comma, without escapes.
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
		case c == ' ' && strings.HasSuffix(b.String(), ";"): // "; base64", as people write
			at++
		case c == '%', c == '\\', c == '"', c == '&':
			sign, n := w.look(at, true)
			if sign == signQuote && (inside || strings.HasSuffix(b.String(), "=")) {
				inside = !inside
			} else if sign > signOther && classes[byte(sign)] != 0 || sign == signPad || inside && sign == signSpace {
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

// readHeader takes a header apart.
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
	if len(parts) == 1 && strings.EqualFold(parts[0], "base64") { // "data:base64,", as some write
		encoded = true
	}
	return h, encoded
}

// elided reports a payload that goes on with dots: an example in a text about
// data URIs.
func (s *scanner) elided(p payload) bool {
	p.look = true
	p.collect(4 * leastBytes)
	w := &s.w
	if !p.ended || p.why != "" || !w.need(p.at+3) {
		return false
	}
	rest := string(w.buf[w.pos+p.at : w.pos+p.at+3])
	return rest == "..." || rest == "…" || rest == `\u2`
}

// valueEnds reports whether the data URI at pos, whose payload would begin at
// an offset, is the whole of a value: of a string in JSON, of an attribute, of
// a link, or of the text itself. Anywhere else an empty payload means that
// somebody writes about data URIs, or that a program puts one together.
func (s *scanner) valueEnds(at int) bool {
	w := &s.w
	before := w.before(64)
	if len(before) == 0 {
		return true
	}
	last := before[len(before)-1]
	first, n := w.look(at, true)
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
	} else if first != signQuote {
		// What is no base64 at all, in a string of its own: only JSON says so.
		return len(value) > 0 && value[len(value)-1] == ':' && s.junkValue(at)
	}
	for at += n; ; at += n {
		first, n = w.look(at, false)
		if first != signSpace && first != signBreak {
			break
		}
	}
	if first == signEnd {
		return true
	}
	closing := ",}]"
	if attribute {
		closing = ">/"
	}
	return w.need(at+1) && strings.IndexByte(closing, w.buf[w.pos+at]) >= 0
}

// junkValue reports whether a string goes on with signs and ends soon.
func (s *scanner) junkValue(at int) bool {
	for range maxHeader {
		sign, n := s.w.look(at, false)
		switch sign {
		case signQuote:
			return true
		case signEnd, signBreak:
			return false
		}
		at += n
	}
	return false
}

// percent takes a data URI whose bytes are written with percent signs, where
// they begin as media do: else they are text to begin with.
func (s *scanner) percent(h Hint, at int) bool {
	p := percents{w: &s.w, at: at}
	head := p.peek(leastBytes * 2)
	if h.Signature = s.t.signature(head); h.Signature == "" || len(head) < leastBytes {
		return false
	}
	s.takePercents(p, h)
	return true
}

func (s *scanner) takePercents(p percents, h Hint) { s.hit(&p, h) }

// percents reads the percent-encoded bytes of a URI.
type percents struct {
	w    *window
	at   int
	look bool
}

// byte reads the next one; -1 at the end.
func (p *percents) byte() int {
	if !p.w.need(p.at + 1) {
		return -1
	}
	if !p.look && p.at >= windowSize/2 {
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
		if s, n := p.w.look(p.at, false); s == '/' {
			p.at += n
			return '/'
		}
	}
	return -1
}

func (p percents) peek(most int) []byte {
	p.look = true
	return firstBytes(most, p.byte)
}

// Read implements io.Reader.
func (p *percents) Read(dst []byte) (int, error) { return readBytes(dst, p.w, p.byte) }

func (p *percents) finish() {
	for p.byte() >= 0 {
		continue
	}
	p.w.drop(p.at)
	p.at = 0
}

func (p *percents) flawed() string { return "" }
