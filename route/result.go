// SPDX-License-Identifier: Apache-2.0

package route

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/segmentio/asm/base64"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/phrase"
)

// InlineLimit is the largest payload, in bytes, that a [Result] carries when
// it could name a URL instead.
const InlineLimit = 32 << 20

// A Source is one artifact, or some bytes without one, to make a [Result] of.
type Source struct {
	ID        string // of the artifact; empty: there is none
	Filename  string
	Info      artel.MediaInfo // decides the route
	CreatedAt time.Time       // zero: not known
	// Text returns the content where Info says that it is text; nil: missing.
	Text func() (string, error)
	// Open returns the bytes from their beginning. It is called only where the
	// bytes themselves are the answer; nil: missing.
	Open func() (io.ReadCloser, error)
	// URL is where the bytes can be fetched. It stands in the place of a
	// payload over [InlineLimit]; empty: payloads of any size are carried.
	URL string
}

// A Result is the answer about one [Source] for one [Target]: its text, its bytes,
// or its description. It holds no bytes; [Result.Encode] streams them.
//
// Its JSON is an object in camelCase:
//
//	contentType        "text", "image" or "binary"
//	routing            "text", "image_url" or "file"
//	content            the text, the description, or a label for the payload
//	imageUrl           {type: "image_url", image_url: {url}}, where routing is image_url;
//	                   url is data:{mediaType};base64,{bytes}
//	file               {type: "file", file: {filename, mimeType, data}}, where routing is file;
//	                   data is the bytes in base64
//	metadata           {id, type, filename, mimeType, size, createdAt, binaryType}
//	isBinary           whether the bytes are anything but text
//	step, reason       the rung of the ladder, and why; see [artel.Step] and [artel.Reason]
//	need               the capability that is missing, or null
//	suggestedServices  ids of services that could take it
//
// A payload over [InlineLimit] is named by its URL, where there is one: as
// image_url.url, or as file.url in the place of file.data.
type Result struct {
	Route    artel.Route
	Content  string
	Metadata Metadata
	IsBinary bool

	source Source
	media  artel.Media // the source in the words of descriptions
	locale phrase.Locale
}

// Metadata says what a [Result] is about. Type is the media kind; BinaryType
// is the same with archives counted as other, and empty for text.
type Metadata struct {
	ID         string `json:"id"`
	Type       string `json:"type,omitempty"`
	Filename   string `json:"filename,omitempty"`
	MimeType   string `json:"mimeType,omitempty"`
	Size       int64  `json:"size"`                // bytes
	CreatedAt  string `json:"createdAt,omitempty"` // RFC 3339
	BinaryType string `json:"binaryType,omitempty"`
}

// New decides the route of s for t and writes its text in l. Of the bytes it
// opens nothing; text is read at once. It never fails: text that cannot be
// read makes the result unreadable.
func New(s Source, t Target, l phrase.Locale) *Result {
	m := artel.Media{
		Ref: artel.Ref{Artifact: artel.ArtifactID(s.ID)}, Filename: s.Filename,
		MediaType: s.Info.MediaType, Kind: s.Info.Kind, Size: s.Info.Size,
	}
	r := &Result{
		Route: Decide(s.Info, t), IsBinary: s.Info.IsBinary(),
		Metadata: metadata(s), source: s, media: m, locale: l,
	}
	switch {
	case r.Route.Reason == artel.ReasonText:
		text, err := s.text()
		if err != nil {
			return r.unreadable()
		}
		r.Content = text
	case r.Route.Step == artel.StepDescribed:
		r.Content = Describe(m, l)
	default:
		r.Content = l.Say(phrase.RouteContent, map[string]any{"Name": nameOf(m, l)})
	}
	return r
}

func metadata(s Source) Metadata {
	m := Metadata{
		ID: s.ID, Type: string(s.Info.Kind), Filename: s.Filename,
		MimeType: s.Info.MediaType, Size: s.Info.Size,
	}
	if !s.CreatedAt.IsZero() {
		m.CreatedAt = s.CreatedAt.UTC().Format(time.RFC3339Nano)
	}
	switch s.Info.Kind {
	case artel.KindText:
	case artel.KindImage, artel.KindAudio, artel.KindVideo, artel.KindDocument:
		m.BinaryType = string(s.Info.Kind)
	default:
		m.BinaryType = string(artel.KindOther)
	}
	return m
}

var errNoBytes = errors.New("there are no bytes")

func (s Source) text() (string, error) {
	if s.Text == nil {
		return "", errNoBytes
	}
	return s.Text()
}

func (s Source) open() (io.ReadCloser, error) {
	if s.Open == nil {
		return nil, errNoBytes
	}
	return s.Open()
}

// Native reports whether the media itself is the answer, so that it travels as
// a part beside the text.
func (r *Result) Native() bool { return r.Route.Routing != artel.RoutingText }

// ToolContent returns what a model reads as the result of a tool that shows
// the source: the text or the description, or, where the media itself travels as a
// part, the JSON object {contentType, routing, step, metadata}.
func (r *Result) ToolContent() string {
	if !r.Native() {
		return r.Content
	}
	return string(marshal(struct {
		ContentType string     `json:"contentType"`
		Routing     string     `json:"routing"`
		Step        artel.Step `json:"step"`
		Metadata    Metadata   `json:"metadata"`
	}{r.Route.ContentType, r.Route.Routing, r.Route.Step, r.Metadata}))
}

// Encode writes r as JSON to w. The payload is read and encoded while it is
// written, in memory that does not depend on its size.
//
// Bytes that cannot be opened make the result unreadable, which is a result
// and no error. After that nothing can be taken back: an error, of kind
// Canceled where ctx ended and Unavailable where reading or writing failed,
// means that w holds a broken object and the transfer must be aborted.
// Bytes that are more or fewer than Info.Size said are such an error too.
func (r *Result) Encode(ctx context.Context, w io.Writer) error {
	if err := r.encode(ctx, w); err != nil {
		kind := artel.KindOf(err)
		if kind == artel.Internal {
			kind = artel.Unavailable
		}
		return &artel.Error{Op: "route.Encode", Subject: nameOf(r.media, phrase.English), Kind: kind, Err: err}
	}
	return nil
}

func (r *Result) encode(ctx context.Context, w io.Writer) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if !r.Native() {
		return writeAll(w, r.head(), []byte("}\n"))
	}
	if r.source.URL != "" && r.media.Size > InlineLimit {
		before, after := r.payload(r.source.URL)
		return writeAll(w, r.head(), before, after)
	}
	body, err := r.source.open()
	if err != nil {
		return writeAll(w, r.unreadable().head(), []byte("}\n"))
	}
	defer body.Close()
	before, after := r.payload("")
	if err := writeAll(w, r.head(), before); err != nil {
		return err
	}
	if err := encodeBase64(ctx, w, body, r.media.Size); err != nil {
		return err
	}
	return writeAll(w, after)
}

// unreadable returns the result that r becomes when its bytes cannot be read.
func (r *Result) unreadable() *Result {
	u := *r
	u.Route = artel.Route{
		ContentType: contentBinary, Routing: artel.RoutingText,
		Step: artel.StepDescribed, Reason: artel.ReasonUnreadable,
	}
	u.Content = Unreadable(r.media, r.locale)
	return &u
}

// head is the JSON of r without its payload and without the closing brace.
func (r *Result) head() []byte {
	var need *artel.Capability
	if r.Route.Need != "" {
		need = &r.Route.Need
	}
	suggested := r.Route.Suggested
	if suggested == nil {
		suggested = []artel.ServiceID{}
	}
	b := marshal(struct {
		ContentType string            `json:"contentType"`
		Routing     string            `json:"routing"`
		Content     string            `json:"content"`
		Metadata    Metadata          `json:"metadata"`
		IsBinary    bool              `json:"isBinary"`
		Step        artel.Step        `json:"step"`
		Reason      artel.Reason      `json:"reason"`
		Need        *artel.Capability `json:"need"`
		Suggested   []artel.ServiceID `json:"suggestedServices"`
	}{
		r.Route.ContentType, r.Route.Routing, r.Content, r.Metadata, r.IsBinary,
		r.Route.Step, r.Route.Reason, need, suggested,
	})
	return b[:len(b)-1]
}

// payload returns the JSON around the payload, up to the end of the object.
// With a URL it is complete; without, the base64 of the bytes goes between.
func (r *Result) payload(url string) (before, after []byte) {
	if r.Route.Routing == artel.RoutingImage {
		if url == "" {
			url = "data:" + r.media.MediaType + ";base64,"
		}
		b := append([]byte(`,"imageUrl":{"type":"image_url","image_url":{"url":`), marshal(url)...)
		return b[:len(b)-1], []byte("\"}}}\n")
	}
	key := `,"data":`
	if url != "" {
		key = `,"url":`
	}
	b := append([]byte(`,"file":{"type":"file","file":{"filename":`), marshal(nameOf(r.media, r.locale))...)
	b = append(append(b, `,"mimeType":`...), marshal(r.media.MediaType)...)
	b = append(append(b, key...), marshal(url)...)
	return b[:len(b)-1], []byte("\"}}}\n")
}

// marshal writes v without the escapes that only HTML needs: text comes back
// as it is. Its arguments are strings and structs of them, which cannot fail.
func marshal(v any) []byte {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic("route: " + err.Error())
	}
	return bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
}

func writeAll(w io.Writer, pieces ...[]byte) error {
	for _, p := range pieces {
		if _, err := w.Write(p); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}

// rawChunk is a multiple of three, so that no padding falls between chunks.
const rawChunk = 48 << 10

// encodeBase64 writes exactly size bytes of src to w in base64 (RFC 4648,
// section 4). The payload is the one part of an answer that grows with the
// file, hence the vectorised encoder.
func encodeBase64(ctx context.Context, w io.Writer, src io.Reader, size int64) error {
	raw := make([]byte, min(rawChunk, size))
	text := make([]byte, base64.StdEncoding.EncodedLen(len(raw)))
	for left := size; left > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(src, raw[:min(int64(len(raw)), left)])
		if err != nil {
			return fmt.Errorf("%d bytes are missing of %d: %w", left-int64(n), size, err)
		}
		left -= int64(n)
		base64.StdEncoding.Encode(text, raw[:n])
		if _, err := w.Write(text[:base64.StdEncoding.EncodedLen(n)]); err != nil {
			return fmt.Errorf("write the payload: %w", err)
		}
	}
	switch n, err := io.ReadFull(src, raw[:1]); {
	case n > 0:
		return fmt.Errorf("there are more than the %d bytes that were announced", size)
	case err != io.EOF:
		return fmt.Errorf("read the end of the payload: %w", err)
	}
	return nil
}
