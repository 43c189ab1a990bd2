// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"strings"

	"github.com/artelhq/artel"
)

// readPDF reads the text of a PDF page by page, in the order in which the
// pages write it. Headings, paragraphs, lists and tables are not in a PDF; they
// are concluded from sizes, distances and columns.
func readPDF(src *source, o *out) error {
	f, err := openPDF(src)
	if err != nil {
		return err
	}
	pages, err := f.pageList()
	if err != nil {
		return err
	}
	o.pages = len(pages)
	w := &pdfWriter{o: o}
	var waiting []*pdfLines
	for n, page := range pages {
		if n >= o.maxPages {
			o.truncate("the document has more pages than the limit")
			break
		}
		lines, err := f.pageLines(page, n+1)
		if err != nil {
			return err
		}
		if w.body == 0 { // what size the text has shows after a few pages
			waiting = append(waiting, lines)
			if n < 7 && n+1 < len(pages) && n+1 < o.maxPages {
				continue
			}
			w.body = bodySize(waiting)
			for _, l := range waiting {
				w.page(l)
			}
			waiting = nil
			continue
		}
		w.page(lines)
		if o.full {
			return errFull
		}
	}
	for _, l := range waiting {
		w.page(l)
	}
	o.endCode()
	return nil
}

// A pdfNode is a page with what it inherits.
type pdfNode struct {
	dict      pdfDict
	resources pdfDict
	rotate    int
}

// pageList walks the tree of pages.
func (f *pdfFile) pageList() ([]pdfNode, error) {
	var pages []pdfNode
	seen := map[pdfRef]bool{}
	var walk func(o any, parent pdfNode, depth int) error
	walk = func(o any, parent pdfNode, depth int) error {
		if err := f.step(); err != nil {
			return err
		}
		if ref, ok := o.(pdfRef); ok {
			if seen[ref] {
				return nil
			}
			seen[ref] = true
		}
		d := f.dict(o)
		if d == nil || depth > pdfDepth || len(pages) > maxPDFObjects {
			return nil
		}
		n := pdfNode{dict: d, resources: parent.resources, rotate: parent.rotate}
		if r := f.dict(d["Resources"]); r != nil {
			n.resources = r
		}
		if r, ok := f.get(d["Rotate"]).(int); ok {
			n.rotate = ((r % 360) + 360) % 360
		}
		kids := f.list(d["Kids"])
		if kids == nil {
			if f.name(d["Type"]) != "Pages" {
				pages = append(pages, n)
			}
			return nil
		}
		for _, k := range kids {
			if err := walk(k, n, depth+1); err != nil {
				return err
			}
		}
		return nil
	}
	root := f.dict(f.trailer["Root"])
	if err := walk(root["Pages"], pdfNode{}, 0); err != nil {
		return nil, err
	}
	if len(pages) == 0 {
		return nil, artel.Errorf(artel.Invalid, op, f.info.MediaType, "the document has no pages that can be found; open it in the program that made it and save it again")
	}
	return pages, nil
}

// pageLines reads the text of a page as lines.
func (f *pdfFile) pageLines(n pdfNode, number int) (*pdfLines, error) {
	p := &pdfPage{f: f}
	p.state = pdfState{ctm: turn(n.rotate), scale: 1}
	data, err := f.contents(n.dict["Contents"])
	if err == nil {
		err = p.run(data, n.resources)
	}
	if err != nil {
		if err := f.fatal(err); err != nil {
			return nil, err
		}
		f.omit(OmitPage, 1)
	}
	f.omit(OmitGlyph, p.unknown)
	if len(p.chunks) == 0 && p.pictures > 0 {
		f.omit(OmitScan, 1)
	} else {
		f.omit(OmitPicture, p.pictures)
	}
	f.links(n, p.chunks)
	return &pdfLines{number: number, lines: buildLines(p.chunks), fields: f.fields(n)}, nil
}

func turn(degrees int) matrix {
	switch degrees {
	case 90:
		return matrix{0, -1, 1, 0, 0, 0}
	case 180:
		return matrix{-1, 0, 0, -1, 0, 0}
	case 270:
		return matrix{0, 1, -1, 0, 0, 0}
	}
	return identity
}

// contents joins the streams of a page.
func (f *pdfFile) contents(o any) ([]byte, error) {
	list := f.list(o)
	if list == nil {
		list = []any{o}
	}
	var data []byte
	for _, o := range list {
		s, ok := f.get(o).(*pdfStream)
		if !ok {
			continue
		}
		ref, _ := o.(pdfRef)
		b, err := f.unpack(s, ref)
		if err != nil {
			return data, err
		}
		if len(data)+len(b) > maxPDFStream {
			return data, artel.Errorf(artel.TooLarge, op, "", "a page of the document is larger than %d bytes", maxPDFStream)
		}
		data = append(append(data, b...), '\n')
	}
	return data, nil
}

// links sets where the text under the link annotations of a page leads.
func (f *pdfFile) links(n pdfNode, chunks []chunk) {
	for i, o := range f.list(n.dict["Annots"]) {
		if i > 2000 || f.step() != nil {
			return
		}
		d := f.dict(o)
		uri, _ := f.get(f.dict(d["A"])["URI"]).(pdfString)
		r, ok := floats(f.list(d["Rect"]), 4)
		if uri == "" || !ok || len(uri) > 4096 {
			continue
		}
		m := turn(n.rotate)
		x0, y0 := m.point(r[0], r[1])
		x1, y1 := m.point(r[2], r[3])
		x0, x1, y0, y1 = min(x0, x1), max(x0, x1), min(y0, y1), max(y0, y1)
		for k := range chunks {
			c := &chunks[k]
			if f.step() != nil {
				return
			}
			if mid := (c.x + c.end) / 2; mid >= x0 && mid <= x1 && c.y+c.size/3 >= y0 && c.y <= y1 {
				c.link = linkOf(pdfText(uri))
			}
		}
	}
}

// fields returns what the form fields of a page hold.
func (f *pdfFile) fields(n pdfNode) []span {
	var spans []span
	for i, o := range f.list(n.dict["Annots"]) {
		if i > 5000 {
			break
		}
		d := f.dict(o)
		if f.name(d["Subtype"]) != "Widget" {
			continue
		}
		parent := f.dict(d["Parent"])
		value := f.get(cmp.Or(d["V"], parent["V"]))
		name, _ := f.get(cmp.Or(d["TU"], d["T"], parent["TU"], parent["T"])).(pdfString)
		text := ""
		switch v := value.(type) {
		case pdfString:
			text = pdfText(v)
		case pdfName:
			text = string(v)
		}
		if strings.TrimSpace(text) != "" && len(text) < 64<<10 {
			spans = append(spans, plain(strings.TrimSpace(pdfText(name)+": "+text)))
		}
	}
	return spans
}
