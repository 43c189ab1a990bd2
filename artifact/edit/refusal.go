// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
)

// A RefusalKind is the reason of a refusal.
type RefusalKind string

// The kinds of refusals.
const (
	NotFound  RefusalKind = "not_found"  // the old text has no match
	Ambiguous RefusalKind = "ambiguous"  // the old text has several matches
	Invalid   RefusalKind = "invalid"    // the edit is invalid
	TooCostly RefusalKind = "too_costly" // over a limit that the message names
)

// A Refusal is the error of an edit that was not applied. Message says what to do.
type Refusal struct {
	Edit    int         `json:"edit"` // which edit, from 0
	Kind    RefusalKind `json:"kind"`
	Message string      `json:"message"`
	Places  []Place     `json:"places,omitempty"` // of an ambiguous one: the first MaxPlaces
}

// Error returns the message.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns [artel.TooLarge] for a limit, otherwise [artel.Invalid].
func (r *Refusal) Unwrap() error {
	if r.Kind == TooCostly {
		return artel.TooLarge
	}
	return artel.Invalid
}

func refuse(k RefusalKind, format string, args ...any) *Refusal {
	return &Refusal{Kind: k, Message: fmt.Sprintf(format, args...)}
}

// at sets the edit of a refusal.
func at(i int, err error) error {
	if r, ok := err.(*Refusal); ok {
		r.Edit = i
	}
	return err
}

func tooLong(size, limit int) error {
	return refuse(TooCostly, "the text would grow to %d bytes or more, and at most %d are possible", size, limit)
}

// ambiguous returns a refusal that names the lines of some places.
func ambiguous(count int, places []Place) error {
	const most = 10
	var lines []string
	for _, p := range places {
		n := strconv.Itoa(p.Line)
		if len(lines) > 0 && lines[len(lines)-1] == n {
			continue
		}
		if lines = append(lines, n); len(lines) > most {
			lines[most] = "…"
			break
		}
	}
	noun := "lines"
	if len(lines) == 1 {
		noun = "line"
	}
	r := refuse(Ambiguous, "%d places match; give more of the line: %s %s", count, noun, strings.Join(lines, ", "))
	r.Places = places
	return r
}
