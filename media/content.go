// SPDX-License-Identifier: Apache-2.0

package media

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"unicode/utf8"
)

// contentSample is how much of a text its media type is guessed from.
const contentSample = 4 << 10

// textType guesses the media type of text that nobody named. cut says that the
// text goes on after head.
func textType(head []byte, charset string, cut bool) string {
	if len(head) > contentSample {
		head, cut = head[:contentSample], true
	}
	if charset != "utf-8" {
		s, err := DecodeText(bytes.NewReader(head), charset)
		if err != nil {
			return "text/plain"
		}
		head = []byte(s)
	}
	head = bytes.TrimPrefix(head, []byte("\uFEFF"))
	if cut {
		head = head[:len(head)-cutRune(head)]
	}
	body := bytes.TrimLeft(head, " \t\r\n")
	switch {
	case len(body) > 1 && (body[0] == '{' || body[0] == '[') && isJSON(body, cut):
		return "application/json"
	case isTable(head, ',', cut):
		return "text/csv"
	case isTable(head, '\t', cut):
		return "text/tab-separated-values"
	}
	found, ok := lookUp(head)
	if !ok {
		return "text/plain"
	}
	name, _, _ := strings.Cut(found.String(), ";")
	switch name = canonical(name); name {
	case "text/csv", "text/tab-separated-values", "application/json":
		return "text/plain" // the checks above know better
	}
	if !isText(name) {
		return "text/plain" // prose that begins like something else
	}
	return name
}

// isJSON accepts an object or an array; of a cut one, its beginning.
func isJSON(b []byte, cut bool) bool {
	d := json.NewDecoder(bytes.NewReader(b))
	for {
		_, err := d.Token()
		switch {
		case err == nil:
		case cut:
			return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		default:
			return errors.Is(err, io.EOF) && json.Valid(b)
		}
	}
}

// isTable wants what a table has and prose or code has not: at least two
// records with the same number of short fields, of which the first is never
// empty, and no blank after what separates them.
func isTable(b []byte, separator byte, cut bool) bool {
	if cut {
		b = b[:bytes.LastIndexByte(b, '\n')+1]
	}
	if bytes.Count(b, []byte("\n")) == 0 || bytes.IndexByte(b, separator) < 0 {
		return false
	}
	r := csv.NewReader(bytes.NewReader(b))
	r.Comma = rune(separator)
	r.ReuseRecord = true
	for n := 0; ; n++ {
		fields, err := r.Read() // it holds every record to the first one's length
		switch {
		case errors.Is(err, io.EOF):
			return n >= 2
		case err != nil || len(fields) < 2 || separator == '\t' && fields[0] == "":
			return false
		}
		for _, f := range fields {
			if strings.HasPrefix(f, " ") || utf8.RuneCountInString(f) > 80 {
				return false
			}
		}
	}
}
