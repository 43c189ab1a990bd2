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

// The kinds. Each API has one table from kind to status.
const (
	Invalid         Kind = "invalid"         // the request is wrong; correct it
	NotFound        Kind = "not_found"       // it does not exist, or the owner may not see it
	Conflict        Kind = "conflict"        // something changed or is busy; read and retry
	Denied          Kind = "denied"          // not allowed
	Unauthenticated Kind = "unauthenticated" // it is not known who asks; log in or send a token
	TooLarge        Kind = "too_large"       // over a limit named in the message
	Unsupported     Kind = "unsupported"     // understood, but not possible here
	Unavailable     Kind = "unavailable"     // a dependency failed; retry later
	Canceled        Kind = "canceled"        // the caller cancelled it, or its deadline passed
	Internal        Kind = "internal"        // a bug or a broken invariant; details are in the log
)

// Kinds returns all kinds, in the order of their declaration.
func Kinds() []Kind {
	return []Kind{Invalid, NotFound, Conflict, Denied, Unauthenticated, TooLarge, Unsupported, Unavailable, Canceled, Internal}
}

// Error returns the kind's name.
func (k Kind) Error() string { return string(k) }

// An Error is a failure at the exported boundary of a package. Programs read
// Kind; users read Subject and Err. Unless Kind is [Internal], the text may be
// shown to the user: lower case, with the name of the thing and the limit.
type Error struct {
	Op      string // "package.Verb"; not part of the text
	Subject string // the id or name of the thing; may be empty
	Kind    Kind
	Code    string // more precise than Kind, e.g. "artifact_not_found"; may be empty
	Err     error  // may be nil
}

// Error returns "subject: cause", or the cause alone without a subject.
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

// CodeOutcomeUnknown is the code of an error of kind Unavailable after which it is not
// known whether something was stored. Repeating the call may store it twice.
const CodeOutcomeUnknown = "outcome_unknown"

// CodeOf returns the first non-empty code in err's chain of [*Error] values, or
// the name of its kind; "" for nil.
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

// Shorten cuts s to at most n bytes at a rune boundary and appends "…" if it cut.
// Control characters and line separators become spaces, so that the result is
// one line.
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

// Visible returns a name without control and bidi control characters, which can
// make it look like another name.
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
