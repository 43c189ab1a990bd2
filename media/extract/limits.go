// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/artelhq/artel/media/pdf"
)

// Memory is limited twice. The bounds of one call follow from the size of its
// document (see [budget] and [tokenReader]), so that the heap it can need is known
// before it is read: [weight]. All calls of the process share maxMemory: a call waits
// until its weight is free.

// maxMemory bounds the heap of all concurrent calls of [Text], in bytes.
const maxMemory = 768 << 20

var memory = semaphore.NewWeighted(maxMemory)

// reserve waits until the heap for reading a document is free.
func reserve(ctx context.Context, n int64) (release func(), err error) {
	if err := memory.Acquire(ctx, n); err != nil {
		return nil, err
	}
	return func() { memory.Release(n) }, nil
}

// Bounds that make weight an upper bound. TestWeight holds them to hostile documents.
const (
	baseWeight    = 16 << 20 // of any call
	textCopies    = 8        // how often a long text is in memory while it becomes Markdown
	nodeWeight    = 144      // bytes of a parsed element
	unpackedSlack = 4 << 20  // bytes to which any archive may unpack
	maxRatio      = 200      // beyond that, the size of an archive when it is unpacked, over its own
	maxElements   = 1 << 20  // elements of an HTML page
)

// weight estimates the bytes of heap that reading a document needs at most.
func weight(size int64, mediaType string, b *budget) int64 {
	text := b.mostExpanded(size) // bytes
	units := min(text/4, maxNodes)
	switch mediaType {
	case "application/pdf": // in its sandbox, page by page
		return min(baseWeight+pdf.DefaultMaxMemory+3*b.maxText, maxMemory)
	case "application/epub+zip":
		units = min(text/2, 4*maxElements) // a text beside each tag
	case "text/html", "application/xhtml+xml":
		units, text = min(size/2, 4*maxElements), min(size, 4*b.maxText)
	case "text/csv", "text/tab-separated-values", "application/rtf":
		units, text = min(size/2, 2*maxNodes), min(size, b.maxText)
	}
	n := baseWeight + textCopies*min(text, b.maxText) + nodeWeight*units
	return min(n, maxMemory)
}

// mostExpanded returns how many bytes the parts of an archive may unpack to.
func (b *budget) mostExpanded(size int64) int64 {
	return min(b.maxExpanded, unpackedSlack+maxRatio*min(size, b.maxExpanded))
}

// maxAttributes bounds the attributes of one tag.
const maxAttributes = 1 << 20

// errLong ends a token that is longer than any should be.
var errLong = errors.New("the document has a longer text than is read")

// A tokenReader bounds the tokens of an XML decoder, which buffers each as a whole.
// After limit bytes of one token it fails with errLong; a decoder returns the part of
// a text that it has by then.
type tokenReader struct {
	r          io.Reader
	buf        [16 << 10]byte
	next, end  int
	limit      int64
	read       int64 // bytes of the current token
	attributes int
	before     byte
	err        error
}

// begin begins the next token.
func (t *tokenReader) begin() { t.read, t.attributes = 0, 0 }

func (t *tokenReader) fill() error {
	if t.next == t.end {
		if t.err != nil {
			return t.err
		}
		t.next = 0
		if t.end, t.err = t.r.Read(t.buf[:]); t.end == 0 && t.err == nil {
			t.err = io.ErrNoProgress
		}
		if t.end == 0 {
			return t.err
		}
	}
	return nil
}

// ReadByte implements [io.ByteReader].
func (t *tokenReader) ReadByte() (byte, error) {
	if err := t.fill(); err != nil {
		return 0, err
	}
	c := t.buf[t.next]
	if t.read++; t.read > t.limit && utf8.RuneStart(c) && (c == ' ' || t.read > t.limit+1<<10) {
		return 0, errLong
	}
	if t.before == '=' && (c == '"' || c == '\'') {
		if t.attributes++; t.attributes > maxAttributes {
			return 0, errLong
		}
	}
	t.before = c
	t.next++
	return c, nil
}

// Read implements [io.Reader], for documents in other charsets.
func (t *tokenReader) Read(p []byte) (int, error) {
	if err := t.fill(); err != nil {
		return 0, err
	}
	if t.read > t.limit || t.attributes > maxAttributes {
		return 0, errLong
	}
	n := copy(p, t.buf[t.next:t.end])
	t.attributes += bytes.Count(p[:n], []byte("=\"")) + bytes.Count(p[:n], []byte("='"))
	t.next += n
	t.read += int64(n)
	return n, nil
}

// An htmlReader bounds the elements and attributes of a page, which the parser keeps
// as a whole. It also fails after the end of the context.
type htmlReader struct {
	io.Reader
	b     *budget
	parts int // tags, and what separates attributes in them
	text  int64
	tag   bool // between "<" and ">"
	quote byte // of the attribute's value in which the bytes are; 0: none
	value bool // after "=", so that a quote begins a value
}

// Read implements [io.Reader]. Beyond the bound the page ends.
func (h *htmlReader) Read(p []byte) (int, error) {
	if err := h.b.stopped(); err != nil {
		return 0, err
	}
	if h.parts > 2*maxElements {
		h.b.truncate("the page has more elements than are read")
		return 0, io.EOF
	}
	if h.text > 2*h.b.maxText {
		h.b.truncate("the page has more text than is read")
		return 0, io.EOF
	}
	n, err := h.Reader.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		if !h.tag {
			i := bytes.IndexByte(rest, '<')
			if i < 0 {
				h.text += int64(len(rest))
				break
			}
			h.text += int64(i)
			h.tag, h.quote, h.value = true, 0, false
			h.parts++
			rest = rest[i+1:]
		}
		rest = rest[h.inTag(rest):]
	}
	return n, err
}

// inTag counts what separates attributes up to the end of the tag, and returns the bytes
// that it has read. A ">" in quotes is no end.
func (h *htmlReader) inTag(p []byte) int {
	for i, c := range p {
		switch {
		case c == ' ' || c == '\n' || c == '/':
			h.parts++
		case h.quote != 0:
			if c == h.quote {
				h.quote = 0
			}
		case c == '>':
			h.tag = false
			return i + 1
		case (c == '"' || c == '\'') && h.value:
			h.quote = c
		}
		if c != ' ' && c != '\n' && c != '\t' && c != '\r' && c != '\f' {
			h.value = c == '='
		}
	}
	return len(p)
}
