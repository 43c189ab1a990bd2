// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"compress/zlib"
	"io"
	"strconv"
)

// PDF pages are counted without a library, because libraries allocate and loop by
// values in the file. The number is in the root of the page tree, the dictionary of
// type Pages with the largest Count (ISO 32000-1 §7.7.3.2), uncompressed or in an
// object stream (§7.5.7).
const (
	pdfWindow   = 1 << 20   // bytes looked at together
	pdfOverlap  = 64 << 10  // the longest dictionary that is found for sure
	pdfInflated = 4 << 20   // of one object stream
	pdfTotal    = 32 << 20  // of all object streams
	pdfWork     = 32 << 20  // bytes walked in dictionaries
	pdfMost     = 1_000_000 // pages; more is nonsense
)

// A pageCounter counts its work against the limits above.
type pageCounter struct {
	most     int
	inflated int64
	walked   int
}

func pdfPages(src *io.SectionReader) int {
	window := make([]byte, 0, min(src.Size(), pdfWindow))
	var c pageCounter
	for at := int64(0); at < src.Size(); {
		n, err := src.ReadAt(window[len(window):cap(window)], at)
		window, at = window[:len(window)+n], at+int64(n)
		c.search(window)
		c.searchStreams(window)
		if err != nil || n == 0 {
			break
		}
		window = append(window[:0], window[max(0, len(window)-pdfOverlap):]...)
	}
	return c.most
}

// search looks for nodes of the page tree in b.
func (c *pageCounter) search(b []byte) {
	for at := 0; c.walked < pdfWork; {
		i := bytes.Index(b[at:], []byte("/Pages"))
		if i < 0 {
			return
		}
		at += i
		before := bytes.TrimRight(b[max(0, at-16):at], " \t\r\n")
		if bytes.HasSuffix(before, []byte("/Type")) {
			c.most = max(c.most, c.countAfter(b[at:]), c.countBefore(b[:at]))
		}
		at += len("/Pages")
	}
}

// countAfter looks for Count between a place in a dictionary and its end.
func (c *pageCounter) countAfter(b []byte) int {
	b = b[:min(len(b), pdfOverlap)]
	for i, depth := 0, 0; i+1 < len(b); i++ {
		c.walked++
		switch {
		case b[i] == '<' && b[i+1] == '<':
			depth++
			i++
		case b[i] == '>' && b[i+1] == '>':
			if depth--; depth < 0 {
				return 0
			}
			i++
		case depth == 0 && b[i] == '/':
			if n := countAt(b[i:]); n > 0 {
				return n
			}
		}
	}
	return 0
}

// countBefore looks for Count between the beginning of a dictionary and a
// place in it.
func (c *pageCounter) countBefore(b []byte) int {
	b = b[max(0, len(b)-pdfOverlap):]
	for i, depth := len(b)-1, 0; i > 0; i-- {
		c.walked++
		switch {
		case b[i] == '>' && b[i-1] == '>':
			depth++
			i--
		case b[i] == '<' && b[i-1] == '<':
			if depth--; depth < 0 {
				return 0
			}
			i--
		case depth == 0 && b[i] == '/':
			if n := countAt(b[i:]); n > 0 {
				return n
			}
		}
	}
	return 0
}

// countAt reads "/Count n"; an n that is a reference to an object is unknown.
func countAt(b []byte) int {
	v, ok := bytes.CutPrefix(b, []byte("/Count"))
	if !ok {
		return 0
	}
	v = bytes.TrimLeft(v[:min(len(v), 40)], " \t\r\n")
	digits := len(v) - len(bytes.TrimLeft(v, "0123456789"))
	n, err := strconv.Atoi(string(v[:digits]))
	if tail := bytes.Fields(v[digits:]); err != nil || n > pdfMost || len(tail) > 1 && bytes.HasPrefix(tail[1], []byte("R")) {
		return 0
	}
	return n
}

// searchStreams looks into object streams.
func (c *pageCounter) searchStreams(b []byte) {
	for c.inflated < pdfTotal {
		i := bytes.Index(b, []byte("/ObjStm"))
		if i < 0 {
			return
		}
		b = b[i+len("/ObjStm"):]
		j := bytes.Index(b[:min(len(b), 1024)], []byte("stream"))
		if j < 0 {
			continue
		}
		z, err := zlib.NewReader(bytes.NewReader(bytes.TrimLeft(b[j+len("stream"):], "\r\n")))
		if err != nil {
			continue
		}
		// A stream that is cut or damaged still gives what came before.
		plain, _ := io.ReadAll(io.LimitReader(z, min(pdfInflated, pdfTotal-c.inflated)))
		c.inflated += int64(len(plain)) + 64<<10 // setting up costs too
		c.search(plain)
	}
}
