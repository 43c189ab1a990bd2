// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
)

//go:embed read_artifact.md
var readDoc string

// maxShown is the most characters of content in one result.
const maxShown = 50_000

type readArgs struct {
	ID      string `json:"id"`
	Version int    `json:"version,omitempty"`
	Offset  int    `json:"offset,omitempty" jsonschema:"first line, from 1"`
	Limit   int    `json:"limit,omitempty" jsonschema:"lines"`
	Column  int    `json:"column,omitempty"`
}

func readArtifact() Tool {
	t := Func("read_artifact", readDoc, func(ctx context.Context, e *Env, in readArgs) (Result, error) {
		if in.Offset < 0 || in.Limit < 0 || in.Column < 0 || in.Version < 0 {
			return Failed("read_artifact: offset, limit, column and version are numbers from 1"), nil
		}
		ref, err := artel.ParseRef(strings.TrimSpace(in.ID))
		if err != nil {
			return failure(err)
		}
		if in.Version > 0 {
			ref.Version = in.Version
		}
		f, err := resolveText(ctx, e, ref)
		if err != nil {
			return failure(err)
		}
		offset, column := max(in.Offset, 1), max(in.Column, 1)
		if f.streamed(e) {
			r, closeIt, err := f.open(ctx, e)
			if err != nil {
				return failure(err)
			}
			p, chars, err := readLarge(r, offset, column, in.Limit)
			if err = errors.Join(err, closeIt()); err != nil {
				return failure(err)
			}
			return Result{Content: f.render(in, p, chars), Metadata: readFacts(f)}, nil
		}
		p := pageAt(f.text, offset, column, in.Limit, maxShown)
		return Result{Content: f.render(in, p, utf8.RuneCountInString(f.text)), Metadata: readFacts(f)}, nil
	})
	t.Parallel, t.ShowsContent = true, true
	return readsRef(t, func(in readArgs) string { return in.ID })
}

// A page is a range of characters of a text.
type page struct {
	body        string
	first, last int    // lines at least partly in body; last < first: none
	by          string // what ended it: none, char_limit or line_limit
	line        int    // where the next page begins; 0: no further page
	column      int
	total       int // lines of the text
}

// pageAt returns the page that begins at a line and a character of it, and has at most
// that many characters.
// Consecutive pages together are the whole text.
func pageAt(text string, offset, column, limit, most int) page {
	lines := edit.Lines(text)
	p := page{first: offset, last: offset - 1, by: "none", total: lines.Count()}
	if offset > p.total {
		return p
	}
	if limit == 0 {
		limit = math.MaxInt - offset
	}
	last := min(p.total, offset-1+min(limit, p.total))
	p.fill(skip(lines.Slice(offset, last), column-1), column, last, most)
	return p
}

// fill makes the page of the text up to the last line, which block begins with.
func (p *page) fill(block string, column, last, most int) {
	offset := p.first
	p.body, p.last = block, last
	if end := prefix(block, most); end < len(block) {
		p.by = "char_limit"
		if i := strings.LastIndexByte(block[:end], '\n'); i >= 0 {
			p.body = block[:i+1]
			p.last = offset + strings.Count(p.body, "\n") - 1
			p.line, p.column = p.last+1, 1
		} else {
			p.body, p.last = block[:end], offset
			p.line, p.column = offset, column+most
		}
	} else if last < p.total {
		p.by = "line_limit"
		p.line, p.column = last+1, 1
	}
}

// skip drops n characters of the first line of s, but keeps its line end.
func skip(s string, n int) string {
	line, _, _ := strings.Cut(s, "\n")
	return s[prefix(strings.TrimSuffix(line, "\r"), n):]
}

// prefix returns the length in bytes of the first n characters of s.
func prefix(s string, n int) int {
	for i := range s {
		if n == 0 {
			return i
		}
		n--
	}
	return len(s)
}

// render formats a page of a text of that many characters for the model.
func (f target) render(in readArgs, p page, chars int) string {
	var b strings.Builder
	fmt.Fprintf(&b, `<artifact_slice id="%s" version="%d" type="%s"%s source="%s" total_chars="%d" shown_chars="%d" total_lines="%d"`,
		attribute(f.name()), f.Version, attribute(f.MediaType), f.origin(), f.Source,
		chars, utf8.RuneCountInString(p.body), p.total)
	if p.last >= p.first {
		fmt.Fprintf(&b, ` shown_lines="%d-%d"`, p.first, p.last)
	}
	fmt.Fprintf(&b, ` truncated_by="%s" has_more="%t" updated_at="%s"`, p.by, p.line > 0, f.UpdatedAt.UTC().Format(time.RFC3339))
	switch {
	case p.line > 0:
		fmt.Fprintf(&b, ` hint="%s"`, attribute("To continue: "+in.next(p)))
	case p.last < p.first && p.total > 0:
		fmt.Fprintf(&b, ` hint="The text ends at line %d."`, p.total)
	}
	fmt.Fprintf(&b, ">\n<title>%s</title>\n%s\n</artifact_slice>", attribute(f.Title), p.body)
	return b.String()
}

// name returns the id, or the ref if there is none.
func (f target) name() string {
	if f.ID == "" {
		return f.media().Ref.String()
	}
	return string(f.ID)
}

// next returns the call for the next page.
func (in readArgs) next(p page) string {
	var b strings.Builder
	fmt.Fprintf(&b, "read_artifact(id='%s', offset=%d", artel.Shorten(strings.TrimSpace(in.ID), artel.MaxIDLength), p.line)
	if p.column > 1 {
		fmt.Fprintf(&b, ", column=%d", p.column)
	}
	if in.Limit > 0 {
		fmt.Fprintf(&b, ", limit=%d", in.Limit)
	}
	if in.Version > 0 {
		fmt.Fprintf(&b, ", version=%d", in.Version)
	}
	return b.String() + ")"
}
