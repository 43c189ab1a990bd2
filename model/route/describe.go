// SPDX-License-Identifier: Apache-2.0

package route

import (
	"strings"
	"unicode"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
)

// Limits on names, types and refs in descriptions, in characters. They keep every
// description under 1,000 characters.
const (
	maxName = 200
	maxType = 127
	maxRef  = 128
)

// Describe returns the text that replaces m, which has route r, in four lines: name
// and id, type, size, and what to do about it. It has at most 1,000 characters.
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

// HowToRead returns the line after the description of media with readable text: how
// to call the tool read_artifact for an id or ref.
func HowToRead(id string, l phrase.Locale) string {
	return l.Say(phrase.RouteReadable, map[string]any{"ID": flatten(id, 2*maxRef)})
}

// Unreadable returns the text that replaces m if its bytes are missing or damaged.
func Unreadable(m artel.Media, l phrase.Locale) string {
	return l.Say(phrase.RouteUnreadable, map[string]any{"Name": nameOf(m, l)})
}

// nameOf returns the filename, or else the id, or else a placeholder.
func nameOf(m artel.Media, l phrase.Locale) string {
	if n := flatten(m.Filename, maxName); n != "" {
		return n
	}
	if n := flatten(string(m.Ref.Artifact), maxName); n != "" {
		return n
	}
	if strings.HasPrefix(m.MediaType, "image/") {
		return l.Say(phrase.RouteNoNamePicture, nil)
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

// flatten makes s one line of at most n characters without control and bidi control
// characters.
func flatten(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsControl(r), unicode.IsSpace(r), r == '\u2028', r == '\u2029':
			return ' '
		case unicode.Is(unicode.Bidi_Control, r):
			return -1
		}
		return r
	}, artel.Beginning(s, 8*n))
	s = strings.Join(strings.Fields(s), " ")
	short := artel.Beginning(s, n)
	if len(short) < len(s) {
		short = artel.Beginning(s, n-1) + "…"
	}
	return short
}
