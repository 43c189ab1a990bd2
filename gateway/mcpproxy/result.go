// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"hash/maphash"
	"io"
	"path"
	"slices"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
)

// A collector takes the content of one result: texts with refs in the place of encoded
// bytes, and pictures.
type collector struct {
	p      *Proxy
	m      *message
	text   *spool // all texts, one after the other
	pieces []piece
	shown  int      // pictures
	again  bool     // pictures are shown that were shown before
	later  []string // notes about pictures in texts
}

// A piece is one block of a result.
type piece struct {
	at      span // in the texts of the collector
	raw     span // the block in the message, if it can be passed unchanged
	extra   []byte
	picture *shownPicture
}

// size is the number of bytes of the piece in a model's context.
func (x piece) size() int64 {
	if !x.raw.empty() {
		return max(x.at.size(), x.raw.size())
	}
	return x.at.size()
}

// maxPieces bounds the blocks of a result; further texts are joined to the last.
const maxPieces = 5000

func (p *Proxy) collector(m *message) *collector {
	return &collector{p: p, m: m, text: &spool{}}
}

func (c *collector) close() {
	_ = c.text.Close()
	for _, x := range c.pieces {
		if x.picture != nil {
			_ = x.picture.data.Close()
		}
	}
}

// note adds a line about something.
func (c *collector) note(format string, args ...any) error {
	from := c.text.size
	_, err := fmt.Fprintf(c.text, format, args...)
	c.add(piece{at: span{from, c.text.size}})
	return err
}

func (c *collector) add(x piece) {
	if n := len(c.pieces); n >= maxPieces && x.picture == nil && c.pieces[n-1].picture == nil {
		c.pieces[n-1] = piece{at: span{c.pieces[n-1].at.from, x.at.to}}
		return
	}
	c.pieces = append(c.pieces, x)
}

// block adds a content block.
func (c *collector) block(ctx context.Context, at span) error {
	kind := c.m.word(c.m.member(at, "type"))
	switch kind {
	case "text":
		if v := c.m.member(at, "text"); c.m.kind(v) == '"' {
			return c.words(ctx, at, "", inner(v))
		}
	case "image", "audio":
		if v := c.m.member(at, "data"); c.m.kind(v) == '"' {
			return c.encoded(ctx, inner(v), c.m.word(c.m.member(at, "mimeType")), "")
		}
	case "resource":
		r := c.m.member(at, "resource")
		uri, mime := c.m.word(c.m.member(r, "uri")), c.m.word(c.m.member(r, "mimeType"))
		if v := c.m.member(r, "blob"); c.m.kind(v) == '"' {
			return c.encoded(ctx, inner(v), mime, path.Base(uri))
		}
		if v := c.m.member(r, "text"); c.m.kind(v) == '"' {
			return c.words(ctx, at, cut(uri, 500)+":\n", inner(v))
		}
	}
	return c.other(ctx, at)
}

// words adds the text of a block, after an introduction that is used if the block is not
// passed unchanged.
func (c *collector) words(ctx context.Context, block span, intro string, at span) error {
	from := c.text.size
	if _, err := c.text.WriteString(intro); err != nil {
		return err
	}
	before := len(c.pieces)
	changed, err := c.scrubbed(ctx, c.m.unescaped(at), at.size())
	if err != nil {
		return err
	}
	x := piece{at: span{from, c.text.size}}
	if !changed {
		x.raw = block
	} else if a := c.m.member(block, "annotations"); !a.empty() && a.size() < 500 {
		x.extra, _ = c.m.bytes(a, 500)
	}
	if len(c.pieces) == before {
		c.add(x)
		return nil
	}
	// Pictures that were found in the text come after it.
	c.pieces = slices.Insert(c.pieces, before, x)
	return nil
}

// other adds a block of another kind: its JSON.
func (c *collector) other(ctx context.Context, at span) error {
	from := c.text.size
	changed, err := c.scrubbed(ctx, c.m.reader(at), at.size())
	if err != nil {
		return err
	}
	x := piece{at: span{from, c.text.size}}
	if !changed {
		x.raw = at
	}
	c.add(x)
	return nil
}

// wholeText is the most bytes of a text that is scrubbed in one piece, without the buffers of a
// stream.
const wholeText = 16 << 10

// scrubbed adds a text of at most so many bytes with refs in the place of encoded bytes.
func (c *collector) scrubbed(ctx context.Context, in io.Reader, size int64) (changed bool, err error) {
	if size <= wholeText {
		b, err := io.ReadAll(in)
		if err != nil {
			return false, err
		}
		text, err := scrub.Text(ctx, string(b), c.keepMedia)
		if err == nil {
			_, err = c.text.WriteString(text)
		}
		return text != string(b), err
	}
	seed := maphash.MakeSeed()
	var before, after maphash.Hash
	before.SetSeed(seed)
	after.SetSeed(seed)
	err = scrub.Copy(ctx, io.MultiWriter(c.text, &after), io.TeeReader(in, &before), c.keepMedia)
	return before.Sum64() != after.Sum64(), err
}

// keepMedia is the [scrub.Sink] of a text.
func (c *collector) keepMedia(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
	declared := h.MediaType
	if h.Signature != "" {
		declared = h.Signature
	}
	s := &spool{}
	defer s.Close() //nolint:errcheck // a temporary file
	if _, err := io.Copy(s, r); err != nil {
		return "", err
	}
	f, err := c.p.keeper.keep(ctx, s, s.all(), media.Hint{DeclaredType: declared, Filename: h.Filename})
	if err != nil {
		return "", err
	}
	recordOf(ctx).did(didScrub, "", f)
	if f.Kind == artel.KindImage {
		say, err := c.picture(ctx, f, s)
		if err != nil {
			return "", err
		}
		if say = "[" + f.Ref() + say + "]"; say != "["+f.Ref()+"]" && !slices.Contains(c.later, say) {
			c.later = append(c.later, say)
		}
	}
	return f.Ref(), nil
}

// encoded adds bytes in base64 as a ref, and pictures also as what is seen.
func (c *collector) encoded(ctx context.Context, at span, declared, name string) error {
	s := &spool{}
	defer s.Close() //nolint:errcheck // a temporary file
	if err := c.m.decode(s, at); err != nil {
		return c.note("%s", scrub.Invalid(fmt.Sprintf("%s that is not base64", cut(declared, 60))))
	}
	f, err := c.p.keeper.keep(ctx, s, s.all(), media.Hint{DeclaredType: declared, Filename: name})
	if err != nil {
		return err
	}
	say := ""
	before := len(c.pieces)
	if f.Kind == artel.KindImage {
		if say, err = c.picture(ctx, f, s); err != nil {
			return err
		}
	} else {
		recordOf(ctx).did(didScrub, "", f)
	}
	from := c.text.size
	if _, err := fmt.Fprintf(c.text, "[%s: %s%s]", describe(f), f.Ref(), say); err != nil {
		return err
	}
	x := piece{at: span{from, c.text.size}}
	if len(c.pieces) == before {
		c.add(x)
		return nil
	}
	c.pieces = slices.Insert(c.pieces, before, x)
	return nil
}

func describe(f File) string {
	text := f.MediaType
	if f.Name != "" && f.Name != "." && f.Name != "/" {
		text = cut(f.Name, 100) + ", " + text
	}
	if f.Width > 0 {
		text += fmt.Sprintf(", %d×%d", f.Width, f.Height)
	}
	return text + fmt.Sprintf(", %s bytes", grouped(f.Size))
}

// decode writes the bytes of a string of base64 in any of its alphabets, with or without
// padding.
func (s *spool) decode(to io.Writer, at span) error {
	in := &letters{r: s.unescaped(at)}
	_, err := io.Copy(to, base64.NewDecoder(base64.RawStdEncoding, in))
	if err == nil && in.n == 0 {
		err = errors.New("empty")
	}
	return err
}

// letters maps the alphabet of URLs to the standard one and leaves out padding and spaces.
type letters struct {
	r io.Reader
	n int64
}

func (l *letters) Read(p []byte) (int, error) {
	for {
		n, err := l.r.Read(p)
		kept := p[:0]
		for _, b := range p[:n] {
			switch b {
			case '-':
				b = '+'
			case '_':
				b = '/'
			case '=', ' ', '\t', '\r', '\n':
				continue
			}
			kept = append(kept, b)
		}
		l.n += int64(len(kept))
		if len(kept) > 0 || err != nil {
			return len(kept), err
		}
	}
}

// mostPieces is how many texts get a preview each. More are shown as one.
const mostPieces = 6

// emit writes the blocks, in at most limit bytes of text.
func (c *collector) emit(ctx context.Context, out io.Writer, limit int) error {
	total, texts := int64(0), 0
	for _, x := range c.pieces {
		if x.picture == nil {
			total += x.size()
			texts++
		}
	}
	e := emitter{w: out}
	if total > int64(limit) && texts > mostPieces {
		if err := c.joined(ctx, &e, limit); err != nil {
			return err
		}
		return e.err
	}
	shares := c.shares(limit)
	for i, x := range c.pieces {
		switch {
		case x.picture != nil:
			e.picture(x.picture)
		case x.size() <= shares[i] && !x.raw.empty():
			e.raw(c.m.reader(x.raw))
		case x.at.size() <= shares[i]:
			e.text(c.text.reader(x.at), x.extra)
		default:
			text, err := c.shortened(ctx, x.at, int(shares[i]))
			if err != nil {
				return err
			}
			e.text(bytes.NewReader([]byte(text)), x.extra)
		}
	}
	return e.err
}

// shares divides the limit: small texts are shown whole, the others get equal parts.
func (c *collector) shares(limit int) []int64 {
	out := make([]int64, len(c.pieces))
	var order []int
	for i, x := range c.pieces {
		if x.picture == nil {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return int(min(max(c.pieces[a].size()-c.pieces[b].size(), -1), 1)) })
	left := int64(limit)
	for n, i := range order {
		out[i] = min(c.pieces[i].size(), left/int64(len(order)-n))
		left -= out[i]
	}
	return out
}

// shortened keeps a text and returns its preview.
func (c *collector) shortened(ctx context.Context, at span, limit int) (string, error) {
	f, err := c.p.keeper.keep(ctx, c.text, at, media.Hint{})
	if err != nil {
		return "", err
	}
	recordOf(ctx).did(didOffload, "", f)
	return preview(c.text, at, f, limit, c.p.named().read)
}

// joined writes all texts as one preview, and then the pictures.
func (c *collector) joined(ctx context.Context, e *emitter, limit int) error {
	all := &spool{}
	defer all.Close() //nolint:errcheck // a temporary file
	for _, x := range c.pieces {
		if x.picture != nil {
			continue
		}
		if all.size > 0 {
			if _, err := all.WriteString("\n\n"); err != nil {
				return err
			}
		}
		if err := c.text.copyTo(all, x.at); err != nil {
			return err
		}
	}
	f, err := c.p.keeper.keep(ctx, all, all.all(), media.Hint{})
	if err != nil {
		return err
	}
	recordOf(ctx).did(didOffload, "", f)
	text, err := preview(all, all.all(), f, limit, c.p.named().read)
	if err != nil {
		return err
	}
	e.text(bytes.NewReader([]byte(text)), nil)
	for _, x := range c.pieces {
		if x.picture != nil {
			e.picture(x.picture)
		}
	}
	return nil
}

// An emitter writes content blocks with commas between them.
type emitter struct {
	w   io.Writer
	n   int
	err error
}

func (e *emitter) put(s string) {
	if e.err == nil {
		_, e.err = io.WriteString(e.w, s)
	}
}

func (e *emitter) next() {
	if e.n > 0 {
		e.put(",")
	}
	e.n++
}

func (e *emitter) raw(r io.Reader) {
	e.next()
	if e.err == nil {
		_, e.err = io.Copy(e.w, r)
	}
}

func (e *emitter) text(r io.Reader, annotations []byte) {
	e.next()
	e.put(`{"type":"text","text":"`)
	if e.err == nil {
		_, e.err = io.Copy(escaper{e.w}, r)
	}
	e.put(`"`)
	if len(annotations) > 0 {
		e.put(`,"annotations":` + string(annotations))
	}
	e.put("}")
}

func (e *emitter) picture(p *shownPicture) {
	e.next()
	e.put(`{"type":"image","mimeType":` + string(quoted(p.mediaType)) + `,"data":"`)
	if e.err == nil {
		enc := base64.NewEncoder(base64.StdEncoding, e.w)
		if _, e.err = io.Copy(enc, p.data.reader(p.data.all())); e.err == nil {
			e.err = enc.Close()
		}
	}
	e.put(`"}`)
}

// maxOther is the most bytes of a member of a result that is passed unchanged and is no
// content.
const maxOther = 16 << 10

// callResult rewrites the answer to a call of a tool.
func (p *Proxy) callResult(ctx context.Context, m *message, tool string) (*message, error) {
	if m.kind(m.result) != '{' {
		return m, nil
	}
	var content, structured span
	type member struct {
		key   string
		value span
	}
	var others []member
	if err := m.members(m.result, func(key string, v span) error {
		switch {
		case key == "content" && m.kind(v) == '[':
			content = v
		case key == "structuredContent" && m.kind(v) != 'n':
			structured = v
		default:
			others = append(others, member{key, v})
		}
		return nil
	}); err != nil {
		return nil, err
	}
	if content.empty() && structured.empty() {
		return m, nil // a question to the client, or a task
	}
	c := p.collector(m)
	defer c.close()
	if !content.empty() {
		if err := m.elements(content, func(_ int, v span) error { return c.block(ctx, v) }); err != nil {
			return nil, err
		}
	}
	out := &spool{}
	fail := func(err error) (*message, error) { _ = out.Close(); return nil, err }
	e := emitter{w: out}
	e.put(`{"jsonrpc":"2.0","id":` + m.id + `,"result":{`)
	for _, o := range others {
		if o.value.size() > maxOther {
			f, err := p.keeper.keep(ctx, m.spool, o.value, media.Hint{DeclaredType: "application/json"})
			if err != nil {
				return fail(err)
			}
			recordOf(ctx).did(didLeave, cut(o.key, 60), f)
			if err := c.note("[%s of the result has %s bytes and was left out: %s]", cut(o.key, 60), grouped(o.value.size()), f.Ref()); err != nil {
				return fail(err)
			}
			continue
		}
		e.put(string(quoted(o.key)) + ":")
		if e.err == nil {
			_, e.err = io.Copy(out, m.reader(o.value))
		}
		e.put(",")
	}
	limit := p.options.Limit
	if !structured.empty() {
		shown, err := c.structured(ctx, structured, tool, limit)
		if err != nil {
			return fail(err)
		}
		if shown != nil {
			e.put(`"structuredContent":` + string(shown) + ",")
			limit -= len(shown)
		}
	}
	for _, text := range c.later {
		if err := c.note("%s", text); err != nil {
			return fail(err)
		}
	}
	e.put(`"content":[`)
	if e.err == nil {
		e.err = c.emit(ctx, out, limit)
	}
	e.put("]}}")
	if e.err != nil {
		return fail(e.err)
	}
	return parse(out)
}

// callError shortens the error of a call, which hosts show to the model.
func (p *Proxy) callError(ctx context.Context, m *message) (*message, error) {
	at := m.member(m.all(), "error")
	if at.size() <= int64(p.options.Limit) {
		return m, nil
	}
	f, err := p.keeper.keep(ctx, m.spool, at, media.Hint{DeclaredType: "application/json"})
	if err != nil {
		return nil, err
	}
	recordOf(ctx).did(didOffload, "error", f)
	text, err := preview(m.spool, at, f, p.options.Limit, p.named().read)
	if err != nil {
		return nil, err
	}
	code := codeInternal
	if b, err := m.bytes(m.member(at, "code"), 20); err == nil {
		if n, err := strconv.Atoi(string(b)); err == nil {
			code = n
		}
	}
	return failure(m.id, code, text), nil
}
