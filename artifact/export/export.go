// SPDX-License-Identifier: Apache-2.0

// Package export turns what a conversation holds into files that need nothing
// of Artel to be read, and reads the one kind of them that can come back.
//
// Begin with [DOCX], [HTML] and [Markdown] for one text, and with [ZIP] and
// [ReadZIP] for a whole conversation. No other program is needed for any of
// them.
//
// The package promises that the same input gives the same bytes, that what is
// written never grows with the bytes of pictures and files in memory, and that
// a page or a document holds nothing that runs or that is fetched from
// elsewhere when it is opened. What ReadZIP returns is as hostile as its
// author: forms, numbers, sizes and digests are checked, texts are not.
//
// # The format of a ZIP
//
// README.md says to people what is what. conversation.json is one object:
//
//	format          "artel-conversation"
//	format_version  1; a reader refuses higher ones
//	conversation    an [artel.Conversation]
//	messages        all messages of all branches, parents first: [artel.Message]
//	artifacts       by id: {"id", "versions"}, where a version is an
//	                [artel.Version] with "file", the entry that holds its bytes,
//	                "text_file" where these are text in another charset than
//	                UTF-8, for the same text in UTF-8, and "in_blob" where they
//	                were uploaded
//	variables       what macros have set, absent where they have set nothing:
//	                {"message", "value"}, all variables as they are behind that
//	                message
//
// The entries of versions are artifacts/{id}/v{number}{extension}, with the
// bytes as they came. files/ holds once more what is newest on the active
// branch, under names that people gave, and with links between Markdown files
// that lead from one to the other. A reader needs conversation.json and the
// entries that it names, and looks at no others.
//
// There is nothing in it of runs, events, services' keys and owners. What
// people, models and tools wrote is there as it is.
package export

import (
	"context"
	"encoding/hex"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
)

// A Document is one text to be exported, and where it may look.
type Document struct {
	Title     string
	Text      string    // UTF-8
	MediaType string    // of Text; "" is Markdown. Any text that is not Markdown is shown as it is
	Filename  string    // of Text; may say more of its language than MediaType does
	Author    string    // "": unknown
	Time      time.Time // when Text was written; zero: unknown
	Language  string    // of Text, as a BCP 47 tag; "": guessed from its letters

	// Open returns what a ref of the text points to; the result is closed
	// here. A ref comes as it was written, so one without a conversation means
	// the document's own. What is of kind NotFound shows as its alternative
	// text, any other error ends the export. nil: there are no pictures.
	Open Opener
	// Link returns where a ref of the text leads a reader of the file: an http
	// or https address, a path relative to the file, or "" where it leads
	// nowhere. nil: no ref leads anywhere.
	Link func(artel.Ref) string
}

// An Opener returns the bytes that a ref points to, which the caller closes.
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

// link returns where a destination of the text leads: that of a ref through
// Link, and otherwise only what is of the web or of mail.
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

// failed names the operation and the subject of an error. One that names them
// already stays as it is.
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
