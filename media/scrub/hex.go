// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	"bytes"
	"io"
	"strings"
)

// Hex dumps are replaced if their bytes have the signature of an image. The forms
// are: contiguous digits, possibly wrapped; bytes with a constant separator (a
// blank, a comma, a colon, "0x", "\x"); and the output of xxd and hexdump -C, with
// offsets and a column of characters.

// A hexForm is a notation of bytes.
type hexForm int

const (
	solidHex  hexForm = iota // 89504e47
	spacedHex                // 89 50 4e 47, 0x89, 0x50, …
	dumpedHex                // lines with offsets
)

// minHex is the shortest image in hex, in bytes.
const minHex = 32

// hexDump replaces the hex dump of an image at an offset, if there is one.
func (s *scanner) hexDump(skip int) bool {
	if !s.beginsHex(skip) {
		return false
	}
	p := hexReader{w: &s.w, at: skip}
	if !p.recognize() {
		return false
	}
	head := p.peek(minBytes * 2)
	if len(head) < minHex {
		return false
	}
	media := s.t.signature(head)
	if !strings.HasPrefix(media, "image/") {
		return false
	}
	s.w.pass(skip)
	p.at -= skip
	s.replaceHex(p, Hint{Signature: media})
	return true
}

func (s *scanner) replaceHex(p hexReader, h Hint) { s.replace(&p, h) }

// beginsHex is a quick check whether a hex dump of an image may begin at an offset.
func (s *scanner) beginsHex(at int) bool {
	w := &s.w
	if !w.need(at + 8) {
		return false
	}
	b := w.buf[w.pos+at : w.pos+at+8]
	switch {
	case b[0] == '\\':
		return b[1] == 'x' || b[1] == '\\'
	case b[0] == '0' && b[1]|0x20 == 'x':
		return true
	case hexByte(b) < 0:
		return false
	case b[0] == '0' && b[1] == '0': // an offset, or a format that begins with a length
		return string(b) == "00000000" || string(b) == "00000100" || string(b[:5]) == "00000" && w.need(at+16) && strings.EqualFold(string(w.buf[w.pos+at+8:w.pos+at+16]), "66747970") ||
			hexDigit(b[2]) < 0
	case hexDigit(b[2]) >= 0: // in one piece: the second byte tells
		switch hexByte(b[2:]) {
		case 'P', 0xd8, 'I', 'M', '*':
			return true
		}
		return false
	}
	return true
}

// hexReader reads bytes in hex.
type hexReader struct {
	w       *window
	form    hexForm
	at      int
	peeking bool

	sep     string // between two bytes
	started bool
	offset  int64 // of the line, in a dump
	row     []byte
	last    []byte // the previous row, which a star repeats
	stars   int64  // remaining bytes of repeated rows
}

// recognize determines the form at the offset.
func (p *hexReader) recognize() bool {
	w := p.w
	w.need(p.at + 32)
	b := w.buf[w.pos+p.at : w.end]
	if len(b) < 16 {
		return false
	}
	zeros := 0
	for zeros < len(b) && b[zeros] == '0' {
		zeros++
	}
	if zeros >= 7 && zeros <= 16 && zeros+1 < len(b) && (b[zeros] == ':' || b[zeros] == ' ' && b[zeros+1] == ' ') {
		p.form = dumpedHex
		return true
	}
	prefix := ""
	for _, known := range []string{"0x", "0X", `\x`, `\\x`} {
		if len(b) > len(known) && string(b[:len(known)]) == known {
			prefix = known
		}
	}
	b = b[len(prefix):]
	if hexByte(b) < 0 {
		return false
	}
	for _, sep := range []string{" ", ":", ", ", ",", "-", ""} {
		full := sep + prefix
		if full != "" && len(b) >= 4+len(full) && string(b[2:2+len(full)]) == full && hexByte(b[2+len(full):]) >= 0 {
			p.form, p.sep = spacedHex, full
			p.at += len(prefix)
			return true
		}
	}
	p.form = solidHex
	return prefix == "" && hexByte(b[2:]) >= 0 && hexByte(b[4:]) >= 0 && hexByte(b[6:]) >= 0
}

// byte reads the next byte; -1 at the end.
func (p *hexReader) byte() int {
	if !p.peeking && p.at >= windowSize/2 {
		p.w.drop(p.at)
		p.at = 0
	}
	switch p.form {
	case dumpedHex:
		return p.dumped()
	case spacedHex:
		return p.spaced()
	}
	return p.solid()
}

func (p *hexReader) digits(at int) int {
	if !p.w.need(at + 2) {
		return -1
	}
	return hexByte(p.w.buf[p.w.pos+at:])
}

func (p *hexReader) solid() int {
	at := p.at
	if s, n := p.w.charAt(at, false); s == charBreak { // wrapped
		at += n
		if s, n = p.w.charAt(at, false); s == charBreak {
			at += n
		}
		for i := range 8 { // prose may begin with two hex digits
			if p.digits(at+2*i) < 0 {
				return -1
			}
		}
	}
	v := p.digits(at)
	if v >= 0 {
		p.at = at + 2
	}
	return v
}

func (p *hexReader) spaced() int {
	at := p.at
	if p.started {
		sep := strings.TrimRight(p.sep, " ")
		prefix := ""
		for _, known := range []string{"0x", "0X", `\\x`, `\x`} {
			if strings.HasSuffix(p.sep, known) {
				prefix = known
				sep = strings.TrimSuffix(p.sep, known)
				break
			}
		}
		mark := strings.TrimSpace(sep)
		if mark != "" {
			if !p.w.need(at+len(mark)) || string(p.w.buf[p.w.pos+at:p.w.pos+at+len(mark)]) != mark {
				return -1
			}
			at += len(mark)
		}
		blank := 0
		for range 16 {
			s, n := p.w.charAt(at, false)
			if s != charSpace && s != charBreak {
				break
			}
			at += n
			blank++
		}
		if mark == "" && blank == 0 && prefix == "" {
			return -1
		}
		if prefix != "" {
			if !p.w.need(at+len(prefix)) || string(p.w.buf[p.w.pos+at:p.w.pos+at+len(prefix)]) != prefix {
				return -1
			}
			at += len(prefix)
		}
	}
	v := p.digits(at)
	if v < 0 || p.w.need(at+3) && hexDigit(p.w.buf[p.w.pos+at+2]) >= 0 {
		return -1
	}
	p.started = true
	p.at = at + 2
	return v
}

func (p *hexReader) dumped() int {
	for len(p.row) == 0 && p.stars == 0 {
		if !p.line() {
			return -1
		}
	}
	if p.stars > 0 && len(p.last) > 0 {
		v := p.last[0]
		p.last = append(p.last[1:], v)
		if p.stars--; p.stars == 0 {
			p.last = append([]byte(nil), p.row...)
		}
		return int(v)
	}
	v := p.row[0]
	p.row = p.row[1:]
	return int(v)
}

// maxStars limits the bytes of one star.
const maxStars = 64 << 20

// maxLine limits a line of a dump, with escapes.
const maxLine = 512

// line reads the next line of a dump. Its offset must continue the last line.
func (p *hexReader) line() bool {
	w, at := p.w, p.at
	starred := false
	if p.started {
		s, n := w.charAt(at, false)
		if s != charBreak {
			return false
		}
		at += n
		if s, n = w.charAt(at, false); s == charBreak { // CR and LF
			at += n
		}
		if w.need(at+1) && w.buf[w.pos+at] == '*' {
			starred = true
			if s, n = w.charAt(at+1, false); s != charBreak {
				return false
			}
			at += 1 + n
		}
	}
	offset, digits := int64(0), 0
	for digits <= 16 && w.need(at+1) && hexDigit(w.buf[w.pos+at]) >= 0 {
		offset = offset<<4 | int64(hexDigit(w.buf[w.pos+at]))
		at++
		digits++
	}
	switch {
	case digits < 7, digits > 16, !starred && offset != p.offset, starred && (offset < p.offset || offset-p.offset > maxStars || len(p.last) == 0):
		return false
	}
	colon := w.need(at+1) && w.buf[w.pos+at] == ':'
	if colon {
		at++
	}
	row, at := p.bytesOf(at, colon)
	if len(row) == 0 && !p.started {
		return false
	}
	at, ok := p.lineEnd(at, len(row))
	if !ok {
		return false
	}
	if starred {
		p.stars = offset - p.offset
	}
	if p.stars == 0 {
		p.last = append([]byte(nil), row...)
	}
	p.started, p.at, p.row, p.offset = true, at, row, offset+int64(len(row))
	return len(row) > 0 || starred
}

// bytesOf reads the bytes of a line.
func (p *hexReader) bytesOf(at int, colon bool) (row []byte, end int) {
	for len(row) < 64 {
		blanks := 0
		for p.w.need(at+blanks+1) && p.w.buf[p.w.pos+at+blanks] == ' ' {
			blanks++
		}
		if colon && len(row) > 0 && blanks > 1 {
			break
		}
		v := p.digits(at + blanks)
		if v < 0 {
			break
		}
		row = append(row, byte(v))
		at += blanks + 2
	}
	return row, at
}

// lineEnd finds the end of a line after its column of characters, one per byte. In
// JSON that column may contain an apparent escaped line break; a real one is
// followed by the next offset, a star, or the end.
func (p *hexReader) lineEnd(at, letters int) (int, bool) {
	for p.w.need(at+1) && p.w.buf[p.w.pos+at] == ' ' {
		at++
	}
	plain := at + letters
	if p.w.need(at+1) && p.w.buf[p.w.pos+at] == '|' {
		plain += 2
	}
	if p.w.need(plain) && (!p.w.need(plain+1) || p.w.buf[p.w.pos+plain] == '\n' || p.w.buf[p.w.pos+plain] == '\r') &&
		bytes.IndexByte(p.w.buf[p.w.pos+at:p.w.pos+plain], '\n') < 0 {
		return plain, true
	}
	for start, n := at, 0; at < start+maxLine; n++ {
		s, width := p.w.charAt(at, false)
		switch s {
		case charEnd:
			return at, true
		case charQuote:
			closes := !p.w.need(at+width+1) || strings.IndexByte(",}]", p.w.buf[p.w.pos+at+width]) >= 0
			if width == 1 || at == start && closes || n > letters+2 {
				return at, true
			}
		case charBreak:
			if p.w.buf[p.w.pos+at] != '\\' || p.nextLine(at+width) {
				return at, true
			}
		}
		at += width
	}
	return at, false
}

// nextLine reports whether a line of a dump, or its end, may follow.
func (p *hexReader) nextLine(at int) bool {
	s, _ := p.w.charAt(at, false)
	if s == charQuote || s == charEnd || s == charBreak {
		return true
	}
	if p.w.buf[p.w.pos+at] == '*' {
		return true
	}
	for i := range 7 {
		if !p.w.need(at+i+1) || hexDigit(p.w.buf[p.w.pos+at+i]) < 0 {
			return false
		}
	}
	return true
}

func (p hexReader) peek(most int) []byte {
	p.peeking = true
	return firstBytes(most, p.byte)
}

// Read implements io.Reader.
func (p *hexReader) Read(dst []byte) (int, error) {
	return readBytes(dst, p.w, p.byte)
}

func (p *hexReader) finish() {
	for p.byte() >= 0 {
		p.row, p.stars = nil, 0
	}
	p.w.drop(p.at)
	p.at = 0
}

func (p *hexReader) flawed() string { return "" }

// firstBytes returns up to most bytes of next, which returns -1 at the end.
func firstBytes(most int, next func() int) []byte {
	var head []byte
	for len(head) < most {
		c := next()
		if c < 0 {
			break
		}
		head = append(head, byte(c))
	}
	return head
}

// readBytes fills dst from next, which returns -1 at the end.
func readBytes(dst []byte, w *window, next func() int) (int, error) {
	for n := range dst {
		c := next()
		if c < 0 {
			if w.err != nil {
				return n, w.err
			}
			return n, io.EOF
		}
		dst[n] = byte(c)
	}
	return len(dst), nil
}
