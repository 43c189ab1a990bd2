// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// A span is a range of bytes of a spool.
type span struct{ from, to int64 }

func (s span) empty() bool { return s.to <= s.from }
func (s span) size() int64 { return s.to - s.from }

// errJSON reports bytes that are no JSON.
var errJSON = errors.New("not JSON")

// maxNesting bounds the depth of JSON, which is skipped without recursion.
const maxNesting = 10_000

// A scanner reads JSON from a spool without holding more than a part of it.
type scanner struct {
	s    *spool
	end  int64
	base int64 // offset of buf
	buf  []byte
	i    int // in buf
	own  []byte
	err  error
}

const scanSize = 32 << 10

func scan(s *spool, at span) *scanner {
	c := &scanner{s: s, end: at.to, base: at.from}
	if s.file == nil {
		c.buf, c.base, c.i = s.mem[:at.to], 0, int(at.from)
	}
	return c
}

func (c *scanner) pos() int64 { return c.base + int64(c.i) }

// seek continues at an offset.
func (c *scanner) seek(to int64) {
	if c.own == nil { // everything is in buf
		c.i = int(to - c.base)
		return
	}
	c.base, c.buf, c.i = to, nil, 0
}

// fill makes at least one byte available.
func (c *scanner) fill() bool {
	if c.i < len(c.buf) {
		return true
	}
	at := c.pos()
	if at >= c.end || c.err != nil {
		return false
	}
	if c.own == nil { // most values are short
		c.own = make([]byte, min(scanSize, c.end-at))
	}
	n, err := c.s.ReadAt(c.own[:min(int64(len(c.own)), c.end-at)], at)
	if n == 0 {
		c.err = err
		return false
	}
	c.buf, c.base, c.i = c.own[:n], at, 0
	return true
}

// peek returns the next byte that is no space; 0 at the end.
func (c *scanner) peek() byte {
	for c.fill() {
		switch b := c.buf[c.i]; b {
		case ' ', '\t', '\n', '\r':
			c.i++
		default:
			return b
		}
	}
	return 0
}

// take skips the byte b.
func (c *scanner) take(b byte) error {
	if c.peek() != b {
		return c.broken()
	}
	c.i++
	return nil
}

func (c *scanner) broken() error {
	if c.err != nil && !errors.Is(c.err, io.EOF) {
		return c.err
	}
	return fmt.Errorf("%w at byte %d", errJSON, c.pos())
}

// str skips a string and returns its span without quotes.
func (c *scanner) str() (span, error) {
	if err := c.take('"'); err != nil {
		return span{}, err
	}
	from := c.pos()
	for c.fill() {
		rest := c.buf[c.i:]
		quote := bytes.IndexByte(rest, '"')
		if quote >= 0 {
			rest = rest[:quote]
		}
		if escape := bytes.IndexByte(rest, '\\'); escape >= 0 {
			c.i += escape + 1
			if !c.fill() {
				break
			}
			c.i++
			continue
		}
		c.i += len(rest)
		if quote >= 0 {
			c.i++
			return span{from, c.pos() - 1}, nil
		}
	}
	return span{}, c.broken()
}

// value skips a value and returns its span. Of a string, it includes the quotes.
func (c *scanner) value() (span, error) {
	first := c.peek()
	from := c.pos()
	switch first {
	case '"':
		_, err := c.str()
		return span{from, c.pos()}, err
	case '{', '[':
	case 0, '}', ']', ',', ':':
		return span{}, c.broken()
	default:
		for c.fill() && !isEnd(c.buf[c.i]) {
			c.i++
		}
		return span{from, c.pos()}, nil
	}
	depth := 0
	for {
		switch b := c.peek(); b {
		case 0:
			return span{}, c.broken()
		case '"':
			if _, err := c.str(); err != nil {
				return span{}, err
			}
			continue
		case '{', '[':
			if depth++; depth > maxNesting {
				return span{}, fmt.Errorf("%w: more than %d levels", errJSON, maxNesting)
			}
		case '}', ']':
			depth--
		}
		c.i++
		if depth == 0 {
			return span{from, c.pos()}, nil
		}
	}
}

func isEnd(b byte) bool {
	switch b {
	case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
		return true
	}
	return false
}

// maxKey is the most bytes of a key that is looked at.
const maxKey = 64 << 10

// members visits the members of the object at a span, until visit returns an error.
func (s *spool) members(at span, visit func(key string, value span) error) error {
	c := scan(s, at)
	if err := c.take('{'); err != nil {
		return err
	}
	if c.peek() == '}' {
		return nil
	}
	for {
		k, err := c.str()
		if err != nil {
			return err
		}
		key, err := s.text(k, maxKey)
		if err != nil {
			return err
		}
		if err := c.take(':'); err != nil {
			return err
		}
		v, err := c.value()
		if err != nil {
			return err
		}
		if err := visit(key, v); err != nil {
			return err
		}
		switch c.peek() {
		case '}':
			return nil
		case ',':
			c.i++
			c.peek()
		default:
			return c.broken()
		}
	}
}

// elements visits the elements of the array at a span.
func (s *spool) elements(at span, visit func(i int, value span) error) error {
	c := scan(s, at)
	if err := c.take('['); err != nil {
		return err
	}
	if c.peek() == ']' {
		return nil
	}
	for i := 0; ; i++ {
		v, err := c.value()
		if err != nil {
			return err
		}
		if err := visit(i, v); err != nil {
			return err
		}
		switch c.peek() {
		case ']':
			return nil
		case ',':
			c.i++
		default:
			return c.broken()
		}
	}
}

// kind returns the first byte of the value at a span; 0 if there is none.
func (s *spool) kind(at span) byte {
	if at.empty() {
		return 0
	}
	const start = 16 // values begin at once
	if k := scan(s, span{at.from, min(at.to, at.from+start)}).peek(); k != 0 {
		return k
	}
	return scan(s, at).peek()
}

// inner returns the span of a string without its quotes.
func inner(at span) span { return span{at.from + 1, max(at.to-1, at.from+1)} }

// text returns the characters of the string at a span without quotes, of at most limit bytes.
func (s *spool) text(at span, limit int64) (string, error) {
	if at.size() > limit {
		return "", fmt.Errorf("%w: a name of %d bytes", errJSON, at.size())
	}
	b, err := io.ReadAll(s.unescaped(at))
	return string(b), err
}

// word returns the string at a span, "" if it is none or longer than a name.
func (s *spool) word(at span) string {
	if s.kind(at) != '"' {
		return ""
	}
	w, _ := s.text(inner(at), maxKey)
	return w
}

// unescaped returns the characters of the string at a span without quotes, in UTF-8. What
// is no UTF-8 becomes a replacement character.
func (s *spool) unescaped(at span) io.Reader { return &unescaper{in: scan(s, at)} }

// An unescaper reads a JSON string.
type unescaper struct {
	in   *scanner
	rest []byte // decoded and not read
	room [8]byte
}

// Read implements [io.Reader].
func (u *unescaper) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		if len(u.rest) > 0 {
			k := copy(p[n:], u.rest)
			n += k
			u.rest = u.rest[k:]
			continue
		}
		if !u.in.fill() {
			break
		}
		b := u.in.buf[u.in.i:]
		if b[0] == '\\' {
			if err := u.escape(); err != nil {
				return n, err
			}
			continue
		}
		if i := bytes.IndexByte(b, '\\'); i >= 0 {
			b = b[:i]
		}
		k := copy(p[n:], b)
		n += k
		u.in.i += k
	}
	if n == 0 && len(p) > 0 {
		if err := u.in.err; err != nil && !errors.Is(err, io.EOF) {
			return 0, err
		}
		return 0, io.EOF
	}
	return n, nil
}

func (u *unescaper) next() byte {
	if !u.in.fill() {
		return 0
	}
	b := u.in.buf[u.in.i]
	u.in.i++
	return b
}

func (u *unescaper) escape() error {
	u.next()
	b := u.next()
	switch b {
	case '"', '\\', '/':
	case 'b':
		b = '\b'
	case 'f':
		b = '\f'
	case 'n':
		b = '\n'
	case 'r':
		b = '\r'
	case 't':
		b = '\t'
	case 'u':
		r, ok := u.hex()
		if !ok {
			return u.in.broken()
		}
		if utf16.IsSurrogate(r) {
			after, low := u.in.pos(), rune(-1)
			if u.in.fill() && u.in.buf[u.in.i] == '\\' {
				u.next()
				if u.next() == 'u' {
					low, _ = u.hex()
				}
			}
			if r = utf16.DecodeRune(r, low); r == utf8.RuneError {
				u.in.seek(after) // the second is no half of a pair
			}
		}
		u.rest = utf8.AppendRune(u.room[:0], r)
		return nil
	default:
		return u.in.broken()
	}
	u.rest = append(u.room[:0], b)
	return nil
}

func (u *unescaper) hex() (rune, bool) {
	var digits [4]byte
	for i := range digits {
		digits[i] = u.next()
	}
	n, err := strconv.ParseUint(string(digits[:]), 16, 32)
	return rune(n), err == nil
}

// An escaper writes text into a JSON string, without quotes. Characters may be cut
// anywhere between two writes.
type escaper struct{ w io.Writer }

// Write implements [io.Writer].
func (e escaper) Write(p []byte) (int, error) {
	from := 0
	for i, b := range p {
		if b >= 0x20 && b != '"' && b != '\\' {
			continue
		}
		if _, err := e.w.Write(p[from:i]); err != nil {
			return 0, err
		}
		from = i + 1
		var err error
		switch b {
		case '"', '\\':
			_, err = e.w.Write([]byte{'\\', b})
		case '\n':
			_, err = e.w.Write([]byte(`\n`))
		case '\r':
			_, err = e.w.Write([]byte(`\r`))
		case '\t':
			_, err = e.w.Write([]byte(`\t`))
		default:
			_, err = fmt.Fprintf(e.w, `\u%04x`, b)
		}
		if err != nil {
			return 0, err
		}
	}
	_, err := e.w.Write(p[from:])
	return len(p), err
}

// quoted returns s as JSON.
func quoted(s string) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // strings are always encoded
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
