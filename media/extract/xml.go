// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/transform"

	"github.com/artelhq/artel"
)

// An xmlReader reads XML within a budget. It ignores entities and document types.
type xmlReader struct {
	*budget
	d      *xml.Decoder
	tokens *tokenReader
	closer io.Closer
	depth  int
}

// declared finds the charset in the declaration of an XML document.
var declared = regexp.MustCompile(`^\s*<\?xml\s[^>]*?\bencoding\s*=\s*["']([^"'<>]{1,40})["']`)

// decoded returns the text of an XML document in UTF-8, by its byte order mark or its
// declaration. known is false if the declared charset is not known.
func decoded(r io.Reader) (text io.Reader, known bool) {
	head := bufio.NewReaderSize(r, 4<<10)
	begin, _ := head.Peek(1 << 10)
	switch {
	case bytes.HasPrefix(begin, []byte("\xFF\xFE")), bytes.HasPrefix(begin, []byte("\xFE\xFF")):
		return transform.NewReader(head, unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder()), true
	case bytes.HasPrefix(begin, []byte("\xEF\xBB\xBF")):
		_, _ = head.Discard(3)
		return head, true
	}
	m := declared.FindSubmatch(begin)
	if m == nil {
		return head, true
	}
	enc, err := htmlindex.Get(string(m[1]))
	if err != nil {
		return nil, false
	}
	if name, _ := htmlindex.Name(enc); strings.HasPrefix(name, "utf-16") {
		return head, true // its declaration would not be readable
	}
	return enc.NewDecoder().Reader(head), true
}

func newXMLReader(r io.Reader, c io.Closer, b *budget) *xmlReader {
	head := bufio.NewReaderSize(r, 32<<10)
	r = head
	if mark, _ := head.Peek(2); string(mark) == "\xFF\xFE" || string(mark) == "\xFE\xFF" {
		r = transform.NewReader(head, unicode.UTF16(unicode.BigEndian, unicode.UseBOM).NewDecoder())
	} else if mark, _ := head.Peek(3); string(mark) == "\xEF\xBB\xBF" {
		_, _ = head.Discard(3)
	}
	tokens := &tokenReader{r: r, limit: b.maxText}
	d := xml.NewDecoder(tokens)
	d.CharsetReader = func(charset string, in io.Reader) (io.Reader, error) {
		if strings.HasPrefix(strings.ToLower(charset), "utf-16") || strings.EqualFold(charset, "utf8") {
			return in, nil // decoded above, or UTF-8 already
		}
		enc, err := htmlindex.Get(charset)
		if err != nil {
			return nil, fmt.Errorf("%w: it has the unknown charset %q", errDamaged, artel.Shorten(charset, 40))
		}
		return enc.NewDecoder().Reader(in), nil
	}
	return &xmlReader{budget: b, d: d, tokens: tokens, closer: c}
}

func (x *xmlReader) close() { _ = x.closer.Close() }

// next returns the next token; io.EOF is the regular end.
func (x *xmlReader) next() (xml.Token, error) {
	if err := x.step(); err != nil {
		return nil, err
	}
	x.tokens.begin()
	t, err := x.d.Token()
	if errors.Is(err, errLong) {
		x.over = true
		return nil, errFull
	}
	if failed := x.tokens.err; err != nil && (failed == nil || errors.Is(failed, io.EOF)) && !errors.Is(err, io.EOF) && !damaged(err) {
		err = fmt.Errorf("%w: %w", errDamaged, err) // of the decoder, not of its source
	}
	if err != nil {
		return nil, err
	}
	switch t := t.(type) {
	case xml.StartElement:
		if x.depth++; x.depth > maxDepth {
			return nil, tooDeep()
		}
		if len(t.Attr) > 1000 {
			return nil, fmt.Errorf("%w: an element has %d attributes", errDamaged, len(t.Attr))
		}
	case xml.EndElement:
		x.depth--
	}
	return t, nil
}

func tooDeep() error {
	return artel.Errorf(artel.TooLarge, op, "", "the document nests more than %d elements; its text is not read", maxDepth)
}

// elements calls f with every start tag until f fails. f may read the element
// with [xmlReader.subtree] or skip it with [xmlReader.skip]; otherwise its
// children come next. end, if not nil, is called with every end tag.
func (x *xmlReader) elements(f func(xml.StartElement) error, end func(xml.EndElement) error) error {
	for {
		t, err := x.next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			if err := f(t); err != nil {
				return err
			}
		case xml.EndElement:
			if end != nil {
				if err := end(t); err != nil {
					return err
				}
			}
		}
	}
}

// skip reads to the end of an element.
func (x *xmlReader) skip() error {
	for depth := x.depth; x.depth >= depth; {
		if _, err := x.next(); err != nil {
			return ended(err)
		}
	}
	return nil
}

func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// A node is an element with its children, or character data.
type node struct {
	name  string // "" for characters
	space string // the namespace
	attrs []xml.Attr
	kids  []*node
	text  string
}

// A tally is what the elements in memory may still add up to.
type tally struct {
	nodes int
	text  int64
}

// subtree reads the rest of the element that begins with e. If its text exceeds that
// of the document, the node has the first of it and the next token is errFull.
func (x *xmlReader) subtree(e xml.StartElement) (*node, error) {
	return x.tree(e, &tally{maxNodes, x.maxText})
}

func (x *xmlReader) tree(e xml.StartElement, left *tally) (*node, error) {
	n := &node{name: e.Name.Local, space: e.Name.Space, attrs: e.Attr}
	for {
		t, err := x.next()
		if err != nil && x.over {
			return n, nil
		}
		if err != nil {
			return nil, ended(err)
		}
		if left.nodes--; left.nodes < 0 {
			return nil, artel.Errorf(artel.TooLarge, op, "", "one part of the document has more than %d elements; its text is not read", maxNodes)
		}
		switch t := t.(type) {
		case xml.StartElement:
			k, err := x.tree(t, left)
			if err != nil {
				return nil, err
			}
			n.kids = append(n.kids, k)
		case xml.CharData:
			if left.text -= int64(len(t)); left.text < 0 {
				x.over = true
				t = t[:len(t)+int(max(left.text, -int64(len(t))))]
			}
			n.kids = append(n.kids, &node{text: strings.ToValidUTF8(string(t), "")})
		case xml.EndElement:
			return n, nil
		}
		if x.over {
			return n, nil
		}
	}
}

// attr returns an attribute by its local name.
func (n *node) attr(local string) string {
	if n == nil {
		return ""
	}
	return attr(n.attrs, local)
}

func attr(attrs []xml.Attr, local string) string {
	for _, a := range attrs {
		if a.Name.Local == local {
			return a.Value
		}
	}
	return ""
}

func xmlAttr(name, value string) xml.Attr { return xml.Attr{Name: xml.Name{Local: name}, Value: value} }

// attrIn returns an attribute whose namespace contains part.
func (n *node) attrIn(part, local string) string {
	for _, a := range n.attrs {
		if a.Name.Local == local && strings.Contains(a.Name.Space, part) {
			return a.Value
		}
	}
	return ""
}

// kid returns the first child with a name, or nil. n may be nil.
func (n *node) kid(name string) *node {
	if n == nil {
		return nil
	}
	for _, k := range n.kids {
		if k.name == name {
			return k
		}
	}
	return nil
}

// find returns the first descendant with one of the names, or nil. n may be nil.
func (n *node) find(names ...string) *node {
	if n == nil {
		return nil
	}
	for _, k := range n.kids {
		if slices.Contains(names, k.name) {
			return k
		}
		if f := k.find(names...); f != nil {
			return f
		}
	}
	return nil
}

// all calls f with every descendant with a name, except those inside of a match.
func (n *node) all(name string, f func(*node)) {
	for _, k := range n.kids {
		if k.name == name {
			f(k)
		} else {
			k.all(name, f)
		}
	}
}

// allText returns the characters in a node at any depth. n may be nil.
func (n *node) allText() string {
	if n == nil {
		return ""
	}
	var b strings.Builder
	var walk func(*node)
	walk = func(n *node) {
		b.WriteString(n.text)
		for _, k := range n.kids {
			walk(k)
		}
	}
	walk(n)
	return b.String()
}

// on reports whether a toggle such as <w:b/> is present and not off.
func (n *node) on(name string) bool {
	k := n.kid(name)
	return k != nil && isOn(k.attr("val"))
}

func isOn(v string) bool { return v != "0" && v != "false" && v != "off" && v != "none" }

// number returns a whole number, or 0.
func number(s string) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return 0
	}
	return n
}
