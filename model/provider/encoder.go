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
}

// NewEncoder returns an encoder of r whose errors have the operation op.
func NewEncoder(op string, r *model.Request, blobs blob.Store) Encoder {
	return Encoder{Body: NewBody(blobs), Failures: Failures{Op: op, Service: r.Service}, Names: r.Names}
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
