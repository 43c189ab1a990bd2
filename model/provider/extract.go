// SPDX-License-Identifier: Apache-2.0

package provider

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
	"slices"
	"strconv"
	"strings"

	"github.com/segmentio/asm/base64"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// DecodeOptions are the limits of [Extract] and the destination of payloads.
type DecodeOptions struct {
	// MaxText limits the request without its payloads, in bytes; 0: 32 MiB.
	MaxText int
	// Size is the size of the input in bytes, so that memory is allocated once; 0:
	// not known. Other input is read as well.
	Size int64
	// Sink receives the bytes of one payload and returns their digest and size. It
	// reads r to its end, or fails the request. nil: payloads are hashed and
	// dropped.
	Sink func(ctx context.Context, r io.Reader) (artel.Digest, int64, error)
}

// The error codes of requests that [Extract] refuses, of kind TooLarge and Invalid.
const (
	CodeTextTooLarge = "text_too_large" // without the payloads
	CodeTooDeep      = "nested_too_deep"
)

// An Encoding is how a string of a request holds bytes.
type Encoding int

// The encodings of payloads.
const (
	NoEncoding  Encoding = iota
	PlainBase64          // base64; any other string is a bad payload
	DataURL              // a data URL with base64 (RFC 2397); any other string is no payload
	AnyBase64            // one of the two
	WebBase64            // PlainBase64 of either alphabet (RFC 4648, sections 4 and 5) with optional padding, as Google's APIs take it
	TypedBase64          // PlainBase64 if the object of the string has "type": "base64", before or after it; otherwise no payload
)

// A Rule returns the encoding of the string at path, the keys from the outermost to
// the string's own. Elements of a list have the key "". path is valid during the
// call.
type Rule func(path []string) Encoding

// A Payload is a string of bytes that was taken out of a request.
type Payload struct {
	Digest artel.Digest
	Size   int64 // bytes, decoded
	Bad    bool  // it is not base64; Digest and Size are meaningless

	head string // text before the base64: "data:image/png;base64,", or nothing
}

// MediaType returns the type that a data URL states, in lower case and without
// parameters; "" for other payloads.
func (m Payload) MediaType() string {
	t, _ := base64Type(m.head)
	return t
}

// An Extraction is the JSON of a request without its payloads. The zero Extraction
// has no payloads; it belongs to a request that was not read from JSON.
type Extraction struct {
	text  []byte
	mark  string // prefix of each mark; the index of the payload follows
	items []Payload
}

// Extract reads JSON from r. It decodes the payloads that rule finds and passes
// them to the sink while it reads, so that it holds the other JSON and about 150 KB
// in memory, whatever the size of the payloads. Each payload is replaced by a mark,
// which [Extraction.Find] resolves.
//
// It does not check that the input is JSON. The error is an [*artel.Error] with one
// of the codes of this package, or that of r or of the sink.
func Extract(ctx context.Context, r io.Reader, rule Rule, o DecodeOptions) (*Extraction, error) {
	if again, ok := r.(*extractedJSON); ok {
		return &again.extraction, nil
	}
	if o.MaxText <= 0 {
		o.MaxText = 32 << 20
	}
	if o.Sink == nil {
		o.Sink = hash
	}
	var nonce [8]byte
	_, _ = rand.Read(nonce[:]) // never fails
	if m, ok := r.(interface{ Len() int }); ok {
		o.Size = int64(m.Len())
	}
	window := bufferSize
	if o.Size > 0 {
		window = int(min(o.Size+1, bufferSize)) // a small buffer suffices
	}
	l := extractor{
		ctx: ctx, in: bufio.NewReaderSize(r, window), rule: rule, options: o,
		extraction: Extraction{mark: "payload:" + hex.EncodeToString(nonce[:]) + ":"},
	}
	l.out.Grow(int(min(o.Size, bufferSize)))
	if err := l.run(); err != nil {
		return nil, err
	}
	l.extraction.text = l.out.Bytes()
	return &l.extraction, nil
}

func hash(_ context.Context, r io.Reader) (artel.Digest, int64, error) {
	h := sha256.New()
	n, err := io.Copy(h, r)
	return artel.NewDigest([32]byte(h.Sum(nil))), n, err
}

// JSON returns the text with a mark in place of each payload. It must not be
// changed.
func (x *Extraction) JSON() []byte { return x.text }

// Payloads returns the payloads in the order of the request.
func (x *Extraction) Payloads() []Payload { return slices.Clone(x.items) }

// Find returns the payload of the mark s, a string of the JSON.
func (x *Extraction) Find(s string) (Payload, bool) {
	rest, ok := strings.CutPrefix(s, x.mark)
	if n, err := strconv.Atoi(rest); ok && x.mark != "" && err == nil && n >= 0 && n < len(x.items) {
		return x.items[n], true
	}
	return Payload{}, false
}

// DataURL returns the payload of a data URL, which is s itself or replaced by the
// mark s. ok is false if s is no data URL with base64.
func (x *Extraction) DataURL(s string) (m Payload, mediaType string, ok bool) {
	m, ok = x.Find(s)
	if !ok {
		head, rest, found := strings.Cut(s, ",")
		if _, isType := base64Type(head + ","); !found || !isType {
			return Payload{}, "", false
		}
		m = decodeText(head+",", rest)
	}
	mediaType, ok = base64Type(m.head)
	return m, mediaType, ok
}

// Base64 returns the payload of base64, which is s itself or replaced by the mark
// s.
func (x *Extraction) Base64(s string) Payload {
	if m, ok := x.Find(s); ok {
		return m
	}
	return decodeText("", s)
}

// decodeText decodes base64 in memory as Extract does in a stream.
func decodeText(head, encoded string) Payload {
	b, err := base64.StdEncoding.DecodeString(encoded)
	if err != nil || strings.ContainsAny(encoded, "\r\n") {
		return Payload{Bad: true, head: head}
	}
	return Payload{Digest: artel.NewDigest(sha256.Sum256(b)), Size: int64(len(b)), head: head}
}

// Add adds a payload and returns its mark, for a string of the JSON. head precedes
// the base64: a data URL up to its comma, or nothing.
func (x *Extraction) Add(head string, d artel.Digest, size int64) string {
	x.items = append(x.items, Payload{Digest: d, Size: size, head: head})
	return x.mark + strconv.Itoa(len(x.items)-1)
}

// Reader returns a reader of text, which was made from the JSON of x, for the
// Decode of a dialect: Extract recognizes it and keeps its marks.
func (x *Extraction) Reader(text []byte) io.Reader {
	return &extractedJSON{*bytes.NewReader(text), Extraction{text: text, mark: x.mark, items: x.items}}
}

// extractedJSON is JSON whose payloads were extracted before.
type extractedJSON struct {
	bytes.Reader
	extraction Extraction
}

// Elided returns the JSON with the digest and size of each payload in its place.
func (x *Extraction) Elided() json.RawMessage {
	out := x.text
	for i, m := range x.items {
		label := fmt.Sprintf(`%s<%s, %d bytes>"`, m.head, m.Digest, m.Size)
		if m.Bad {
			label = m.head + `<not base64>"`
		}
		out = bytes.ReplaceAll(out, fmt.Appendf(nil, `%s%d"`, x.mark, i), []byte(label))
	}
	return slices.Clone(out)
}

// Body returns text, which is or was made from the JSON of l, as a body with the
// payloads in place of the marks, from the store that the sink wrote to. For
// standard base64 the result equals the original. A bad payload becomes empty. The
// body takes ownership of text.
func (x *Extraction) Body(text []byte, blobs blob.Store) *Body {
	b := NewBody(blobs)
	for x.mark != "" {
		at := bytes.Index(text, []byte(x.mark))
		if at < 0 {
			break
		}
		b.keep(text[:at])
		text = text[at:]
		end := bytes.IndexByte(text, '"')
		if end < 0 {
			break
		}
		if m, ok := x.Find(string(text[:end])); ok {
			b.WriteString(m.head)
			if !m.Bad {
				b.WriteBlob(m.Digest, m.Size)
			}
		} else {
			_, _ = b.Write(text[:end])
		}
		text = text[end:]
	}
	b.keep(text)
	return b
}

const (
	maxDepth      = 256
	maxKey        = 64       // no dialect has longer keys or types
	maxHead       = 256      // of a data URL
	bufferSize    = 64 << 10 // of buffered input
	certainBase64 = 48 << 10 // so many base64 characters in a row are no text
)

// extractor copies JSON from in to out and takes payloads out of it. It looks only
// at strings and brackets.
type extractor struct {
	ctx        context.Context // of the one Extract
	in         *bufio.Reader
	out        bytes.Buffer
	rule       Rule
	options    DecodeOptions
	path       []string // the key of each open bracket
	objects    []object // for each open bracket
	last       string   // the last string, if it was short
	value      bool     // a value follows, because a colon was read
	extraction Extraction
}

// object is the state of an open bracket.
type object struct {
	kind       string // the string of "type"
	start, end int    // in out, of a string that is a payload if kind is "base64"; 0: none
}

func (l *extractor) run() error {
	for {
		span, err := l.in.ReadSlice('"')
		if err := l.write(span); err != nil {
			return err
		}
		for _, c := range span {
			if err := l.bracket(c); err != nil {
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
		if err := l.stringValue(); err != nil {
			return err
		}
	}
}

func (l *extractor) bracket(c byte) error {
	switch c {
	case '{', '[':
		key := ""
		if l.value {
			key = l.last
		}
		if l.path = append(l.path, key); len(l.path) > maxDepth {
			return &artel.Error{Op: "provider.Extract", Kind: artel.Invalid, Code: CodeTooDeep, Err: fmt.Errorf("the JSON is nested more than %d deep", maxDepth)}
		}
		l.objects = append(l.objects, object{})
		l.value = false
	case '}', ']':
		l.value = false
		if n := len(l.path) - 1; n >= 0 {
			o := l.objects[n]
			l.path, l.objects = l.path[:n], l.objects[:n]
			if o.end > 0 && o.kind == "base64" {
				return l.takeEarlier(o)
			}
		}
	case ':':
		l.value = true
	case ',':
		l.value = false
	}
	return nil
}

// stringValue handles a string after its opening quote.
func (l *extractor) stringValue() error {
	form := NoEncoding
	if l.value && len(l.path) > 0 {
		form = l.rule(append(l.path[1:], l.last)) // the rule does not keep it; the next key overwrites it
	}
	pending := false
	switch form {
	case PlainBase64:
		return l.take("")
	case WebBase64:
		return l.takeFrom(&base64Reader{in: l.in, web: true}, "")
	case DataURL, AnyBase64:
		head, ok, err := l.dataHead()
		if err != nil {
			return err
		}
		if ok || form == AnyBase64 {
			return l.take(head)
		}
	case TypedBase64:
		o := &l.objects[len(l.objects)-1]
		ok := o.kind == "base64"
		if o.kind == "" {
			var err error
			if ok, err = l.certainlyBase64(); err != nil {
				return err
			}
			pending = !ok
		}
		if ok {
			return l.take("")
		}
	}
	return l.copyString(pending)
}

// copyString copies a string that is no payload, or becomes one when the type of
// its object is known (pending).
func (l *extractor) copyString(pending bool) error {
	key := l.last
	l.last = ""
	start := l.out.Len()
	for {
		span, err := l.in.ReadSlice('"')
		if err := l.write(span); err != nil {
			return err
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil {
			if errors.Is(err, io.EOF) {
				return nil // parsing the JSON reports the error
			}
			return err
		}
		text := l.out.Bytes()[start : l.out.Len()-1]
		if escaped(text) {
			continue
		}
		if len(text) <= maxKey {
			l.last = unquote(text)
		}
		if n := len(l.objects) - 1; n >= 0 && l.value {
			if key == "type" {
				l.objects[n].kind = l.last
			}
			if pending {
				l.objects[n].start, l.objects[n].end = start, l.out.Len()-1
			}
		}
		return nil
	}
}

// unquote returns the text of a JSON string without its quotes.
func unquote(s []byte) string {
	if bytes.IndexByte(s, '\\') < 0 {
		return string(s)
	}
	var out string
	if json.Unmarshal(slices.Concat([]byte{'"'}, s, []byte{'"'}), &out) != nil {
		return string(s)
	}
	return out
}

// escaped reports whether the character after s is escaped.
func escaped(s []byte) bool {
	n := 0
	for n < len(s) && s[len(s)-1-n] == '\\' {
		n++
	}
	return n%2 == 1
}

// peek returns at most n of the next bytes of the current string, and whether the
// string continues after them.
func (l *extractor) peek(n int) (b []byte, more bool, err error) {
	b, err = l.in.Peek(min(n, l.in.Size()))
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	if end := bytes.IndexByte(b, '"'); end >= 0 {
		return b[:end], false, nil
	}
	return b, len(b) == n, nil
}

// certainlyBase64 reports whether the current string is so long and so plain that
// it must be base64.
func (l *extractor) certainlyBase64() (bool, error) {
	b, more, err := l.peek(certainBase64)
	if err != nil || !more {
		return false, err
	}
	for i, c := range b {
		letter := c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		slash := c == '\\' && i+1 < len(b) && (b[i+1] == '/' || b[i+1] == 'u')
		if !letter && c != '+' && c != '/' && !slash {
			return false, nil
		}
	}
	return true, nil
}

// dataHead consumes the head of a data URL, if the current string is one.
func (l *extractor) dataHead() (string, bool, error) {
	b, _, err := l.peek(maxHead)
	if err != nil {
		return "", false, err
	}
	n := bytes.IndexByte(b, ',')
	if n < 0 {
		return "", false, nil
	}
	head := strings.ReplaceAll(string(b[:n+1]), `\/`, `/`)
	if _, ok := base64Type(head); !ok || strings.Contains(head, `\`) {
		return "", false, nil
	}
	_, err = l.in.Discard(n + 1)
	return head, true, err
}

// base64Type returns the media type of the data URL with this head, which ends in
// its comma.
func base64Type(head string) (string, bool) {
	rest, ok := strings.CutPrefix(head, "data:")
	rest, ok2 := strings.CutSuffix(rest, ";base64,")
	if !ok || !ok2 {
		return "", false
	}
	mediaType, _, err := mime.ParseMediaType(rest)
	return mediaType, err == nil
}

// take replaces the payload in the input by a mark.
func (l *extractor) take(head string) error { return l.takeFrom(&base64Reader{in: l.in}, head) }

func (l *extractor) takeFrom(p *base64Reader, head string) error {
	digest, size, err := l.options.Sink(l.ctx, p)
	if p.readErr != nil && !errors.Is(p.readErr, io.ErrUnexpectedEOF) {
		return p.readErr
	}
	if err != nil && p.bad == nil {
		return err
	}
	if err := p.drain(); err != nil {
		return err
	}
	l.last = ""
	return l.write([]byte(l.addPayload(Payload{Digest: digest, Size: size, Bad: p.bad != nil, head: head}) + `"`))
}

// addPayload records a payload and returns its mark.
func (l *extractor) addPayload(m Payload) string {
	l.extraction.items = append(l.extraction.items, m)
	return l.extraction.mark + strconv.Itoa(len(l.extraction.items)-1)
}

// takeEarlier replaces a string in the output that its object has turned out to be
// a payload.
func (l *extractor) takeEarlier(o object) error {
	all := l.out.Bytes()
	m := Payload{Bad: true}
	encoded := unquote(all[o.start:o.end])
	if data, err := base64.StdEncoding.DecodeString(encoded); err == nil && !strings.ContainsAny(encoded, "\r\n") {
		digest, size, err := l.options.Sink(l.ctx, bytes.NewReader(data))
		if err != nil {
			return err
		}
		m = Payload{Digest: digest, Size: size}
	}
	tail := bytes.Clone(all[o.end:])
	l.out.Truncate(o.start)
	l.out.WriteString(l.addPayload(m))
	l.out.Write(tail)
	return nil
}

func (l *extractor) write(b []byte) error {
	if l.out.Len()+len(b) > l.options.MaxText {
		return &artel.Error{
			Op: "provider.Extract", Kind: artel.TooLarge, Code: CodeTextTooLarge,
			Err: fmt.Errorf("the request is larger than %d bytes without its media", l.options.MaxText),
		}
	}
	l.out.Write(b)
	return nil
}
