// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"

	"github.com/segmentio/asm/base64"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
)

// CodeMediaUnreadable is the error code of a call that was given up because a
// blob of its body could not be read; the error holds a [*MediaError].
const CodeMediaUnreadable = "media_unreadable"

// A MediaError names the blob that a body failed on, so that the call can be
// made again with a description in its place.
type MediaError struct {
	Digest artel.Digest
	Err    error
}

// Error names the digest and the cause.
func (e *MediaError) Error() string { return fmt.Sprintf("%s cannot be sent: %v", e.Digest, e.Err) }

// Unwrap returns the cause.
func (e *MediaError) Unwrap() error { return e.Err }

// A Body is a request body: text written by the wing, and blobs that stand in
// it as base64, or as they are. It is built once, then only read; reading is safe for
// concurrent use. The zero Body is empty and holds text; blobs need a store.
type Body struct {
	blobs    blob.Store
	segments []segment
	length   int64
}

// A segment is text, mostly JSON, or a blob if digest is set.
type segment struct {
	json   []byte
	digest artel.Digest
	size   int64
	raw    bool // the blob goes as it is
}

// NewBody returns an empty body whose blobs lie in s. The store may be nil
// when no blob is added.
func NewBody(s blob.Store) *Body { return &Body{blobs: s} }

// Write appends p, which is copied. It never fails.
func (b *Body) Write(p []byte) (int, error) {
	b.length += int64(len(p))
	if n := len(b.segments); n > 0 && b.segments[n-1].digest == "" {
		b.segments[n-1].json = append(b.segments[n-1].json, p...)
	} else if len(p) > 0 {
		b.segments = append(b.segments, segment{json: bytes.Clone(p)})
	}
	return len(p), nil
}

// keep appends p, which belongs to the body from now on.
func (b *Body) keep(p []byte) {
	if n := len(b.segments); len(p) == 0 || n > 0 && b.segments[n-1].digest == "" {
		_, _ = b.Write(p)
		return
	}
	b.length += int64(len(p))
	b.segments = append(b.segments, segment{json: slices.Clip(p)}) // what is appended later goes elsewhere
}

// WriteString appends s.
func (b *Body) WriteString(s string) { _, _ = b.Write([]byte(s)) }

// WriteBlob appends the standard base64 of the blob d, which has size bytes.
// The caller writes the quotes around it.
func (b *Body) WriteBlob(d artel.Digest, size int64) {
	b.length += (size + 2) / 3 * 4
	b.segments = append(b.segments, segment{digest: d, size: size})
}

// WriteRaw appends the bytes of the blob d, of which there are size.
func (b *Body) WriteRaw(d artel.Digest, size int64) {
	b.length += size
	b.segments = append(b.segments, segment{digest: d, size: size, raw: true})
}

// Len returns the length of the whole body in bytes.
func (b *Body) Len() int64 { return b.length }

// Hash returns the SHA-256 of the sequence of segments: each JSON segment as
// "j", its length in eight bytes big-endian, and its bytes; each blob as "b",
// or "r" where it goes as it is, and its digest's text. Equal requests have equal hashes, and no blob is read.
func (b *Body) Hash() artel.Digest {
	h := sha256.New()
	for _, s := range b.segments {
		if s.digest != "" {
			mark := "b"
			if s.raw {
				mark = "r"
			}
			_, _ = io.WriteString(h, mark+string(s.digest))
			continue
		}
		head := binary.BigEndian.AppendUint64([]byte{'j'}, uint64(len(s.json)))
		_, _ = h.Write(head)
		_, _ = h.Write(s.json)
	}
	return artel.NewDigest([32]byte(h.Sum(nil)))
}

// Redacted returns the text of the body with "blob:" and its digest in the
// place of each blob.
func (b *Body) Redacted() []byte {
	var out []byte
	for _, s := range b.segments {
		if s.digest != "" {
			out = append(out, artel.BlobRef(s.digest).String()...)
			continue
		}
		out = append(out, s.json...)
	}
	return out
}

// Open returns a reader of the body from its start; it holds one blob open at
// a time and some 64 KB. Its errors are [*artel.Error] of kind Canceled when
// ctx ends, or of kind Unavailable and code [CodeMediaUnreadable]. It also
// implements [io.WriterTo]. The caller closes it.
func (b *Body) Open(ctx context.Context) io.ReadCloser {
	return &bodyReader{ctx: ctx, blobs: b.blobs, rest: b.segments}
}

// Request makes a request that carries the body with its exact Content-Length
// and can be sent again by the client, for redirects and lost connections.
func (b *Body) Request(ctx context.Context, method, url string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return nil, err
	}
	if b.length == 0 {
		return req, nil
	}
	req.ContentLength = b.length
	if len(b.segments) == 1 && b.segments[0].digest == "" {
		// net/http sends what it knows to be in memory together with the header.
		text := b.segments[0].json
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		req.Body, _ = req.GetBody() // of what is in memory
		return req, nil
	}
	req.Body = b.Open(ctx)
	req.GetBody = func() (io.ReadCloser, error) { return b.Open(ctx), nil }
	return req, nil
}

// Raw bytes are read in chunks that encode to whole chunks of base64.
const (
	rawChunk     = 24 << 10
	encodedChunk = rawChunk / 3 * 4
)

type bodyReader struct {
	ctx     context.Context // of the one call that the reader serves
	blobs   blob.Store
	rest    []segment   // not begun
	pending []byte      // encoded or JSON, to hand out
	src     blob.Reader // of the blob segment in work
	blob    segment
	left    int64 // raw bytes of src not yet read
	raw     []byte
	encoded []byte
	err     error
}

var _ io.WriterTo = (*bodyReader)(nil)

// Read fills p as far as it goes.
func (r *bodyReader) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) && r.err == nil {
		if len(r.pending) > 0 {
			k := copy(p[n:], r.pending)
			r.pending = r.pending[k:]
			n += k
			continue
		}
		if r.src != nil && r.left > 0 {
			var k int
			k, r.err = r.encode(p[n:])
			n += k
			continue
		}
		r.err = r.advance()
	}
	if n > 0 || len(p) == 0 {
		return n, nil
	}
	return 0, r.err
}

// WriteTo writes what is left of the body to w.
func (r *bodyReader) WriteTo(w io.Writer) (int64, error) {
	var n int64
	for {
		if len(r.pending) > 0 {
			k, err := w.Write(r.pending)
			n += int64(k)
			r.pending = r.pending[k:]
			if err != nil {
				return n, err
			}
		}
		switch {
		case r.err == io.EOF:
			return n, nil
		case r.err != nil:
			return n, r.err
		case r.src != nil && r.left > 0:
			_, r.err = r.encode(nil)
		default:
			r.err = r.advance()
		}
	}
}

// Close closes the blob that is open. Reading afterwards fails.
func (r *bodyReader) Close() error {
	if r.err == nil {
		r.err = errors.New("the body is closed")
	}
	r.pending, r.rest = nil, nil
	return r.closeSource()
}

func (r *bodyReader) closeSource() error {
	if r.src == nil {
		return nil
	}
	err := r.src.Close()
	r.src = nil
	return err
}

// encode reads one chunk of the blob and encodes it to p, or to pending where
// p cannot hold it. It returns the number of bytes put into p.
func (r *bodyReader) encode(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, r.canceled()
	}
	if r.raw == nil {
		r.raw = make([]byte, rawChunk)
	}
	want := min(int64(rawChunk), r.left)
	if r.blob.raw {
		return r.plain(p, want)
	}
	if fits := int64(len(p) / 4 * 3); fits >= 3*1024 && fits < want {
		want = fits
	}
	chunk := r.raw[:want]
	if err := r.fill(chunk); err != nil {
		return 0, err
	}
	size := base64.StdEncoding.EncodedLen(len(chunk))
	if size <= len(p) {
		base64.StdEncoding.Encode(p, chunk)
		return size, nil
	}
	if r.encoded == nil {
		r.encoded = make([]byte, encodedChunk)
	}
	r.pending = r.encoded[:size]
	base64.StdEncoding.Encode(r.pending, chunk)
	return 0, nil
}

// plain reads one chunk of a blob that goes as it is, as encode does.
func (r *bodyReader) plain(p []byte, want int64) (int, error) {
	if len(p) > 0 {
		want = min(want, int64(len(p)))
		return int(want), r.fill(p[:want])
	}
	r.pending = r.raw[:want]
	if err := r.fill(r.pending); err != nil {
		r.pending = nil
		return 0, err
	}
	return 0, nil
}

// fill reads the next bytes of the blob.
func (r *bodyReader) fill(p []byte) error {
	k, err := io.ReadFull(r.src, p)
	if err != nil {
		if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return r.unreadable(fmt.Errorf("it has %d bytes, not the %d that were promised", r.blob.size-r.left+int64(k), r.blob.size))
		}
		return r.unreadable(err)
	}
	r.left -= int64(len(p))
	return nil
}

// advance finishes the segment in work and begins the next.
func (r *bodyReader) advance() error {
	if err := r.ctx.Err(); err != nil {
		return r.canceled()
	}
	if r.src != nil {
		var more [1]byte
		if n, _ := io.ReadFull(r.src, more[:]); n > 0 {
			return r.unreadable(fmt.Errorf("it has more than the %d bytes that were promised", r.blob.size))
		}
		if err := r.closeSource(); err != nil {
			return r.unreadable(err)
		}
	}
	if len(r.rest) == 0 {
		return io.EOF
	}
	s := r.rest[0]
	r.rest = r.rest[1:]
	if s.digest == "" {
		r.pending = s.json
		return nil
	}
	r.blob = s
	if r.blobs == nil {
		return r.unreadable(errors.New("there is no blob store"))
	}
	src, err := r.blobs.Open(r.ctx, s.digest)
	if err != nil {
		return r.unreadable(err)
	}
	r.src, r.left = src, s.size
	if src.Size() != s.size {
		return r.unreadable(fmt.Errorf("it has %d bytes, not the %d that were promised", src.Size(), s.size))
	}
	return nil
}

func (r *bodyReader) canceled() error {
	return &artel.Error{Op: "provider.Body", Kind: artel.Canceled, Err: context.Cause(r.ctx)}
}

func (r *bodyReader) unreadable(err error) error {
	if r.ctx.Err() != nil {
		return r.canceled()
	}
	return &artel.Error{
		Op: "provider.Body", Kind: artel.Unavailable, Code: CodeMediaUnreadable,
		Err: &MediaError{Digest: r.blob.digest, Err: err},
	}
}
