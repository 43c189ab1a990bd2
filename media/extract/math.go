// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Formulas become LaTeX between dollar signs. There are two sources: OMML of Word and
// PowerPoint, and MathML of HTML, EPUB and OpenDocument, each as a tree of nodes.

// formula returns the formula below a node: an element of OMML or the math element of
// MathML. display gives it a line of its own.
func formula(n *node, display bool) span {
	w := &mathWriter{}
	w.row(n.kids)
	return dollars(w.String(), display)
}

// dollars marks LaTeX.
func dollars(tex string, display bool) span {
	tex = strings.Join(strings.Fields(tidy(tex)), " ")
	// In the cell of a table "|" is written "\|", which is another sign in LaTeX.
	if !strings.Contains(tex, `\begin{array}`) {
		tex = strings.TrimSpace(strings.NewReplacer(`\\`, `\\`, `\|`, `\Vert `, "|", `\vert `).Replace(tex))
	}
	// A comment or a tag cannot begin in a formula.
	tex = strings.NewReplacer("<!", "< !", "</", "< /").Replace(tex)
	switch {
	case tex == "":
		return span{}
	case display:
		return raw("$$" + tex + "$$")
	}
	return raw("$" + tex + "$")
}

// A mathWriter writes LaTeX.
type mathWriter struct {
	strings.Builder
	open  bool // a command was written last, which a letter would continue
	depth int
}

// put writes LaTeX.
func (w *mathWriter) put(s string) {
	if s == "" {
		return
	}
	if r, _ := utf8.DecodeRuneInString(s); w.open && wordRune(r) {
		w.WriteByte(' ')
	}
	w.WriteString(s)
	i := strings.LastIndexByte(s, '\\')
	w.open = i >= 0 && i+1 < len(s) && strings.Trim(s[i+1:], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == ""
}

// group writes n in braces; n may be nil.
func (w *mathWriter) group(n *node) {
	w.put("{")
	w.bare(n)
	w.put("}")
}

// command writes a command with its arguments.
func (w *mathWriter) command(name string, args ...*node) {
	w.put("\\" + name)
	for _, a := range args {
		w.group(a)
	}
}

// scripts writes a subscript and a superscript; either may be nil.
func (w *mathWriter) scripts(sub, sup *node) {
	if !emptyMath(sub) {
		w.put("_")
		w.group(sub)
	}
	if !emptyMath(sup) {
		w.put("^")
		w.group(sup)
	}
}

// emptyMath reports whether n, which may be nil, shows nothing.
func emptyMath(n *node) bool {
	return n == nil || strings.IndexFunc(n.text, func(r rune) bool { return !unicode.IsSpace(r) && texRune(r) != "" }) < 0 &&
		!slices.ContainsFunc(n.kids, func(k *node) bool { return !emptyMath(k) })
}

// few returns the characters in n, which may be nil, without white space around them; of
// more than a name has, the first. So what nests in itself is not read at each level.
func few(n *node) string {
	const most = 32 // bytes
	text := ""
	var walk func(*node)
	walk = func(n *node) {
		if text = strings.TrimLeftFunc(text+n.text[:min(len(n.text), 2*most)], unicode.IsSpace); len(text) > most {
			return
		}
		for _, k := range n.kids {
			if walk(k); len(text) > most {
				return
			}
		}
	}
	if n != nil {
		walk(n)
	}
	return strings.TrimSpace(text)
}

// row writes siblings.
func (w *mathWriter) row(kids []*node) {
	kids = elementsOf(kids)
	if w.fenced(kids) {
		return
	}
	for _, k := range kids {
		w.one(k)
	}
}

// elementsOf drops the white space between elements.
func elementsOf(kids []*node) []*node {
	var found []*node
	for _, k := range kids {
		if k.name != "" {
			found = append(found, k)
		}
	}
	return found
}

// fenced writes a MathML row that is a matrix between brackets.
func (w *mathWriter) fenced(kids []*node) bool {
	if len(kids) < 2 || len(kids) > 3 || kids[0].name != "mo" || kids[1].name != "mtable" || len(kids) == 3 && kids[2].name != "mo" {
		return false
	}
	end := ""
	if len(kids) == 3 {
		end = strings.TrimSpace(kids[2].allText())
	}
	name := matrixName(strings.TrimSpace(kids[0].allText()), end)
	if name == "" {
		return false
	}
	w.matrix(name, kids[1])
	return true
}

// matrixName returns the environment of a matrix between brackets, or "".
func matrixName(begin, end string) string {
	switch begin + end {
	case "()":
		return "pmatrix"
	case "[]":
		return "bmatrix"
	case "||":
		return "vmatrix"
	case "‖‖":
		return "Vmatrix"
	case "{":
		return "cases"
	}
	return ""
}

// matrix writes rows of cells, of OMML (m or eqArr) or MathML (mtable).
func (w *mathWriter) matrix(name string, n *node) {
	w.put("\\begin{" + name + "}")
	first := true
	for _, tr := range n.kids {
		var cells []*node
		switch tr.name {
		case "mr", "mtr", "mlabeledtr":
			cells = elementsOf(tr.kids)
		case "e": // of eqArr
			cells = []*node{tr}
		default:
			continue
		}
		if !first {
			w.put(` \\ `)
		}
		first = false
		for i, c := range cells {
			if i > 0 {
				w.put(" & ")
			}
			w.row(c.kids)
		}
	}
	w.put("\\end{" + name + "}")
}

// value returns the val attribute of a property of OMML.
func (n *node) value(props, name string) (v string, ok bool) {
	k := n.kid(props).kid(name)
	return k.attr("val"), k != nil
}

// one writes an element of OMML or MathML. Unknown ones are their children.
func (w *mathWriter) one(n *node) {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxDepth {
		return
	}
	if strings.HasPrefix(n.name, "m") && n.name != "m" && w.mathML(n) {
		return
	}
	e := n.kid("e")
	switch n.name {
	case "":
		w.put(texOf(n.text))
	case "r":
		w.run(n)
	case "f":
		switch v, _ := n.value("fPr", "type"); v {
		case "noBar":
			w.command("binom", n.kid("num"), n.kid("den"))
		case "lin", "skw":
			w.group(n.kid("num"))
			w.put("/")
			w.group(n.kid("den"))
		default:
			w.command("frac", n.kid("num"), n.kid("den"))
		}
	case "rad":
		w.put(`\sqrt`)
		if deg := n.kid("deg"); !emptyMath(deg) {
			w.put("[")
			w.one(deg)
			w.put("]")
		}
		w.group(e)
	case "sSub", "sSup", "sSubSup":
		w.base(e)
		w.scripts(n.kid("sub"), n.kid("sup"))
	case "sPre":
		w.put("{}")
		w.scripts(n.kid("sub"), n.kid("sup"))
		w.base(e)
	case "nary":
		sign, ok := n.value("naryPr", "chr")
		if !ok {
			sign = "∫"
		}
		w.put(texOf(sign))
		w.scripts(n.kid("sub"), n.kid("sup"))
		w.put(" ")
		w.bare(e)
	case "d":
		w.delimited(n)
	case "func":
		w.bare(n.kid("fName"))
		w.put(" ")
		w.bare(e)
	case "limLow":
		w.limit(e, n.kid("lim"), nil)
	case "limUpp":
		w.limit(e, nil, n.kid("lim"))
	case "acc":
		sign, ok := n.value("accPr", "chr")
		if !ok {
			sign = "\u0302"
		}
		w.accent(sign, false, e)
	case "bar":
		if v, _ := n.value("barPr", "pos"); v == "top" {
			w.command("overline", e)
		} else {
			w.command("underline", e)
		}
	case "groupChr":
		sign, ok := n.value("groupChrPr", "chr")
		pos, _ := n.value("groupChrPr", "pos")
		if !ok {
			sign = "⏟"
		}
		w.accent(sign, pos != "top", e)
	case "borderBox":
		w.command("boxed", e)
	case "phant":
		w.command("phantom", e)
	case "m":
		w.matrix("matrix", n)
	case "eqArr":
		w.matrix("aligned", n)
	case "rPr", "ctrlPr", "fPr", "radPr", "dPr", "naryPr", "sSubPr", "sSupPr", "sSubSupPr", "sPrePr", "accPr", "barPr", "groupChrPr",
		"limLowPr", "limUppPr", "funcPr", "boxPr", "borderBoxPr", "phantPr", "mPr", "eqArrPr", "argPr", "oMathParaPr", "del", "moveFrom":
	default: // e, num, den, box, oMath, …
		w.row(n.kids)
	}
}

// bare writes a part of a construct without braces; n may be nil.
func (w *mathWriter) bare(n *node) {
	if n != nil {
		w.one(n)
	}
}

// base writes what has scripts, in braces if it is more than one sign.
func (w *mathWriter) base(n *node) {
	if n == nil {
		w.put("{}")
		return
	}
	kids := elementsOf(n.kids)
	simple := len(kids) <= 1 && n.name != "mrow" || len(kids) == 0
	if len(kids) == 1 && kids[0].name == "r" && utf8.RuneCountInString(strings.TrimSpace(kids[0].allText())) > 1 {
		simple = functions[strings.TrimSpace(kids[0].allText())]
	}
	if simple {
		w.one(n)
	} else {
		w.group(n)
	}
}

// limit writes a base with what stands below and above it.
func (w *mathWriter) limit(base, under, over *node) {
	text := few(base)
	if sign := few(under); over == nil && (sign == "⏟" || sign == "̲") {
		w.accent(sign, true, base)
		return
	}
	if sign := few(over); under == nil && sign == "⏞" {
		w.accent(sign, false, base)
		return
	}
	sum := functions[text] || strings.ContainsAny(text, "∑∏∐∫∬∭∮⋃⋂⋁⋀⨁⨂⏟⏞") && utf8.RuneCountInString(text) == 1 || base.find("groupChr") != nil || strings.ContainsAny(few(base.find("lim")), "⏟⏞") || base != nil && (base.name == "munder" || base.name == "mover")
	switch {
	case sum:
		w.bare(base)
		w.scripts(under, over)
	case under != nil && over != nil:
		w.put(`\underset`)
		w.group(under)
		w.put("{")
		w.command("overset", over, base)
		w.put("}")
	case under != nil:
		w.command("underset", under, base)
	default:
		w.command("overset", over, base)
	}
}

// accent writes a sign above or below an expression.
func (w *mathWriter) accent(sign string, below bool, e *node) {
	long := utf8.RuneCountInString(few(e)) > 1
	name := ""
	switch strings.TrimSpace(sign) {
	case "\u0302", "^", "ˆ":
		name = "hat"
		if long {
			name = "widehat"
		}
	case "\u0303", "~", "˜", "∼":
		name = "tilde"
		if long {
			name = "widetilde"
		}
	case "\u20D7", "→":
		name = "vec"
		if long {
			name = "overrightarrow"
		}
	case "\u20D6", "←":
		name = "overleftarrow"
	case "\u0304", "\u0305", "¯", "‾", "―", "_", "\u0332":
		switch {
		case below:
			name = "underline"
		case long:
			name = "overline"
		default:
			name = "bar"
		}
	case "\u0307", "˙", ".":
		name = "dot"
	case "\u0308", "¨":
		name = "ddot"
	case "\u030C", "ˇ":
		name = "check"
	case "\u0306", "˘":
		name = "breve"
	case "\u0301", "´":
		name = "acute"
	case "\u0300", "`":
		name = "grave"
	case "⏟":
		name = "underbrace"
	case "⏞":
		name = "overbrace"
	}
	if name != "" {
		w.command(name, e)
		return
	}
	at := "overset"
	if below {
		at = "underset"
	}
	w.put("\\" + at + "{" + texOf(sign) + "}")
	w.group(e)
}

// delimited writes an expression between brackets.
func (w *mathWriter) delimited(n *node) {
	begin, ok := n.value("dPr", "begChr")
	if !ok {
		begin = "("
	}
	end, ok := n.value("dPr", "endChr")
	if !ok {
		end = ")"
	}
	sep, ok := n.value("dPr", "sepChr")
	if !ok {
		sep = "|"
	}
	var parts []*node
	for _, k := range n.kids {
		if k.name == "e" {
			parts = append(parts, k)
		}
	}
	tall := begin == "" || end == ""
	if len(parts) == 1 {
		kids := elementsOf(parts[0].kids)
		if len(kids) == 1 && (kids[0].name == "m" || kids[0].name == "eqArr") {
			if name := matrixName(begin, end); name != "" {
				w.matrix(name, kids[0])
				return
			}
		}
		if v, _ := (&node{kids: kids}).kid("f").value("fPr", "type"); len(kids) == 1 && v == "noBar" && begin+end == "()" {
			w.one(kids[0])
			return
		}
	}
	for _, p := range parts {
		tall = tall || p.find("f", "nary", "m", "eqArr", "rad", "limLow", "limUpp") != nil
	}
	if tall {
		w.put(`\left` + cmp.Or(bracket(begin), "."))
	} else {
		w.put(bracket(begin))
	}
	for i, p := range parts {
		if i > 0 {
			w.put(texOf(sep))
		}
		w.row(p.kids)
	}
	if tall {
		w.put(`\right` + cmp.Or(bracket(end), "."))
	} else {
		w.put(bracket(end))
	}
}

func bracket(s string) string {
	if s == "‖" {
		return `\|`
	}
	return texOf(s)
}

// run writes a run of OMML.
func (w *mathWriter) run(n *node) {
	var b strings.Builder
	for _, k := range n.kids {
		if k.name == "t" {
			b.WriteString(k.allText())
		}
	}
	text := b.String()
	props := n.kid("rPr")
	style, script := props.kid("sty").attr("val"), props.kid("scr").attr("val")
	name := map[string]string{"double-struck": "mathbb", "script": "mathcal", "fraktur": "mathfrak", "sans-serif": "mathsf", "monospace": "mathtt"}[script]
	switch {
	case props.kid("nor") != nil:
		w.words(text)
		return
	case name != "":
	case style == "b":
		name = "mathbf"
	case style == "bi":
		name = "boldsymbol"
	case style == "p":
		w.name(text)
		return
	}
	if name == "" || strings.TrimSpace(text) == "" {
		w.put(texOf(text))
		return
	}
	w.put("\\" + name + "{" + texOf(text) + "}")
}

// words writes text that is no mathematics.
func (w *mathWriter) words(text string) {
	if strings.TrimSpace(text) == "" {
		w.put(texOf(text))
		return
	}
	w.put(`\text{` + strings.NewReplacer(`\`, `\textbackslash `, "{", `\{`, "}", `\}`, "$", `\$`, "%", `\%`, "#", `\#`, "&", `\&`, "_", `\_`).Replace(text) + "}")
}

// name writes upright text: the name of a function, or signs.
func (w *mathWriter) name(text string) {
	bare := strings.TrimSpace(strings.Trim(text, "\u2061"))
	letters := utf8.RuneCountInString(bare) > 1 && strings.IndexFunc(bare, func(r rune) bool { return !unicode.IsLetter(r) }) < 0
	switch {
	case functions[bare]:
		w.put("\\" + bare)
	case letters:
		w.put(`\operatorname{` + bare + "}")
	default:
		w.put(texOf(text))
	}
}

// functions are the names that LaTeX has commands for.
var functions = map[string]bool{
	"arccos": true, "arcsin": true, "arctan": true, "arg": true, "cos": true, "cosh": true, "cot": true, "coth": true,
	"csc": true, "deg": true, "det": true, "dim": true, "exp": true, "gcd": true, "hom": true, "inf": true, "ker": true,
	"lg": true, "lim": true, "liminf": true, "limsup": true, "ln": true, "log": true, "max": true, "min": true,
	"Pr": true, "sec": true, "sin": true, "sinh": true, "sup": true, "tan": true, "tanh": true,
}
