// SPDX-License-Identifier: Apache-2.0

package artel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A Kind classifies a failure by what the caller can do about it. A Kind is
// itself an error, so that a test reads errors.Is(err, artel.NotFound).
type Kind string

// The kinds. Every face has one table from kind to outcome.
const (
	Invalid     Kind = "invalid"     // the request is wrong; mend it
	NotFound    Kind = "not_found"   // no such thing, or not yours to see
	Conflict    Kind = "conflict"    // something moved or is busy; read and retry
	Denied      Kind = "denied"      // not allowed
	TooLarge    Kind = "too_large"   // over a limit that the message names
	Unsupported Kind = "unsupported" // understood, but this cannot be done here
	Unavailable Kind = "unavailable" // a dependency failed; retry later
	Canceled    Kind = "canceled"    // the caller stopped it, or its time ran out
	Internal    Kind = "internal"    // our fault; details are in the log
)

// Kinds returns all kinds, in the order of their declaration.
func Kinds() []Kind {
	return []Kind{Invalid, NotFound, Conflict, Denied, TooLarge, Unsupported, Unavailable, Canceled, Internal}
}

// Error returns the kind's name.
func (k Kind) Error() string { return string(k) }

// An Error is a failure at the exported boundary of a room. Kind is for
// programs; Op, Subject and Err are for people. Unless Kind is [Internal], the
// text may be shown to the person who asked: lower case, naming the thing and
// the limit.
type Error struct {
	Op      string // "room.Verb"; not part of the text
	Subject string // what it was about: an id, a name; may be empty
	Kind    Kind
	Code    string // finer than Kind where a program needs it, e.g. "artifact_not_found"; may be empty
	Err     error  // may be nil
}

// Error returns "subject: cause" with the parts that are there.
func (e *Error) Error() string {
	cause := string(e.Kind)
	if e.Err != nil {
		cause = e.Err.Error()
	}
	if e.Subject == "" {
		return cause
	}
	return e.Subject + ": " + cause
}

// Unwrap lets errors.Is find the kind and the cause.
func (e *Error) Unwrap() []error {
	if e.Err == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Err}
}

// Errorf makes an [*Error] with a formatted cause; %w works.
func Errorf(kind Kind, op, subject, format string, args ...any) *Error {
	return &Error{Op: op, Subject: subject, Kind: kind, Err: fmt.Errorf(format, args...)}
}

// KindOf returns the outermost kind in err: [Canceled] for the errors of a
// context, [Internal] for errors that carry none, "" for nil.
func KindOf(err error) Kind {
	if err == nil {
		return ""
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Kind
	}
	if k, ok := errors.AsType[Kind](err); ok {
		return k
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return Canceled
	}
	return Internal
}

// CodeOf returns the first non-empty code in err's chain of [*Error] values,
// else the kind's name; "" for nil.
func CodeOf(err error) string {
	for e, ok := errors.AsType[*Error](err); ok; e, ok = errors.AsType[*Error](e.Err) {
		if e.Code != "" {
			return e.Code
		}
		if e.Err == nil {
			break
		}
	}
	return string(KindOf(err))
}

// Shorten cuts s to at most n bytes on a rune bound and marks the cut with "…".
// Control characters and line separators become spaces, so that the result
// stays on one line.
func Shorten(s string, n int) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "…"
}

// Visible returns a name without the characters that nobody sees and that make
// it look like another: controls, and those that turn the direction of writing.
func Visible(name string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) {
			return -1
		}
		return r
	}, name)
}

type textError string

func (e textError) Error() string { return string(e) }
