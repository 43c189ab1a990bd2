// SPDX-License-Identifier: Apache-2.0

// Package export writes texts and whole conversations to files that can be read
// without Artel, and reads conversations from ZIP files.
//
// Begin with [DOCX], [HTML] and [Markdown] for one text, and with [ZIP] and
// [ReadZIP] for a conversation.
//
// The same input gives the same bytes. Memory use does not grow with the size of
// pictures and files. A page or document contains no scripts and fetches nothing
// when it is opened. ReadZIP checks formats, numbers, sizes and digests, but texts
// in its result are as untrusted as the author of the file. For the format see
// [ZIP].
package export

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

// A Document is one text to be exported.
type Document struct {
	Title     string
	Text      string    // UTF-8
	MediaType string    // of Text; "" is Markdown. Other text is shown unchanged
	Filename  string    // of Text; its extension may be more specific than MediaType
	Author    string    // "": unknown
	Time      time.Time // when Text was written; zero: unknown
	Language  string    // of Text, as a BCP 47 tag; "": guessed from its letters

	// Open returns the content of a ref in the text; the exporter closes it. The
	// ref is passed unchanged, so one without a conversation means the document's
	// own. For an error of kind NotFound the alternative text is shown; any other
	// error ends the export. nil: no pictures.
	Open Opener
	// Link returns the target of a ref in the exported file: an http or https
	// address, a path relative to the file, or "" for no link. nil: no links.
	Link func(artel.Ref) string
}

// An Opener returns the content of a ref; the caller must close it.
type Opener func(ctx context.Context, ref artel.Ref) (artifact.Content, error)

// isMarkdown reports whether the text is Markdown.
func (d Document) isMarkdown() bool { return isMarkdown(d.MediaType) }

func isMarkdown(mediaType string) bool {
	switch mediaType {
	case "", "text/markdown", "text/x-markdown":
		return true
	}
	return false
}

// link returns the target of a destination in the text: for a ref the result of
// Link, otherwise only web and mail addresses.
func (d Document) link(destination string) (to string, ok bool) {
	if ref, isRef := parseRef(destination); isRef {
		if d.Link != nil {
			destination = d.Link(ref)
		} else {
			destination = ""
		}
		return cleanURL(destination, true)
	}
	return cleanURL(destination, false)
}

// parseRef reads the forms of refs that have a scheme: in a text, a
// destination without one is a path of something else.
func parseRef(destination string) (artel.Ref, bool) {
	for _, scheme := range []string{"artifact:", "artel://", "blob:"} {
		if strings.HasPrefix(destination, scheme) {
			ref, err := artel.ParseRef(destination)
			return ref, err == nil
		}
	}
	return artel.Ref{}, false
}

// nameOf writes a ref as letters and digits, for places that take no others.
func nameOf(ref artel.Ref) string { return hex.EncodeToString([]byte(ref.String())) }

// refOf reads what nameOf wrote.
func refOf(name string) (artel.Ref, bool) {
	b, err := hex.DecodeString(name)
	if err != nil {
		return artel.Ref{}, false
	}
	return parseRef(string(b))
}

// failed adds the operation and the subject to an error that has none.
func failed(op, subject string, err error) error {
	e, ok := err.(*artel.Error)
	switch {
	case err == nil:
		return nil
	case !ok:
		return &artel.Error{Op: op, Subject: subject, Kind: artel.KindOf(err), Err: err}
	case e.Op != "":
		return e
	}
	named := *e
	named.Op = op
	if named.Subject == "" {
		named.Subject = subject
	}
	return &named
}
