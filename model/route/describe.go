// SPDX-License-Identifier: Apache-2.0

package route

import (
	"strings"
	"unicode"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// The longest name and media type in a text for a model, in characters. With
// the longest id they keep every description under 1,000 characters.
const (
	maxName = 200
	maxType = 127
	maxRef  = 128
)

// Describe returns the text that stands in the place of m, which has the route
// r to a model, in four lines: name and id, type, size, and what to do about
// it. It has at most 1,000 characters and as many lines whatever the names.
func Describe(m artel.Media, r artel.Route, l phrase.Locale) string {
	key := phrase.RouteDescribed
	switch r.Reason {
	case artel.ReasonRequestFull:
		key = phrase.RouteCrowded
	case artel.ReasonStale:
		key = phrase.RouteStale
	}
	return l.Say(key, map[string]any{
		"Name": nameOf(m, l),
		"Ref":  refOf(m.Ref, l),
		"Type": flatten(l.TypeName(m.MediaType), maxType),
		"Size": phrase.Size(m.Size),
	})
}

// HowToRead returns the line that follows the description of what has text to
// read: the call of the tool read_artifact for an id or ref.
func HowToRead(id string, l phrase.Locale) string {
	return l.Say(phrase.RouteReadable, map[string]any{"ID": flatten(id, 2*maxRef)})
}

// Unreadable returns the text that stands in the place of m when its bytes are
// missing or damaged.
func Unreadable(m artel.Media, l phrase.Locale) string {
	return l.Say(phrase.RouteUnreadable, map[string]any{"Name": nameOf(m, l)})
}

// nameOf is the filename, else the id, else words for neither.
func nameOf(m artel.Media, l phrase.Locale) string {
	if n := flatten(m.Filename, maxName); n != "" {
		return n
	}
	if n := flatten(string(m.Ref.Artifact), maxName); n != "" {
		return n
	}
	return l.Say(phrase.RouteNoName, nil)
}

func idOf(r artel.Ref, l phrase.Locale) string {
	if id := flatten(string(r.Artifact), maxRef); id != "" {
		return id
	}
	if r.IsBlob() {
		return flatten(string(r.Digest), maxRef)
	}
	return l.Say(phrase.RouteNoID, nil)
}

func refOf(r artel.Ref, l phrase.Locale) string {
	scheme := "artifact:"
	if r.Artifact == "" && r.IsBlob() {
		scheme = "blob:"
	}
	return scheme + idOf(r, l)
}

// flatten makes s one line of at most n characters without anything that
// could forge another line or turn the direction of the text around.
func flatten(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.IsSpace(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, prefix(s, 8*n))
	s = strings.Join(strings.Fields(s), " ")
	short := prefix(s, n)
	if len(short) < len(s) {
		short = prefix(s, n-1) + "…"
	}
	return short
}

// prefix returns the first n characters of s.
func prefix(s string, n int) string {
	for i := range s {
		if n == 0 {
			return s[:i]
		}
		n--
	}
	return s
}
