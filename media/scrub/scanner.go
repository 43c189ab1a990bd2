// SPDX-License-Identifier: Apache-2.0

package scrub

import "context"

// A scanner makes one pass over a text, from word to word: runs of base64
// characters. The first bytes of a word decide whether a match may begin there,
// which is rare.
type scanner struct {
	w        window
	sink     Sink
	t        *tables
	found    bool
	replaced func(original, by string) string // of [Media]: invalid payloads stay unchanged; for texts in memory
	rest     bool                             // the window begins inside of a word without a match
}

func newScanner(ctx context.Context, keep Sink) *scanner {
	return &scanner{w: window{ctx: ctx}, sink: keep, t: theTables()}
}

// maxWord is the longest word that can be a key or a prefix of a match.
const maxWord = 64

func (s *scanner) run() error {
	w := &s.w
	for {
		n, what := s.next(w.ahead())
		w.pass(n)
		switch what {
		case nothing:
			if !w.fill() {
				w.flush()
				return w.err
			}
		case cutWord:
			s.cutWord()
		case aWord:
			s.word()
		case anEscape:
			s.escape()
		}
		if w.err != nil {
			return w.err
		}
	}
}

// The results of next.
const (
	nothing  = iota // nothing up to the end of the window
	cutWord         // a word cut off by the window
	aWord           // a word that may begin a match
	anEscape        // a backslash
)

// next returns how many bytes of b to pass, and what follows them.
func (s *scanner) next(b []byte) (n, what int) {
	i := 0
	if s.rest {
		i, _ = span(b)
		if i == len(b) {
			return i, nothing
		}
		s.rest = false
	}
	pairs, hex := &s.t.pairs, &s.t.hex
	for i < len(b) {
		c := b[i]
		if classes[c] == 0 {
			if c == '\\' {
				n := s.plainEscape(b[i:])
				if n == 0 {
					return i, anEscape
				}
				i += n
				continue
			}
			i++
			continue
		}
		j := i + 1
		for j < len(b) && classes[b[j]] != 0 {
			j++
		}
		if j == len(b) {
			if s.w.eof && j-i > 1 && s.mayBegin(b[i:j]) {
				return i, aWord
			}
			if !s.w.eof {
				return i, cutWord
			}
			return j, nothing
		}
		if j-i > 1 {
			x, y := sextets[c]-1, sextets[b[i+1]]-1
			if (pairs[x]|hex[x])>>y&1 != 0 || x >= 62 && s.mayBegin(b[i+1:j]) {
				return i, aWord
			}
			if d := b[j]; d == '"' || d == '\\' || d == ':' {
				if isWord(b[i:j]) {
					return i, aWord
				}
			}
		}
		i = j
	}
	return i, nothing
}

// plainEscape returns the length of an escape that cannot begin a match, as almost
// all; 0: it may.
func (s *scanner) plainEscape(b []byte) int {
	n := 1
	for n < len(b) && b[n] == '\\' {
		n++
	}
	if len(b) < n+6 {
		return 0
	}
	switch c := b[n]; {
	case classes[c] == 0:
		return n + 1
	case c == 'u':
		if b[n+1] == '0' && b[n+2] == '0' || hexByte(b[n+1:]) < 0 || hexByte(b[n+3:]) < 0 {
			return 0
		}
		return n + 5
	case c == 'x', s.mayBegin(b[n:n+3]) && classes[b[n+1]] != 0:
		return 0
	}
	return n + 1
}

// mayBegin reports whether a word with this prefix can begin a match.
func (s *scanner) mayBegin(word []byte) bool {
	if len(word) < 2 {
		x := sextets[word[0]] - 1
		return x < 64 && (s.t.pairs[x]|s.t.hex[x] != 0 || x >= 62)
	}
	x, y := sextets[word[0]]-1, sextets[word[1]]-1
	if x >= 64 || y >= 64 {
		return false
	}
	return (s.t.pairs[x]|s.t.hex[x])>>y&1 != 0 || x >= 62 && s.mayBegin(word[1:])
}

// isWord reports keys of payloads, and "data" of data URIs.
func isWord(b []byte) bool {
	switch len(b) {
	case 4:
		return string(b) == "data" || string(b) == "blob" || string(b) == "DATA" || string(b) == "Data"
	case 5:
		return string(b) == "image" || string(b) == "audio" || string(b) == "video"
	case 6:
		return string(b) == "base64"
	case 8:
		return string(b) == "b64_json" || string(b) == "fileData"
	case 9:
		return string(b) == "file_data"
	}
	return false
}

// words are the words of isWord.
var words = [...]string{"data", "Data", "DATA", "blob", "image", "audio", "video", "base64", "b64_json", "fileData", "file_data"}

// wordOf returns b as one of words, or "".
func wordOf(b []byte) string {
	for _, known := range words {
		if string(b) == known {
			return known
		}
	}
	return ""
}

// cutWord handles a word cut off by the window: it reads more if a match may
// follow.
func (s *scanner) cutWord() {
	word := s.w.ahead()
	wait := s.mayBegin(word) && len(word) < maxWord
	before := s.w.before(1)
	key := len(before) > 0 && before[0] == '"' // otherwise only "data:" matters
	for i, known := range words {
		wait = wait || len(word) <= len(known) && known[:len(word)] == string(word) && (key || i < 3)
	}
	switch {
	case len(word) >= 2 && s.mayBegin(word):
		s.word() // reads more as needed
	case wait:
		s.w.fill()
	default:
		s.rest = true
	}
}

// word replaces the match that begins at pos, or passes the word.
func (s *scanner) word() {
	w := &s.w
	if s.bare(0) || s.hexDump(0) {
		return
	}
	n := 0
	for n <= maxWord && w.need(n+1) && classes[w.buf[w.pos+n]] != 0 {
		n++
	}
	if n <= len("file_data") && w.need(n+1) && isWord(w.buf[w.pos:w.pos+n]) {
		switch w.buf[w.pos+n] {
		case ':':
			if n == len("data") && s.dataURI() {
				return
			}
		case '"', '\\':
			if s.block(n) {
				return
			}
		}
	}
	// The first character may not belong to the match: the + of a diff, a slash.
	if n > 2 && classes[w.buf[w.pos]] != plainChar && (s.bare(1) || s.hexDump(1)) {
		return
	}
	w.pass(n)
	s.rest = true
}

// escape handles the backslash at pos, which may begin a JSON escape or be literal.
func (s *scanner) escape() {
	w := &s.w
	n := w.backslashes(0)
	if !w.need(n + 1) {
		w.pass(n)
		return
	}
	switch c := w.buf[w.pos+n]; {
	case c == '/':
		if !s.bare(0) {
			w.pass(n + 1)
		}
	case c == 'u' && w.need(n+5) && hexByte(w.buf[w.pos+n+1:]) >= 0 && hexByte(w.buf[w.pos+n+3:]) >= 0:
		if !s.bare(0) {
			w.pass(n + 5)
		}
	case c == 'x':
		if !s.hexDump(max(0, n-2)) && !s.bare(n) {
			w.pass(n + 1)
		}
	case classes[c] == 0:
		w.pass(n)
		if c != '\\' {
			w.pass(1)
		}
	default:
		if !s.bare(n) {
			w.pass(n + 1)
		}
	}
}

// bare replaces undeclared base64 at an offset if its bytes have a known signature.
func (s *scanner) bare(skip int) bool {
	if !s.begins(skip) {
		return false
	}
	p := base64Reader{w: &s.w, at: skip}
	head, all := p.peek(minBytes * 2)
	if len(head) < minBytes {
		return false
	}
	media := s.t.signature(head)
	if media == "" && !all && s.t.wantsMore(head) {
		head, _ = p.peek(headSize)
		media = s.t.signature(head)
	}
	if media == "" {
		return false
	}
	s.w.pass(skip)
	p.at = 0
	s.replaceBase64(p, Hint{Signature: media})
	return true
}

// replaceBase64 is replace for base64. Only here a base64Reader is allocated.
func (s *scanner) replaceBase64(p base64Reader, h Hint) { s.replace(&p, h) }

// begins reports whether the two characters at an offset may begin the base64 of a
// known signature.
func (s *scanner) begins(at int) bool {
	var pair [2]byte
	for i := range pair {
		c, n := s.w.charAt(at, false)
		if c <= charOther || classes[byte(c)] == 0 {
			return false
		}
		pair[i] = sextets[byte(c)] - 1
		at += n
	}
	return s.t.pairs[pair[0]]>>pair[1]&1 != 0
}

// wantsMore reports whether more bytes may be needed to recognise a format.
func (t *tables) wantsMore(head []byte) bool {
	return head[0] == 0xff && head[1]&0xe0 == 0xe0 || head[0] == 0x47 || head[0] == 'M' && head[1] == 'Z'
}

// replace hands p to the sink and replaces it by the result.
func (s *scanner) replace(p reader, h Hint) {
	w := &s.w
	w.flush()
	s.found = true
	start := w.pos
	text, err := s.sink(w.ctx, p, h)
	p.finish()
	if s.replaced != nil && w.err == nil && (p.flawed() != "" || err != nil && isRefusal(err)) {
		w.out(w.buf[start:w.pos])
		return
	}
	if why := p.flawed(); why != "" {
		text, err = Invalid(why), nil
	}
	if err != nil {
		mark, ok := refusal(err)
		if !ok {
			if w.err == nil {
				w.err = err
			}
			return
		}
		text = mark
	}
	if s.replaced != nil && w.err == nil {
		text = s.replaced(string(w.buf[start:w.pos]), text)
	}
	w.put(sanitize(text))
}

// replaceInvalid replaces p by an [Invalid] mark.
func (s *scanner) replaceInvalid(p reader, why string) {
	s.w.flush()
	s.found = true
	start := s.w.pos
	p.finish()
	if s.replaced != nil {
		s.w.out(s.w.buf[start:s.w.pos])
		return
	}
	s.w.put(Invalid(why))
}

// A reader yields the bytes of a match.
type reader interface {
	Read(p []byte) (int, error)

	// finish skips the rest and removes the match from the window.
	finish()

	// flawed returns why the payload is invalid; "" if it is valid.
	flawed() string
}

func (p *base64Reader) flawed() string { return p.why }
