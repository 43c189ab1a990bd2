// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"encoding/csv"
	"errors"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// readCSV reads comma-separated values as one table with the addresses of a sheet: see
// [readXLSX]. The separator is the one that the first lines agree on, unless the first
// line has it, as in "sep=;", which Excel writes.
func readCSV(src *source, o *out) error {
	text, err := src.text(src.maxText)
	if err != nil {
		return err
	}
	text = lineFeeds(text)
	told, text, comma := dialect(text, src.info.MediaType)
	first := strings.Count(told, "\n")
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = comma, true, -1, true
	var rows [][]string
	size, width := int64(0), 0
	lines := 0 // up to the end of the record before
	blanks := 0
	for {
		before := r.InputOffset()
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(errDamaged, err)
		}
		line, _ := r.FieldPos(0)
		blanks += line - lines - 1 // the reader skips them, and they are rows
		lines += strings.Count(text[before:r.InputOffset()], "\n")
		row := make([]string, len(record)+1)
		row[0] = strconv.Itoa(first + len(rows) + blanks + 1)
		width = max(width, len(record))
		for i, field := range record {
			if err := src.step(); err != nil {
				return err
			}
			if !src.cell() {
				row = row[:i+1]
				break
			}
			row[i+1] = cellLines(field)
			size += int64(len(row[i+1])) + 3
		}
		rows = append(rows, row)
		if size > src.maxText {
			src.truncate("the document has more text than fits")
		}
		if src.cells > src.maxCells || size > src.maxText {
			break
		}
	}
	head := make([]string, width+1)
	for i := range width {
		head[i+1] = columnName(i + 1)
	}
	if width > 0 {
		o.rows(width+1, func(yield func([]string) bool) {
			for _, row := range append([][]string{head}, rows...) {
				if !yield(row) {
					return
				}
			}
		})
	}
	return nil
}

// lineFeeds ends lines that a carriage return alone ends, as spreadsheets of old Macs
// write them, with a line feed.
func lineFeeds(s string) string {
	if !strings.Contains(s, "\r") {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// withoutLoneReturns is lineFeeds for the lines that a carriage return alone ends.
func withoutLoneReturns(s string) string {
	if strings.Count(s, "\r") == strings.Count(s, "\r\n") {
		return s
	}
	b := []byte(s)
	for i, c := range b {
		if c == '\r' && (i+1 == len(b) || b[i+1] != '\n') {
			b[i] = '\n'
		}
	}
	return string(b)
}

// dialect returns the line that says the separator, with the mark before it, the text
// after it, and the separator.
func dialect(text, mediaType string) (told, rest string, comma rune) {
	rest = strings.TrimPrefix(text, "\uFEFF")
	line, after, _ := strings.Cut(rest, "\n")
	line = strings.TrimSuffix(line, "\r")
	if quoted := strings.TrimSuffix(strings.TrimPrefix(line, `"`), `"`); len(quoted) == len(line)-2 { // LibreOffice
		line = quoted
	}
	if len(line) == 5 && strings.EqualFold(line[:4], "sep=") && line[4] != '"' && line[4] < utf8.RuneSelf {
		return text[:len(text)-len(after)], after, rune(line[4])
	}
	told = text[:len(text)-len(rest)]
	if mediaType == "text/tab-separated-values" {
		return told, rest, '\t'
	}
	return told, rest, separator(rest)
}

// maxColumns bounds the columns that [Addressed] names.
const maxColumns = 100

// Addressed returns a CSV or TSV text with the number of each row before it, as in
// "17: Tea,4", and the letters of its columns with what their first row has, as in
// "A article, B count". Text is otherwise unchanged. A row is a record, so that it may
// have several lines, or a blank line.
func Addressed(text, mediaType string) (columns, rows string) {
	lines := withoutLoneReturns(text) // of the same length
	told, rest, comma := dialect(lines, mediaType)
	r := csv.NewReader(strings.NewReader(rest))
	r.Comma, r.LazyQuotes = comma, true
	if head, err := r.Read(); err == nil {
		var named []string
		for i, name := range head[:min(len(head), maxColumns)] {
			named = append(named, strings.TrimSpace(columnName(i+1)+" "+artel.Shorten(name, 40)))
		}
		if len(head) > maxColumns {
			named = append(named, "and more to "+columnName(len(head)))
		}
		columns = strings.Join(named, ", ")
	}
	var b strings.Builder
	b.Grow(len(text) + len(text)/8)
	n := 0
	number := func() {
		n++
		b.WriteString(strconv.Itoa(n))
		b.WriteString(": ")
	}
	if strings.HasSuffix(told, "\n") {
		number()
	}
	b.WriteString(text[:len(told)])
	rest = text[len(told):]
	atRow, atField, quoted, skip := true, true, false, false
	for i, c := range rest {
		if atRow {
			number()
			atRow = false
		}
		_, size := utf8.DecodeRuneInString(rest[i:])
		b.WriteString(rest[i : i+size])
		switch {
		case skip:
			skip = false
		case quoted && c == '"':
			next, _ := utf8.DecodeRuneInString(rest[i+1:])
			skip = next == '"' // a doubled one is a character
			quoted = skip || next != comma && next != '\n' && next != '\r' && i+1 < len(rest)
		case quoted:
		case c == '"' && atField:
			quoted = true
		case c == '\n', c == '\r' && !strings.HasPrefix(rest[i+1:], "\n"):
			atRow = true
		}
		atField = !quoted && (c == comma || atRow)
	}
	return columns, b.String()
}

// text returns the first bytes of a text document, at most most, as UTF-8.
func (s *source) text(most int64) (string, error) {
	if s.size > most {
		s.truncate("the document is longer than what is read of it")
	}
	text, err := media.DecodeText(io.NewSectionReader(s.at, 0, min(s.size, most)), s.info.Charset)
	if err != nil {
		return "", err
	}
	s.omit(OmitEncoding, strings.Count(text[:min(len(text), 1<<20)], "\uFFFD"))
	return text, nil
}

// separator returns the separator that divides the first lines most evenly.
func separator(text string) rune {
	best, most := ',', 0
	for _, c := range []rune{',', ';', '\t', '|'} {
		if n := evenly(text, c); n > most {
			best, most = c, n
		}
	}
	if best == ',' && evenly(text, ';') > 0 && decimalCommas(text) {
		return ';'
	}
	return best
}

// decimalCommas reports whether each comma of the first lines is between digits.
func decimalCommas(text string) bool {
	digit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	for i := range min(len(text), 16<<10) {
		if text[i] == ',' && !(digit(i-1) && digit(i+1)) {
			return false
		}
	}
	return true
}

// evenly returns how many separators each of the first lines has, 0 if they
// differ much. Quoted ones do not count.
func evenly(text string, c rune) int {
	var counts []int
	n, length, quoted := 0, 0, false
	for _, r := range text[:min(len(text), 16<<10)] {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == c:
			n++
		case r == '\n':
			if length > 0 { // a blank line has none in any case
				counts = append(counts, n)
			}
			n, length = 0, -1
		case r == '\r':
			length--
		}
		length++
		if len(counts) == 20 {
			break
		}
	}
	if len(counts) == 0 {
		return n
	}
	same := 0
	for _, k := range counts {
		if k == counts[0] {
			same++
		}
	}
	if same*10 < len(counts)*7 {
		return 0
	}
	return counts[0]
}
