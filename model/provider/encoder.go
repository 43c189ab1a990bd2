// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"
	"mime"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
)

// An Encoder writes the body of a request. The encoders of the dialects embed it.
type Encoder struct {
	Body     *Body
	Failures Failures
	Names    map[artel.Digest]model.Name // of media that are sent by name
	Err      error                       // the first

	onDrop func(model.Drop) error
}

// NewEncoder returns an encoder of r whose errors have the operation op. It reports
// the fields of r that the dialect lacks.
func NewEncoder(op string, r *model.Request, blobs blob.Store) Encoder {
	e := Encoder{Body: NewBody(blobs), Failures: Failures{Op: op, Service: &r.Service}, Names: r.Names, onDrop: r.OnDrop}
	e.dropLacking(r)
	return e
}

// Drop reports that a field of the request is not written.
func (e *Encoder) Drop(field string, reason model.DropReason) {
	if e.onDrop == nil {
		return
	}
	if err := e.onDrop(model.Drop{Field: field, Reason: reason}); err != nil && e.Err == nil {
		e.Err = err
	}
}

// Fail sets Err unless it is set.
func (e *Encoder) Fail(kind artel.Kind, format string, args ...any) {
	if e.Err == nil {
		e.Err = e.Failures.Refuse(kind, format, args...)
	}
}

// JSON writes v as [Marshal] does.
func (e *Encoder) JSON(v any) {
	b, err := Marshal(v)
	if err != nil {
		e.Fail(artel.Invalid, "the request cannot be written as JSON: %w", err)
		return
	}
	_, _ = e.Body.Write(b)
}

// Field writes a comma, and a member of an object.
func (e *Encoder) Field(name string, v any) {
	e.Body.WriteString(`,"` + name + `":`)
	e.JSON(v)
}

// Blob writes the base64 of m between two pieces of JSON.
func (e *Encoder) Blob(before string, m artel.Media, after string) {
	e.Body.WriteString(before)
	e.Body.WriteBlob(m.Ref.Digest, m.Size)
	e.Body.WriteString(after)
}

// EachOf writes the elements of a list with commas between them.
func EachOf[T any](e *Encoder, list []T, write func(int, T)) {
	for i, v := range list {
		if i > 0 {
			e.Body.WriteString(",")
		}
		write(i, v)
	}
}

// Media returns the media type of m without parameters, and the name of m in
// errors. If m has no blob or no usable type it sets Err and returns false.
func (e *Encoder) Media(m artel.Media) (mediaType, name string, ok bool) {
	name = Label(m)
	if m.Ref.Digest == "" || m.Size < 0 {
		e.Fail(artel.Invalid, "%s has no blob behind it", name)
		return "", name, false
	}
	mediaType, _, err := mime.ParseMediaType(m.MediaType)
	if err != nil || !strings.Contains(mediaType, "/") {
		e.Fail(artel.Invalid, "%s has no usable media type: %q", name, artel.Shorten(m.MediaType, 80))
		return "", name, false
	}
	return mediaType, name, true
}

// Marshal returns v as JSON without escaping HTML: shorter, and equal to what
// other writers produce, which matters to caches that compare prefixes.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}

// MustMarshal is [Marshal] for values that always have JSON; others become null.
func MustMarshal(v any) json.RawMessage {
	b, err := Marshal(v)
	if err != nil {
		return json.RawMessage("null")
	}
	return b
}
