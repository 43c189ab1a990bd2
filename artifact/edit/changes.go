// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// ApplyChanges replays changes on text in order, each on the result of the one
// before. It is of kind [artel.Conflict] if the span of a change is outside the text
// or does not contain Old. A sequence of changes from left to right costs one pass
// over the text.
func ApplyChanges(text string, changes []artel.Change) (string, error) {
	if len(changes) == 0 {
		return text, nil
	}
	var done strings.Builder
	rest, at := text, 0 // the text after done, and its position
	for i, c := range changes {
		if c.Start < at {
			rest, at = done.String()+rest, 0
			done.Reset()
		}
		skip, ok := chars(rest, c.Start-at)
		if !ok || !strings.HasPrefix(rest[skip:], c.Old) || utf8.RuneCountInString(c.Old) != c.End-c.Start {
			return "", artel.Errorf(artel.Conflict, "edit.ApplyChanges", "",
				"change %d of %d does not fit: its old text is not at characters %d to %d", i+1, len(changes), c.Start, c.End)
		}
		done.WriteString(rest[:skip])
		done.WriteString(c.New)
		rest = rest[skip+len(c.Old):]
		at = c.Start + utf8.RuneCountInString(c.New)
	}
	done.WriteString(rest)
	return done.String(), nil
}

// chars returns the length in bytes of the first n code points of s.
func chars(s string, n int) (int, bool) {
	if n < 0 || n > len(s) {
		return 0, false
	}
	for i := range s {
		if n == 0 {
			return i, true
		}
		n--
	}
	return len(s), n == 0
}
