// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"encoding/xml"
	"slices"
	"strings"

	"github.com/artelhq/artel"
)

// An odt reads an OpenDocument text.
type odt struct {
	*archive
	o        *out
	styles   map[string]*odtStyle
	lists    map[string]*[10]odtLevel // levels of list styles
	counts   odtCounts
	notes    notes
	margins  []*node // headers and footers of page styles
	inList   bool
	formulas int // read from embedded objects
}

type odtStyle struct {
	parent                     string
	bold, italic, strike, code *bool
	rise                       int8
}

// readODT reads an OpenDocument text.
func readODT(src *source, o *out) error {
	a, err := openArchive(src)
	if err != nil {
		return err
	}
	if a.has("META-INF/manifest.xml") {
		sealed := false
		if err := a.subtrees("META-INF/manifest.xml", func(n *node) { sealed = n.find("encryption-data") != nil }); err != nil {
			return err
		}
		if sealed {
			return artel.Errorf(artel.Unsupported, op, src.info.MediaType, "the document is encrypted; save it without a password and upload it again")
		}
	}
	d := &odt{archive: a, o: o, styles: map[string]*odtStyle{}, lists: map[string]*[10]odtLevel{}}
	if a.has("meta.xml") {
		if err := a.subtrees("meta.xml", func(n *node) {
			o.pages = max(number(n.find("document-statistic").attr("page-count")), 0)
		}); err != nil {
			return err
		}
	}
	if a.has("styles.xml") {
		if err := d.part("styles.xml"); err != nil {
			return err
		}
	}
	if err := d.part("content.xml"); err != nil {
		return err
	}
	o.endCode()
	d.writeMargins()
	o.writeNotes(&d.notes)
	return nil
}

// writeMargins writes the distinct paragraphs of headers and footers.
func (d *odt) writeMargins() {
	var seen []string
	for _, m := range d.margins {
		paragraphs(m, func(p *node) {
			s := d.inline(d.spans(p, span{}))
			if s == "" || slices.Contains(seen, s) || len(seen) > 100 {
				return
			}
			if len(seen) == 0 {
				d.o.comment("headers and footers")
			}
			seen = append(seen, s)
			d.o.block(guardLines(s))
		})
	}
}

// part reads the styles and writes the blocks of a part.
func (d *odt) part(name string) error {
	body := false
	return d.scan(name, func(x *xmlReader, e xml.StartElement) error {
		switch e.Name.Local {
		case "text":
			body = body || strings.HasSuffix(e.Name.Space, ":office:1.0")
			return nil
		case "style", "list-style", "p", "h", "list", "table", "frame", "tracked-changes":
		case "header", "footer", "header-left", "footer-left", "header-first", "footer-first": // of a page style
			n, err := x.subtree(e)
			if err == nil && n.attr("display") != "false" && len(d.margins) < maxRelations {
				d.margins = append(d.margins, n)
			}
			return err
		default:
			return nil
		}
		if e.Name.Local != "style" && e.Name.Local != "list-style" && !body {
			return nil
		}
		n, err := x.subtree(e)
		if err != nil {
			return err
		}
		switch n.name {
		case "style":
			if len(d.styles) < maxStyles {
				d.styles[n.attr("name")] = newODTStyle(n)
			}
		case "list-style":
			if len(d.lists) < maxStyles {
				d.lists[n.attr("name")] = newODTLevels(n)
			}
		case "tracked-changes":
			n.all("deletion", func(*node) { d.omit(OmitDeleted, 1) })
		default:
			d.block(n)
		}
		return nil
	})
}

func newODTStyle(n *node) *odtStyle {
	s := &odtStyle{parent: n.attr("parent-style-name")}
	props := n.kid("text-properties")
	set := func(v, yes string) *bool {
		if v == "" {
			return nil
		}
		is := v == yes
		return &is
	}
	s.bold = set(props.attr("font-weight"), "bold")
	s.italic = set(props.attr("font-style"), "italic")
	if v := props.attr("text-line-through-style"); v != "" {
		is := v != "none"
		s.strike = &is
	}
	if v := props.attr("font-name"); v != "" {
		is := isMono(v)
		s.code = &is
	}
	switch v := props.attr("text-position"); {
	case strings.HasPrefix(v, "super"):
		s.rise = 1
	case strings.HasPrefix(v, "sub"):
		s.rise = -1
	}
	return s
}

// apply returns s with the formatting of a style.
func (d *odt) apply(s span, style string) span {
	set := func(to *bool, b *bool) {
		if b != nil {
			*to = *b
		}
	}
	var chain []*odtStyle
	for st := d.styles[style]; st != nil && len(chain) < 16; st = d.styles[st.parent] {
		chain = append(chain, st)
	}
	for i := len(chain) - 1; i >= 0; i-- {
		st := chain[i]
		set(&s.bold, st.bold)
		set(&s.italic, st.italic)
		set(&s.strike, st.strike)
		set(&s.code, st.code)
		s.rise = cmp.Or(st.rise, s.rise)
	}
	return s
}

// isA reports whether a style is, or inherits from, one of the named styles.
func (d *odt) isA(style string, names ...string) bool {
	for range 16 {
		for _, n := range names {
			if style == n {
				return true
			}
		}
		st := d.styles[style]
		if st == nil {
			return false
		}
		style = st.parent
	}
	return false
}

func (d *odt) block(n *node) {
	if n.name != "list" {
		d.inList = false
	}
	switch n.name {
	case "h":
		d.o.heading(max(number(n.attr("outline-level")), 1), d.spans(n, span{}))
	case "p":
		d.paragraph(n)
	case "list":
		d.list(n)
	case "table":
		d.o.table(d.rows(n))
	case "frame": // of a page
		box := n.kid("text-box")
		if box == nil {
			d.o.paragraph(d.frame(n, span{}))
			return
		}
		d.blocks(box)
	default: // a section
		d.blocks(n)
	}
}

func (d *odt) blocks(n *node) {
	for _, k := range n.kids {
		d.block(k)
	}
}

func (d *odt) paragraph(n *node) {
	style := n.attr("style-name")
	switch {
	case d.isA(style, "Preformatted_20_Text"):
		d.o.codeLine(plainText(d.spans(n, span{})))
	case d.isA(style, "Title"):
		d.o.heading(1, d.spans(n, span{}))
	case d.isA(style, "Quotations"):
		d.o.quote(d.spans(n, d.apply(span{}, style)))
	default:
		d.o.paragraph(d.spans(n, d.apply(span{}, style)))
	}
}

func (d *odt) rows(n *node) [][]string {
	var rows [][]string
	n.all("table-row", func(tr *node) {
		var row []string
		for _, tc := range tr.kids {
			if tc.name != "table-cell" && tc.name != "covered-table-cell" || !d.cell() {
				continue
			}
			var parts []string
			d.cellParts(tc, func(p *node, label string) {
				if s := d.inline(d.spans(p, d.apply(span{}, p.attr("style-name")))); s != "" {
					if label != "" {
						s = cellMark(label) + s
					}
					parts = append(parts, s)
				}
			})
			text := strings.Join(parts, "\n")
			row = append(row, text)
			for range d.repeats(number(tc.attr("number-columns-repeated"))-1, text != "") {
				if text == "" || d.cell() {
					row = append(row, text)
				}
			}
		}
		for range max(d.repeats(number(tr.attr("number-rows-repeated")), strings.Join(row, "") != ""), 1) {
			rows = append(rows, row)
			if strings.Join(row, "") == "" || !d.cell() {
				break
			}
		}
	})
	return rows
}

// repeats bounds how often a cell or a row is repeated. What is cut is said if it has text.
func (d *odt) repeats(n int, text bool) int {
	const most = 64
	if n > most && text {
		d.truncate("a table repeats a cell or a row more often than is shown")
	}
	return min(max(n, 0), most)
}

// paragraphs calls f with the paragraphs and headings in n.
func paragraphs(n *node, f func(*node)) {
	for _, k := range n.kids {
		if k.name == "p" || k.name == "h" {
			f(k)
		} else {
			paragraphs(k, f)
		}
	}
}

// paragraphEnd is the text of the span between the paragraphs of a frame or a shape in a
// paragraph.
const paragraphEnd = "\u2029"

// spans returns the text of a paragraph.
func (d *odt) spans(n *node, look span) []span {
	var spans []span
	broken := true // there is no text since the last new line
	for _, s := range d.pieces(n, look) {
		switch {
		case s.text != paragraphEnd:
			broken = broken && strings.TrimSpace(s.text) == ""
			spans = append(spans, s)
		case !broken:
			broken = true
			spans = append(spans, plain("\n"))
		}
	}
	return spans
}

func (d *odt) pieces(n *node, look span) []span {
	var spans []span
	add := func(text string) {
		s := look
		s.text = text
		spans = append(spans, s)
	}
	for _, k := range n.kids {
		switch k.name {
		case "":
			text := k.text
			if strings.ContainsAny(text, "\n\r\t") {
				text = strings.NewReplacer("\n", " ", "\r", "", "\t", " ").Replace(text)
			}
			add(text)
		case "s":
			add(strings.Repeat(" ", min(max(number(k.attr("c")), 1), 100)))
		case "tab":
			add(" ")
		case "line-break":
			add("\n")
		case "span":
			spans = append(spans, d.pieces(k, d.apply(look, k.attr("style-name")))...)
		case "p", "h":
			spans = append(append(append(spans, plain(paragraphEnd)), d.pieces(k, look)...), plain(paragraphEnd))
		case "ruby-text":
			add("(" + k.allText() + ")")
		case "a":
			inner := look
			inner.link = linkOf(k.attr("href"))
			spans = append(spans, d.pieces(k, inner)...)
		case "note":
			label, text := d.notes.add("")
			var parts []string
			k.all("note-body", func(b *node) {
				paragraphs(b, func(p *node) { parts = append(parts, d.inline(d.spans(p, span{}))) })
			})
			*text = cmp.Or(strings.Join(parts, "  \n"), "(empty)")
			spans = append(spans, raw("[^"+label+"]"))
		case "annotation":
			spans = append(spans, d.comment(k))
		case "frame":
			spans = append(spans, d.frame(k, look)...)
		default:
			spans = append(spans, d.pieces(k, look)...)
		}
	}
	return spans
}

// comment keeps what a reviewer says, and returns the mark of it.
func (d *odt) comment(k *node) span {
	label, text := d.notes.add("c")
	var parts []string
	if c := k.kid("creator"); c != nil {
		parts = append(parts, "Comment by "+escape(tidy(c.allText()))+":")
	}
	paragraphs(k, func(p *node) { parts = append(parts, d.inline(d.spans(p, span{}))) })
	*text = cmp.Or(strings.Join(parts, " "), "(empty)")
	return raw("[^" + label + "]")
}

func (d *odt) frame(k *node, look span) []span {
	object := k.kid("object")
	if object != nil {
		if s, ok := d.formula(object); ok {
			return []span{s}
		}
	}
	if img := k.kid("image"); img != nil {
		if object != nil || k.kid("object-ole") != nil { // it shows the object
			d.omit(OmitObject, 1)
		}
		alt := ""
		for _, name := range []string{"title", "desc"} {
			if t := k.kid(name); t != nil && alt == "" {
				alt = t.allText()
			}
		}
		return []span{image(cmp.Or(alt, k.attr("name")), pictureName(img.attr("href"), strings.Contains(img.attr("href"), ":")))}
	}
	if box := k.kid("text-box"); box != nil {
		return d.pieces(box, look)
	}
	d.omit(OmitObject, 1)
	return nil
}

// formula returns the formula of an embedded object, if it is one.
func (d *odt) formula(object *node) (span, bool) {
	math := object.kid("math")
	if name := resolve("", object.attr("href")) + "/content.xml"; math == nil && d.has(name) && d.formulas < maxRelations {
		d.formulas++
		if root, err := d.tree(name); err == nil && root.name == "math" {
			math = root
		}
	}
	if math == nil {
		return span{}, false
	}
	return mathElement(math, math.attr("display") == "block"), true
}
