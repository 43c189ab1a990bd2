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
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media/extract"
	"github.com/artelhq/artel/media/picture"
)

// InlineLimit is the largest payload, in bytes, that a [Result] includes if the
// [Source] has a URL.
const InlineLimit = 32 << 20

// A Source is an artifact or other bytes for a [Result].
type Source struct {
	ID        string // of the artifact; empty: there is none
	Filename  string
	Info      artel.MediaInfo // decides the route
	CreatedAt time.Time       // zero: not known
	// Text returns the content of a text; nil: missing.
	Text func() (string, error)
	// Open returns the bytes. It is called only if the bytes are the answer; nil:
	// missing.
	Open func() (io.ReadCloser, error)
	// URL replaces payloads over [InlineLimit]; empty: payloads of any size are
	// included.
	URL string
	// ReadAs is the id of the source for the tool read_artifact; empty: descriptions
	// do not mention the tool.
	ReadAs string
	Makers Makers
}

// Makers make other forms of the bytes of a [Source]. Each is called only if the
// route needs its form. If it is nil or fails, the result is a description.
type Makers struct {
	Extract func() (extract.Extracted, error)
	// Transcribe returns the transcript of a recording, the caption of a picture, or the
	// text that a service reads on the pages of a document, of which there are that many.
	Transcribe func(pages int) (string, error)
	Convert    func(picture.Form) (Converted, error)
	// Pages draws the pages of a document from first to last, from 1 on: those that exist,
	// and no more than it draws at once.
	Pages func(first, last int, f picture.Form) ([]Converted, error)
}

// Converted is a picture in another form.
type Converted struct {
	Info artel.MediaInfo
	Open func() (io.ReadCloser, error)
}

// InMemory wraps the results of [picture.Convert] for [Makers].
func InMemory(p picture.Picture, err error) (Converted, error) {
	if err != nil {
		return Converted{}, err
	}
	return inMemory(p), nil
}

func inMemory(p picture.Picture) Converted {
	return Converted{
		Info: artel.MediaInfo{MediaType: p.MediaType, Kind: artel.KindImage, Size: int64(len(p.Data)), Width: p.Width, Height: p.Height},
		Open: func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(p.Data)), nil },
	}
}

var errNoMaker = errors.New("no maker for this form")

// A Result is one [Source] in the form for one [Target]: its text, its bytes or its
// description. It holds no bytes; [Result.Encode] streams them.
//
// Its JSON is an object in camelCase:
//
//	contentType        "text", "image" or "binary"
//	routing            "text", "image_url" or "file"
//	content            the text, the description, or a label for the payload
//	imageUrl           {type: "image_url", image_url: {url}}, if routing is image_url;
//	                   url is data:{mediaType};base64,{bytes}
//	file               {type: "file", file: {filename, mimeType, data}}, if routing is file;
//	                   data is the bytes in base64
//	metadata           {id, type, filename, mimeType, size, createdAt, binaryType}
//	isBinary           whether the bytes are not text
//	step, reason       the form, and why; see [artel.Step] and [artel.Reason]
//	need               the missing capability, or null
//	sent               {mimeType, size, width, height} of the payload, if step is converted;
//	                   of pages {mimeType, size, pages, pagesLeft}: how many are in the result
//	                   and how many of the document are not
//	furtherPages       if pages of a document are the payload: those after the first, which is
//	                   imageUrl, in the same form
//	suggestedServices  ids of services that accept it
//
// If the source has a URL, it replaces a payload over [InlineLimit]: as
// image_url.url, or as file.url instead of file.data.
type Result struct {
	Route    artel.Route
	Content  string
	Metadata Metadata
	IsBinary bool

	source   Source
	media    artel.Media // the source, for descriptions
	locale   phrase.Locale
	readable bool          // the tool read_artifact returns its text
	form     *picture.Form // to convert it to
	pages    []Converted   // of the source, in place of it
	left     int           // pages of the source that are not in pages
}

// Metadata describes the source of a [Result]. Type is the media kind; BinaryType
// is the same with archives as "other", and empty for text.
type Metadata struct {
	ID         string `json:"id"`
	Type       string `json:"type,omitempty"`
	Filename   string `json:"filename,omitempty"`
	MimeType   string `json:"mimeType,omitempty"`
	Size       int64  `json:"size"`                // bytes
	CreatedAt  string `json:"createdAt,omitempty"` // RFC 3339
	BinaryType string `json:"binaryType,omitempty"`
}

// New decides the route of s for t and writes its text in l. It reads, extracts or
// transcribes text at once, but does not open the bytes. It never fails: if text
// cannot be read the result says so, and a form that cannot be made becomes a
// description.
func New(s Source, t Target, l phrase.Locale) *Result {
	r := newResult(s, t, l)
	m := r.media
	switch r.Route.Step {
	case artel.StepExtracted:
		return r.extract(t)
	case artel.StepTranscribed:
		return r.transcribe(0)
	case artel.StepDescribed:
		if paged(s.Info) && t.Forms.Pages && sees(t) {
			return r.extract(t)
		}
		r.describe()
	default:
		if r.Route.Reason != artel.ReasonText {
			if r.Route.Step == artel.StepConverted {
				form := t.Capabilities.PictureForm()
				r.form = &form
			}
			r.Content = l.Say(phrase.RouteContent, map[string]any{"Name": nameOf(m, l)})
			break
		}
		text, err := s.text()
		if err != nil {
			return r.unreadable()
		}
		r.Content = text
	}
	return r
}

// newResult returns the result of the decision, without content.
func newResult(s Source, t Target, l phrase.Locale) *Result {
	return &Result{
		Route: Decide(s.Info, t), IsBinary: s.Info.IsBinary(), Metadata: metadata(s), source: s, locale: l,
		media: artel.Media{
			Ref: artel.Ref{Artifact: artel.ArtifactID(s.ID)}, Filename: s.Filename,
			MediaType: s.Info.MediaType, Kind: s.Info.Kind, Size: s.Info.Size,
		},
		readable: s.ReadAs != "" && t.Forms.Readable(s.Info),
	}
}

// extract fills in the text of the document. If it is doubtful, the pages of the document
// are the payload, or their text as a service reads it, as far as t allows that; if these
// cannot be made, the doubtful text remains.
func (r *Result) extract(t Target) *Result {
	var x extract.Extracted
	err := errNoMaker
	if maker := r.source.Makers.Extract; maker != nil {
		x, err = maker()
	}
	if err == nil && x.Doubt != "" {
		better := *r
		better.Route = Doubtful(r.Route, r.source.Info, t)
		switch better.Route.Step {
		case artel.StepConverted:
			if better.draw(t, 1, x.Pages, x.Pages) == nil {
				return &better
			}
		case artel.StepTranscribed:
			if better.transcribe(x.Pages); better.Route.Step == artel.StepTranscribed {
				return &better
			}
		}
	}
	switch {
	case r.Route.Step == artel.StepDescribed:
		r.describe()
	case err != nil:
		r.fallBack()
	default:
		r.Content = x.Text
	}
	return r
}

// transcribe fills in the words of the source, which has that many pages, or describes it.
func (r *Result) transcribe(pages int) *Result {
	err := errNoMaker
	if maker := r.source.Makers.Transcribe; maker != nil {
		r.Content, err = maker(pages)
	}
	if err != nil {
		r.fallBack()
	}
	return r
}

// fallBack turns r into a description after its form could not be made.
func (r *Result) fallBack() {
	if r.Route.Step == artel.StepExtracted {
		r.readable = false // read_artifact would fail too
	}
	r.Route = Fallback(r.Route)
	r.describe()
}

func (r *Result) describe() {
	r.Content = Describe(r.media, r.Route, r.locale)
	if r.readable {
		r.Content += "\n" + HowToRead(r.source.ReadAs, r.locale)
	}
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

// Native reports whether the media themselves are the answer, as a part beside the
// text.
func (r *Result) Native() bool { return r.Route.Routing != artel.RoutingText }

// ToolContent returns the content of a tool result for the source: the text or the
// description, or for a native result the JSON object {contentType, routing,
// step, metadata}.
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

// Encode writes r as JSON to w. The payload is streamed in constant memory.
//
// If the bytes cannot be opened, the written result says so; this is no error.
// Later failures leave a broken object in w, so that the transfer must be
// aborted: an error of kind Canceled if ctx ended, Unavailable if reading or
// writing failed or the number of bytes is not Info.Size.
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
	switch {
	case r.form != nil:
		return r.encodeConverted(ctx, w)
	case r.pages != nil:
		return r.encodePages(ctx, w)
	}
	if !r.Native() {
		return writeAll(w, r.head(nil), []byte("}\n"))
	}
	if r.source.URL != "" && r.media.Size > InlineLimit {
		before, after := r.payload(r.media.MediaType, r.source.URL)
		return writeAll(w, r.head(nil), before, after)
	}
	body, err := r.source.open()
	if err != nil {
		return writeAll(w, r.unreadable().head(nil), []byte("}\n"))
	}
	return r.stream(ctx, w, body, r.source.Info, nil)
}

// encodeConverted converts the picture, or describes it if that fails.
func (r *Result) encodeConverted(ctx context.Context, w io.Writer) error {
	err := errNoMaker
	var c Converted
	if r.source.Makers.Convert != nil {
		c, err = r.source.Makers.Convert(*r.form)
	}
	var body io.ReadCloser
	if err == nil {
		body, err = c.Open()
	}
	if err != nil {
		if e := ctx.Err(); e != nil {
			return e
		}
		d := *r
		d.fallBack()
		return writeAll(w, d.head(nil), []byte("}\n"))
	}
	return r.stream(ctx, w, body, c.Info, &sent{MimeType: c.Info.MediaType, Size: c.Info.Size, Width: c.Info.Width, Height: c.Info.Height})
}

// stream writes a result with the payload in body, and closes body.
func (r *Result) stream(ctx context.Context, w io.Writer, body io.ReadCloser, info artel.MediaInfo, s *sent) error {
	defer body.Close()
	before, after := r.payload(info.MediaType, "")
	if err := writeAll(w, r.head(s), before); err != nil {
		return err
	}
	if err := encodeBase64(ctx, w, body, info.Size); err != nil {
		return err
	}
	return writeAll(w, after)
}

// unreadable returns the result for bytes that cannot be read.
func (r *Result) unreadable() *Result {
	u := *r
	u.Route = artel.Route{
		ContentType: contentBinary, Routing: artel.RoutingText,
		Step: artel.StepDescribed, Reason: artel.ReasonUnreadable,
	}
	u.Content = Unreadable(r.media, r.locale)
	return &u
}

// sent describes a converted payload.
type sent struct {
	MimeType string `json:"mimeType"`
	Size     int64  `json:"size"` // bytes
	Width    int    `json:"width,omitempty"`
	Height   int    `json:"height,omitempty"`

	Pages     int `json:"pages,omitempty"` // of a document
	PagesLeft int `json:"pagesLeft,omitempty"`
}

// head is the JSON of r without its payload and without the closing brace.
func (r *Result) head(s *sent) []byte {
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
		Sent        *sent             `json:"sent,omitempty"`
	}{
		r.Route.ContentType, r.Route.Routing, r.Content, r.Metadata, r.IsBinary,
		r.Route.Step, r.Route.Reason, need, suggested, s,
	})
	return b[:len(b)-1]
}

// payload returns the JSON around the payload, up to the end of the object.
// With a URL it is complete; without, the base64 of the bytes goes between.
func (r *Result) payload(mediaType, url string) (before, after []byte) {
	if r.Route.Routing == artel.RoutingImage {
		if url == "" {
			url = "data:" + mediaType + ";base64,"
		}
		b := append([]byte(`,"imageUrl":{"type":"image_url","image_url":{"url":`), marshal(url)...)
		return b[:len(b)-1], []byte("\"}}}\n")
	}
	key := `,"data":`
	if url != "" {
		key = `,"url":`
	}
	b := append([]byte(`,"file":{"type":"file","file":{"filename":`), marshal(nameOf(r.media, r.locale))...)
	b = append(append(b, `,"mimeType":`...), marshal(mediaType)...)
	b = append(append(b, key...), marshal(url)...)
	return b[:len(b)-1], []byte("\"}}}\n")
}

// marshal returns the JSON of v without HTML escapes. v consists of strings and
// numbers, so that it cannot fail.
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
// section 4), with a vectorised encoder because files may be large.
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
