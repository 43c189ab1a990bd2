// SPDX-License-Identifier: Apache-2.0

package scrub

import (
	stdbase64 "encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/segmentio/asm/base64"
)

// A place is the context of base64, which decides where it ends.
type place int

const (
	inText   place = iota // in text: ends at the first other character
	inURI                 // in a data URI: ends at a character that no URI has
	inString              // a whole JSON string: ends at the closing quote
)

// A base64Reader decodes base64 from a window.
type base64Reader struct {
	w       *window
	place   place
	quote   int  // of inString: backslashes before the closing quote
	peeking bool // nothing is removed from the window

	at    int // offset of the next character
	kinds byte
	chars int64 // base64 characters so far
	pads  int
	line  int // characters of this line
	width int // characters of the first line, once it has ended

	clean []byte // characters of the standard alphabet, to be decoded
	out   []byte // decoded bytes, to be read
	ended bool
	why   string // why the payload is invalid
}

// chunkSize is the number of characters decoded at once.
const chunkSize = 12 << 10

// Limits on the width of wrapped base64.
const (
	minWrap = 16
	maxWrap = 1024
)

// collect reads characters until there are enough or the payload ends.
func (p *base64Reader) collect(enough int) {
	for !p.ended && len(p.clean) < enough {
		if !p.peeking && p.at >= windowSize/2 {
			p.w.drop(p.at)
			p.at = 0
		}
		if !p.w.need(p.at + 1) {
			p.end("")
			return
		}
		b := p.w.buf[p.w.pos+p.at : p.w.end]
		if n, kinds := span(b[:min(len(b), enough-len(p.clean))]); n > 0 {
			p.letters(b[:n], kinds)
			continue
		}
		s, width := p.w.charAt(p.at, p.place == inURI)
		switch {
		case s == charPad:
			p.pad(width)
		case s == charBreak, s == charSpace:
			p.space(s, width)
		case s == charQuote && p.place == inString && width > p.quote+1:
			p.invalidate(width) // a nested string
		case s == charQuote, s == charEnd:
			p.end("")
		case s != charOther: // an escaped base64 character
			if p.letters([]byte{byte(s)}, classes[byte(s)]); !p.ended {
				p.at += width - 1
			}
		default:
			p.junk(width)
		}
	}
}

// letters takes the base64 characters at the offset.
func (p *base64Reader) letters(b []byte, kinds byte) {
	const both = stdChar | urlChar
	switch {
	case p.pads > 0 && p.place == inText:
		p.end("")
		return
	case p.pads > 0:
		p.why = "there is more after its end"
	case (p.kinds|kinds)&both == both && p.place == inText:
		// The base64 ends where the characters of the other alphabet begin.
		for i, c := range b {
			if (p.kinds|classes[c])&both == both {
				b = b[:i]
				break
			}
			p.kinds |= classes[c]
		}
		p.append(b)
		p.end("")
		return
	case (p.kinds|kinds)&both == both:
		p.why = "it is not base64"
	}
	p.kinds |= kinds
	p.append(b)
}

func (p *base64Reader) append(b []byte) {
	p.at += len(b)
	p.chars += int64(len(b))
	p.line += len(b)
	if p.why != "" {
		return
	}
	from := len(p.clean)
	p.clean = append(p.clean, b...)
	if p.kinds&urlChar != 0 {
		for i, c := range p.clean[from:] {
			switch c {
			case '-':
				p.clean[from+i] = '+'
			case '_':
				p.clean[from+i] = '/'
			}
		}
	}
}

func (p *base64Reader) pad(width int) {
	fits := p.chars%4 == 2 && p.pads < 2 || p.chars%4 == 3 && p.pads < 1
	switch {
	case fits:
		p.pads++
		p.at += width
	case p.place == inText:
		p.end("")
	default:
		p.invalidate(width)
	}
}

// space handles a line break or a blank.
func (p *base64Reader) space(s char, width int) {
	switch {
	case p.place == inString:
		p.at += width
	case s == charBreak && p.pads == 0:
		if n := p.wrapped(width); n > 0 {
			if p.width == 0 {
				p.width = p.line
			}
			p.line = 0
			p.at += n
			return
		}
		p.end("")
	default:
		p.end("")
	}
}

// wrapped returns the number of bytes between this line and the next if the base64
// continues there; otherwise 0.
func (p *base64Reader) wrapped(width int) int {
	w := p.w
	if p.width == 0 && (p.line < minWrap || p.line > maxWrap || p.line%4 != 0) || p.width != 0 && p.line != p.width {
		return 0
	}
	first := w.buf[w.pos+p.at+width-1]
	at := p.at + width
	s, n := w.charAt(at, p.place == inURI)
	if s == charBreak && (first == '\r' || first == 'r' || first == 'D' || first == 'd') { // CR and LF, escaped or not
		at += n
		s, n = w.charAt(at, p.place == inURI)
	}
	for range 64 { // lines may be indented
		if s != charSpace {
			break
		}
		at += n
		s, n = w.charAt(at, p.place == inURI)
	}
	next := at
	letters, pads, longest, prose := 0, 0, max(p.width, p.line), true
	for s != charOther && s > charOther && classes[byte(s)] != 0 && letters <= longest {
		if p.kinds&urlChar != 0 && classes[byte(s)] == stdChar || p.kinds&stdChar != 0 && classes[byte(s)] == urlChar {
			return 0
		}
		prose = prose && s >= 'A' && (letters == 0 || s >= 'a')
		letters++
		at += n
		s, n = w.charAt(at, p.place == inURI)
	}
	for s == charPad && pads < 2 {
		pads++
		at += n
		s, n = w.charAt(at, p.place == inURI)
	}
	switch {
	case letters == 0, letters > longest, letters < longest && (letters+pads)%4 != 0:
		return 0
	case s == charEnd, s == charBreak, s == charQuote, !prose, pads > 0:
		return next - p.at
	case s == charOther:
		switch w.buf[w.pos+at] {
		case '<', ')', '\'', '`', '}', ']', '|':
			return next - p.at
		}
	}
	return 0
}

// junk handles a character that is not base64.
func (p *base64Reader) junk(width int) {
	switch {
	case p.place == inText:
		p.end("")
	case p.place == inURI && p.closes():
		p.end("")
	default:
		p.invalidate(width)
	}
}

// closes reports whether the character ends a URI: it cannot be in a URI, or ends a
// sentence.
func (p *base64Reader) closes() bool {
	switch c := p.w.buf[p.w.pos+p.at]; c {
	case '<', '>', '(', ')', '[', ']', '{', '}', '\'', '`', '|', '^', ',', ';', '\\', '$', '#':
		return true
	case '.', '!', '?', ':', '*', '~':
		if p.chars == 0 {
			return false
		}
		s, _ := p.w.charAt(p.at+1, true)
		return s == charEnd || s == charBreak || s == charSpace || s == charQuote || s == charOther && p.w.buf[p.w.pos+p.at+1] == '.'
	default:
		return c < ' ' || c == 0x7f || c >= 0x80
	}
}

// invalidate skips characters and marks the payload as invalid.
func (p *base64Reader) invalidate(width int) {
	p.at += width
	p.why = "it is not base64"
}

func (p *base64Reader) end(why string) {
	p.ended = true
	if p.why == "" {
		p.why = why
	}
}

// check sets why at the end of an invalid payload.
func (p *base64Reader) check() {
	switch {
	case p.why != "":
	case p.chars == 0:
		p.why = "it is empty"
	case p.chars%4 == 1:
		p.why = "it is cut off"
	case p.pads > 0 && (p.chars+int64(p.pads))%4 != 0:
		p.why = "it is not base64"
	}
}

// decode decodes the collected characters; at the end also an incomplete group.
func (p *base64Reader) decode() {
	n := len(p.clean) / 4 * 4
	if p.w.room == nil {
		p.w.room = make([]byte, chunkSize)
	}
	p.out = p.w.room
	size, err := base64.StdEncoding.Decode(p.out, p.clean[:n])
	if err == nil && p.ended && n < len(p.clean) {
		var more int
		more, err = stdbase64.RawStdEncoding.Decode(p.out[size:], p.clean[n:])
		size, n = size+more, len(p.clean)
	}
	if err != nil && p.why == "" {
		p.why = "it is not base64"
	}
	p.out = p.out[:size]
	p.clean = p.clean[:copy(p.clean, p.clean[n:])]
}

// more fills out. It returns io.EOF at the end, and an error with [ErrInvalid] for an
// invalid payload.
func (p *base64Reader) more() error {
	for len(p.out) == 0 {
		switch {
		case p.w.err != nil:
			return p.w.err
		case p.why != "":
			return fmt.Errorf("%w: %s", ErrInvalid, p.why)
		case p.ended && len(p.clean) == 0:
			return io.EOF
		}
		if p.clean == nil {
			p.clean = p.w.letters[:0]
		}
		if p.collect(chunkSize); p.ended {
			p.check()
		}
		if p.why == "" {
			p.decode()
		}
	}
	return nil
}

// Read implements io.Reader.
func (p *base64Reader) Read(dst []byte) (int, error) {
	if err := p.more(); err != nil {
		return 0, err
	}
	n := copy(dst, p.out)
	p.out = p.out[n:]
	return n, nil
}

// WriteTo implements io.WriterTo, so that copying needs no buffer of its own.
func (p *base64Reader) WriteTo(w io.Writer) (written int64, err error) {
	for {
		if err := p.more(); err != nil {
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return written, err
		}
		n, err := w.Write(p.out)
		written += int64(n)
		if p.out = p.out[n:]; err != nil {
			return written, err
		}
	}
}

// finish skips the rest and removes the payload from the window.
func (p *base64Reader) finish() {
	for !p.ended {
		p.clean = p.clean[:0]
		p.collect(chunkSize)
	}
	p.check()
	p.w.letters = p.clean
	p.w.drop(p.at)
	p.at = 0
}

// peek returns up to most of the first bytes without removing anything, and whether
// these are all. They are valid until the next peek.
func (p base64Reader) peek(most int) (head []byte, all bool) {
	p.peeking = true
	p.clean, p.out = p.w.letters[:0], nil
	p.collect((most + 2) / 3 * 4)
	p.w.letters = p.clean
	n := len(p.clean) / 4 * 4
	head, err := stdbase64.StdEncoding.AppendDecode(p.w.head[:0], p.clean[:n])
	if err == nil && p.ended {
		head, _ = stdbase64.RawStdEncoding.AppendDecode(head, p.clean[n:])
	}
	p.w.head = head
	return head, p.ended
}
