// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"io"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/htmlindex"
)

// An rtfState is the state of a group of RTF, which ends with it.
type rtfState struct {
	look    span
	skip    bool
	twice   bool // in a group with the same text twice, of which only ud is read
	skipUC  int  // characters that stand for one of Unicode where that is not read
	hidden  bool
	deleted bool // by tracked changes
	fonts   bool // it is the table of fonts
	enc     encoding.Encoding
	inTable bool
	outline int       // the level of a heading from 1, or 0
	field   *rtfField // the innermost one
	code    bool      // the text is the code of the field
	item    bool      // the text is an item of the field
}

// An rtfAside is a footnote, a text box or a header while it is read.
type rtfAside struct {
	depth   int    // of its group
	outside []span // the paragraph that it stands in
	end     func(outside, text []span) []span
}

// An rtf is a document in RTF while it is read.
type rtf struct {
	o       *out
	state   rtfState
	stack   []rtfState
	spans   []span
	bytes   []byte // text in a charset, not decoded yet
	drop    int    // characters to drop after one of Unicode
	high    rune   // the first half of a pair
	fonts   map[int]encoding.Encoding
	font    int
	row     []string
	rows    [][]string
	first   bool // the group has just begun
	listOn  bool // the block before was an entry of a list
	notes   notes
	open    []rtfAside
	margins []string // the distinct headers and footers
	size    int      // bytes of them
}

// maxSpans bounds the changes of formatting in one paragraph.
const maxSpans = 1 << 18

// readRTF reads the paragraphs, tables, links and footnotes of an RTF document. A
// paragraph with an outline level is a heading.
func readRTF(src *source, o *out) error {
	most := min(src.size, 4*src.maxText)
	if most < src.size {
		o.truncate("the document is longer than what is read of it")
	}
	data, err := io.ReadAll(io.NewSectionReader(src.at, 0, most))
	if err != nil {
		return err
	}
	r := &rtf{o: o, fonts: map[int]encoding.Encoding{}}
	r.state = rtfState{skipUC: 1, enc: charmap.Windows1252}
	for i := 0; i < len(data); {
		if err := src.step(); err != nil {
			return err
		}
		switch c := data[i]; c {
		case '{':
			r.flush()
			r.drop = 0
			if len(r.stack) >= 2000 {
				return tooDeep()
			}
			r.stack = append(r.stack, r.state)
			r.first = true
			i++
			continue
		case '}':
			r.flush()
			r.drop = 0
			if n := len(r.open); n > 0 && r.open[n-1].depth == len(r.stack) {
				r.endAside()
			}
			if n := len(r.stack); n > 0 {
				r.state = r.stack[n-1]
				r.stack = r.stack[:n-1]
			}
			i++
		case '\\':
			i = r.control(data, i+1)
			continue
		case '\r', '\n':
			i++
		default:
			r.char(c)
			i++
		}
		r.first = false
	}
	for len(r.open) > 0 {
		r.endAside()
	}
	r.paragraph()
	r.endTable()
	for i, s := range r.margins {
		if i == 0 {
			o.comment("headers and footers")
		}
		o.block(guardLines(s))
	}
	o.writeNotes(&r.notes)
	return nil
}

func (r *rtf) char(c byte) {
	if r.drop > 0 {
		r.drop--
		return
	}
	if !r.state.skip {
		r.bytes = append(r.bytes, c)
	}
}

// flush decodes what was collected.
func (r *rtf) flush() {
	if len(r.bytes) == 0 {
		return
	}
	text, err := r.state.enc.NewDecoder().Bytes(r.bytes)
	r.bytes = r.bytes[:0]
	if err == nil {
		r.text(string(text))
	}
}

func (r *rtf) text(s string) {
	if r.state.skip {
		return
	}
	if r.state.item {
		if items := r.state.field.items; len(items[len(items)-1]) < 8192 {
			items[len(items)-1] += s
		}
		return
	}
	if r.state.code {
		if c := &r.state.field.code; c.Len() < 8192 {
			c.WriteString(s)
		}
		return
	}
	if r.state.hidden {
		r.o.omit(OmitHidden, 1)
		return
	}
	if r.state.deleted {
		r.o.omit(OmitDeleted, 1)
		return
	}
	k := r.state.look
	k.text = s
	if r.spans = append(r.spans, k); len(r.spans) > maxSpans {
		r.paragraph()
	}
}

// control reads the control word or sign after a backslash and returns where
// the next thing begins.
func (r *rtf) control(data []byte, i int) int {
	if i >= len(data) {
		return i
	}
	c := data[i]
	if c|0x20 < 'a' || c|0x20 > 'z' {
		first := r.first
		r.first = false
		switch c {
		case '\'':
			if i+2 < len(data) {
				if hi, lo := unhex(int(data[i+1])), unhex(int(data[i+2])); hi >= 0 && lo >= 0 {
					r.char(byte(hi<<4 | lo))
				}
				return i + 3
			}
		case '*':
			if first {
				r.state.skip = true
			}
		case '~':
			r.flush()
			r.text(" ")
		case '_':
			r.char('-')
		case '\\', '{', '}':
			r.char(c)
		case '\n', '\r':
			r.endParagraph()
		}
		return i + 1
	}
	start := i
	for i < len(data) && data[i]|0x20 >= 'a' && data[i]|0x20 <= 'z' && i-start < 40 {
		i++
	}
	word := string(data[start:i])
	start = i
	if i < len(data) && data[i] == '-' {
		i++
	}
	for i < len(data) && data[i] >= '0' && data[i] <= '9' && i-start < 11 {
		i++
	}
	value, err := strconv.Atoi(string(data[start:i]))
	has := err == nil
	if i < len(data) && data[i] == ' ' {
		i++
	}
	if word == "bin" && has && value > 0 {
		return min(i+value, len(data))
	}
	r.word(word, value, has)
	r.first = false
	return i
}

func (r *rtf) word(word string, value int, has bool) {
	if word != "u" {
		r.flush()
	}
	on := !has || value != 0
	switch word {
	case "fonttbl":
		r.state.skip, r.state.fonts = true, true
	case "colortbl", "stylesheet", "info", "pict", "object", "annotation", "listtext", "pntext", "themedata", "xmlnstbl", "datastore", "generator", "nonshppict":
		if word == "pict" && !r.state.skip {
			r.o.omit(OmitPicture, 1)
		}
		if word == "object" {
			r.o.omit(OmitObject, 1)
		}
		if word == "annotation" {
			r.o.omit(OmitHidden, 1)
		}
		if word == "listtext" || word == "pntext" {
			return // what stands before an entry of a list is text
		}
		r.state.skip = true
	case "header", "headerl", "headerr", "headerf", "footer", "footerl", "footerr", "footerf":
		r.aside(r.margin)
	case "shptxt": // of a text box
		r.aside(func(outside, text []span) []span {
			const near = 64 // spans, so that a paragraph of boxes is not read for each
			if !blank(outside[max(0, len(outside)-near):]) {
				outside = append(outside, plain("\n"))
			}
			return append(outside, text...)
		})
	case "deleted":
		r.state.deleted = on
	case "upr": // the same text twice: in a charset, and in Unicode as ud
		r.state.twice, r.state.skip = !r.state.skip, true
	case "ud":
		if r.state.twice {
			r.state.twice, r.state.skip = false, false
		}
	case "shppict":
		r.state.skip = false
	case "field":
		r.state.field = &rtfField{result: rtfNoResult}
	case "fldinst":
		if r.state.field != nil {
			r.state.skip, r.state.code = false, true
		}
	case "fldrslt":
		if r.state.code = false; r.state.field != nil && r.state.look.link == "" {
			r.state.look.link = fieldLink(r.state.field.code.String())
		}
		if f := r.state.field; f != nil {
			if text, ok := f.chosen(); ok {
				r.text(text)
				r.state.skip = true
			}
		}
	case "fftype", "ffres", "ffdefres", "ffl":
		r.formField(word, value)
	case "footnote":
		r.footnote()
	case "ftnalt": // a footnote that is an endnote
	case "f":
		if r.font = value; !r.state.fonts {
			if enc := r.fonts[value]; enc != nil {
				r.state.enc = enc
			}
		}
	case "fcharset":
		if enc := rtfCharset(value); enc != nil && len(r.fonts) < 10_000 {
			r.fonts[r.font] = enc
		}
	case "mac", "pc", "pca":
		r.state.enc = codePage(map[string]int{"mac": 10000, "pc": 437, "pca": 850}[word])
	case "ansicpg":
		if enc, err := htmlindex.Get("windows-" + strconv.Itoa(value)); err == nil {
			r.state.enc = enc
		} else if enc := codePage(value); enc != nil {
			r.state.enc = enc
		}
	case "b":
		r.state.look.bold = on
	case "i":
		r.state.look.italic = on
	case "strike":
		r.state.look.strike = on
	case "v":
		r.state.hidden = on
	case "super":
		r.state.look.rise = 1
	case "sub":
		r.state.look.rise = -1
	case "nosupersub":
		r.state.look.rise = 0
	case "plain":
		r.state.look, r.state.hidden = span{link: r.state.look.link}, false
	case "uc":
		r.state.skipUC = min(max(value, 0), 16)
	case "u":
		r.unicode(rune(uint16(value)))
	case "pard":
		r.state.inTable, r.state.outline = false, 0
	case "intbl":
		r.state.inTable = true
	case "outlinelevel":
		if r.state.outline = 0; value >= 0 && value < 6 {
			r.state.outline = value + 1
		}
	case "par":
		r.endParagraph()
	case "sect", "page":
		if len(r.open) > 0 || r.state.inTable {
			r.text("\n")
		} else {
			r.paragraph()
		}
	case "nestcell":
		r.text(" / ")
	case "nestrow":
		r.text("\n")
	case "line", "column":
		r.text("\n")
	case "tab", "emspace", "enspace", "qmspace":
		r.text(" ")
	case "cell":
		r.cell()
	case "row":
		r.endRow()
	case "emdash":
		r.text("—")
	case "endash":
		r.text("–")
	case "lquote":
		r.text("‘")
	case "rquote":
		r.text("’")
	case "ldblquote":
		r.text("“")
	case "rdblquote":
		r.text("”")
	case "bullet":
		r.text("•")
	}
}

// footnote begins a note: its group has its text.
func (r *rtf) footnote() {
	if len(r.notes.labels) >= maxRelations {
		r.text(" ")
		return // its text stays where it is
	}
	if r.state.skip = len(r.open) >= maxAsides || len(r.stack) == 0; r.state.skip {
		return
	}
	label, text := r.notes.add("")
	r.aside(func(outside, note []span) []span {
		*text = cmp.Or(r.o.inline(note), "(empty)")
		return append(outside, raw("[^"+label+"]"))
	})
}

// maxAsides bounds the notes and boxes in each other.
const maxAsides = 8

// aside begins a text apart from that around it: its group has it. At its end, end
// returns the paragraph around it, from what that has and from the text.
func (r *rtf) aside(end func(outside, text []span) []span) {
	if r.state.skip = len(r.open) >= maxAsides || len(r.stack) == 0; r.state.skip {
		r.o.omit(OmitObject, 1)
		return
	}
	r.open = append(r.open, rtfAside{len(r.stack), r.spans, end})
	r.spans, r.state.look, r.state.hidden, r.state.inTable = nil, span{}, false, false
}

func (r *rtf) endAside() {
	r.flush()
	a := r.open[len(r.open)-1]
	r.open = r.open[:len(r.open)-1]
	r.spans = a.end(a.outside, r.spans)
}

// margin keeps a header or footer.
func (r *rtf) margin(outside, text []span) []span {
	s := r.o.inline(text)
	if s != "" && !slices.Contains(r.margins, s) && len(r.margins) <= 100 && r.size <= 1<<20 {
		r.margins = append(r.margins, s)
		r.size += len(s)
	}
	return outside
}

// endParagraph ends a paragraph, which in a cell or a note is a line.
func (r *rtf) endParagraph() {
	if r.flush(); r.state.inTable || len(r.open) > 0 {
		r.text("\n")
		return
	}
	r.paragraph()
}

func (r *rtf) unicode(c rune) {
	if len(r.bytes) > 0 {
		drop := r.drop
		r.flush()
		r.drop = drop
	}
	switch {
	case c >= 0xD800 && c < 0xDC00:
		r.high = c
	case c >= 0xDC00 && c < 0xE000:
		if r.high != 0 {
			r.text(string((r.high-0xD800)<<10 + (c - 0xDC00) + 0x10000))
		}
		r.high = 0
	default:
		r.text(string(c))
	}
	r.drop = r.state.skipUC
}

func (r *rtf) paragraph() {
	r.flush()
	if r.state.skip || len(r.row) > 0 && blank(r.spans) {
		return
	}
	if !blank(r.spans) {
		r.endTable()
	}
	if r.state.outline > 0 && !blank(r.spans) {
		for i := range r.spans {
			r.spans[i].bold = false
		}
		r.o.heading(r.state.outline, r.spans)
		r.listOn = false
	} else if mark := bullet(r.spans); mark != "" {
		sign := "-"
		if markdownNumber(mark) {
			sign = mark
		}
		r.o.item(0, sign, cutBullet(r.spans, mark), r.listOn)
		r.listOn = true
	} else if !blank(r.spans) {
		r.o.paragraph(r.spans)
		r.listOn = false
	}
	r.spans = nil
}

func (r *rtf) cell() {
	r.flush()
	if r.o.cell() {
		r.row = append(r.row, r.o.inline(r.spans))
	}
	r.spans = nil
}

func (r *rtf) endRow() {
	if len(r.row) > 0 {
		r.rows = append(r.rows, r.row)
	}
	r.row = nil
}

func (r *rtf) endTable() {
	r.endRow()
	r.o.table(r.rows)
	r.rows = nil
}

// rtfCharset returns the charset of a font.
func rtfCharset(n int) encoding.Encoding {
	page := map[int]int{
		0: 1252, 77: 10000, 128: 932, 129: 949, 134: 936, 136: 950, 161: 1253, 162: 1254, 163: 1258, 177: 1255, 178: 1256,
		186: 1257, 204: 1251, 222: 874, 238: 1250,
	}[n]
	if page == 0 {
		return nil
	}
	if enc, err := htmlindex.Get("windows-" + strconv.Itoa(page)); err == nil {
		return enc
	}
	return codePage(page)
}

// codePage returns the charset of a code page that is none of Windows' own.
func codePage(n int) encoding.Encoding {
	switch n {
	case 437:
		return charmap.CodePage437
	case 850:
		return charmap.CodePage850
	}
	name := map[int]string{932: "shift_jis", 936: "gb18030", 949: "euc-kr", 950: "big5", 10000: "macintosh", 65001: "utf-8"}[n]
	enc, err := htmlindex.Get(strings.ToLower(name))
	if err != nil {
		return nil
	}
	return enc
}

// unhex returns the value of a hexadecimal digit, -1 for anything else.
func unhex(c int) int {
	switch {
	case c >= '0' && c <= '9':
		return c - '0'
	case c >= 'a' && c <= 'f':
		return c - 'a' + 10
	case c >= 'A' && c <= 'F':
		return c - 'A' + 10
	}
	return -1
}
