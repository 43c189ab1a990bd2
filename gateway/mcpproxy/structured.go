// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/artelhq/artel/media"
)

// structured returns what is shown of structured content: all of it, a shorter form that
// matches the tool's schema, or nothing. What is left out is kept and named in a note.
func (c *collector) structured(ctx context.Context, at span, tool string, limit int) ([]byte, error) {
	s := &spool{}
	defer s.Close() //nolint:errcheck // a temporary file
	whole := c.text
	c.text = s // the refs of its bytes
	_, err := c.scrubbed(ctx, c.m.reader(at), at.size())
	c.text = whole
	if err != nil {
		return nil, err
	}
	texts := int64(0)
	for _, x := range c.pieces {
		if x.picture == nil {
			texts += x.size()
		}
	}
	if s.size <= int64(limit)/2 || s.size+texts <= int64(limit) {
		b, err := s.bytes(s.all(), int64(limit))
		return validJSON(b), err
	}
	f, err := c.p.keeper.keep(ctx, s, s.all(), media.Hint{DeclaredType: "application/json"})
	if err != nil {
		return nil, err
	}
	for _, by := range []shrinking{{400, 20}, {200, 8}, {120, 4}, {80, 2}, {80, 1}, {40, 0}, {0, 0}} {
		b, err := s.shrunk(s.all(), by, limit/2)
		if errors.Is(err, errTooLong) {
			continue
		}
		if err != nil && !errors.Is(err, errJSON) {
			return nil, err
		}
		if err == nil && json.Valid(b) && c.p.matches(tool, b) {
			recordOf(ctx).did(didTrim, "structuredContent", f)
			return b, c.note("[structuredContent is shortened: lists have at most %d items, texts %d bytes. It is whole in %s]", by.items, by.text, f.Ref())
		}
	}
	recordOf(ctx).did(didLeave, "structuredContent", f)
	return nil, c.note("[structuredContent has %s bytes and was left out, because no short form of it matches the schema: %s]", grouped(s.size), f.Ref())
}

// shrinking says what is left of JSON.
type shrinking struct{ text, items int }

var errTooLong = errors.New("still too long")

// maxShrinkDepth bounds the recursion into structured content.
const maxShrinkDepth = 32

// shrunk returns a value with shorter texts and lists, in at most limit bytes.
func (s *spool) shrunk(at span, by shrinking, limit int) ([]byte, error) {
	var b bytes.Buffer
	err := s.shrink(&b, at, by, limit, maxShrinkDepth)
	return b.Bytes(), err
}

func (s *spool) shrink(b *bytes.Buffer, at span, by shrinking, limit, depth int) error {
	if b.Len() > limit || depth == 0 {
		return errTooLong
	}
	switch s.kind(at) {
	case '{':
		b.WriteByte('{')
		n := 0
		err := s.members(at, func(key string, v span) error {
			if n++; n > 1 {
				b.WriteByte(',')
			}
			b.Write(quoted(key))
			b.WriteByte(':')
			return s.shrink(b, v, by, limit, depth-1)
		})
		b.WriteByte('}')
		return err
	case '[':
		b.WriteByte('[')
		err := s.elements(at, func(i int, v span) error {
			if i >= by.items {
				return errEnough
			}
			if i > 0 {
				b.WriteByte(',')
			}
			return s.shrink(b, v, by, limit, depth-1)
		})
		if errors.Is(err, errEnough) {
			err = nil
		}
		b.WriteByte(']')
		return err
	case '"':
		text, err := io.ReadAll(io.LimitReader(s.unescaped(inner(at)), int64(by.text)+1))
		if err != nil {
			return err
		}
		b.Write(quoted(cut(string(text), by.text)))
	default:
		v, err := s.bytes(at, 400)
		if err != nil {
			return errTooLong
		}
		b.Write(v)
	}
	if b.Len() > limit {
		return errTooLong
	}
	return nil
}

var errEnough = errors.New("enough")

// matches reports whether structured content matches the output schema of a tool, if it has
// one that can be used.
func (p *Proxy) matches(tool string, b []byte) bool {
	schema := p.outputSchema(tool)
	if len(schema) == 0 {
		return true
	}
	var s jsonschema.Schema
	if json.Unmarshal(schema, &s) != nil {
		return true
	}
	r, err := s.Resolve(nil)
	if err != nil {
		return true
	}
	var v any
	if json.Unmarshal(b, &v) != nil {
		return false
	}
	return r.Validate(v) == nil
}
