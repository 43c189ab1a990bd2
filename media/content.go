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

// contentSample is how many bytes of a text its media type is guessed from.
const contentSample = 4 << 10

// textType guesses the media type of undeclared text. cut says that head is not all
// of it.
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
	if !mayBeNamed(body) {
		return "text/plain"
	}
	found, ok := lookUp(head)
	if !ok {
		return "text/plain"
	}
	name, _, _ := strings.Cut(found.String(), ";")
	switch name = Canonical(name); name {
	case "text/csv", "text/tab-separated-values", "application/json":
		return "text/plain" // the checks above have excluded it
	}
	if !isText(name) {
		return "text/plain" // prose with the prefix of another format
	}
	return name
}

// mayBeNamed avoids the library's slow detection for prose: every text format that
// it knows begins with punctuation or a digit, a word and a colon, or one of a few
// words.
func mayBeNamed(body []byte) bool {
	if len(body) == 0 || body[0] >= utf8.RuneSelf {
		return false
	}
	if c := body[0] | 0x20; c < 'a' || c > 'z' {
		return true
	}
	for i, c := range body[:min(len(body), 80)] {
		switch {
		case c == ':':
			return true
		case c|0x20 >= 'a' && c|0x20 <= 'z', c >= '0' && c <= '9', c == '-':
		default:
			return isFormatWord(string(body[:i]))
		}
	}
	return len(body) < 80 && isFormatWord(string(body))
}

func isFormatWord(word string) bool {
	switch word {
	case "WEBVTT", "WARC", "P1", "P2", "P3", "From", "solid":
		return true
	}
	return false
}

// jsonSample is how many bytes of a long text are checked to be JSON.
const jsonSample = 2 << 10

// isJSON reports an object or an array, or the beginning of one.
func isJSON(b []byte, cut bool) bool {
	if !cut && len(b) <= jsonSample {
		return json.Valid(b)
	}
	b = b[:min(len(b), jsonSample)]
	var value json.RawMessage
	err := json.NewDecoder(bytes.NewReader(b)).Decode(&value)
	return err == nil || errors.Is(err, io.ErrUnexpectedEOF)
}

// enoughRecords is the number of records after which a table is certain.
const enoughRecords = 16

// isTable requires properties that prose and code do not have: at least two records
// with the same number of short fields, a first field that is not empty if separated
// by tabs, and no blank after separators.
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
		fields, err := r.Read() // fails if the number of fields differs from the first record
		switch {
		case errors.Is(err, io.EOF):
			return n >= 2
		case n == enoughRecords:
			return true
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
