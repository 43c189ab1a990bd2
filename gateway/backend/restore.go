// SPDX-License-Identifier: Apache-2.0

package backend

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/artelhq/artel"
)

// A Restorer puts back what [Texts] took out: it replaces refs in the arguments of
// calls by the exact texts that they stand for, so that a client that writes a file
// with a picture in it writes what it read.
type Restorer struct {
	originals map[string]string
	used      func(artel.Ref) // called for each ref that is replaced
}

// Restorer returns the restorer for the answers to a request; nil if there is
// nothing to put back. used is called for each replaced ref.
func (t *Texts) Restorer(used func(artel.Ref)) *Restorer {
	if len(t.originals.of) == 0 {
		return nil
	}
	return &Restorer{t.originals.of, used}
}

const refPrefix = "blob:sha256-"

// refLength is the length of a ref of a blob.
const refLength = len(refPrefix) + 64

func isOneRef(s string) bool { return len(s) == refLength && strings.HasPrefix(s, refPrefix) }

// Whole returns text with the refs replaced. inJSON says that text is JSON, so that the
// texts are escaped as in a string of it.
func (r *Restorer) Whole(text string, inJSON bool) string {
	done, held := r.Piece(text, inJSON)
	return done + held
}

// Piece is Whole for a text that continues. held is the end of text that may be the
// beginning of a ref; the next piece is to begin with it.
func (r *Restorer) Piece(text string, inJSON bool) (done, held string) {
	var out strings.Builder
	for {
		i := strings.Index(text, refPrefix)
		if i < 0 {
			i = len(text) - cutPrefix(text)
			out.WriteString(text[:i])
			return out.String(), text[i:]
		}
		out.WriteString(text[:i])
		text = text[i:]
		if len(text) < refLength {
			if r.begins(text) {
				return out.String(), text
			}
			out.WriteString(refPrefix)
			text = text[len(refPrefix):]
			continue
		}
		if original, ok := r.originals[text[:refLength]]; ok {
			if ref, err := artel.ParseRef(text[:refLength]); err == nil && r.used != nil {
				r.used(ref)
			}
			if inJSON {
				original = escape(original)
			}
			out.WriteString(original)
			text = text[refLength:]
			continue
		}
		out.WriteString(refPrefix)
		text = text[len(refPrefix):]
	}
}

// begins reports whether a ref begins with text.
func (r *Restorer) begins(text string) bool {
	for ref := range r.originals {
		if strings.HasPrefix(ref, text) {
			return true
		}
	}
	return false
}

// cutPrefix returns how many bytes at the end of text may begin a ref.
func cutPrefix(text string) int {
	for n := min(len(refPrefix)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, refPrefix[:n]) {
			return n
		}
	}
	return 0
}

// escape returns s as the inside of a JSON string.
func escape(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(s) != nil { // of a string
		return s
	}
	return string(b.Bytes()[1 : b.Len()-2])
}
