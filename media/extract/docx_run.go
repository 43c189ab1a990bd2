// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
)

// A docxField is a field whose parts are spread over runs.
type docxField struct {
	code   []byte
	result bool   // between its separator and its end
	link   string // where its result leads
	choice string // in a list of choices, which has no text of its own
	from   int    // the spans before it
}

// A docxLine collects the spans of one paragraph.
type docxLine struct {
	d      *docx
	spans  []span
	base   docxFormat // of the paragraph's style
	link   string
	fields []docxField
}

// runs returns the text of a paragraph. Text boxes that it anchors are put
// into d.boxes.
func (d *docx) runs(p *node) []span {
	st := d.style(p.kid("pPr").kid("pStyle").attr("val"))
	l := &docxLine{d: d, base: st.run}
	if st.heading > 0 || st.code { // what every character of it has says nothing
		l.base.bold, l.base.italic, l.base.code = nil, nil, nil
	}
	l.walk(p)
	return l.spans
}

func (l *docxLine) walk(n *node) {
	for _, k := range n.kids {
		switch k.name {
		case "r":
			l.run(k)
		case "hyperlink":
			before := l.link
			if r, ok := l.d.rels[k.attrIn("relationships", "id")]; ok && r.external {
				l.link = linkOf(r.target)
				if anchor := k.attr("anchor"); anchor != "" && l.link != "" && !strings.Contains(l.link, "#") {
					l.link += "#" + anchor
				}
			}
			l.walk(k)
			l.link = before
		case "fldSimple":
			before := l.link
			l.link = cmp.Or(fieldLink(k.attr("instr")), before)
			l.walk(k)
			l.link = before
		case "del", "moveFrom":
			l.d.omit(OmitDeleted, 1)
		case "oMath":
			l.add(formula(k, false))
		case "oMathPara":
			k.all("oMath", func(m *node) { l.add(formula(m, true)) })
		case "AlternateContent":
			l.walk(cmp.Or(k.kid("Choice"), k.kid("Fallback"), &node{}))
		case "commentReference":
			l.add(l.d.note("comments", "c", k.attr("id")))
		case "pPr", "rPr", "sdtPr", "sdtEndPr", "":
		default: // ins, moveTo, smartTag, sdt, sdtContent, bdo, …
			l.walk(k)
		}
	}
}

func (l *docxLine) add(s span) {
	if slices.ContainsFunc(l.fields, func(f docxField) bool { return !f.result }) {
		return // the code of a field is not its text
	}
	if s.link = l.link; s.link == "" {
		for i := len(l.fields) - 1; i >= 0 && s.link == ""; i-- {
			s.link = l.fields[i].link
		}
	}
	l.spans = append(l.spans, s)
}

// fieldLink returns where a HYPERLINK field leads, if outside.
func fieldLink(code string) string {
	code = strings.TrimSpace(code)
	if len(code) > 4096 {
		return ""
	}
	rest, ok := strings.CutPrefix(code, "HYPERLINK")
	if !ok {
		return ""
	}
	rest = strings.TrimSpace(rest)
	if !strings.HasPrefix(rest, "\"") {
		return ""
	}
	url, _, _ := strings.Cut(rest[1:], "\"")
	return linkOf(url)
}

// run adds the pieces of a run.
func (l *docxLine) run(r *node) {
	props := r.kid("rPr")
	lk := formatOf(props)
	if id := props.kid("rStyle").attr("val"); id != "" {
		lk = lk.over(l.d.style(id).run)
	}
	lk = lk.over(l.base)
	if yes(lk.hidden) {
		l.d.omit(OmitHidden, 1)
		return
	}
	text := func(s string) {
		l.add(span{text: s, bold: yes(lk.bold), italic: yes(lk.italic), strike: yes(lk.strike), code: yes(lk.code), rise: lk.rise})
	}
	l.pieces(r, text)
}

func (l *docxLine) pieces(r *node, text func(string)) {
	for _, k := range r.kids {
		switch k.name {
		case "t":
			text(k.allText())
		case "tab", "ptab":
			text(" ")
		case "br", "cr":
			text("\n")
		case "noBreakHyphen":
			text("\u2011")
		case "sym":
			text(l.symbol(k))
		case "instrText":
			if n := len(l.fields); n > 0 && len(l.fields[n-1].code) < 8192 {
				l.fields[n-1].code = append(l.fields[n-1].code, k.allText()...)
			}
		case "fldChar":
			l.field(k)
		case "footnoteReference":
			l.add(l.d.note("footnotes", "", k.attr("id")))
		case "endnoteReference":
			l.add(l.d.note("endnotes", "e", k.attr("id")))
		case "commentReference":
			l.add(l.d.note("comments", "c", k.attr("id")))
		case "drawing", "pict":
			l.drawing(k)
		case "object":
			l.d.omit(OmitObject, 1)
		case "AlternateContent":
			l.pieces(cmp.Or(k.kid("Choice"), k.kid("Fallback"), &node{}), text)
		case "ruby":
			if base := k.kid("rubyBase"); base != nil {
				base.all("t", func(t *node) { text(t.allText()) })
			}
			if over := k.kid("rt"); over != nil {
				var b strings.Builder
				over.all("t", func(t *node) { b.WriteString(t.allText()) })
				text("(" + b.String() + ")")
			}
		}
	}
}

func (l *docxLine) field(k *node) {
	switch k.attr("fldCharType") {
	case "begin":
		if len(l.fields) < 32 {
			l.fields = append(l.fields, docxField{from: len(l.spans), choice: choiceOf(k.kid("ffData").kid("ddList"))})
		}
		if data := k.kid("ffData"); data != nil {
			if box := data.kid("checkBox"); box != nil {
				mark := "☐ "
				if box.on("checked") || box.kid("checked") == nil && box.on("default") {
					mark = "☒ "
				}
				l.spans = append(l.spans, plain(mark))
			}
		}
	case "separate":
		if n := len(l.fields); n > 0 {
			f := &l.fields[n-1]
			f.result, f.link = true, fieldLink(string(f.code))
		}
	case "end":
		if n := len(l.fields); n > 0 {
			f := l.fields[n-1]
			if l.fields = l.fields[:n-1]; f.choice != "" && blank(l.spans[f.from:]) {
				l.add(plain(f.choice))
			}
		}
	}
}

// choiceOf returns the entry that is chosen in the list of a form field.
func choiceOf(list *node) string {
	if list == nil {
		return ""
	}
	chosen := number(cmp.Or(list.kid("result"), list.kid("default")).attr("val"))
	for _, k := range list.kids {
		if k.name == "listEntry" {
			if chosen == 0 {
				return k.attr("val")
			}
			chosen--
		}
	}
	return ""
}

// symbol returns a character of a symbol font. Those of Word's bullets and
// check boxes are known; others have a meaning only in their font.
func (l *docxLine) symbol(k *node) string {
	code, err := strconv.ParseUint(k.attr("char"), 16, 32)
	if err != nil {
		return ""
	}
	if code >= 0xF000 && code <= 0xF0FF {
		if strings.HasPrefix(k.attr("font"), "Wingdings") {
			switch code & 0xFF {
			case 0xFC, 0xFE:
				return map[uint64]string{0xFC: "✓", 0xFE: "☑"}[code&0xFF]
			case 0xFB, 0xFD:
				return map[uint64]string{0xFB: "✗", 0xFD: "☒"}[code&0xFF]
			case 0xA8, 0x6F:
				return "☐"
			case 0xE0, 0xE8:
				return "→"
			case 0xA7, 0x6C, 0x9F:
				return "•"
			}
		}
		l.d.omit(OmitGlyph, 1)
		return "\uFFFD"
	}
	return string(rune(code))
}

// drawing adds the mark of a picture, or counts what is none.
func (l *docxLine) drawing(n *node) {
	box := false
	n.all("txbxContent", func(b *node) {
		l.d.boxes = append(l.d.boxes, b)
		box = true
	})
	alt, name := "", ""
	if props := n.find("docPr"); props != nil {
		alt = cmp.Or(props.attr("descr"), props.attr("title"))
		name = props.attr("name")
	}
	pictures := 0
	mark := func(id, alt string) {
		if r, ok := l.d.rels[id]; ok && id != "" {
			l.add(image(cmp.Or(alt, name), pictureName(r.target, r.external)))
			pictures++
		}
	}
	n.all("blip", func(b *node) { mark(cmp.Or(b.attr("embed"), b.attr("link")), alt) })
	n.all("imagedata", func(b *node) {
		shape := n.kid("shape")
		mark(b.attr("id"), cmp.Or(shape.attr("alt"), b.attr("title"), alt))
	})
	if pictures > 0 || box {
		return
	}
	switch data := n.find("graphicData"); path.Base(data.attr("uri")) {
	case "chart", "chartex":
		l.d.omit(OmitChart, 1)
		l.add(raw("<!-- chart: " + comment(cmp.Or(alt, name)) + " -->"))
	case "diagram":
		l.d.omit(OmitDiagram, 1)
		l.add(raw("<!-- diagram: " + comment(cmp.Or(alt, name)) + " -->"))
	}
}

// comment makes text that cannot end the comment it stands in.
func comment(s string) string {
	s = strings.Join(strings.Fields(tidy(s)), " ")
	return strings.NewReplacer("<", "(", ">", ")", "--", "- -").Replace(s)
}
