// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"bytes"
	"math/bits"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// A member describes the JSON around a payload: its key, the key of its object, and
// the sibling members that declare it.
type member struct {
	key, parent string

	kind     string // "type"
	mime     string // "mimeType" and its synonyms, if a media type
	encoding string // "encoding", "source_type"
	format   string // "format", of input_audio
	filename string
	uri      bool
}

// The relevant siblings.
const (
	noField = iota
	kindField
	mimeField
	encodingField
	formatField
	nameField
	uriField
)

func fieldOf(key []byte) int {
	switch string(key) {
	case "type":
		return kindField
	case "mimeType", "mime_type", "media_type", "mediaType", "contentType", "content_type":
		return mimeField
	case "encoding", "source_type", "sourceType":
		return encodingField
	case "format":
		return formatField
	case "filename", "name", "fileName", "displayName":
		return nameField
	case "uri", "url":
		return uriField
	}
	return noField
}

// learn takes a sibling into account.
func (m *member) learn(field int, value []byte) {
	if field == noField {
		return
	}
	v := strings.ReplaceAll(string(value), `\`, "")
	switch field {
	case kindField:
		m.kind = v
	case mimeField:
		if strings.Contains(v, "/") {
			m.mime = v
		}
	case encodingField:
		m.encoding = v
	case formatField:
		m.format = v
	case nameField:
		m.filename = v
	case uriField:
		m.uri = true
	}
}

// A verdict says whether a payload is declared to be media.
type verdict int

const (
	unknown verdict = iota // not declared
	likely                 // media if it is base64
	certain                // media; anything else is invalid
)

// verdict judges by the members read so far.
func (m *member) verdict() verdict {
	data := m.key == "data" || m.key == "base64"
	text := m.mime != "" && media.KindOf(m.mime) == artel.KindText
	sure := certain
	if text {
		sure = likely
	}
	switch {
	case m.key == "b64_json":
		return certain
	case data && (m.parent == "inlineData" || m.parent == "inline_data"):
		return sure
	case data && (m.parent == "input_audio" || m.parent == "inputAudio"):
		return certain
	case m.key == "blob" && (m.parent == "resource" || m.uri):
		return sure
	case (m.key == "file_data" || m.key == "fileData") && (m.parent == "file" || m.kind == "input_file" || m.filename != ""):
		return certain
	case data && m.parent == "source" && m.kind == "text":
		return unknown
	case data && m.kind == "base64" && (m.mime != "" || m.parent == "source"):
		return sure
	case m.encoding == "base64" && m.key != "fileData" && (m.mime != "" || mediaWord(m.kind)):
		return sure
	case (data || m.key == "blob") && m.mime != "" && mediaWord(m.kind):
		return sure
	case data && (m.kind == "image" || m.kind == "audio" || m.kind == "image-data" || m.kind == "file-data"):
		return likely
	case (data || m.key == "blob") && m.mime != "" && m.kind == "" && !text:
		return likely
	case (m.key == m.kind || m.key == "image") && m.mime != "" && mediaWord(m.kind): // {"type":"image","image":…}
		return likely
	}
	return unknown
}

func mediaWord(kind string) bool {
	switch kind {
	case "image", "audio", "video", "file", "media", "document", "image-data", "file-data", "input_image", "input_file", "input_audio", "resource":
		return true
	}
	return false
}

// hint returns the declared description of the payload.
func (m *member) hint() Hint {
	h := Hint{MediaType: strings.ToLower(m.mime), Filename: m.filename}
	h.MediaType, _, _ = strings.Cut(h.MediaType, ";")
	switch {
	case h.MediaType != "":
	case m.key == "b64_json", m.kind == "image", m.kind == "image-data", m.kind == "input_image":
		h.MediaType = "image/*"
	case m.format == "wav":
		h.MediaType = "audio/wav"
	case m.kind == "audio", m.kind == "input_audio", strings.EqualFold(m.parent, "input_audio"), m.parent == "inputAudio":
		h.MediaType = "audio/*"
	case m.kind == "video":
		h.MediaType = "video/*"
	}
	return h
}

// block replaces the payload of the media block whose member at pos has a key of n
// bytes.
func (s *scanner) block(n int) bool {
	w := &s.w
	at := n
	quote := w.backslashes(at)
	before := w.before(pastSize)
	depth := bits.TrailingZeros(^uint(quote))
	if quote != 1<<depth-1 || !closesAt(before, quote) {
		return false
	}
	if s, _ := w.charAt(at, false); s != charQuote {
		return false
	}
	m := member{key: wordOf(w.buf[w.pos : w.pos+n])}
	at, ok := w.colon(at + quote + 1)
	if !ok {
		return false
	}
	if sign, width := w.charAt(at, false); sign != charQuote || width != quote+1 {
		return false
	}
	at += quote + 1
	if w.isAddress(at) {
		return false
	}
	// Reading may have moved the window, so get the bytes before again.
	backward(w.before(pastSize), quote, &m)
	p := base64Reader{w: w, place: inString, quote: quote, at: at}
	v := m.verdict()
	if v == unknown || v == likely && !s.clean(p) {
		v = s.undecided(&m, p, false)
	}
	if v == unknown || v == likely && !s.clean(p) {
		return false
	}
	if head, _ := p.peek(minBytes); v == likely && media.KindOf(m.mime) == artel.KindText && m.mime != "" && !isText(head) {
		return false // a string that happens to be base64
	}
	if m.mime == "" {
		h, size := s.shown(p, m.hint())
		if h.Signature == "" || contradicts(h) != "" {
			s.undecided(&m, p, true) // look for a media type
		}
		if v == likely && m.mime == "" && h.Signature == "" && size < minBytes {
			return false // a word
		}
	}
	w.pass(at)
	p.at = 0
	s.declared(p, m.hint())
	return true
}

// isText reports whether b is the beginning of UTF-8 text.
func isText(b []byte) bool {
	for len(b) > 0 {
		r, n := utf8.DecodeRune(b)
		if r == utf8.RuneError && n == 1 && utf8.FullRune(b) || r < ' ' && r != '\n' && r != '\r' && r != '\t' {
			return false
		}
		b = b[n:]
	}
	return true
}

// closesAt reports whether b ends with a quote after exactly quote backslashes.
func closesAt(b []byte, quote int) bool {
	if len(b) < quote+1 || b[len(b)-1] != '"' {
		return false
	}
	n := 0
	for i := len(b) - 2; i >= 0 && b[i] == '\\'; i-- {
		n++
	}
	return n == quote
}

// colon skips the colon and space between a key and its value.
func (w *window) colon(at int) (int, bool) {
	seen := false
	for range 256 {
		s, n := w.charAt(at, false)
		switch {
		case s == charSpace, s == charBreak:
			at += n
		case s == charOther && !seen && w.buf[w.pos+at] == ':':
			seen = true
			at++
		default:
			return at, seen
		}
	}
	return at, false
}

// addresses are the prefixes of URLs, refs and marks, which are no payload.
var addresses = [...]string{"http://", "https://", "gs://", "s3://", "file:", "data:", "artifact:", "artel://", "blob:", "[invalid media", "/api/v1/files/"}

func (w *window) isAddress(at int) bool {
	if !w.need(at+1) || strings.IndexByte("hgsfdab[/", w.buf[w.pos+at]) < 0 {
		return false
	}
	for _, a := range addresses {
		i := 0
		for i < len(a) && w.need(at+i+1) && w.buf[w.pos+at+i] == a[i] {
			i++
		}
		if i == len(a) {
			return true
		}
	}
	// Slashes may be escaped.
	return w.need(at+8) && (bytes.HasPrefix(w.buf[w.pos+at:w.end], []byte(`https:\/`)) || bytes.HasPrefix(w.buf[w.pos+at:w.end], []byte(`http:\/`)))
}

// undecided reads the members after a payload until they declare it, up to
// [MaxBuffered]. With all set it reads until a media type is known.
func (s *scanner) undecided(m *member, p base64Reader, all bool) verdict {
	w, quote := &s.w, p.quote
	p.peeking = true
	for !p.ended && p.at < MaxBuffered {
		p.clean = w.letters[:0]
		p.collect(chunkSize)
		w.letters = p.clean
		if p.why != "" && p.at > maxHeader {
			return unknown // a long text
		}
	}
	if !p.ended {
		return likely
	}
	at := p.at
	if sign, n := w.charAt(at, false); sign != charQuote || n != quote+1 {
		return unknown
	}
	at += quote + 1
	for at < MaxBuffered {
		var ok bool
		if at, ok = w.punctuation(at, ','); !ok {
			return unknown
		}
		var text []byte
		if text, at, ok = w.text(at, quote); !ok {
			return unknown
		}
		field := fieldOf(text)
		if at, ok = w.colon(at); !ok {
			return unknown
		}
		if sign, n := w.charAt(at, false); sign == charQuote && n == quote+1 {
			if text, at, ok = w.text(at, quote); !ok {
				return unknown
			}
			m.learn(field, text)
			if v := m.verdict(); all && m.mime == "" {
				continue
			} else if v == certain || v == likely && p.why == "" && p.chars > 0 {
				return v
			}
		} else if at, ok = w.value(at, quote); !ok {
			return unknown
		}
	}
	return unknown
}

// clean reports whether all of p is base64 and not empty.
func (s *scanner) clean(p base64Reader) bool {
	p.peeking = true
	for !p.ended && p.at < MaxBuffered && p.why == "" {
		p.clean = s.w.letters[:0]
		p.collect(chunkSize)
		s.w.letters = p.clean
	}
	if p.ended {
		p.check()
	}
	return p.why == ""
}

// punctuation skips the character want and the space around it.
func (w *window) punctuation(at int, want byte) (int, bool) {
	seen := false
	for range 1024 {
		s, n := w.charAt(at, false)
		switch {
		case s == charSpace, s == charBreak:
			at += n
		case s == charOther && !seen && w.buf[w.pos+at] == want:
			seen = true
			at++
		default:
			return at, seen
		}
	}
	return at, false
}

// text reads a string at a depth of escapes. It returns s with its escapes, nil if
// longer than maxHeader, valid until the window moves.
func (w *window) text(at, quote int) (s []byte, end int, ok bool) {
	if sign, n := w.charAt(at, false); sign != charQuote || n != quote+1 {
		return nil, at, false
	}
	at += quote + 1
	start := at
	for at < start+MaxBuffered {
		if !w.need(at + 1) {
			return nil, at, false
		}
		i := bytes.IndexAny(w.buf[w.pos+at:w.end], `"\`)
		if i < 0 {
			at = w.end - w.pos
			continue
		}
		at += i
		n := w.backslashes(at)
		if !w.need(at + n + 1) {
			return nil, at, false
		}
		if w.buf[w.pos+at+n] != '"' {
			at += n + 1
			continue
		}
		switch depth := bits.TrailingZeros(^uint(n)); {
		case 1<<depth-1 < quote:
			return nil, at, false // the enclosing string ends
		case 1<<depth-1 == quote:
			if at+n-quote-start <= maxHeader {
				s = w.buf[w.pos+start : w.pos+at+n-quote]
			}
			return s, at + n + 1, true
		}
		at += n + 1
	}
	return nil, at, false
}

// value skips a value that is no string.
func (w *window) value(at, quote int) (int, bool) {
	open := 0
	for start := at; at < start+MaxBuffered; {
		s, n := w.charAt(at, false)
		switch {
		case s == charEnd:
			return at, false
		case s == charQuote:
			if n < quote+1 {
				return at, false
			}
			_, end, ok := w.text(at, quote)
			if !ok {
				return at, false
			}
			at = end
			continue
		case s == charOther:
			switch w.buf[w.pos+at] {
			case '{', '[':
				open++
			case '}', ']':
				if open == 0 {
					return at, true
				}
				open--
			case ',':
				if open == 0 {
					return at, true
				}
			}
		}
		at += n
	}
	return at, false
}

// backward reads the members before a key and the key of its object from b, which
// ends with the opening quote of the key.
func backward(b []byte, quote int, m *member) {
	r := reverse{b: b[:len(b)-quote-1], quote: quote}
	for range 32 {
		r.blanks()
		switch r.last() {
		case '{':
			r.drop(1)
			r.blanks()
			if r.last() == ':' {
				r.drop(1)
				r.blanks()
				parent, _ := r.text()
				m.parent = string(parent)
			}
			return
		case ',':
			r.drop(1)
			r.blanks()
		default:
			return
		}
		value, isText := r.text()
		if !isText && !r.value() {
			return
		}
		r.blanks()
		if r.last() != ':' {
			return
		}
		r.drop(1)
		r.blanks()
		key, ok := r.text()
		if !ok {
			return
		}
		if isText {
			m.learn(fieldOf(key), value)
		}
	}
}

// A reverse reads JSON at a depth of escapes backwards.
type reverse struct {
	b     []byte
	quote int
}

func (r *reverse) last() byte {
	if len(r.b) == 0 {
		return 0
	}
	return r.b[len(r.b)-1]
}

func (r *reverse) drop(n int) { r.b = r.b[:max(0, len(r.b)-n)] }

func (r *reverse) blanks() {
	for {
		switch c := r.last(); c {
		case ' ', '\t', '\n', '\r':
			r.drop(1)
			continue
		case 'n', 'r', 't': // escaped
			if n := r.slashes(1); n > 0 {
				r.drop(n + 1)
				continue
			}
		}
		return
	}
}

// slashes counts the backslashes before the last n bytes.
func (r *reverse) slashes(n int) int {
	i := len(r.b) - n
	for i > 0 && r.b[i-1] == '\\' {
		i--
	}
	return len(r.b) - n - i
}

// text reads the string that ends here, if any.
func (r *reverse) text() ([]byte, bool) {
	if r.last() != '"' || r.slashes(1) < r.quote {
		return nil, false
	}
	r.drop(1 + r.quote)
	all := r.b
	for {
		i := bytes.LastIndexByte(r.b, '"')
		if i < 0 {
			r.b = nil
			return nil, false
		}
		r.b = r.b[:i+1]
		n := r.slashes(1)
		depth := bits.TrailingZeros(^uint(n))
		if 1<<depth-1 == r.quote && n == r.quote {
			break
		}
		if n < r.quote {
			return nil, false
		}
		r.drop(1 + n)
	}
	s := all[len(r.b):]
	if len(s) > maxHeader {
		s = nil
	}
	r.drop(1 + r.quote)
	return s, true
}

// value skips a value that is no string.
func (r *reverse) value() bool {
	open, any := 0, false
	for len(r.b) > 0 {
		switch c := r.last(); c {
		case '}', ']':
			open++
		case '{', '[':
			if open == 0 {
				return any
			}
			open--
		case '"':
			if open == 0 {
				return false
			}
			if _, ok := r.text(); !ok {
				return false
			}
			continue
		case ':', ',':
			if open == 0 {
				return any
			}
		}
		any = true
		r.drop(1)
		if open == 0 && r.last() == ':' {
			return true
		}
	}
	return false
}
