// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/asm/base64"

	"github.com/artelhq/artel"
)

// DecodeOptions bound and direct [Decode].
type DecodeOptions struct {
	// MaxText is the largest request without its payloads, in bytes; 0: 32 MiB.
	MaxText int
	// Sink takes the bytes of one payload and says their digest and size. It
	// reads r to its end, or fails the request. Nil: they are hashed and
	// dropped.
	Sink func(ctx context.Context, r io.Reader) (artel.Digest, int64, error)
}

// A Lifted is a payload that was taken out of a request.
type Lifted struct {
	Digest artel.Digest
	Size   int64 // bytes, decoded
	Bad    bool  // it was no base64; Digest and Size mean nothing

	head string // what came before the base64: "data:image/png;base64,", or nothing
}

// Decode reads a request. The base64 of images, files and recordings in
// messages is decoded and handed to the sink while it is read, so that memory
// holds the rest of the JSON and about 150 KB, whatever the size of the
// payloads. Payloads under keys that are written with escapes are found too,
// but held as text first.
//
// The error is an [*APIError] for what the client did wrong, else that of r or
// of the sink. Decode does not validate; see [Request.Validate].
func Decode(ctx context.Context, r io.Reader, o DecodeOptions) (*Request, error) {
	if o.MaxText <= 0 {
		o.MaxText = 32 << 20
	}
	if o.Sink == nil {
		o.Sink = hash
	}
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	l := lifter{
		ctx: ctx, in: bufio.NewReaderSize(r, 64<<10), options: o,
		lifted: lifted{mark: "lifted:" + hex.EncodeToString(nonce[:]) + ":"},
	}
	if err := l.run(); err != nil {
		return nil, err
	}
	l.lifted.text = l.out.Bytes()
	req := &Request{}
	if err := json.Unmarshal(l.lifted.text, req); err != nil {
		if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
			return nil, Bad(e.Field, "invalid_type", "Invalid type for '%s': got %s instead.", e.Field, e.Value)
		}
		return nil, Bad("", "", "We could not parse the JSON body of your request. (%v)", err)
	}
	req.lifted = l.lifted
	return req, nil
}

// lifted is what Decode keeps beside the typed request.
type lifted struct {
	text  []byte // the JSON with marks in the place of payloads
	mark  string // begins each of them; its number follows
	items []Lifted
}

// find returns the payload that s stands for.
func (l *lifted) find(s string) (Lifted, bool) {
	rest, ok := strings.CutPrefix(s, l.mark)
	if n, err := strconv.Atoi(rest); ok && l.mark != "" && err == nil && n >= 0 && n < len(l.items) {
		return l.items[n], true
	}
	return Lifted{}, false
}

// Elided returns the request's JSON as it came, with each payload replaced by
// its digest and size. It is empty for a request that was not decoded.
func (r *Request) Elided() json.RawMessage {
	out := r.lifted.text
	for i, m := range r.lifted.items {
		label := fmt.Sprintf(`%s<%s, %d bytes>"`, m.head, m.Digest, m.Size)
		if m.Bad {
			label = m.head + `<not base64>"`
		}
		out = bytes.ReplaceAll(out, fmt.Appendf(nil, `%s%d"`, r.lifted.mark, i), []byte(label))
	}
	return slices.Clone(out)
}

// Payloads returns what was lifted, in the order of the request.
func (r *Request) Payloads() []Lifted { return slices.Clone(r.lifted.items) }

func hash(_ context.Context, r io.Reader) (artel.Digest, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return artel.NewDigest([32]byte(h.Sum(nil))), n, err
}

// lifter copies JSON from in to out and takes payloads out of it. It looks
// only at strings and brackets; whether it is JSON is found out later.
type lifter struct {
	ctx     context.Context // of the one Decode
	in      *bufio.Reader
	out     bytes.Buffer
	options DecodeOptions
	path    []string // the key that each open bracket stands under
	last    string   // the last string, if it was short
	value   bool     // a colon came before what is next
	lifted  lifted
}

const maxDepth = 256

func (l *lifter) run() error {
	for {
		span, err := l.in.ReadSlice('"')
		if err := l.emit(span); err != nil {
			return err
		}
		for _, c := range span {
			if err := l.structure(c); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil:
			return err
		}
		if err := l.str(); err != nil {
			return err
		}
	}
}

func (l *lifter) structure(c byte) error {
	switch c {
	case '{', '[':
		key := ""
		if l.value {
			key = l.last
		}
		if l.path = append(l.path, key); len(l.path) > maxDepth {
			return Bad("", "", "We could not parse the JSON body of your request. (It is nested more than %d deep.)", maxDepth)
		}
		l.value = false
	case '}', ']':
		if len(l.path) > 0 {
			l.path = l.path[:len(l.path)-1]
		}
		l.value = false
	case ':':
		l.value = true
	case ',':
		l.value = false
	}
	return nil
}

// str handles a string whose opening quote has been read.
func (l *lifter) str() error {
	if l.value {
		head, err := l.payloadHead()
		if err != nil {
			return err
		}
		if head != nil {
			return l.lift(*head)
		}
	}
	l.last = ""
	start := l.out.Len()
	for {
		span, err := l.in.ReadSlice('"')
		if err := l.emit(span); err != nil {
			return err
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil // what is wrong is found when the JSON is parsed
			}
			return err
		}
		if text := l.out.Bytes()[start : l.out.Len()-1]; !escaped(text) {
			if len(text) <= 32 {
				l.last = string(text)
			}
			return nil
		}
	}
}

// escaped reports whether the character after s is escaped.
func escaped(s []byte) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// payloadHead reports whether the string at hand is base64 in its place in a
// message, and consumes what comes before the base64.
func (l *lifter) payloadHead() (*string, error) {
	if len(l.path) != 6 || l.path[1] != "messages" || l.path[3] != "content" {
		return nil, nil
	}
	switch l.path[5] + "." + l.last {
	case "input_audio.data":
		head := ""
		return &head, nil
	case "image_url.url", "file.file_data":
	default:
		return nil, nil
	}
	const longest = 256
	b, err := l.in.Peek(longest)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if end := bytes.IndexByte(b, '"'); end >= 0 {
		b = b[:end]
	}
	n := bytes.IndexByte(b, ',')
	if n < 0 {
		return nil, nil
	}
	head := strings.ReplaceAll(string(b[:n+1]), `\/`, `/`)
	if _, ok := base64Type(head); !ok || strings.Contains(head, `\`) {
		return nil, nil
	}
	_, err = l.in.Discard(n + 1)
	return &head, err
}

// base64Type returns the media type of the data URL (RFC 2397) that begins
// with head, which ends in its comma.
func base64Type(head string) (string, bool) {
	rest, ok := strings.CutPrefix(head, "data:")
	rest, ok2 := strings.CutSuffix(rest, ";base64,")
	if !ok || !ok2 {
		return "", false
	}
	mediaType, _, err := mime.ParseMediaType(rest)
	return mediaType, err == nil
}

func (l *lifter) lift(head string) error {
	p := payload{in: l.in}
	digest, size, err := l.options.Sink(l.ctx, &p)
	if p.readErr != nil && !errors.Is(p.readErr, io.ErrUnexpectedEOF) {
		return p.readErr
	}
	if err != nil && p.bad == nil {
		return err
	}
	if err := p.drain(); err != nil {
		return err
	}
	index := len(l.lifted.items)
	l.lifted.items = append(l.lifted.items, Lifted{Digest: digest, Size: size, Bad: p.bad != nil, head: head})
	l.last = ""
	return l.emit([]byte(l.lifted.mark + strconv.Itoa(index) + `"`))
}

func (l *lifter) emit(b []byte) error {
	if l.out.Len()+len(b) > l.options.MaxText {
		e := Bad("", "request_too_large", "The request is larger than %d bytes beside its media.", l.options.MaxText)
		e.Status = http.StatusRequestEntityTooLarge
		return e
	}
	l.out.Write(b)
	return nil
}

var errNotBase64 = errors.New("the payload is not base64")

// A payload reads the base64 of a JSON string up to its closing quote, and
// decodes it.
type payload struct {
	in      *bufio.Reader
	encoded [32 << 10]byte
	n       int // of encoded
	decoded [24 << 10]byte
	pending []byte // of decoded
	closed  bool   // the quote has been read
	padded  bool   // the base64 is over
	bad     error
	readErr error
}

// Read implements [io.Reader].
func (p *payload) Read(b []byte) (int, error) {
	for len(p.pending) == 0 {
		if p.bad != nil {
			return 0, p.bad
		}
		if p.closed {
			return 0, io.EOF
		}
		if err := p.fill(); err != nil {
			return 0, err
		}
	}
	n := copy(b, p.pending)
	p.pending = p.pending[n:]
	return n, nil
}

// fill decodes the next chunk.
func (p *payload) fill() error {
	for p.n = 0; p.n < len(p.encoded) && !p.closed; {
		if err := p.more(); err != nil {
			return err
		}
	}
	chunk := p.encoded[:p.n]
	over := p.padded && p.n > 0
	padding := p.n - len(bytes.TrimRight(chunk, "="))
	p.padded = p.padded || padding > 0
	n, err := base64.StdEncoding.Decode(p.decoded[:], chunk)
	// A decoder may skip line ends; base64 in JSON has none.
	if err != nil || over || p.n%4 != 0 || n != p.n/4*3-padding {
		p.bad = errNotBase64
		return p.bad
	}
	p.pending = p.decoded[:n]
	return nil
}

// more appends to encoded what is buffered, up to the quote or an escape.
func (p *payload) more() error {
	if _, err := p.in.Peek(1); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		p.bad, p.readErr, p.closed = err, err, true
		return err
	}
	b, _ := p.in.Peek(min(p.in.Buffered(), len(p.encoded)-p.n))
	if end := bytes.IndexByte(b, '"'); end >= 0 {
		b = b[:end]
		p.closed = true
	}
	if esc := bytes.IndexByte(b, '\\'); esc >= 0 {
		b = b[:esc]
		p.closed = false
		p.n += copy(p.encoded[p.n:], b)
		_, _ = p.in.Discard(len(b)) // of what is buffered
		return p.escape()
	}
	p.n += copy(p.encoded[p.n:], b)
	n := len(b)
	if p.closed {
		n++
	}
	_, err := p.in.Discard(n)
	return err
}

// escape reads an escaped character of the base64 alphabet; some JSON writers
// escape "/" and "+".
func (p *payload) escape() error {
	b, err := p.in.Peek(2)
	if err == nil && b[1] == 'u' {
		b, err = p.in.Peek(6)
	}
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		p.bad, p.readErr, p.closed = err, err, true
		return err
	}
	c := b[1]
	if c == 'u' {
		code, err := strconv.ParseUint(string(b[2:6]), 16, 16)
		if err != nil || code > 0x7f {
			code = 0 // of no alphabet
		}
		c = byte(code)
	} else if c != '/' {
		c = 0
	}
	p.encoded[p.n] = c
	p.n++
	_, err = p.in.Discard(len(b))
	return err
}

// drain reads on to the quote, so that the rest of the JSON can be read.
func (p *payload) drain() error {
	for !p.closed {
		p.n = 0
		if err := p.more(); err != nil {
			break
		}
	}
	if p.readErr != nil && !errors.Is(p.readErr, io.ErrUnexpectedEOF) {
		return p.readErr
	}
	return nil
}

// liftText does for a string in memory what Decode does on the way.
func liftText(head, encoded string) Lifted {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return Lifted{Bad: true, head: head}
	}
	return Lifted{Digest: artel.NewDigest(sha256.Sum256(b)), Size: int64(len(b)), head: head}
}
