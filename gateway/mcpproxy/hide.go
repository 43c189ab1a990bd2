// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

// shortestSecret is the fewest bytes of a value that is hidden.
const shortestSecret = 4

// A secretForm is one way in which a secret is written in JSON.
type secretForm struct{ from, to []byte }

// secretForms returns the forms of secrets by name, the longest first.
func secretForms(all map[string]string) []secretForm {
	var out []secretForm
	for name, value := range all {
		if len(value) < shortestSecret {
			continue
		}
		to := inside(quoted("[" + name + "]"))
		plain := inside(quoted(value))
		escaped, _ := json.Marshal(value) // <, > and & as numbers
		for _, form := range [][]byte{plain, inside(escaped), bytes.ReplaceAll(plain, []byte("/"), []byte(`\/`)), inASCII(value)} {
			if !slices.ContainsFunc(out, func(f secretForm) bool { return bytes.Equal(f.from, form) }) {
				out = append(out, secretForm{form, to})
			}
		}
	}
	slices.SortFunc(out, func(a, b secretForm) int {
		return cmp.Or(len(b.from)-len(a.from), bytes.Compare(a.from, b.from))
	})
	return out
}

// inside removes the quotes of a JSON string.
func inside(b []byte) []byte { return b[1 : len(b)-1] }

// inASCII writes a text as encoders do that leave no other characters.
func inASCII(text string) []byte {
	var b bytes.Buffer
	for _, r := range text {
		switch {
		case r < 0x80:
			b.Write(inside(quoted(string(r))))
		case r > 0xffff:
			r -= 0x10000
			fmt.Fprintf(&b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
	}
	return b.Bytes()
}

// without returns a message whose strings have names in the place of secrets, and closes s;
// s itself if it has none. Numbers and names of members without quotes do not change.
func without(s *spool, forms []secretForm) (*spool, error) {
	found := false
	for _, f := range forms {
		has, err := s.contains(s.all(), string(f.from))
		if err != nil {
			return s, err
		}
		found = found || has
	}
	if !found {
		return s, nil
	}
	out := &spool{}
	err := hideIn(out, s.reader(s.all()), forms)
	return out, errors.Join(err, s.Close())
}

// hideIn copies JSON with names in the place of secrets.
func hideIn(w io.Writer, r io.Reader, forms []secretForm) error {
	in := bufio.NewReaderSize(r, scanSize+len(forms[0].from))
	out := bufio.NewWriterSize(w, scanSize)
	inString, escaped, ended := false, false, false
next:
	for {
		n := len(forms[0].from)
		if ended { // reading again at the end moves what is left each time
			n = min(n, in.Buffered())
		}
		ahead, err := in.Peek(n)
		ended = ended || errors.Is(err, io.EOF)
		if len(ahead) == 0 {
			if !ended {
				return err
			}
			return out.Flush()
		}
		if inString && !escaped {
			for _, f := range forms {
				if bytes.HasPrefix(ahead, f.from) {
					_, _ = out.Write(f.to) // Flush reports errors
					_, _ = in.Discard(len(f.from))
					continue next
				}
			}
		}
		b := ahead[0]
		_ = out.WriteByte(b)
		_, _ = in.Discard(1)
		switch {
		case escaped:
			escaped = false
		case b == '\\':
			escaped = inString
		case b == '"':
			inString = !inString
		}
	}
}

// hide hides the secrets of the server in a text.
func (u *upstream) hide(text string) string {
	if u.options.Guard == nil {
		return text
	}
	for name, value := range u.options.Guard.Secrets() {
		if len(value) >= shortestSecret {
			text = strings.ReplaceAll(text, value, "["+name+"]")
		}
	}
	return text
}

// hidden hides the secrets of the server in the text of an error.
func (u *upstream) hidden(err error) error {
	if err == nil {
		return nil
	}
	if text := u.hide(err.Error()); text != err.Error() {
		return errors.New(text)
	}
	return err
}

// clean hides the secrets of the server in a message of it.
func (u *upstream) clean(m *message) (*message, error) {
	if u.options.Guard == nil {
		return m, nil
	}
	forms := secretForms(u.options.Guard.Secrets())
	if len(forms) == 0 {
		return m, nil
	}
	s, err := without(m.spool, forms)
	if err != nil || s == m.spool {
		return m, err
	}
	return parse(s)
}
