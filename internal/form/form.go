// SPDX-License-Identifier: Apache-2.0

// Package form reads request bodies and the parts of multipart forms (RFC 7578)
// as streams; it never holds a whole part in memory.
//
// Begin with [Parts]. Errors of the sender are of kind [artel.Invalid] with code
// [CodeMalformed], so that they differ from our own. net/http's forms are not
// used because they keep files in memory or in a temporary folder, and because
// mime/multipart accepts a form that was cut off after a part.
package form

import (
	"bytes"
	"errors"
	"io"
	"iter"
	"mime"
	"mime/multipart"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// CodeMalformed is the error code of broken bodies.
const CodeMalformed = "malformed"

// MaxParts is the maximum number of parts of a form.
const MaxParts = 200

// A Part is one field or file of a form. Its body can be read once, before the
// next part is asked for.
type Part struct {
	Name        string // of the field
	Filename    string // "": not a file, or a file without a name
	Path        string // the name as it was sent, for the files of a folder with its folders; may lead anywhere
	ContentType string // as declared; may be empty
	io.Reader
}

// Parts yields the parts of a form in order. The sequence ends at the closing
// boundary, or yields one error and ends: if contentType is not
// multipart/form-data, if the body is broken or cut off, if a name is not
// UTF-8, and, of kind [artel.TooLarge], after [MaxParts].
func Parts(body io.Reader, contentType string) iter.Seq2[Part, error] {
	return func(yield func(Part, error) bool) {
		major, params, err := mime.ParseMediaType(contentType)
		boundary := params["boundary"]
		if err != nil || major != "multipart/form-data" || boundary == "" {
			yield(Part{}, malformed("the body is not multipart/form-data"))
			return
		}
		end := &watch{r: body, mark: []byte("--" + boundary + "--")}
		parts := multipart.NewReader(end, boundary)
		for n := 0; ; n++ {
			p, err := parts.NextPart()
			if end.seen && errors.Is(err, io.EOF) {
				return
			}
			part, err := partOf(p, err, n)
			if !yield(part, err) || err != nil {
				return
			}
		}
	}
}

func partOf(p *multipart.Part, err error, n int) (Part, error) {
	switch {
	case err != nil:
		return Part{}, malformed("the multipart body is broken: " + artel.Shorten(err.Error(), 200))
	case n == MaxParts:
		return Part{}, artel.Errorf(artel.TooLarge, "form.Parts", "", "a form holds at most %d files and fields; send the rest in another", MaxParts)
	case !utf8.ValidString(p.FileName()) || !utf8.ValidString(p.FormName()):
		return Part{}, malformed("the name of a file or field is not UTF-8")
	}
	return Part{p.FormName(), p.FileName(), sentName(p), p.Header.Get("Content-Type"), Sent(p)}, nil
}

// sentName returns the file name of a part with its folders, which FileName drops.
func sentName(p *multipart.Part) string {
	_, params, err := mime.ParseMediaType(p.Header.Get("Content-Disposition"))
	if name := params["filename"]; err == nil && utf8.ValidString(name) {
		return name
	}
	return p.FileName()
}

// Sent returns r with read errors attributed to the sender: reading a body
// fails because the client left or broke its framing.
func Sent(r io.Reader) io.Reader { return sent{r} }

type sent struct{ io.Reader }

func (s sent) Read(p []byte) (int, error) {
	n, err := s.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = malformed("the body broke off: " + artel.Shorten(err.Error(), 200))
	}
	return n, err
}

func malformed(text string) error {
	return &artel.Error{Op: "form.Parts", Kind: artel.Invalid, Code: CodeMalformed, Err: errors.New(text)}
}

// A watch notes whether a mark was read: the closing boundary, without which a
// form was cut off.
type watch struct {
	r    io.Reader
	mark []byte
	tail []byte // the last bytes, in case the mark comes in two reads
	seen bool
}

func (w *watch) Read(p []byte) (int, error) {
	n, err := w.r.Read(p)
	if w.seen || n == 0 {
		return n, err
	}
	keep := len(w.mark) - 1
	w.tail = append(w.tail, p[:min(n, keep)]...)
	w.seen = bytes.Contains(w.tail, w.mark) || bytes.Contains(p[:n], w.mark)
	if n >= keep {
		w.tail = append(w.tail[:0], p[n-keep:n]...)
	} else {
		w.tail = w.tail[max(0, len(w.tail)-keep):]
	}
	return n, err
}
