// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// resourceResult rewrites the answer to a request for a resource: long texts become
// previews, and bytes refs, except pictures of a usual size. What an app shows (ui://) is
// for the host and not for the model, and passes unchanged.
func (p *Proxy) resourceResult(ctx context.Context, m *message) (*message, error) {
	contents := m.member(m.result, "contents")
	if m.kind(contents) != '[' {
		return m, nil
	}
	n := 0
	if err := m.elements(contents, func(int, span) error { n++; return nil }); err != nil {
		return nil, err
	}
	if n == 0 {
		return m, nil
	}
	c := p.collector(m)
	defer c.close()
	out := &spool{}
	e := emitter{w: out}
	if _, err := io.Copy(out, m.reader(span{0, contents.from + 1})); err != nil {
		return nil, errors.Join(err, out.Close())
	}
	share := p.options.Limit / n
	err := m.elements(contents, func(i int, v span) error {
		uri := m.member(v, "uri")
		if strings.HasPrefix(m.word(uri), "ui://") {
			e.raw(m.reader(v))
			return e.err
		}
		if share < smallest { // too many for a preview each
			if i > 0 {
				return nil
			}
			f, err := p.keeper.keep(ctx, m.spool, contents, media.Hint{DeclaredType: "application/json"})
			if err != nil {
				return err
			}
			recordOf(ctx).did(didOffload, "contents", f)
			text, err := preview(m.spool, contents, f, p.options.Limit, p.named().read)
			e.resource(m, uri, bytes.NewReader([]byte(text)))
			return errors.Join(err, e.err)
		}
		return c.resource(ctx, &e, v, share)
	})
	if err == nil {
		_, err = io.Copy(out, m.reader(span{contents.to - 1, m.size}))
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return parse(out)
}

// resource writes one of the contents of a resource in at most limit bytes of text.
func (c *collector) resource(ctx context.Context, e *emitter, at span, limit int) error {
	m := c.m
	uri := m.member(at, "uri")
	if v := m.member(at, "blob"); m.kind(v) == '"' {
		s := &spool{}
		defer s.Close() //nolint:errcheck // a temporary file
		if m.decode(s, inner(v)) != nil {
			e.raw(m.reader(at)) // the host says what is wrong
			return e.err
		}
		f, err := c.p.keeper.keep(ctx, s, s.all(), media.Hint{DeclaredType: m.word(m.member(at, "mimeType")), Filename: path.Base(m.word(uri))})
		if err != nil {
			return err
		}
		if f.Kind == artel.KindImage && f.Size <= pictureBytes {
			e.raw(m.reader(at))
			return e.err
		}
		recordOf(ctx).did(didScrub, "", f)
		e.resource(m, uri, strings.NewReader(fmt.Sprintf("[%s: %s; %s reads it]", describe(f), f.Ref(), c.p.named().read)))
		return e.err
	}
	v := m.member(at, "text")
	if m.kind(v) != '"' {
		e.raw(m.reader(at))
		return e.err
	}
	from := c.text.size
	changed, err := c.scrubbed(ctx, m.unescaped(inner(v)), v.size())
	if err != nil {
		return err
	}
	text := span{from, c.text.size}
	switch {
	case text.size() > int64(limit):
		short, err := c.shortened(ctx, text, limit)
		if err != nil {
			return err
		}
		e.resource(m, uri, strings.NewReader(short))
	case changed:
		e.resource(m, uri, c.text.reader(text))
	default:
		e.raw(m.reader(at))
	}
	return e.err
}

// resource writes contents of plain text.
func (e *emitter) resource(m *message, uri span, text io.Reader) {
	e.next()
	e.put(`{"uri":`)
	if e.err == nil {
		_, e.err = io.Copy(e.w, m.reader(uri))
	}
	e.put(`,"mimeType":"text/plain","text":"`)
	if e.err == nil {
		_, e.err = io.Copy(escaper{e.w}, text)
	}
	e.put(`"}`)
}
