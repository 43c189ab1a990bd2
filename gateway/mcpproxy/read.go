// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// readArgs are the arguments of the tool that reads refs.
type readArgs struct {
	Ref      string
	Offset   *int64
	Limit    *int64
	Grep     string
	JSONPath string `json:"json_path"`
}

// mostRead is the most bytes that one call returns if it asks for them.
func (p *Proxy) mostRead() int { return 16 * p.options.Limit }

// read answers a call of the tool that reads refs.
func (p *Proxy) read(ctx context.Context, m *message) (*message, error) {
	var in readArgs
	if err := m.own(&in); err != nil {
		return answer(m.id, texts(true, "the arguments cannot be read: "+cut(err.Error(), 300))), nil
	}
	problem := func(format string, args ...any) (*message, error) {
		return answer(m.id, texts(true, fmt.Sprintf(format, args...))), nil
	}
	ref, err := artel.ParseRef(strings.TrimSpace(in.Ref))
	if err != nil || !ref.IsBlob() {
		return problem("%q is no ref: want blob:sha256- and 64 hexadecimal digits, as in a result", cut(in.Ref, 120))
	}
	if in.Offset != nil && *in.Offset < 0 || in.Limit != nil && (*in.Limit < 1 || *in.Limit > int64(p.mostRead())) {
		return problem("offset is a number from 0, and limit one from 1 to %d", p.mostRead())
	}
	h, done, err := p.keeper.open(ctx, ref.Digest)
	if err != nil {
		if ctx.Err() != nil {
			return nil, nil
		}
		return problem("%s cannot be read: %s", ref, cut(err.Error(), 300))
	}
	defer done()
	at := h.at
	if in.JSONPath != "" {
		s, err := pick(h.spool, at, in.JSONPath)
		if err != nil {
			return problem("json_path: %s", cut(err.Error(), 300))
		}
		defer s.Close() //nolint:errcheck // a temporary file
		h = &held{File: File{Digest: h.Digest, MediaInfo: artel.MediaInfo{MediaType: "application/json", Kind: artel.KindText}}, spool: s}
		at = s.all()
	}
	if in.Grep != "" {
		text, err := p.grep(ctx, h.spool, at, in)
		if err != nil {
			return problem("grep: %s", cut(err.Error(), 300))
		}
		return answer(m.id, texts(false, text)), nil
	}
	if h.Kind == artel.KindImage && in.Offset == nil && in.Limit == nil {
		return p.readPicture(ctx, m, h)
	}
	return p.readPage(m, h, at, in)
}

// readPicture shows a picture, also one that was shown before.
func (p *Proxy) readPicture(ctx context.Context, m *message, h *held) (*message, error) {
	c := p.collector(m)
	defer c.close()
	c.again = true
	say, err := c.picture(ctx, h.File, h.spool)
	if err != nil {
		return nil, err
	}
	if err := c.note("[%s: %s%s]", describe(h.File), h.Ref(), say); err != nil {
		return nil, err
	}
	out := &spool{}
	_, err = out.WriteString(`{"jsonrpc":"2.0","id":` + m.id + `,"result":{"content":[`)
	if err == nil {
		err = c.emit(ctx, out, p.options.Limit)
	}
	if err == nil {
		_, err = out.WriteString("]}}")
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return parse(out)
}

// frame is how many bytes of a result say what it is.
const frame = 200

// readPage returns a range of bytes: the second text is exact.
func (p *Proxy) readPage(m *message, h *held, at span, in readArgs) (*message, error) {
	offset, limit := int64(0), int64(p.options.Limit-frame)
	if in.Offset != nil {
		offset = *in.Offset
	}
	text := !h.IsBinary()
	if !text {
		limit = limit / 4 * 3
	}
	if in.Limit != nil {
		limit = *in.Limit
	}
	offset = min(offset, at.size())
	to := min(offset+limit, at.size())
	b, err := h.bytes(span{at.from + offset, at.from + to}, int64(p.mostRead()))
	if err != nil {
		return nil, err
	}
	if text {
		for range utf8.UTFMax - 1 { // a page ends with a character
			if r, size := utf8.DecodeLastRune(b); r != utf8.RuneError || size != 1 || to == at.size() || len(b) == 1 {
				break
			}
			b = b[:len(b)-1]
			to--
		}
		// What is in no UTF-8 cannot stand in JSON.
		text = utf8.Valid(b)
	}
	body, as := string(b), ""
	if !text {
		body, as = base64.StdEncoding.EncodeToString(b), " in base64"
	}
	next := "; this is the end"
	if to < at.size() {
		next = fmt.Sprintf("; continue with offset %d", to)
	}
	return answer(m.id, texts(false, fmt.Sprintf("[%s: bytes %d to %d of %d%s%s]", h.MediaType, offset, to, at.size(), as, next), body)), nil
}

// The bounds of a search.
const (
	maxPattern  = 1000
	maxGrepLine = 300     // bytes of a line that are shown
	maxLine     = 1 << 20 // of a line that are searched
)

// grep returns the lines that match, with their numbers and offsets.
func (p *Proxy) grep(ctx context.Context, s *spool, at span, in readArgs) (string, error) {
	if len(in.Grep) > maxPattern {
		return "", fmt.Errorf("the pattern has more than %d bytes", maxPattern)
	}
	re, err := regexp.Compile(in.Grep)
	if err != nil {
		return "", err
	}
	limit := p.options.Limit
	if in.Limit != nil {
		limit = int(*in.Limit)
	}
	from := int64(0)
	if in.Offset != nil {
		from = min(*in.Offset, at.size())
	}
	var out strings.Builder
	matches, shown, next := 0, 0, int64(-1)
	r := bufio.NewReaderSize(s.reader(span{at.from + from, at.to}), scanSize)
	offset := from
	var line []byte
	for n := 1; ; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return "", ctx.Err()
		}
		line = line[:0]
		size := int64(0)
		var piece []byte
		for {
			piece, err = r.ReadSlice('\n')
			size += int64(len(piece))
			line = append(line, piece[:min(len(piece), maxLine-len(line))]...)
			if !errors.Is(err, bufio.ErrBufferFull) {
				break
			}
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return "", err
		}
		if size == 0 {
			break
		}
		text := bytes.TrimRight(line, "\r\n")
		if place := re.FindIndex(text); place != nil {
			matches++
			entry := fmt.Sprintf("%d:%d: %s\n", n, offset, around(text, place[0], place[1]))
			if out.Len()+len(entry) <= limit-frame {
				out.WriteString(entry)
				shown++
			} else if next < 0 {
				next = offset
			}
		}
		offset += size
		if err != nil {
			break
		}
	}
	intro := fmt.Sprintf("[%d lines match", matches)
	if from > 0 {
		intro += fmt.Sprintf(" from offset %d", from)
	}
	if shown < matches {
		intro += fmt.Sprintf(", the first %d are shown; continue with offset %d", shown, next)
	}
	return intro + "; line:offset: text]\n" + out.String(), nil
}

// around returns a line, of a long one the part with the match.
func around(line []byte, from, to int) string {
	if len(line) <= maxGrepLine {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	start := max(0, from-maxGrepLine/3)
	end := min(len(line), max(to, start+maxGrepLine))
	end = min(end, start+maxGrepLine)
	text := strings.ToValidUTF8(string(line[start:end]), "")
	if start > 0 {
		text = fmt.Sprintf("[+%d] …", start) + text
	}
	if end < len(line) {
		text += "…"
	}
	return text
}

// maxPicked is how many values a path may pick.
const maxPicked = 100_000

// pick returns the values that a path picks, each on its line.
func pick(s *spool, at span, path string) (*spool, error) {
	steps, err := parsePath(path)
	if err != nil {
		return nil, err
	}
	if k := s.kind(at); k != '{' && k != '[' {
		return nil, errors.New("the content is no JSON")
	}
	out := &spool{}
	n := 0
	err = walk(s, at, steps, func(v span) error {
		if n++; n > maxPicked {
			return fmt.Errorf("it picks more than %d values", maxPicked)
		}
		if n > 1 {
			if _, err := out.WriteString("\n"); err != nil {
				return err
			}
		}
		return s.copyTo(out, v)
	})
	if err == nil && n == 0 {
		err = errors.New("nothing is there")
	}
	if errors.Is(err, errJSON) {
		err = fmt.Errorf("the content is no JSON: %w", err)
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return out, nil
}

// A step is one part of a path: a key, or a range of elements.
type step struct {
	key      string
	all      bool // of the members or elements
	list     bool
	from, to int // of elements; to 0: to the end
}

// parsePath reads $.a["b"][0][*][1:5].
func parsePath(path string) ([]step, error) {
	rest := strings.TrimPrefix(strings.TrimSpace(path), "$")
	var steps []step
	wrong := func() ([]step, error) {
		return nil, fmt.Errorf("%q is no path: want $.key, [\"key\"], [0], [2:5] or [*], one after the other", cut(path, 100))
	}
	for rest != "" {
		if len(steps) == 100 {
			return wrong()
		}
		if after, ok := strings.CutPrefix(rest, "."); ok || rest[0] != '[' {
			end := strings.IndexAny(after, ".[")
			if end < 0 {
				end = len(after)
			}
			if end == 0 {
				return wrong()
			}
			steps = append(steps, step{key: after[:end], all: after[:end] == "*"})
			rest = after[end:]
			continue
		}
		end := strings.IndexByte(rest, ']')
		if q := rest[1:]; q != "" && (q[0] == '"' || q[0] == '\'') {
			if k := strings.Index(q[1:], q[:1]+"]"); k >= 0 {
				steps = append(steps, step{key: q[1 : 1+k]})
				rest = q[k+3:]
				continue
			}
			return wrong()
		}
		if end < 0 {
			return wrong()
		}
		inside := rest[1:end]
		rest = rest[end+1:]
		if inside == "*" {
			steps = append(steps, step{all: true})
			continue
		}
		low, high, ranged := strings.Cut(inside, ":")
		s := step{list: true}
		var err error
		if low != "" || !ranged {
			if s.from, err = strconv.Atoi(low); err != nil || s.from < 0 {
				return wrong()
			}
		}
		s.to = s.from + 1
		if ranged {
			s.to = 0
			if high != "" {
				if s.to, err = strconv.Atoi(high); err != nil || s.to <= s.from {
					return wrong()
				}
			}
		}
		steps = append(steps, s)
	}
	return steps, nil
}

func walk(s *spool, at span, steps []step, visit func(span) error) error {
	if len(steps) == 0 {
		return visit(at)
	}
	here, rest := steps[0], steps[1:]
	var err error
	switch kind := s.kind(at); {
	case kind == '{' && !here.list:
		err = s.members(at, func(key string, v span) error {
			if !here.all && key != here.key {
				return nil
			}
			if err := walk(s, v, rest, visit); err != nil || here.all {
				return err
			}
			return errEnough
		})
	case kind == '[' && (here.list || here.all):
		err = s.elements(at, func(i int, v span) error {
			switch {
			case here.list && i < here.from:
				return nil
			case here.list && here.to > 0 && i >= here.to:
				return errEnough
			}
			return walk(s, v, rest, visit)
		})
	}
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}
