// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"io"
	"slices"

	"golang.org/x/net/html/atom"
)

// The states of an xhtmlReader: what the next byte is in.
const (
	inText = iota
	inOpen // behind "<"
	inName
	inTag
	inQuote
	inEnd // an end tag, or an instruction
	inDeclaration
	inComment
	inCDATA
	inRaw // a script or a style sheet
)

// An xhtmlReader makes XHTML readable for a parser of HTML: an empty element, which HTML
// takes for a start tag, gets an end tag, and the text of CDATA sections is escaped.
type xhtmlReader struct {
	r   io.Reader
	err error
	buf [4 << 10]byte
	out []byte

	state int
	name  []byte // of the tag or declaration, its first bytes
	quote byte
	prev  byte // in a tag or a comment
	run   int  // equal bytes before: "]" in CDATA, "-" in a comment
}

// Read implements [io.Reader].
func (x *xhtmlReader) Read(p []byte) (int, error) {
	for len(x.out) == 0 && x.err == nil {
		var n int
		n, x.err = x.r.Read(x.buf[:])
		x.out = x.out[:0]
		for _, c := range x.buf[:n] {
			x.put(c)
		}
	}
	if len(x.out) == 0 {
		return 0, x.err
	}
	n := copy(p, x.out)
	x.out = slices.Delete(x.out, 0, n)
	return n, nil
}

func (x *xhtmlReader) put(c byte) {
	if x.state == inCDATA {
		x.cdata(c)
		return
	}
	x.out = append(x.out, c)
	switch x.state {
	case inText:
		if c == '<' {
			x.state = inOpen
		}
	case inOpen:
		x.name, x.prev, x.run = append(x.name[:0], c|0x20), c, 0
		switch {
		case c|0x20 >= 'a' && c|0x20 <= 'z':
			x.state = inName
		case c == '!':
			x.state, x.name[0] = inDeclaration, c
		case c != '<':
			x.state = inEnd
		}
	case inName:
		if c != '>' && c != '/' && c > ' ' {
			if len(x.name) < 40 {
				x.name = append(x.name, c|0x20)
			}
			return
		}
		x.state = inTag
		x.tag(c)
	case inTag:
		x.tag(c)
	case inQuote:
		if c == x.quote {
			x.state = inTag
		}
	case inEnd:
		if c == '>' {
			x.state = inText
		}
	case inDeclaration:
		x.declaration(c)
	case inComment:
		switch {
		case c == '-':
			x.run++
			return
		case c == '>' && x.run >= 2:
			x.state = inText
		}
		x.run = 0
	case inRaw:
		if c == '/' && x.prev == '<' {
			x.state = inEnd
		}
		x.prev = c
	}
}

// tag takes a byte of a start tag behind its name.
func (x *xhtmlReader) tag(c byte) {
	switch {
	case c == '"' || c == '\'':
		x.state, x.quote = inQuote, c
	case c == '>':
		x.state = inText
		if a := atom.Lookup(x.name); x.prev == '/' && !closed(a) {
			x.out = append(append(append(x.out, "</"...), x.name...), '>')
		} else if x.prev != '/' && (a == atom.Script || a == atom.Style) {
			x.state = inRaw
		}
	}
	x.prev = c
}

// closed reports elements that a parser of HTML closes by itself, and those of other
// languages, which it reads as XML.
func closed(a atom.Atom) bool {
	switch a {
	case atom.Area, atom.Base, atom.Br, atom.Col, atom.Embed, atom.Hr, atom.Img, atom.Input, atom.Link, atom.Meta, atom.Param,
		atom.Source, atom.Track, atom.Wbr,
		atom.Svg, atom.Math, atom.Mi, atom.Mn, atom.Mo, atom.Ms, atom.Mtext, atom.Mglyph, 0:
		return true
	}
	return false
}

// declaration takes a byte behind "<!".
func (x *xhtmlReader) declaration(c byte) {
	if len(x.name) < 8 {
		x.name = append(x.name, c)
	}
	switch {
	case string(x.name) == "!--":
		x.state = inComment
	case string(x.name) == "![CDATA[" && c == '[':
		x.out = append(x.out, '>') // what began it is a comment in HTML
		x.state = inCDATA
	case c == '>':
		x.state = inText
	}
}

func (x *xhtmlReader) cdata(c byte) {
	if c == ']' {
		x.run++
		return
	}
	end := c == '>' && x.run >= 2
	if end {
		x.run -= 2
	}
	for ; x.run > 0; x.run-- {
		x.out = append(x.out, ']')
	}
	switch {
	case end:
		x.state = inText
	case c == '<':
		x.out = append(x.out, "&lt;"...)
	case c == '&':
		x.out = append(x.out, "&amp;"...)
	default:
		x.out = append(x.out, c)
	}
}
