// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"

	"github.com/segmentio/asm/base64"
)

var errNotBase64 = errors.New("the payload is not base64")

// A base64Reader decodes the base64 of a JSON string up to the closing quote.
type base64Reader struct {
	in      *bufio.Reader
	web     bool // in either alphabet, padded or not
	encoded [32 << 10]byte
	n       int // of encoded
	decoded [24 << 10]byte
	pending []byte // of decoded
	closed  bool   // the quote has been read
	padded  bool   // padding ended the base64
	bad     error
	readErr error
}

// Read implements [io.Reader].
func (p *base64Reader) Read(b []byte) (int, error) {
	for len(p.pending) == 0 {
		if p.bad != nil {
			return 0, p.bad
		}
		if p.closed {
			return 0, io.EOF
		}
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.pending)
	p.pending = p.pending[n:]
	return n, nil
}

// fill decodes the next chunk.
func (p *base64Reader) fill() error {
	for p.n = 0; p.n < len(p.encoded) && !p.closed; {
		if err := p.more(); err != nil {
			return err
		}
	}
	alphabet := base64.StdEncoding
	if p.web {
		alphabet = p.normalize()
	}
	chunk := p.encoded[:p.n]
	over := p.padded && p.n > 0
	padding := p.n - len(bytes.TrimRight(chunk, "="))
	p.padded = p.padded || padding > 0
	n, err := alphabet.Decode(p.decoded[:], chunk)
	// The decoder skips line ends, which base64 in JSON does not have.
	if err != nil || over || p.n%4 != 0 || n != p.n/4*3-padding {
		p.bad = errNotBase64
		return p.bad
	}
	p.pending = p.decoded[:n]
	return nil
}

// normalize adds missing padding at the end of the string, and returns the alphabet
// of the chunk. A mixture of both alphabets is converted to the standard one.
func (p *base64Reader) normalize() *base64.Encoding {
	for p.closed && p.n%4 > 1 {
		p.encoded[p.n] = '='
		p.n++
	}
	chunk := p.encoded[:p.n]
	has := func(a, b byte) bool { return bytes.IndexByte(chunk, a) >= 0 || bytes.IndexByte(chunk, b) >= 0 }
	switch {
	case !has('-', '_'):
		return base64.StdEncoding
	case !has('+', '/'):
		return base64.URLEncoding
	}
	for i, c := range chunk {
		switch c {
		case '-':
			chunk[i] = '+'
		case '_':
			chunk[i] = '/'
		}
	}
	return base64.StdEncoding
}

// more appends buffered input up to the quote or an escape to encoded.
func (p *base64Reader) more() error {
	if _, err := p.in.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		p.bad, p.readErr, p.closed = err, err, true
		return err
	}
	b, _ := p.in.Peek(min(p.in.Buffered(), len(p.encoded)-p.n))
	if end := bytes.IndexByte(b, '"'); end >= 0 {
		b = b[:end]
		p.closed = true
	}
	if esc := bytes.IndexByte(b, '\\'); esc >= 0 {
		b = b[:esc]
		p.closed = false
		p.n += copy(p.encoded[p.n:], b)
		_, _ = p.in.Discard(len(b)) // buffered: no error
		return p.escape()
	}
	p.n += copy(p.encoded[p.n:], b)
	n := len(b)
	if p.closed {
		n++
	}
	_, err := p.in.Discard(n)
	return err
}

// escape reads an escaped character: some JSON writers escape "/" and "+".
func (p *base64Reader) escape() error {
	b, err := p.in.Peek(2)
	if err == nil && b[1] == 'u' {
		b, err = p.in.Peek(6)
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		p.bad, p.readErr, p.closed = err, err, true
		return err
	}
	c := b[1]
	if c == 'u' {
		code, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		if err != nil || code > 0x7f {
			code = 0 // in neither alphabet
		}
		c = byte(code)
	} else if c != '/' {
		c = 0
	}
	p.encoded[p.n] = c
	p.n++
	_, err = p.in.Discard(len(b))
	return err
}

// drain skips to the closing quote, so that the JSON after it can be read.
func (p *base64Reader) drain() error {
	for !p.closed {
		p.n = 0
		if err := p.more(); err != nil {
			break
		}
	}
	if p.readErr != nil && !errors.Is(p.readErr, io.ErrUnexpectedEOF) {
		return p.readErr
	}
	return nil
}
