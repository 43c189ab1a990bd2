// SPDX-License-Identifier: Apache-2.0

package export_test

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"
)

// A node is an element of a part, with names as "prefix:local" where the
// prefixes are those that everybody uses.
type node struct {
	name  string
	attrs map[string]string
	kids  []*node
	text  string
}

var prefixes = map[string]string{
	"http://schemas.openxmlformats.org/wordprocessingml/2006/main":           "w",
	"http://schemas.openxmlformats.org/officeDocument/2006/relationships":    "r",
	"http://schemas.openxmlformats.org/drawingml/2006/wordprocessingDrawing": "wp",
	"http://schemas.openxmlformats.org/drawingml/2006/main":                  "a",
	"http://schemas.openxmlformats.org/drawingml/2006/picture":               "pic",
	"http://schemas.microsoft.com/office/word/2010/wordml":                   "w14",
	"http://schemas.openxmlformats.org/markup-compatibility/2006":            "mc",
}

func name(n xml.Name) string {
	if p := prefixes[n.Space]; p != "" {
		return p + ":" + n.Local
	}
	return n.Local
}

// readPart parses one part.
func readPart(b []byte) (*node, error) {
	d := xml.NewDecoder(bytes.NewReader(b))
	root := &node{}
	stack := []*node{root}
	for {
		t, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		top := stack[len(stack)-1]
		switch t := t.(type) {
		case xml.StartElement:
			n := &node{name: name(t.Name), attrs: map[string]string{}}
			for _, a := range t.Attr {
				if _, twice := n.attrs[name(a.Name)]; twice {
					return nil, fmt.Errorf("%s has two attributes %s", n.name, name(a.Name))
				}
				n.attrs[name(a.Name)] = a.Value
			}
			top.kids = append(top.kids, n)
			stack = append(stack, n)
		case xml.EndElement:
			stack = stack[:len(stack)-1]
		case xml.CharData:
			top.text += string(t)
		}
	}
	if len(root.kids) != 1 {
		return nil, fmt.Errorf("%d roots", len(root.kids))
	}
	return root.kids[0], nil
}

// all visits n and everything in it.
func (n *node) all(visit func(*node)) {
	visit(n)
	for _, k := range n.kids {
		k.all(visit)
	}
}

// find returns the elements of a name.
func (n *node) find(name string) (found []*node) {
	n.all(func(n *node) {
		if n.name == name {
			found = append(found, n)
		}
	})
	return found
}

// order is what ECMA-376 allows in an element, in its order.
var order = map[string]string{
	"w:document":    "w:body",
	"w:p":           "w:pPr w:r|w:hyperlink|w:sdt|w:fldSimple*",
	"w:hyperlink":   "w:r|w:sdt*",
	"w:fldSimple":   "w:r*",
	"w:r":           "w:rPr w:t|w:tab|w:br|w:drawing*",
	"w:pPr":         "w:pStyle w:keepNext w:keepLines w:numPr w:pBdr w:shd w:spacing w:ind w:contextualSpacing w:jc w:outlineLvl",
	"w:rPr":         "w:rStyle w:rFonts w:b w:bCs w:i w:iCs w:strike w:noProof w:color w:sz w:szCs w:u w:shd w:lang",
	"w:numPr":       "w:ilvl w:numId",
	"w:pBdr":        "w:top w:left w:bottom w:right",
	"w:tbl":         "w:tblPr! w:tblGrid! w:tr*",
	"w:tblPr":       "w:tblStyle w:tblW w:tblInd w:tblBorders w:tblLayout w:tblCellMar w:tblLook",
	"w:tblBorders":  "w:top w:left w:bottom w:right w:insideH w:insideV",
	"w:tblCellMar":  "w:top w:left w:bottom w:right",
	"w:tblGrid":     "w:gridCol*",
	"w:tr":          "w:trPr w:tc*",
	"w:trPr":        "w:cantSplit w:tblHeader",
	"w:tc":          "w:tcPr! w:p*",
	"w:tcPr":        "w:tcW w:shd",
	"w:sdt":         "w:sdtPr! w:sdtContent!",
	"w:sdtPr":       "w:id w14:checkbox",
	"w14:checkbox":  "w14:checked w14:checkedState w14:uncheckedState",
	"w:sectPr":      "w:footerReference w:pgSz w:pgMar",
	"w:styles":      "w:docDefaults w:style*",
	"w:style":       "w:name! w:basedOn w:next w:uiPriority w:semiHidden w:qFormat w:pPr w:rPr w:tblPr",
	"w:numbering":   "w:abstractNum* w:num*",
	"w:abstractNum": "w:multiLevelType w:lvl*",
	"w:lvl":         "w:start w:numFmt w:suff w:lvlText w:lvlJc w:pPr w:rPr",
	"w:num":         "w:abstractNumId! w:lvlOverride*",
	"w:settings":    "w:zoom w:defaultTabStop w:characterSpacingControl w:compat w:themeFontLang",
	"w:font":        "w:altName w:family w:pitch",
	"wp:inline":     "wp:extent! wp:docPr! wp:cNvGraphicFramePr a:graphic!",
	"pic:pic":       "pic:nvPicPr! pic:blipFill! pic:spPr!",
	"pic:spPr":      "a:xfrm a:prstGeom",
}

// checkOrder holds the children of n to the order: each at most once, unless
// it has a star, and at least once where it has an exclamation mark.
func checkOrder(n *node) error {
	rule, ok := order[n.name]
	if !ok {
		return nil
	}
	i := 0
	for step := range strings.FieldsSeq(rule) {
		names := strings.Split(strings.TrimRight(step, "*!"), "|")
		count := 0
		for i < len(n.kids) && slices.Contains(names, n.kids[i].name) && (count == 0 || strings.HasSuffix(step, "*")) {
			i++
			count++
		}
		if count == 0 && strings.HasSuffix(step, "!") {
			return fmt.Errorf("%s without %s", n.name, names[0])
		}
	}
	if i < len(n.kids) {
		return fmt.Errorf("%s has %s where it must not be", n.name, n.kids[i].name)
	}
	return nil
}

// checkDOCX says what an office program would refuse in a file, or leave out.
func checkDOCX(file string) error {
	z, err := zip.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		return err
	}
	parts := map[string][]byte{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			return err
		}
		if _, twice := parts[f.Name]; twice {
			return fmt.Errorf("%s: twice", f.Name)
		}
		if parts[f.Name], err = io.ReadAll(r); err != nil {
			return fmt.Errorf("%s: %w", f.Name, err)
		}
	}
	if len(z.File) == 0 || z.File[0].Name != "[Content_Types].xml" {
		return errors.New("the content types do not come first")
	}
	trees := map[string]*node{}
	for name, b := range parts {
		if path.Ext(name) != ".xml" && path.Ext(name) != ".rels" {
			continue
		}
		if trees[name], err = readPart(b); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var wrong error
		trees[name].all(func(n *node) {
			if err := checkOrder(n); err != nil {
				wrong = err
			}
		})
		if wrong != nil {
			return fmt.Errorf("%s: %w", name, wrong)
		}
	}
	if err := checkTypes(parts, trees); err != nil {
		return err
	}
	for name, tree := range trees {
		if path.Ext(name) == ".rels" {
			if err := checkRelations(name, tree, parts); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return checkDocument(trees)
}

// checkTypes wants a content type for each part, and no other.
func checkTypes(parts map[string][]byte, trees map[string]*node) error {
	types := map[string]bool{}
	for _, k := range trees["[Content_Types].xml"].kids {
		if k.name == "Override" {
			if _, ok := parts[strings.TrimPrefix(k.attrs["PartName"], "/")]; !ok {
				return fmt.Errorf("a content type for %s, which is not there", k.attrs["PartName"])
			}
		}
		types[k.attrs["Extension"]+k.attrs["PartName"]] = true
	}
	for name := range parts {
		if !types["/"+name] && !types[strings.TrimPrefix(path.Ext(name), ".")] {
			return fmt.Errorf("%s has no content type", name)
		}
	}
	return nil
}

func checkRelations(name string, tree *node, parts map[string][]byte) error {
	base := path.Dir(path.Dir(name))
	ids := map[string]bool{}
	for _, k := range tree.kids {
		if ids[k.attrs["Id"]] {
			return fmt.Errorf("%s is there twice", k.attrs["Id"])
		}
		ids[k.attrs["Id"]] = true
		if k.attrs["TargetMode"] == "External" {
			if strings.ContainsAny(k.attrs["Target"], " \"<>\\^`{|}") || !isASCII(k.attrs["Target"]) {
				return fmt.Errorf("%q is no URI", k.attrs["Target"])
			}
			continue
		}
		if _, ok := parts[path.Join(base, k.attrs["Target"])]; !ok {
			return fmt.Errorf("%s is not there", k.attrs["Target"])
		}
	}
	return nil
}

func isASCII(s string) bool {
	return strings.IndexFunc(s, func(r rune) bool { return r > 0x7E || r < 0x21 }) < 0
}

// checkDocument wants everything that the document names to be there.
func checkDocument(trees map[string]*node) error {
	doc := trees["word/document.xml"]
	relations := map[string]bool{}
	for _, k := range trees["word/_rels/document.xml.rels"].kids {
		relations[k.attrs["Id"]] = true
	}
	styles, lists, drawings := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, s := range trees["word/styles.xml"].find("w:style") {
		styles[s.attrs["w:styleId"]] = true
	}
	for _, n := range trees["word/numbering.xml"].find("w:num") {
		lists[n.attrs["w:numId"]] = true
	}
	var wrong error
	say := func(format string, args ...any) { wrong = fmt.Errorf(format, args...) }
	doc.all(func(n *node) {
		for _, a := range []string{"r:id", "r:embed"} {
			if id, ok := n.attrs[a]; ok && !relations[id] {
				say("no relation %q", id)
			}
		}
		switch n.name {
		case "w:pStyle", "w:rStyle", "w:tblStyle":
			if !styles[n.attrs["w:val"]] {
				say("no style %q", n.attrs["w:val"])
			}
		case "w:numId":
			if !lists[n.attrs["w:val"]] {
				say("no list %q", n.attrs["w:val"])
			}
		case "wp:docPr", "w:id":
			id := n.attrs["id"] + n.attrs["w:val"]
			if drawings[id] {
				say("the id %q is there twice", id)
			}
			drawings[id] = true
		case "w:tbl":
			grid := len(n.find("w:gridCol"))
			for _, row := range n.find("w:tr") {
				if cells := len(row.find("w:tc")); cells != grid || cells == 0 {
					say("a row of %d cells in a grid of %d", cells, grid)
				}
			}
		case "w:tc":
			if len(n.kids) == 0 || n.kids[len(n.kids)-1].name != "w:p" {
				say("a cell that does not end with a paragraph")
			}
		case "w:body":
			last := len(n.kids) - 1
			if last < 0 || n.kids[last].name != "w:sectPr" {
				say("the body does not end with its section")
			}
			for i, k := range n.kids {
				if k.name == "w:tbl" && n.kids[i+1].name != "w:p" {
					say("a table without a paragraph after it")
				}
			}
		}
	})
	return wrong
}

// textOf is what a reader sees: a line for each paragraph, with "[list:level]"
// before what is an item and the style in front.
func textOf(n *node) string {
	var b strings.Builder
	for _, p := range n.find("w:p") {
		var head, mark string
		for _, k := range p.find("w:pStyle") {
			head = k.attrs["w:val"]
		}
		for _, k := range p.find("w:numPr") {
			mark = "[" + k.kids[1].attrs["w:val"] + ":" + k.kids[0].attrs["w:val"] + "]"
		}
		fmt.Fprintf(&b, "%s%s|", head, mark)
		p.all(func(n *node) {
			switch n.name {
			case "w:t":
				b.WriteString(n.text)
			case "w:tab":
				b.WriteByte('\t')
			case "w:br":
				b.WriteString("\\n")
			case "pic:pic":
				b.WriteString("<picture>")
			case "w:hyperlink":
				b.WriteString("<link>")
			}
		})
		b.WriteByte('\n')
	}
	return b.String()
}

// documentOf returns the parts of a file that are XML.
func documentOf(file, part string) (*node, error) {
	z, err := zip.NewReader(strings.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, err
	}
	b, err := readAll(z, part)
	if err != nil {
		return nil, err
	}
	return readPart(b)
}

func readAll(z *zip.Reader, name string) ([]byte, error) {
	r, err := z.Open(name)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}
