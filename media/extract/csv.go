// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"encoding/csv"
	"errors"
	"io"
	"strings"

	"github.com/artelhq/artel/media"
)

// readCSV reads comma-separated values as one table. The separator is the one
// that the first lines agree on; "sep=;" in the first line, as Excel writes
// it, decides.
func readCSV(src *source, o *out) error {
	text, err := src.text()
	if err != nil {
		return err
	}
	text = strings.TrimPrefix(text, "\uFEFF")
	comma := separator(text)
	if src.info.MediaType == "text/tab-separated-values" {
		comma = '\t'
	}
	if line, rest, _ := strings.Cut(text, "\n"); len(line) <= 6 && strings.HasPrefix(line, "sep=") {
		if sep := strings.TrimRight(line[4:], "\r"); len(sep) == 1 {
			comma, text = rune(sep[0]), rest
		}
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.LazyQuotes, r.FieldsPerRecord, r.ReuseRecord = comma, true, -1, true
	var rows [][]string
	size := int64(0)
	for {
		record, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return errors.Join(errDamaged, err)
		}
		row := make([]string, len(record))
		for i, field := range record {
			if err := src.step(); err != nil {
				return err
			}
			if !src.cell() {
				row = row[:i]
				break
			}
			row[i] = cellLines(field)
			size += int64(len(row[i])) + 3
		}
		rows = append(rows, row)
		if src.cut != "" || size > src.maxText {
			break
		}
	}
	o.table(rows)
	return nil
}

// text returns a text document as UTF-8. What can never find room in the text
// that is made of it is not read.
func (s *source) text() (string, error) {
	most := 4 * s.maxText
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
	return best
}

// evenly returns how many separators each of the first lines has, 0 if they
// differ much. Quoted ones do not count.
func evenly(text string, c rune) int {
	var counts []int
	n, quoted := 0, false
	for _, r := range text[:min(len(text), 16<<10)] {
		switch {
		case r == '"':
			quoted = !quoted
		case quoted:
		case r == c:
			n++
		case r == '\n':
			counts = append(counts, n)
			n = 0
		}
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
