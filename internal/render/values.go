// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"html"
	"html/template"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Bounds of values. Elements of class "cut" say how much was left out.
const (
	maxValue   = 4 << 20  // bytes read of a value
	maxNodes   = 5000     // values in one tree
	maxLevels  = 32       // nested objects and arrays
	maxString  = 200      // runes of a string before it is folded
	maxText    = 64 << 10 // bytes of one string or cell
	maxRows    = 200
	maxColumns = 40
	maxCell    = 500  // runes
	maxDiff    = 5000 // lines
)

// Unit is the unit of an omission.
type Unit string

// The units of omissions.
const (
	Entries Unit = "entries" // members of objects and elements of arrays
	Levels  Unit = "levels"  // nested objects and arrays
	Bytes   Unit = "bytes"   // of a string or a text
	Rows    Unit = "rows"
	Columns Unit = "columns"
	Lines   Unit = "lines"
)

// cut is the element for n omitted units.
func cut(n int, unit Unit, o Options) string {
	text := "… +" + strconv.Itoa(n)
	if o.Cut != nil {
		text = o.Cut(n, unit)
	}
	return `<span class="cut">` + html.EscapeString(text) + `</span>`
}

// shorten returns the first n runes of s.
func shorten(s string, n int) string {
	for i := range s {
		if n--; n < 0 {
			return s[:i]
		}
	}
	return s
}

// JSON renders a JSON text as a folding tree, with the original order of keys
// and spelling of numbers. It returns false if raw is not exactly one JSON
// value, or longer than 4 MiB.
func JSON(raw []byte, o Options) (template.HTML, bool) {
	if len(raw) > maxValue || !json.Valid(raw) {
		return "", false
	}
	t := tree{d: json.NewDecoder(bytes.NewReader(raw)), raw: raw, o: o}
	t.d.UseNumber()
	t.b.WriteString(`<figure class="values">`)
	if err := t.value(0); err != nil {
		return "", false
	}
	t.b.WriteString("</figure>\n")
	return template.HTML(t.b.String()), true //nolint:gosec // tree escapes what it writes
}

// A tree renders JSON values.
type tree struct {
	d     *json.Decoder
	raw   []byte
	o     Options
	b     strings.Builder
	nodes int
}

func (t *tree) value(level int) error {
	token, err := t.d.Token()
	if err != nil {
		return err
	}
	t.nodes++
	switch v := token.(type) {
	case json.Delim:
		return t.members(v == '{', level)
	case string:
		t.text(v)
	case json.Number:
		t.leaf("number", v.String())
	case bool:
		t.leaf(strconv.FormatBool(v), strconv.FormatBool(v))
	default:
		t.leaf("null", "null")
	}
	return nil
}

func (t *tree) leaf(class, text string) {
	t.b.WriteString(`<span class="` + class + `">` + html.EscapeString(shorten(text, maxString)))
	if rest := len(text) - len(shorten(text, maxString)); rest > 0 {
		t.b.WriteString(cut(rest, Bytes, t.o))
	}
	t.b.WriteString(`</span>`)
}

// text folds a long string: the summary is its beginning, the content the
// whole.
func (t *tree) text(s string) {
	head := shorten(s, maxString)
	if head == s {
		t.leaf("string", quote(s))
		return
	}
	t.b.WriteString(`<details><summary><span class="string">` + html.EscapeString(quote(head)) + `…</span></summary><pre tabindex="0">`)
	body := s
	if len(s) > maxText {
		body = strings.ToValidUTF8(s[:maxText], "")
	}
	t.b.WriteString(string(Text(body)))
	if len(body) < len(s) {
		t.b.WriteString(cut(len(s)-len(body), Bytes, t.o))
	}
	t.b.WriteString(`</pre></details>`)
}

// quote quotes a string like JSON, without escaping non-ASCII letters and HTML
// characters.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string can be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// members renders an object or array after its opening bracket.
func (t *tree) members(object bool, level int) error {
	list, class, brackets := "ol", "array", "[]"
	if object {
		list, class, brackets = "ul", "object", "{}"
	}
	if !t.d.More() {
		t.b.WriteString(`<span class="null">` + brackets + `</span>`)
		_, err := t.d.Token()
		return err
	}
	if level >= maxLevels || t.nodes >= maxNodes {
		unit := Levels
		if level < maxLevels {
			unit = Entries
		}
		n, err := t.skip()
		t.b.WriteString(brackets[:1] + cut(n, unit, t.o) + brackets[1:])
		return err
	}
	open := ""
	if level < 2 {
		open = " open"
	}
	t.b.WriteString(`<details` + open + `><summary>` + brackets + `</summary><` + list + ` class="` + class + `">`)
	for t.d.More() {
		if t.nodes >= maxNodes {
			n, err := t.skip()
			t.b.WriteString(`<li>` + cut(n, Entries, t.o) + `</li></` + list + `></details>`)
			return err
		}
		t.b.WriteString(`<li>`)
		if object {
			key, err := t.d.Token()
			if err != nil {
				return err
			}
			t.leaf("key", key.(string))
			t.b.WriteString(`: `)
		}
		if err := t.value(level + 1); err != nil {
			return err
		}
		t.b.WriteString(`</li>`)
	}
	t.b.WriteString(`</` + list + `></details>`)
	_, err := t.d.Token()
	return err
}

// skip reads to the matching closing bracket, and counts the members.
func (t *tree) skip() (int, error) {
	n, depth := 0, 0
	for {
		for depth >= 0 && t.d.More() {
			token, err := t.d.Token()
			if err != nil {
				return n, err
			}
			switch token {
			case json.Delim('{'), json.Delim('['):
				depth++
			default:
			}
			if depth == 0 || depth == 1 && (token == json.Delim('{') || token == json.Delim('[')) {
				n++
			}
		}
		if _, err := t.d.Token(); err != nil {
			return n, err
		}
		if depth--; depth < 0 {
			return n, nil
		}
	}
}

// Table renders comma-separated values, the first row as header. comma is the
// separator; 0 detects it among comma, semicolon and tab. It returns false for
// fewer than two rows or columns, or rows of many different lengths.
func Table(text string, comma rune, o Options) (template.HTML, bool) {
	text = clean(strings.TrimPrefix(text, "\uFEFF"))
	if len(text) > maxValue {
		return "", false
	}
	if comma == 0 {
		comma = separator(text)
	}
	rows, left, ok := readRows(text, comma)
	if !ok {
		return "", false
	}
	var b strings.Builder
	columns := len(rows[0])
	shown := min(columns, maxColumns)
	b.WriteString(openTable(rows[0][:shown]))
	for i, row := range rows {
		if i < 2 {
			b.WriteString([]string{"<thead>", "<tbody>"}[i])
		}
		b.WriteString("<tr>")
		for k := range shown {
			cell := ""
			if k < len(row) {
				cell = row[k]
			}
			if i == 0 {
				b.WriteString(`<th scope="col">` + showCell(cell, o) + `</th>`)
			} else {
				b.WriteString(`<td>` + showCell(cell, o) + `</td>`)
			}
		}
		b.WriteString("</tr>\n")
		if i == 0 {
			b.WriteString("</thead>")
		}
	}
	b.WriteString("</tbody></table>")
	if left > 0 {
		b.WriteString(cut(left, Rows, o))
	}
	if columns > shown {
		b.WriteString(cut(columns-shown, Columns, o))
	}
	b.WriteString("</div>\n")
	return template.HTML(b.String()), true //nolint:gosec // cells are escaped
}

func showCell(s string, o Options) string {
	head := shorten(s, maxCell)
	if len(head) == len(s) {
		return html.EscapeString(s)
	}
	return html.EscapeString(head) + cut(len(s)-len(head), Bytes, o)
}

// separator is the most frequent separator of the first line.
func separator(text string) rune {
	line, _, _ := strings.Cut(text, "\n")
	best, most := ',', 0
	for _, r := range ",;\t" {
		if n := strings.Count(line, string(r)); n > most {
			best, most = r, n
		}
	}
	return best
}

// readRows returns the rows to show and the number of the others. A row may
// lack cells or have one too many; if more than a tenth of the rows do, the
// text is not a table.
func readRows(text string, comma rune) (rows [][]string, left int, ok bool) {
	if comma == '"' || comma == '\r' || comma == '\n' || !utf8.ValidRune(comma) || comma == utf8.RuneError {
		return nil, 0, false
	}
	r := csv.NewReader(strings.NewReader(text))
	r.Comma, r.FieldsPerRecord, r.LazyQuotes = comma, -1, true
	ragged := 0
	for {
		row, err := r.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, 0, false
		}
		if len(rows) > 0 && len(row) != len(rows[0]) {
			ragged++
		}
		if len(rows) > maxRows {
			left++
			continue
		}
		rows = append(rows, row)
	}
	ok = len(rows) > 1 && len(rows[0]) > 1 && ragged*10 <= len(rows)+left
	return rows, left, ok
}

// Diff renders a unified diff, line by line. The marks at the beginning of
// lines stay, so that color is not the only sign.
func Diff(text string, o Options) template.HTML {
	text = lines(clean(text))
	var b strings.Builder
	b.WriteString(`<figure class="diff"><pre tabindex="0"><code class="language-diff">`)
	n, shown := 0, 0
	var body hunk
	for line := range strings.Lines(text) {
		if n++; n > maxDiff || shown+len(line) > maxValue/4 {
			break
		}
		shown += len(line)
		b.WriteString(`<span class="line ` + body.class(line) + `">` + html.EscapeString(line) + `</span>`)
	}
	if rest := text[shown:]; rest != "" {
		b.WriteString(cut(strings.Count(strings.TrimSuffix(rest, "\n"), "\n")+1, Lines, o))
	}
	b.WriteString("</code></pre></figure>\n")
	return template.HTML(b.String()) //nolint:gosec // lines are escaped
}

// A hunk counts its remaining lines, because lines that begin with "---" and
// "+++" name files only outside of hunks.
type hunk struct{ old, new int }

func (h *hunk) class(line string) string {
	if h.old > 0 || h.new > 0 {
		switch {
		case strings.HasPrefix(line, "+"):
			h.new--
			return "added"
		case strings.HasPrefix(line, "-"):
			h.old--
			return "removed"
		case strings.HasPrefix(line, `\`):
			return "meta"
		case strings.HasPrefix(line, " ") || line == "\n":
			h.old--
			h.new--
			return "same"
		}
		*h = hunk{}
	}
	for _, mark := range []string{"--- ", "+++ ", "diff ", "index ", "new file", "deleted file", "similarity ", "rename ", "old mode", "new mode", "Binary ", "\\"} {
		if strings.HasPrefix(line, mark) {
			return "meta"
		}
	}
	switch {
	case strings.HasPrefix(line, "@@"):
		h.read(line)
		return "meta"
	case strings.HasPrefix(line, "+"):
		return "added"
	case strings.HasPrefix(line, "-"):
		return "removed"
	}
	return "same"
}

// read parses the lengths in "@@ -1,2 +3,4 @@".
func (h *hunk) read(line string) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return
	}
	length := func(s string) int {
		_, n, found := strings.Cut(s, ",")
		if !found {
			return 1
		}
		k, err := strconv.Atoi(n)
		if err != nil {
			return 0
		}
		return max(0, k)
	}
	h.old, h.new = length(fields[1]), length(fields[2])
}
