// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"cmp"
	"io"
	"strconv"
	"strings"

	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/artelhq/artel"
)

// readHTML reads a page as a browser without scripts would show it.
func readHTML(src *source, o *out) error {
	text, err := src.text(4 * src.maxText) // markup included
	if err != nil {
		return err
	}
	r := io.Reader(strings.NewReader(text))
	if src.info.MediaType != "text/html" || strings.HasPrefix(strings.TrimLeft(text, "\uFEFF \r\n\t"), "<?xml") {
		r = &xhtmlReader{r: r}
	}
	return writeHTML(src.budget, o, r)
}

// maxHTMLDepth is the most that the parser lets elements nest.
const maxHTMLDepth = 512

// writeHTML writes a page in UTF-8.
func writeHTML(b *budget, o *out, r io.Reader) error {
	root, err := html.ParseWithOptions(&htmlReader{Reader: r, b: b}, html.ParseOptionEnableScripting(false))
	if err != nil {
		if b.stopped() == nil && strings.Contains(err.Error(), "open stack of elements") {
			return artel.Errorf(artel.TooLarge, op, "", "the page nests more than %d elements; its text is not read", maxHTMLDepth)
		}
		return err
	}
	w := &htmlWriter{o: o}
	if title := findTag(root, atom.Title, 0); title != nil && findTag(root, atom.H1, 0) == nil {
		o.heading(1, []span{plain(nodeText(title))})
	}
	if err := w.children(root, htmlFormat{}); err != nil {
		return err
	}
	w.flush()
	o.endCode()
	return nil
}

func findTag(n *html.Node, tag atom.Atom, depth int) *html.Node {
	for c := n.FirstChild; c != nil && depth <= maxHTMLDepth; c = c.NextSibling {
		if c.DataAtom == tag && c.Namespace == "" {
			return c
		}
		if f := findTag(c, tag, depth+1); f != nil {
			return f
		}
	}
	return nil
}

func nodeText(n *html.Node) string {
	var b bytes.Buffer
	for c := range n.Descendants() {
		if c.Type == html.TextNode {
			b.WriteString(c.Data)
		}
	}
	return b.String()
}

func htmlAttr(n *html.Node, key string) string {
	for _, a := range n.Attr {
		if a.Key == key && a.Namespace == "" {
			return a.Val
		}
	}
	return ""
}

func hasAttr(n *html.Node, key string) bool {
	for _, a := range n.Attr {
		if a.Key == key {
			return true
		}
	}
	return false
}

// An htmlFormat is the formatting by the enclosing elements.
type htmlFormat struct {
	span
	pre bool
}

type htmlWriter struct {
	o     *out
	spans []span
	depth int
	lists int  // nested lists
	cell  bool // a table's cell is being read: its blocks become lines
}

func (w *htmlWriter) children(n *html.Node, look htmlFormat) error {
	if w.depth++; w.depth > 2*maxHTMLDepth {
		return tooDeep()
	}
	defer func() { w.depth-- }()
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		if err := w.o.step(); err != nil {
			return err
		}
		switch c.Type {
		case html.TextNode:
			w.text(c.Data, look)
		case html.ElementNode:
			if err := w.element(c, look); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *htmlWriter) text(s string, look htmlFormat) {
	if !look.pre && strings.ContainsAny(s, "\n\r\t\f") {
		s = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ", "\f", " ").Replace(s)
	}
	look.span.text = s
	w.spans = append(w.spans, look.span)
}

func (w *htmlWriter) element(n *html.Node, look htmlFormat) error {
	if hasAttr(n, "hidden") || strings.Contains(strings.ReplaceAll(strings.ToLower(htmlAttr(n, "style")), " ", ""), "display:none") {
		w.o.omit(OmitHidden, 1)
		return nil
	}
	switch n.DataAtom {
	case atom.Head, atom.Style, atom.Template, atom.Rt, atom.Rp:
		if n.DataAtom == atom.Rt {
			w.spans = append(w.spans, plain("("+nodeText(n)+")"))
		}
		return nil
	case atom.Script:
		w.o.omit(OmitScript, 1)
		return nil
	case atom.Video, atom.Audio:
		w.o.omit(OmitMedia, 1)
		return nil
	case atom.Iframe, atom.Object, atom.Embed, atom.Frame:
		w.o.omit(OmitObject, 1)
		return nil
	case atom.Math:
		w.spans = append(w.spans, mathElement(mathNode(n, 0), htmlAttr(n, "display") == "block"))
		return nil
	case atom.Svg, atom.Canvas:
		w.o.omit(OmitDiagram, 1)
		return nil
	case atom.Input, atom.Select, atom.Textarea:
		w.control(n)
		return nil
	case atom.Button:
		w.spans = append(w.spans, plain(" "))
		err := w.children(n, look)
		w.spans = append(w.spans, plain(" "))
		return err
	case atom.Br:
		w.spans = append(w.spans, plain("\n"))
		return nil
	case atom.Img:
		w.image(n, look)
		return nil
	case atom.Hr:
		w.flush()
		if !w.cell {
			w.o.block("---")
		}
		return nil
	case atom.B, atom.Strong:
		look.bold = true
	case atom.I, atom.Em, atom.Cite, atom.Var, atom.Dfn:
		look.italic = true
	case atom.S, atom.Strike, atom.Del:
		look.strike = true
	case atom.Code, atom.Kbd, atom.Samp, atom.Tt:
		look.code = !look.pre
	case atom.Sup:
		look.rise = 1
	case atom.Sub:
		look.rise = -1
	case atom.Q:
		w.spans = append(w.spans, plain("“"))
		err := w.children(n, look)
		w.spans = append(w.spans, plain("”"))
		return err
	case atom.A:
		if url := linkOf(htmlAttr(n, "href")); url != "" {
			look.link = url
		}
	default:
		return w.blockElement(n, look)
	}
	return w.children(n, look)
}

// linkOf returns the target of an external link that is no script, or "".
func linkOf(href string) string {
	href = strings.TrimSpace(href)
	scheme, _, _ := strings.Cut(strings.ToLower(href), ":")
	if href == "" || href[0] == '#' || scheme == "javascript" || scheme == "data" || scheme == "vbscript" || len(href) > 4096 {
		return ""
	}
	return href
}

func (w *htmlWriter) image(n *html.Node, look htmlFormat) {
	s := image(cmp.Or(htmlAttr(n, "alt"), htmlAttr(n, "title")), pictureName(htmlAttr(n, "src"), true))
	s.link = look.link
	w.spans = append(w.spans, s)
}

// control writes the visible state of a form control.
func (w *htmlWriter) control(n *html.Node) {
	switch kind := strings.ToLower(htmlAttr(n, "type")); {
	case n.DataAtom == atom.Textarea:
		w.spans = append(w.spans, plain(" "+nodeText(n)+" "))
	case kind == "hidden":
	case kind == "checkbox", kind == "radio":
		mark := "☐ "
		if hasAttr(n, "checked") {
			mark = "☒ "
		}
		w.spans = append(w.spans, plain(mark))
	case kind != "password" && htmlAttr(n, "value") != "":
		w.spans = append(w.spans, plain(" "+htmlAttr(n, "value")+" "))
	default:
		w.o.omit(OmitControl, 1)
	}
}

func (w *htmlWriter) blockElement(n *html.Node, look htmlFormat) error {
	switch n.DataAtom {
	case atom.Html, atom.Span, atom.Font, atom.U, atom.Ins, atom.Small, atom.Big, atom.Mark, atom.Abbr, atom.Time, atom.Label,
		atom.Bdi, atom.Bdo, atom.Ruby, atom.Rb, atom.Data, atom.Wbr, atom.Button, atom.Acronym, atom.Nobr, atom.Output, 0:
		return w.children(n, look) // inline and unknown elements
	}
	w.flush()
	var err error
	switch n.DataAtom {
	case atom.H1, atom.H2, atom.H3, atom.H4, atom.H5, atom.H6:
		look.bold = false
		err = w.children(n, look)
		if w.cell {
			break
		}
		w.o.heading(int(n.Data[1]-'0'), collapse(w.spans))
		w.spans = nil
	case atom.Pre, atom.Listing, atom.Xmp:
		look.pre = true
		err = w.children(n, look)
		if w.cell {
			break
		}
		w.o.codeLine(strings.TrimPrefix(plainText(w.spans), "\n"))
		w.spans = nil
		w.o.endCode()
	case atom.Blockquote:
		if w.cell {
			err = w.children(n, look)
			break
		}
		w.o.push("> ", "> ")
		err = w.children(n, look)
		w.flush()
		w.o.pop()
	case atom.Ul, atom.Ol, atom.Menu, atom.Dir, atom.Dl:
		err = w.list(n, look)
	case atom.Li, atom.Dd: // outside of a list
		err = w.entry(n, look, "-", false)
	case atom.Dt:
		look.bold = true
		err = w.children(n, look)
	case atom.Table:
		err = w.table(n, look)
	default:
		err = w.children(n, look)
	}
	w.flush()
	return err
}

// flush writes the collected text as a paragraph.
func (w *htmlWriter) flush() {
	if w.cell {
		if n := len(w.spans); n > 0 && w.spans[n-1].text != "\n" {
			w.spans = append(w.spans, plain("\n"))
		}
		return
	}
	w.o.paragraph(collapse(w.spans))
	w.spans = nil
}

// collapse merges whitespace as browsers do, and drops it at the ends of lines.
func collapse(spans []span) []span {
	blank := true // what is before ends in a blank
	kept := spans[:0:0]
	for _, s := range spans {
		if !s.raw && s.text != "\n" {
			var b strings.Builder
			for _, r := range s.text {
				space := r == ' ' || r == '\n' || r == '\t' || r == '\r'
				if !space || !blank {
					if space {
						r = ' '
					}
					b.WriteRune(r)
				}
				blank = space
			}
			s.text = b.String()
		} else {
			blank = s.text == "\n"
		}
		kept = append(kept, s)
	}
	return kept
}

func (w *htmlWriter) list(n *html.Node, look htmlFormat) error {
	number, step := 1, 1
	if hasAttr(n, "reversed") {
		number, step = 0, -1
		for c := range n.ChildNodes() {
			if c.DataAtom == atom.Li {
				number++
			}
		}
	}
	if start, err := strconv.Atoi(strings.TrimSpace(htmlAttr(n, "start"))); err == nil && start >= 0 && start <= 1e8 {
		number = start
	}
	w.lists++
	defer func() { w.lists-- }()
	first := true
	for c := n.FirstChild; c != nil; c = c.NextSibling {
		switch {
		case c.Type == html.TextNode && strings.TrimSpace(c.Data) != "": // beside the items
			w.text(c.Data, look)
			w.flush()
			first = true
			continue
		case c.Type != html.ElementNode:
			continue
		case c.DataAtom == atom.Dt:
			if err := w.element(c, look); err != nil {
				return err
			}
			first = true
			continue
		case c.DataAtom != atom.Li && c.DataAtom != atom.Dd:
			if err := w.element(c, look); err != nil {
				return err
			}
			w.flush()
			first = first || c.DataAtom != atom.Ul && c.DataAtom != atom.Ol
			continue
		}
		mark := "-"
		if n.DataAtom == atom.Ol {
			if v, err := strconv.Atoi(htmlAttr(c, "value")); err == nil && v >= 0 && v <= 1e8 {
				number = v
			}
			mark = htmlNumber(number, cmp.Or(htmlAttr(c, "type"), htmlAttr(n, "type")))
		}
		tight := !first || w.lists > 1 && (mark == "-" || mark == "1.")
		if err := w.entry(c, look, mark, tight); err != nil {
			return err
		}
		number += step
		first = false
	}
	return nil
}

// htmlNumber returns the number of an item of a list of a type, as browsers write it.
func htmlNumber(n int, as string) string {
	switch as {
	case "a", "A":
		if n > 0 {
			name := columnName(n) + "."
			if as == "a" {
				name = strings.ToLower(name)
			}
			return name
		}
	case "i":
		return count(n, "lowerRoman") + "."
	case "I":
		return count(n, "upperRoman") + "."
	}
	return strconv.Itoa(n) + "."
}

func (w *htmlWriter) entry(n *html.Node, look htmlFormat, mark string, tight bool) error {
	if w.cell {
		w.spans = append(w.spans, plain(strings.Replace(mark, "-", "•", 1)+" "))
		err := w.children(n, look)
		w.flush()
		return err
	}
	w.flush()
	mark, w.spans = marked(mark, nil) // a letter or a Roman number is text
	w.o.push(mark+" ", strings.Repeat(" ", len(mark)+1))
	w.o.tight = tight
	err := w.children(n, look)
	w.flush()
	w.o.pop()
	w.o.tight = false
	return err
}

// table writes a table. A table with a nested table is a layout table: its cells are
// written one after the other.
func (w *htmlWriter) table(n *html.Node, look htmlFormat) error {
	if w.cell || findTag(n, atom.Table, 0) != nil {
		return w.children(n, look)
	}
	var rows [][]string
	covered := map[int]int{} // column: the row up to which a cell from above covers it
	var trs []*html.Node
	for d := range n.Descendants() {
		switch d.DataAtom {
		case atom.Tr:
			trs = append(trs, d)
		case atom.Caption:
			if err := w.children(d, look); err != nil {
				return err
			}
			w.flush()
		}
	}
	w.cell = true
	defer func() { w.cell = false }()
	for r, tr := range trs {
		var row []string
		for td := tr.FirstChild; td != nil; td = td.NextSibling {
			if td.DataAtom != atom.Td && td.DataAtom != atom.Th {
				continue
			}
			within := true
			for covered[len(row)] > r && within {
				within = w.o.cell()
				row = append(row, "")
			}
			if !within || !w.o.cell() {
				break
			}
			w.spans = nil
			if err := w.children(td, look); err != nil {
				return err
			}
			text := w.o.inline(collapse(w.spans))
			w.spans = nil
			span := min(max(number(htmlAttr(td, "rowspan"))-1, 0), 1000)
			for i := range min(max(number(htmlAttr(td, "colspan")), 1), 64) {
				if span > 0 {
					covered[len(row)] = r + 1 + span
				}
				if i > 0 {
					text = ""
					if !w.o.cell() {
						break
					}
				}
				row = append(row, text)
			}
		}
		rows = append(rows, row)
		if w.o.cells > w.o.maxCells {
			break
		}
	}
	w.o.table(rows)
	return nil
}
