// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"fmt"
	"io"
	"strconv"
)

// The objects of a PDF are nil, bool, int, float64, pdfName, pdfString,
// []any, pdfDict, pdfRef, *pdfStream, and in between pdfWord.
type (
	pdfName   string
	pdfString string
	pdfWord   string // an operator or another bare word
	pdfDict   map[pdfName]any
	pdfRef    struct{ num, gen int }
	pdfStream struct {
		dict pdfDict
		at   int64  // where its bytes begin in the file
		data []byte // of one that is not in the file
	}
)

// Bounds of what the lexer takes for one object.
const (
	maxPDFString = 4 << 20
	maxPDFItems  = 1 << 20
	pdfDepth     = 60
)

// A lexer cuts bytes into the tokens of PDF.
type lexer struct {
	b      *budget
	buf    []byte
	pos    int
	r      io.ReaderAt // where more comes from, or nil
	base   int64       // of buf in r
	refs   bool        // "1 0 R" is a reference
	queued []any       // tokens that were read ahead
	err    error
}

type pdfEnd struct{}

const lexWindow = 8 << 10

func newLexer(b *budget, data []byte) *lexer { return &lexer{b: b, buf: data} }

// lexAt reads from an offset of a file.
func lexAt(b *budget, r io.ReaderAt, off int64) *lexer {
	return &lexer{b: b, r: r, base: off, refs: true}
}

// offset is where the next byte is.
func (l *lexer) offset() int64 { return l.base + int64(l.pos) }

// more makes at least one byte available.
func (l *lexer) more() bool {
	if l.pos < len(l.buf) {
		return true
	}
	if l.r == nil || l.err != nil {
		return false
	}
	l.base += int64(len(l.buf))
	l.pos = 0
	if cap(l.buf) < lexWindow {
		l.buf = make([]byte, lexWindow)
	}
	n, err := l.r.ReadAt(l.buf[:lexWindow], l.base)
	l.buf = l.buf[:n]
	if err != nil && err != io.EOF { // as ReadAt promises
		l.err = err
	}
	return n > 0
}

func (l *lexer) peek() int {
	if !l.more() {
		return -1
	}
	return int(l.buf[l.pos])
}

func (l *lexer) next() int {
	c := l.peek()
	if c >= 0 {
		l.pos++
	}
	return c
}

func isPDFSpace(c int) bool {
	return c == ' ' || c == '\n' || c == '\r' || c == '\t' || c == '\f' || c == 0
}

func isPDFDelimiter(c int) bool {
	return c < 0 || bytes.IndexByte([]byte("()<>[]{}/%"), byte(c)) >= 0
}

// token returns the next token: a simple object, or "[", "]", "<<", ">>" and
// words as pdfWord, or pdfEnd.
func (l *lexer) token() any {
	if n := len(l.queued); n > 0 {
		t := l.queued[0]
		l.queued = append(l.queued[:0], l.queued[1:]...)
		return t
	}
	return l.scan()
}

func (l *lexer) scan() any {
	if l.err == nil {
		l.err = l.b.step()
	}
	if l.err != nil {
		return pdfEnd{}
	}
	for {
		c := l.peek()
		if c == '%' {
			for c >= 0 && c != '\n' && c != '\r' {
				l.next()
				c = l.peek()
			}
		}
		if c < 0 {
			return pdfEnd{}
		}
		if !isPDFSpace(c) {
			break
		}
		l.next()
	}
	switch c := l.next(); c {
	case '/':
		return l.name()
	case '(':
		return l.literal()
	case '<':
		if l.peek() == '<' {
			l.next()
			return pdfWord("<<")
		}
		return l.hex()
	case '>':
		if l.peek() == '>' {
			l.next()
			return pdfWord(">>")
		}
		return pdfWord(">")
	case '[', ']', '{', '}', ')':
		return pdfWord(string(rune(c)))
	default:
		word := []byte{byte(c)}
		for c := l.peek(); !isPDFSpace(c) && !isPDFDelimiter(c); c = l.peek() {
			l.next()
			if len(word) < 128 {
				word = append(word, byte(c))
			}
		}
		return wordOrNumber(string(word))
	}
}

func wordOrNumber(w string) any {
	if c := w[0]; c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.' {
		if n, err := strconv.Atoi(w); err == nil {
			return n
		}
		if f, err := strconv.ParseFloat(w, 64); err == nil && f > -1e12 && f < 1e12 {
			return f
		}
		if c != '.' || len(w) > 1 {
			return 0
		}
	}
	return pdfWord(w)
}

func (l *lexer) name() pdfName {
	var b []byte
	for c := l.peek(); !isPDFSpace(c) && !isPDFDelimiter(c); c = l.peek() {
		l.next()
		if c == '#' {
			hi := unhex(l.peek())
			if hi >= 0 {
				l.next()
				if lo := unhex(l.peek()); lo >= 0 {
					l.next()
					c = hi<<4 | lo
				}
			}
		}
		if len(b) < 256 {
			b = append(b, byte(c))
		}
	}
	return pdfName(b)
}

func unhex(c int) int {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return -1
}

func (l *lexer) hex() pdfString {
	var b []byte
	half := -1
	for {
		c := l.next()
		if c < 0 || c == '>' {
			break
		}
		v := unhex(c)
		switch {
		case v < 0 || len(b) >= maxPDFString:
		case half < 0:
			half = v
		default:
			b = append(b, byte(half<<4|v))
			half = -1
		}
	}
	if half >= 0 {
		b = append(b, byte(half<<4))
	}
	return pdfString(b)
}

func (l *lexer) literal() pdfString {
	var b []byte
	for depth := 1; ; {
		c := l.next()
		if c < 0 || len(b) > maxPDFString {
			return pdfString(b)
		}
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return pdfString(b)
			}
		case '\\':
			c = l.next()
			switch c {
			case 'n':
				c = '\n'
			case 'r':
				c = '\r'
			case 't':
				c = '\t'
			case 'b':
				c = '\b'
			case 'f':
				c = '\f'
			case '\r':
				if l.peek() == '\n' {
					l.next()
				}
				continue
			case '\n', -1:
				continue
			default:
				if c >= '0' && c <= '7' {
					v := c - '0'
					for range 2 {
						if d := l.peek(); d >= '0' && d <= '7' {
							v = v<<3 | (d - '0')
							l.next()
						}
					}
					c = v & 0xFF
				}
			}
		}
		b = append(b, byte(c))
	}
}

// object returns the next object, a pdfWord that is none, or pdfEnd.
func (l *lexer) object() any { return l.objectAt(0) }

func (l *lexer) objectAt(depth int) any {
	t := l.token()
	switch t := t.(type) {
	case int:
		if !l.refs || t < 0 {
			return t
		}
		if len(l.queued) == 0 {
			l.queued = append(l.queued, l.scan())
		}
		gen, ok := l.queued[0].(int)
		if !ok || gen < 0 {
			return t
		}
		if len(l.queued) == 1 {
			l.queued = append(l.queued, l.scan())
		}
		if l.queued[1] == pdfWord("R") {
			l.queued = l.queued[:0]
			return pdfRef{t, gen}
		}
		return t
	case pdfWord:
		switch t {
		case "null":
			return nil
		case "true":
			return true
		case "false":
			return false
		case "[", "<<":
			if depth >= pdfDepth {
				l.err = fmt.Errorf("%w: its objects nest too deep", errDamaged)
				return pdfEnd{}
			}
			if t == "[" {
				return l.array(depth)
			}
			return l.dict(depth)
		}
	}
	return t
}

func (l *lexer) array(depth int) any {
	list := []any{}
	for {
		o := l.objectAt(depth + 1)
		switch w := o.(type) {
		case pdfEnd:
			return list
		case pdfWord:
			if w == "]" || w == "endobj" || w == ">>" {
				return list
			}
			continue
		}
		if len(list) < maxPDFItems {
			list = append(list, o)
		}
	}
}

func (l *lexer) dict(depth int) any {
	d := pdfDict{}
	for {
		switch k := l.token().(type) {
		case pdfName:
			v := l.objectAt(depth + 1)
			switch w := v.(type) {
			case pdfEnd:
				return d
			case pdfWord:
				if w == ">>" || w == "endobj" {
					return d
				}
				continue
			}
			if _, twice := d[k]; !twice && len(d) < maxPDFItems {
				d[k] = v
			}
		case pdfEnd:
			return d
		case pdfWord:
			if k == ">>" || k == "endobj" || k == "stream" {
				return d
			}
		}
	}
}
