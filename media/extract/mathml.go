// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/net/html"
)

// mathML writes an element of MathML, and reports whether it is one.
func (w *mathWriter) mathML(n *node) bool {
	kids := elementsOf(n.kids)
	at := func(i int) *node {
		if i < len(kids) {
			return kids[i]
		}
		return nil
	}
	switch n.name {
	case "mi":
		text := strings.TrimSpace(n.allText())
		switch v := n.attr("mathvariant"); {
		case v == "double-struck", v == "script", v == "fraktur", v == "bold", v == "bold-italic":
			name := map[string]string{"double-struck": "mathbb", "script": "mathcal", "fraktur": "mathfrak", "bold": "mathbf", "bold-italic": "boldsymbol"}[v]
			w.put("\\" + name + "{" + texOf(text) + "}")
		default:
			w.name(text)
		}
	case "mn":
		w.put(texOf(strings.TrimSpace(n.allText())))
	case "mo":
		if text := strings.TrimSpace(n.allText()); functions[text] {
			w.put("\\" + text)
		} else {
			w.put(bracket(text))
		}
	case "mtext", "ms":
		w.words(n.allText())
	case "mspace":
		if width := n.attr("width"); strings.HasSuffix(width, "em") && width >= "0.5em" {
			w.put(`\quad `)
		} else {
			w.put(`\,`)
		}
	case "mfrac":
		if v := n.attr("linethickness"); strings.HasPrefix(v, "0") && !strings.ContainsAny(v, "123456789") {
			w.command("binom", at(0), at(1))
		} else {
			w.command("frac", at(0), at(1))
		}
	case "msqrt":
		w.put(`\sqrt{`)
		w.row(kids)
		w.put("}")
	case "mroot":
		w.put(`\sqrt[`)
		w.bare(at(1))
		w.put("]")
		w.group(at(0))
	case "msub":
		w.base(at(0))
		w.scripts(at(1), nil)
	case "msup":
		w.base(at(0))
		w.scripts(nil, at(1))
	case "msubsup":
		w.base(at(0))
		w.scripts(at(1), at(2))
	case "munder", "mover":
		if len(kids) < 2 {
			w.row(kids)
			break
		}
		sign := few(kids[1])
		below := n.name == "munder"
		switch {
		case kids[1].name == "mo" && utf8.RuneCountInString(sign) == 1 && !unicode.IsLetter([]rune(sign)[0]):
			w.accent(sign, below, kids[0])
		case below:
			w.limit(kids[0], kids[1], nil)
		default:
			w.limit(kids[0], nil, kids[1])
		}
	case "munderover":
		w.limit(at(0), at(1), at(2))
	case "mmultiscripts":
		w.multiscripts(kids)
	case "mtable":
		w.matrix("matrix", n)
	case "mfenced":
		separators := []rune(strings.Join(strings.Fields(n.attrOr("separators", ",")), ""))
		w.put(`\left` + cmp.Or(bracket(n.attrOr("open", "(")), "."))
		for i, k := range kids {
			if i > 0 && len(separators) > 0 {
				w.put(texOf(string(separators[min(i, len(separators))-1])))
			}
			w.one(k)
		}
		w.put(`\right` + cmp.Or(bracket(n.attrOr("close", ")")), "."))
	case "mphantom":
		w.put(`\phantom{`)
		w.row(kids)
		w.put("}")
	case "menclose", "mstyle", "mpadded", "mrow", "math", "merror", "maction", "mtd":
		w.row(kids)
	default:
		return false
	}
	return true
}

// attrOr returns an attribute, which may be empty, or what it is if it is missing.
func (n *node) attrOr(name, missing string) string {
	for _, a := range n.attrs {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return missing
}

// multiscripts writes a base with scripts on both sides.
func (w *mathWriter) multiscripts(kids []*node) {
	if len(kids) == 0 {
		return
	}
	if kids[0].name == "mprescripts" { // the base is missing
		kids = append([]*node{{name: "mrow"}}, kids...)
	}
	before := len(kids)
	for i, k := range kids {
		if k.name == "mprescripts" {
			before = i
		}
	}
	pairs := func(kids []*node) {
		for i := 0; i < len(kids); i += 2 {
			var sup *node
			if i+1 < len(kids) {
				sup = kids[i+1]
			}
			w.scripts(kids[i], sup)
		}
	}
	if before < len(kids) {
		w.put("{}")
		pairs(kids[before+1:])
	}
	w.base(kids[0])
	pairs(kids[1:before])
}

// mathNode returns a MathML element of a page as a node.
func mathNode(h *html.Node, depth int) *node {
	if h.Type == html.TextNode {
		return &node{text: h.Data}
	}
	n := &node{name: strings.ToLower(h.Data)}
	for _, a := range h.Attr {
		n.attrs = append(n.attrs, xmlAttr(a.Key, a.Val))
	}
	if depth < maxDepth {
		for c := h.FirstChild; c != nil; c = c.NextSibling {
			if c.Type == html.TextNode || c.Type == html.ElementNode {
				n.kids = append(n.kids, mathNode(c, depth+1))
			}
		}
	}
	return n
}

// mathElement returns the formula of a math element of MathML: the LaTeX that it was
// made from, if it is there, and otherwise its signs.
func mathElement(n *node, display bool) span {
	tex := ""
	n.all("annotation", func(a *node) {
		if a.attr("encoding") == "application/x-tex" || a.attr("encoding") == "TeX" {
			tex = cmp.Or(tex, a.allText())
		}
	})
	if strings.TrimSpace(tex) != "" {
		return dollars(tex, display)
	}
	return formula(n.withoutAnnotations(), display)
}

// withoutAnnotations returns a formula without what is said about it.
func (n *node) withoutAnnotations() *node {
	kept := *n
	kept.kids = nil
	for _, k := range n.kids {
		switch k.name {
		case "annotation", "annotation-xml":
		case "semantics":
			kept.kids = append(kept.kids, k.withoutAnnotations())
		default:
			kept.kids = append(kept.kids, k)
		}
	}
	return &kept
}
