// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
)

// smallest is the least bytes of a preview that has a beginning and an end of the text.
const smallest = 400

// preview returns what a model sees of a text that is kept: what it is, its structure, its
// beginning and its end, in at most limit bytes.
func preview(s *spool, at span, f File, limit int, read string) (string, error) {
	form, err := structure(s, at, f.MediaType, max(limit/5, 120))
	if err != nil {
		return "", err
	}
	lines, err := countLines(s, at)
	if err != nil {
		return "", err
	}
	intro := fmt.Sprintf("[%s, %s bytes, %s lines, kept as %s", f.MediaType, grouped(at.size()), grouped(lines), f.Ref())
	if form != "" {
		intro += ": " + form
	}
	intro += "\n"
	how := read + " with this ref reads on: offset and limit in bytes, grep"
	if f.MediaType == "application/json" {
		how += ", json_path"
	}
	how += "."
	room := limit - len(intro) - len(how) - 100
	if room < smallest/4 {
		return cut(intro+how, limit-1) + "]", nil
	}
	head, err := headOf(s, at, room*2/3)
	if err != nil {
		return "", err
	}
	tail, err := tailOf(s, span{at.from + int64(len(head)), at.to}, room/3)
	if err != nil {
		return "", err
	}
	left := at.size() - int64(len(head)) - int64(len(tail))
	return fmt.Sprintf("%sBeginning (%d bytes) and end (%d bytes); %s]\n\n%s\n\n[… %s bytes …]\n\n%s",
		intro, len(head), len(tail), how, strings.TrimSuffix(head, "\n"), grouped(left), tail), nil
}

// grouped returns a number with commas.
func grouped(n int64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// headOf returns the beginning of a text, up to the end of a line if one is near.
func headOf(s *spool, at span, n int) (string, error) {
	b, err := s.bytes(span{at.from, min(at.from+int64(n), at.to)}, int64(n))
	if err != nil {
		return "", err
	}
	for range utf8.UTFMax - 1 { // a character that was cut
		if r, size := utf8.DecodeLastRune(b); r != utf8.RuneError || size != 1 {
			break
		}
		b = b[:len(b)-1]
	}
	if i := bytes.LastIndexByte(b, '\n'); i > len(b)/2 {
		b = b[:i+1]
	}
	return string(b), nil
}

// tailOf returns the end of a text, likewise.
func tailOf(s *spool, at span, n int) (string, error) {
	b, err := s.bytes(span{max(at.to-int64(n), at.from), at.to}, int64(n))
	if err != nil {
		return "", err
	}
	for len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	if i := bytes.IndexByte(b, '\n'); i >= 0 && i < len(b)/2 {
		b = b[i+1:]
	}
	return string(b), nil
}

func countLines(s *spool, at span) (int64, error) {
	n, last := int64(0), byte('\n')
	buf := make([]byte, scanSize)
	for r := s.reader(at); ; {
		k, err := r.Read(buf)
		n += int64(bytes.Count(buf[:k], []byte{'\n'}))
		if k > 0 {
			last = buf[k-1]
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return n, err
		}
	}
	if last != '\n' {
		n++
	}
	return n, nil
}

// structure describes a text in at most limit bytes: the keys of JSON, the rows and columns
// of a table, the headings of Markdown, the levels of a log.
func structure(s *spool, at span, mediaType string, limit int) (string, error) {
	var out string
	var err error
	switch mediaType {
	case "application/json":
		out, err = jsonStructure(s, at, 4)
	case "text/csv", "text/tab-separated-values":
		out, err = tableStructure(s, at, mediaType)
	default:
		out, err = textStructure(s, at)
	}
	if errors.Is(err, errJSON) {
		err = nil
	}
	return cut(out, limit), err
}

// maxListed is how many names are listed.
const maxListed = 40

// jsonStructure describes a value, and what is in it, some levels deep.
func jsonStructure(s *spool, at span, depth int) (string, error) {
	switch s.kind(at) {
	case '{':
		if depth == 0 {
			return "{…}", nil
		}
		var names []string
		n := 0
		err := s.members(at, func(key string, value span) error {
			if n++; n > maxListed {
				return nil
			}
			key = artel.Shorten(key, 60)
			if k := s.kind(value); k == '{' || k == '[' {
				inside, err := jsonStructure(s, value, depth-1)
				if err != nil {
					return err
				}
				key += ": " + inside
			}
			names = append(names, key)
			return nil
		})
		if n > maxListed {
			names = append(names, fmt.Sprintf("… %d keys", n))
		}
		return "{" + strings.Join(names, ", ") + "}", err
	case '[':
		n, first := 0, ""
		err := s.elements(at, func(i int, value span) (err error) {
			n++
			if i == 0 && depth > 0 {
				first, err = jsonStructure(s, value, depth-1)
			}
			return err
		})
		return strings.TrimSpace(fmt.Sprintf("%d × %s", n, first)), err
	case '"':
		return "text", nil
	case 't', 'f':
		return "boolean", nil
	case 'n':
		return "null", nil
	}
	return "number", nil
}

// maxRow is the most bytes of a row of a table.
const maxRow = 1 << 20

func tableStructure(s *spool, at span, mediaType string) (string, error) {
	first, err := s.bytes(span{at.from, min(at.from+maxRow, at.to)}, maxRow)
	if err != nil {
		return "", err
	}
	r := csv.NewReader(bytes.NewReader(first))
	r.LazyQuotes, r.FieldsPerRecord = true, -1
	if mediaType != "text/csv" {
		r.Comma = '\t'
	}
	columns, err := r.Read()
	if err != nil {
		return "", nil //nolint:nilerr // it is no table
	}
	// A quoted field may have line breaks: rows end at line breaks outside of quotes.
	rows, inside, open := -1, false, false
	buf := make([]byte, scanSize)
	for src := s.reader(at); ; {
		n, err := src.Read(buf)
		for _, b := range buf[:n] {
			switch {
			case b == '"':
				inside = !inside
			case b == '\n' && !inside:
				rows++
				open = false
				continue
			}
			open = true
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return "", err
		}
	}
	if open {
		rows++
	}
	for i, c := range columns {
		columns[i] = artel.Shorten(c, 60)
	}
	shown := columns[:min(len(columns), maxListed)]
	return fmt.Sprintf("%s rows × %d columns: %s", grouped(int64(rows)), len(columns), strings.Join(shown, ", ")), nil
}

// levels are the words that say how serious a line of a log is.
var levels = [...]string{"FATAL", "CRITICAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE"}

// maxHead is how many bytes of a line are searched for its level.
const maxHead = 160

func textStructure(s *spool, at span) (string, error) {
	var counts [len(levels)]int64
	firsts := [len(levels)]int64{}
	var headings []string
	in := bufio.NewReaderSize(s.reader(at), scanSize)
	code := false
	lines, leveled, nHeadings := int64(0), int64(0), 0
	for start := true; ; {
		piece, err := in.ReadSlice('\n')
		if start && len(piece) > 0 {
			lines++
			line := piece[:min(len(piece), maxHead)]
			if l := levelOf(line); l >= 0 {
				leveled++
				if counts[l] == 0 {
					firsts[l] = lines
				}
				counts[l]++
			}
			if bytes.HasPrefix(line, []byte("```")) {
				code = !code
			}
			if rest := bytes.TrimLeft(line, "#"); !code && len(rest) < len(line) && len(line)-len(rest) <= 6 && len(rest) > 1 && rest[0] == ' ' {
				if nHeadings++; nHeadings <= maxListed {
					headings = append(headings, fmt.Sprintf("%s (line %d)", strings.TrimSpace(strings.ToValidUTF8(string(line), "")), lines))
				}
			}
		}
		start = !errors.Is(err, bufio.ErrBufferFull)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil && start {
			return "", err
		}
	}
	switch {
	case leveled > 4 && leveled*10 >= lines:
		var found []string
		for i, n := range counts {
			if n > 0 {
				found = append(found, fmt.Sprintf("%s × %s (first in line %s)", grouped(n), levels[i], grouped(firsts[i])))
			}
		}
		return "a log: " + strings.Join(found, ", "), nil
	case len(headings) > 1:
		if nHeadings > maxListed {
			headings = append(headings, fmt.Sprintf("… %d headings", nHeadings))
		}
		return "headings: " + strings.Join(headings, "; "), nil
	}
	return "", nil
}

// levelOf returns the index of the first level in the beginning of a line; -1: none.
func levelOf(line []byte) int {
	var upper [maxHead]byte
	n := copy(upper[:], line)
	head := upper[:n]
	for i, b := range head {
		if b >= 'a' && b <= 'z' {
			head[i] = b - 'a' + 'A'
		}
	}
	best, at := -1, n
	for i, l := range levels {
		for from := 0; ; {
			k := bytes.Index(head[from:], []byte(l))
			if k < 0 || from+k >= at {
				break
			}
			k += from
			end := k + len(l)
			if (k == 0 || !letter(head[k-1])) && (l == "WARN" || end == n || !letter(head[end])) {
				best, at = i, k
				break
			}
			from = k + 1
		}
	}
	return best
}

func letter(b byte) bool {
	return b >= 'A' && b <= 'Z' || b == '_' || b >= 0x80
}

// cut returns at most n bytes of s and a mark, at the end of a character.
func cut(s string, n int) string {
	switch {
	case len(s) <= n:
		return s
	case n < len("…"):
		return ""
	}
	return strings.ToValidUTF8(s[:n-len("…")], "") + "…"
}
