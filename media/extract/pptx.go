// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"strings"
)

// A pptx reads a presentation.
type pptx struct {
	*archive
	o    *out
	rels map[string]relation // of the slide
}

// readPPTX reads the slides of a presentation in order: the title as a heading, then
// texts, tables and pictures, then notes and comments.
func readPPTX(src *source, o *out) error {
	a, err := openArchive(src)
	if err != nil {
		return err
	}
	main, err := a.mainPart("ppt/presentation.xml")
	if err != nil {
		return err
	}
	rels, err := a.relations(main)
	if err != nil {
		return err
	}
	var slides []string
	err = a.subtrees(main, func(n *node) { slides = append(slides, rels[n.attrIn("relationships", "id")].target) }, "sldId")
	if err != nil {
		return err
	}
	p := &pptx{archive: a, o: o}
	o.pages = len(slides)
	for i, name := range slides {
		if i >= o.maxPages {
			o.truncate("the presentation has more slides than the limit")
			break
		}
		o.marker("slide", i+1)
		if !a.has(name) {
			o.omit(OmitPart, 1)
			continue
		}
		if err := p.slide(name); err != nil {
			return err
		}
	}
	return nil
}

func (p *pptx) slide(name string) error {
	var err error
	if p.rels, err = p.relations(name); err != nil {
		return err
	}
	root, err := p.tree(name)
	if err != nil {
		return err
	}
	if root.attr("show") == "0" {
		p.o.comment("this slide is hidden")
	}
	tree := root.kid("cSld").kid("spTree")
	p.titles(tree)
	p.shapes(tree)
	for _, r := range inOrder(p.rels) {
		switch {
		case r.external || !p.has(r.target):
		case r.kind == "notesSlide":
			if err := p.notes(r.target); err != nil {
				return err
			}
		case r.kind == "video" || r.kind == "audio":
			p.omit(OmitMedia, 1)
		case r.kind == "comments":
			if err := p.comments(r.target); err != nil {
				return err
			}
		}
	}
	return nil
}

// shapes writes the shapes of a slide or of a group.
func (p *pptx) shapes(tree *node) {
	if tree == nil {
		return
	}
	for _, k := range tree.kids {
		switch k.name {
		case "sp":
			if !isTitle(k) && !isFooter(k) {
				p.body(k.kid("txBody"), isListPlaceholder(k))
			}
		case "grpSp":
			p.shapes(k)
		case "pic":
			props := k.find("cNvPr")
			target := p.rels[k.find("blip").attr("embed")]
			p.o.paragraph([]span{image(cmp.Or(props.attr("descr"), props.attr("name")), pictureName(target.target, target.external))})
		case "graphicFrame":
			p.frame(k)
		case "AlternateContent":
			p.shapes(cmp.Or(k.kid("Choice"), k.kid("Fallback")))
		}
	}
}

// titles writes the titles of a slide or of a group, which come first, regardless of
// their positions.
func (p *pptx) titles(tree *node) {
	if tree == nil {
		return
	}
	for _, k := range tree.kids {
		switch {
		case isTitle(k):
			p.o.heading(2, p.allSpans(k.kid("txBody")))
		case k.name == "grpSp":
			p.titles(k)
		case k.name == "AlternateContent":
			p.titles(cmp.Or(k.kid("Choice"), k.kid("Fallback")))
		}
	}
}

func placeholderType(sp *node) string {
	if ph := sp.find("nvPr").kid("ph"); ph != nil {
		return cmp.Or(ph.attr("type"), "body")
	}
	return ""
}

func isTitle(sp *node) bool {
	t := placeholderType(sp)
	return sp.name == "sp" && (t == "title" || t == "ctrTitle")
}

// isFooter reports placeholders that repeat on every slide.
func isFooter(sp *node) bool {
	switch placeholderType(sp) {
	case "dt", "ftr", "sldNum", "hdr", "sldImg":
		return true
	}
	return false
}

// isListPlaceholder reports placeholders whose paragraphs are list items by default.
func isListPlaceholder(sp *node) bool {
	t := placeholderType(sp)
	return t == "body" || t == "obj"
}

// frame writes a table, or counts another object.
func (p *pptx) frame(k *node) {
	tbl := k.find("tbl")
	if tbl == nil {
		switch uri := k.find("graphicData").attr("uri"); {
		case strings.HasSuffix(uri, "/chart"), strings.HasSuffix(uri, "/chartex"):
			p.omit(OmitChart, 1)
			p.o.comment("chart: " + comment(k.find("cNvPr").attr("name")))
		case strings.HasSuffix(uri, "/diagram"):
			p.omit(OmitDiagram, 1)
			p.o.comment("diagram: " + comment(k.find("cNvPr").attr("name")))
		default:
			p.omit(OmitObject, 1)
		}
		return
	}
	var rows [][]string
	for _, tr := range tbl.kids {
		if tr.name != "tr" {
			continue
		}
		var row []string
		for _, tc := range tr.kids {
			if tc.name != "tc" || !p.cell() {
				continue
			}
			text := ""
			if tc.attr("hMerge") != "1" && tc.attr("vMerge") != "1" {
				text = p.inline(p.allSpans(tc.kid("txBody")))
			}
			row = append(row, text)
		}
		rows = append(rows, row)
	}
	p.o.table(rows)
}

// allSpans returns the paragraphs of a text separated by line breaks.
func (p *pptx) allSpans(body *node) []span {
	var spans []span
	if body == nil {
		return nil
	}
	for _, k := range body.kids {
		if k.name == "p" {
			if len(spans) > 0 {
				spans = append(spans, plain("\n"))
			}
			spans = append(spans, p.spans(k)...)
		}
	}
	return spans
}

// body writes the paragraphs of a shape.
func (p *pptx) body(body *node, list bool) {
	if body == nil {
		return
	}
	var counts [9]pptxCount
	follows := false
	paragraphs := 0
	for _, k := range body.kids {
		if k.name == "p" && strings.TrimSpace(plainText(p.spans(k))) != "" {
			paragraphs++
		}
	}
	for _, k := range body.kids {
		if k.name != "p" {
			continue
		}
		spans := p.spans(k)
		props := k.kid("pPr")
		depth := min(max(number(props.attr("lvl")), 0), 8)
		auto := props.kid("buAutoNum")
		bulleted := props.kid("buChar") != nil || props.kid("buBlip") != nil || list && props.kid("buNone") == nil && paragraphs > 1
		if blank(spans) {
			continue
		}
		clear(counts[depth+1:])
		switch {
		case auto != nil:
			mark, text := marked(counts[depth].next(auto.attr("type"), number(auto.attr("startAt"))), spans)
			p.o.item(depth, mark, text, follows)
			follows = true
			continue
		case bulleted:
			p.o.item(depth, "-", spans, follows)
			follows = true
		default:
			p.o.paragraph(spans)
			follows = false
		}
		counts[depth] = pptxCount{}
	}
}

// A pptxCount is where the numbers of a level have counted to. Paragraphs that are numbered
// in another way begin anew.
type pptxCount struct {
	scheme   string
	start, n int
}

// next counts a paragraph and returns its number as the scheme writes it.
func (c *pptxCount) next(scheme string, start int) string {
	start = min(max(start, 1), 1<<15)
	if c.n == 0 || c.scheme != scheme || c.start != start {
		*c = pptxCount{scheme, start, start}
	} else {
		c.n++
	}
	format := "decimal"
	for prefix, f := range map[string]string{
		"alphaLc": "lowerLetter", "alphaUc": "upperLetter", "romanLc": "lowerRoman", "romanUc": "upperRoman", "circleNum": "decimalEnclosedCircle",
		"ea1Chs": "chineseCounting", "ea1Cht": "chineseCounting", "ea1JpnChs": "chineseCounting", "ea1JpnKor": "chineseCounting",
	} {
		if strings.HasPrefix(scheme, prefix) {
			format = f
		}
	}
	s := count(c.n, format)
	switch {
	case strings.HasSuffix(scheme, "ParenBoth"):
		return "(" + s + ")"
	case strings.HasSuffix(scheme, "ParenR"):
		return s + ")"
	case strings.HasSuffix(scheme, "Minus"):
		return s + "-"
	case strings.HasPrefix(scheme, "circleNum"):
		return s
	}
	return s + "."
}

// spans returns the text of a paragraph.
func (p *pptx) spans(n *node) []span {
	var spans []span
	for _, k := range n.kids {
		switch k.name {
		case "r", "fld":
			props := k.kid("rPr")
			s := span{bold: on(props, "b"), italic: on(props, "i"), code: isMono(props.kid("latin").attr("typeface"))}
			if v := props.attr("strike"); v != "" && v != "noStrike" {
				s.strike = true
			}
			if base := number(props.attr("baseline")); base > 0 {
				s.rise = 1
			} else if base < 0 {
				s.rise = -1
			}
			if link := props.kid("hlinkClick"); link != nil {
				if r, ok := p.rels[link.attrIn("relationships", "id")]; ok && r.external {
					s.link = linkOf(r.target)
				}
			}
			if t := k.kid("t"); t != nil {
				s.text = t.allText()
			}
			spans = append(spans, s)
		case "br":
			spans = append(spans, plain("\n"))
		case "m", "oMathPara":
			k.all("oMath", func(m *node) { spans = append(spans, formula(m, k.name == "oMathPara" || k.kid("oMathPara") != nil)) })
		case "oMath":
			spans = append(spans, formula(k, false))
		case "AlternateContent":
			spans = append(spans, p.spans(cmp.Or(k.kid("Choice"), k.kid("Fallback"), &node{}))...)
		}
	}
	return spans
}

func on(n *node, name string) bool {
	v := n.attr(name)
	return v == "1" || v == "true"
}

func (p *pptx) notes(name string) error {
	root, err := p.tree(name)
	if err != nil {
		return err
	}
	var spans []span
	root.all("sp", func(sp *node) {
		if placeholderType(sp) == "body" {
			spans = append(spans, p.allSpans(sp.kid("txBody"))...)
		}
	})
	if !blank(spans) {
		p.o.quote(append([]span{{text: "Notes:", bold: true}, plain(" ")}, spans...))
	}
	return nil
}

func (p *pptx) comments(name string) error {
	root, err := p.tree(name)
	if err != nil {
		return err
	}
	write := func(what string, n *node) {
		text := n.kid("text").allText()
		if body := n.kid("txBody"); body != nil {
			text = plainText(p.allSpans(body))
		}
		if text = strings.Join(strings.Fields(text), " "); text != "" {
			p.o.quote([]span{{text: what, bold: true}, plain(" " + text)})
		}
	}
	root.all("cm", func(cm *node) {
		write("Comment:", cm)
		cm.all("reply", func(r *node) { write("Reply:", r) })
	})
	return nil
}
