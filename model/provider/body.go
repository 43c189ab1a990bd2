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

// CodeMediaUnreadable is the error code of a call that ended because a blob of its
// body could not be read. The error wraps a [*MediaError].
const CodeMediaUnreadable = "media_unreadable"

// A MediaError names the blob that could not be read, so that the caller can retry
// with a description in its place.
type MediaError struct {
	Digest artel.Digest
	Err    error
}

// Error names the digest and the cause.
func (e *MediaError) Error() string { return fmt.Sprintf("%s cannot be sent: %v", e.Digest, e.Err) }

// Unwrap returns the cause.
func (e *MediaError) Unwrap() error { return e.Err }

// A Body is a request body: text, and blobs that are sent as base64 or unencoded.
// After it is built it is safe for concurrent reading. The zero Body is empty and
// holds text only; blobs need a store.
type Body struct {
	blobs    blob.Store
	segments []segment
	length   int64
}

// A segment is text, or a blob if digest is set.
type segment struct {
	json   []byte
	digest artel.Digest
	size   int64
	raw    bool // the blob is sent unencoded
}

// NewBody returns an empty body whose blobs are in s, which may be nil for a body
// without blobs.
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

// keep appends p and takes ownership of it.
func (b *Body) keep(p []byte) {
	if n := len(b.segments); len(p) == 0 || n > 0 && b.segments[n-1].digest == "" {
		_, _ = b.Write(p)
		return
	}
	b.length += int64(len(p))
	b.segments = append(b.segments, segment{json: slices.Clip(p)}) // so that appending later copies
}

// WriteString appends s.
func (b *Body) WriteString(s string) { _, _ = b.Write([]byte(s)) }

// WriteBlob appends the standard base64 of the blob d of size bytes. The caller
// writes the quotes around it.
func (b *Body) WriteBlob(d artel.Digest, size int64) {
	b.length += (size + 2) / 3 * 4
	b.segments = append(b.segments, segment{digest: d, size: size})
}

// WriteRaw appends the blob d of size bytes, unencoded.
func (b *Body) WriteRaw(d artel.Digest, size int64) {
	b.length += size
	b.segments = append(b.segments, segment{digest: d, size: size, raw: true})
}

// Len returns the length of the whole body in bytes.
func (b *Body) Len() int64 { return b.length }

// Hash returns the SHA-256 of the sequence of segments: text as "j", its length in
// eight bytes big-endian, and its bytes; a blob as "b" (base64) or "r" (unencoded)
// and its digest's text. Equal requests have equal hashes. No blob is read.
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

// Redacted returns the text of the body with "blob:" and the digest in place of
// each blob.
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

// Open returns a reader of the body, which the caller closes. It holds one blob
// open at a time, needs about 64 KB, and implements [io.WriterTo]. Its errors are
// [*artel.Error] of kind Canceled when ctx ends, or of kind Unavailable and code
// [CodeMediaUnreadable].
func (b *Body) Open(ctx context.Context) io.ReadCloser {
	return &bodyReader{ctx: ctx, blobs: b.blobs, rest: b.segments}
}

// Request returns a request with the body and its exact Content-Length. The HTTP
// client can send it again after redirects and lost connections.
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
		// net/http sends a body in memory together with the header.
		text := b.segments[0].json
		req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil }
		req.Body, _ = req.GetBody() // in memory: no error
		return req, nil
	}
	req.Body = b.Open(ctx)
	req.GetBody = func() (io.ReadCloser, error) { return b.Open(ctx), nil }
	return req, nil
}

// Chunks of blobs end at the boundary of a base64 group.
const (
	rawChunk     = 24 << 10
	encodedChunk = rawChunk / 3 * 4
)

type bodyReader struct {
	ctx     context.Context // of the one call
	blobs   blob.Store
	rest    []segment   // not started
	pending []byte      // text or base64 that Read has not returned yet
	src     blob.Reader // of the current blob
	blob    segment
	left    int64 // raw bytes of src not yet read
	raw     []byte
	encoded []byte
	err     error
}

var _ io.WriterTo = (*bodyReader)(nil)

// Read implements [io.Reader] and fills p completely unless the body ends.
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

// WriteTo implements [io.WriterTo].
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

// Close closes the current blob. Later reads fail.
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

// encode reads one chunk of the blob and encodes it into p, or into pending if p is
// too short. It returns the number of bytes in p.
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

// plain is encode for a blob that is sent unencoded.
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
			return r.unreadable(fmt.Errorf("it has %d bytes, not the announced %d", r.blob.size-r.left+int64(k), r.blob.size))
		}
		return r.unreadable(err)
	}
	r.left -= int64(len(p))
	return nil
}

// advance closes the current blob and starts the next segment.
func (r *bodyReader) advance() error {
	if err := r.ctx.Err(); err != nil {
		return r.canceled()
	}
	if r.src != nil {
		var more [1]byte
		if n, _ := io.ReadFull(r.src, more[:]); n > 0 {
			return r.unreadable(fmt.Errorf("it has more than the announced %d bytes", r.blob.size))
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
		return r.unreadable(fmt.Errorf("it has %d bytes, not the announced %d", src.Size(), s.size))
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
