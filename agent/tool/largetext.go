// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/media"
)

// A text that is too large to be edited is not held in memory: it is read from its
// beginning as far as a call needs it.

// streamed reports whether f is read as a stream.
func (f target) streamed(e *Env) bool { return f.IsLargeText() && e.Artifacts != nil }

// open returns the text of f as UTF-8.
func (f target) open(ctx context.Context, e *Env) (_ io.Reader, closeIt func() error, err error) {
	ref := artel.BlobRef(f.Digest)
	if f.ID != "" {
		ref = artel.Ref{Conversation: f.Conversation, Artifact: f.ID, Version: f.Version}
		if ref.Conversation == "" {
			ref.Conversation = e.Conversation
		}
	}
	c, err := e.Artifacts.Open(ctx, e.Owner, ref, e.At)
	if err != nil {
		return nil, nil, err
	}
	r, err := media.TextReader(contextReader{ctx, c}, f.Charset)
	if err != nil {
		return nil, nil, errors.Join(err, c.Close())
	}
	return r, c.Close, nil
}

// A contextReader ends with its context.
type contextReader struct {
	ctx context.Context
	c   artifact.Content
}

// Read implements [io.Reader].
func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.c.Read(p)
}

// readLarge is pageAt for a text that is read as a stream; chars is its length in
// characters.
func readLarge(r io.Reader, offset, column, limit int) (p page, chars int, err error) {
	const most = maxShown + 1 // characters, one more than a page shows
	if limit == 0 {
		limit = math.MaxInt - offset
	}
	count := lineCounter{}
	in := bufio.NewReaderSize(io.TeeReader(r, &count), 64<<10)
	for n := 1; n < offset && err == nil; n++ {
		err = skipLine(in)
	}
	for n := 1; n < column && err == nil; n++ {
		next, _ := in.Peek(2)                                                                     // reading it reports the error
		if len(next) > 0 && (next[0] == '\n' || string(next) == "\r\n" || string(next) == "\r") { // the end of a line is kept
			break
		}
		_, _, err = in.ReadRune()
	}
	var block strings.Builder
	for n, lines := 0, 0; n < most && lines < limit && err == nil; n++ {
		var c rune
		if c, _, err = in.ReadRune(); err == nil {
			block.WriteRune(c)
		}
		if c == '\n' {
			lines++
		}
	}
	if err == nil {
		_, err = io.Copy(io.Discard, in)
	}
	if err != nil && err != io.EOF {
		return page{}, 0, err
	}
	p = page{first: offset, last: offset - 1, by: "none", total: count.lines()}
	if offset <= p.total {
		p.fill(block.String(), column, min(p.total, offset-1+min(limit, p.total)), maxShown)
	}
	return p, count.chars, nil
}

// skipLine reads to the end of a line.
func skipLine(in *bufio.Reader) error {
	for {
		_, err := in.ReadSlice('\n')
		if !errors.Is(err, bufio.ErrBufferFull) {
			return err
		}
	}
}

// A lineCounter counts what is written to it.
type lineCounter struct {
	ends, chars int
	open        bool // the last line has no end
}

// Write implements [io.Writer].
func (c *lineCounter) Write(p []byte) (int, error) {
	c.ends += bytes.Count(p, []byte{'\n'})
	for _, b := range p {
		if utf8.RuneStart(b) {
			c.chars++
		}
	}
	if len(p) > 0 {
		c.open = p[len(p)-1] != '\n'
	}
	return len(p), nil
}

func (c *lineCounter) lines() int {
	if c.open {
		return c.ends + 1
	}
	return c.ends
}

// maxLine is the most bytes of a line of a streamed text that are searched.
const maxLine = 16 << 20

// searchLarge searches a text that is read as a stream.
func (g *grep) searchLarge(ctx context.Context, e *Env, f target) error {
	if f.Size > g.docs.left {
		g.docs.unopened++
		return nil
	}
	g.docs.left -= f.Size
	r, closeIt, err := f.open(ctx, e)
	if err != nil {
		return err
	}
	before := g.matches
	var broken error
	g.searchLines(ctx, f.name(), func(yield func(int, string) bool) {
		in := bufio.NewReaderSize(r, 64<<10)
		var long []byte // the beginning of a line that exceeds the buffer
		for n := 1; ; {
			piece, err := in.ReadSlice('\n')
			if errors.Is(err, bufio.ErrBufferFull) {
				long = append(long, piece[:min(len(piece), max(maxLine-len(long), 0))]...)
				continue
			}
			if err != nil && err != io.EOF {
				broken = err
				return
			}
			if err == io.EOF && len(piece)+len(long) == 0 {
				return
			}
			line := piece
			if long != nil {
				line = append(long, piece...)
			}
			line = bytes.TrimSuffix(line, []byte{'\n'})
			if len(line) < len(piece)+len(long) {
				line = bytes.TrimSuffix(line, []byte{'\r'})
			}
			if len(line) > maxLine {
				g.cap(fmt.Sprintf("only the first %d bytes of line %d of '%s' were searched", maxLine, n, f.name()))
				line = line[:maxLine]
			}
			if !yield(n, strings.ToValidUTF8(string(line), "\uFFFD")) || err == io.EOF {
				return
			}
			n, long = n+1, nil
		}
	})
	if g.matches > before {
		g.docs.matched = append(g.docs.matched, fmt.Sprintf("%s (%s)", f.name(), f.MediaType))
	}
	return errors.Join(broken, closeIt(), ctx.Err())
}
