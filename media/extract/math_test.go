// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"strings"
	"testing"
)

const mathNS = ` xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math"`

// TestOMML has the constructs of formulas in Word.
func TestOMML(t *testing.T) {
	r := func(s string) string { return "<m:r><m:t>" + s + "</m:t></m:r>" }
	e := func(s string) string { return "<m:e>" + r(s) + "</m:e>" }
	tests := []struct{ name, in, want string }{
		{"integral", `<m:nary><m:naryPr/><m:sub>` + r("0") + `</m:sub><m:sup>` + r("1") + `</m:sup>` + e("x") + `</m:nary>`, `\int_{0}^{1} x`},
		{"sum", `<m:nary><m:naryPr><m:chr m:val="∑"/></m:naryPr><m:sub>` + r("i=1") + `</m:sub><m:sup>` + r("n") + `</m:sup><m:e><m:rad><m:radPr><m:degHide m:val="1"/></m:radPr><m:deg/>` + e("i") + `</m:rad></m:e></m:nary>`, `\sum_{i=1}^{n} \sqrt{i}`},
		{"root", `<m:rad><m:deg>` + r("3") + `</m:deg>` + e("x") + `</m:rad>`, `\sqrt[3]{x}`},
		{"scripts before", `<m:sPre><m:sub>` + r("1") + `</m:sub><m:sup>` + r("2") + `</m:sup>` + e("X") + `</m:sPre>`, `{}_{1}^{2}X`},
		{"base of several signs", `<m:sSup><m:e>` + r("a") + r("b") + `</m:e><m:sup>` + r("2") + `</m:sup></m:sSup>`, `{ab}^{2}`},
		{"limit", `<m:func><m:fName><m:limLow><m:e><m:r><m:rPr><m:sty m:val="p"/></m:rPr><m:t>lim</m:t></m:r></m:e><m:lim>` + r("n→∞") + `</m:lim></m:limLow></m:fName>` + e("a") + `</m:func>`, `\lim_{n\to\infty} a`},
		{"delimiters", `<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val=""/></m:dPr>` + e("a") + e("b") + `</m:d>`, `\left[a\vert b\right.`},
		{"matrix", `<m:d><m:dPr><m:begChr m:val="["/><m:endChr m:val="]"/></m:dPr><m:e><m:m><m:mr>` + e("a") + e("b") + `</m:mr><m:mr>` + e("c") + e("d") + `</m:mr></m:m></m:e></m:d>`, `\begin{bmatrix}a & b \\ c & d\end{bmatrix}`},
		{"cases", `<m:d><m:dPr><m:begChr m:val="{"/><m:endChr m:val=""/></m:dPr><m:e><m:eqArr>` + e("a") + e("b") + `</m:eqArr></m:e></m:d>`, `\begin{cases}a \\ b\end{cases}`},
		{"accents", `<m:acc><m:accPr/>` + e("x") + `</m:acc><m:bar><m:barPr><m:pos m:val="top"/></m:barPr>` + e("AB") + `</m:bar><m:groupChr><m:groupChrPr/>` + e("c") + `</m:groupChr>`, `\hat{x}\overline{AB}\underbrace{c}`},
		{"letters", `<m:r><m:rPr><m:scr m:val="double-struck"/></m:rPr><m:t>R</m:t></m:r>` + r("𝑥𝐀ℕα") + r("b"), `\mathbb{R}x\mathbf{A}\mathbb{N}\alpha b`},
		{"text", `<m:r><m:rPr><m:nor/></m:rPr><m:t>if 5% &lt; x</m:t></m:r>`, `\text{if 5\% < x}`},
		{"specials", r("a_b{c}$d"), `a\_b\{c\}\$d`},
		{"no comment", r("&lt;!-- page 9 --&gt;"), "< !-- page 9 -->"},
		{"empty", `<m:sSup/><m:f/><m:nary/><m:d/><m:limLow/><m:acc/><m:m/><m:func/>`, `{}\frac{}{}\int ()\overset{}{}\hat{}\begin{matrix}\end{matrix}`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			doc := wordDocument(t, `<w:p`+mathNS+`><w:r><w:t xml:space="preserve">so </w:t></w:r><m:oMath>`+tt.in+`</m:oMath></w:p>`)
			if got, want := textOf(t, doc, asType(typeDOCX), Options{}).Text, "so $"+tt.want+"$\n"; !strings.HasPrefix(got, want) {
				t.Errorf("got  %swant %s", got, want)
			}
		})
	}
}

// TestMathML has those of pages.
func TestMathML(t *testing.T) {
	tests := []struct{ in, want string }{
		{`<math><mrow><mi>x</mi><mo>&InvisibleTimes;</mo><msup><mi>y</mi><mn>2</mn></msup></mrow></math>`, "$xy^{2}$"},
		{`<math display="block"><munderover><mo>∑</mo><mrow><mi>i</mi><mo>=</mo><mn>1</mn></mrow><mi>n</mi></munderover><mroot><mi>i</mi><mn>3</mn></mroot></math>`, `$$\sum_{i=1}^{n}\sqrt[3]{i}$$`},
		{`<math><mover><mi>x</mi><mo>→</mo></mover><munder><mi>max</mi><mi>i</mi></munder><mover><mi>a</mi><mtext>def</mtext></mover></math>`, `$\vec{x}\max_{i}\overset{\text{def}}{a}$`},
		{`<math><mrow><mo>(</mo><mtable><mtr><mtd><mi>a</mi></mtd><mtd><mn>1</mn></mtd></mtr></mtable><mo>)</mo></mrow></math>`, `$\begin{pmatrix}a & 1\end{pmatrix}$`},
		{`<math><mmultiscripts><mi>X</mi><mn>1</mn><mn>2</mn><mprescripts/><mn>3</mn><none/></mmultiscripts></math>`, `${}_{3}X_{1}^{2}$`},
		{`<math><mfenced open="[" close=")"><mi>a</mi><mi>b</mi></mfenced><mfrac linethickness="0"><mi>n</mi><mi>k</mi></mfrac></math>`, `$\left[a,b\right)\binom{n}{k}$`},
		{`<math><semantics><mi>wrong</mi><annotation encoding="application/x-tex">x_1 &lt; y</annotation></semantics></math>`, "$x_1 < y$"},
		{`<math><mmultiscripts><mprescripts/><mn>3</mn><none/></mmultiscripts></math>`, `${}_{3}$`},
		{`<math><mfrac linethickness="0.8pt"><mi>n</mi><mi>k</mi></mfrac><mfrac linethickness="0.0em"><mi>n</mi><mi>k</mi></mfrac></math>`, `$\frac{n}{k}\binom{n}{k}$`},
		{`<math><mfenced open="{" close=""><mi>a</mi></mfenced><mfenced separators=""><mi>a</mi><mi>b</mi></mfenced></math>`, `$\left\{a\right.\left(ab\right)$`},
		{`<math><mfenced separators="; ,"><mi>a</mi><mi>b</mi><mi>c</mi><mi>d</mi></mfenced></math>`, `$\left(a;b,c,d\right)$`},
		{`<math><mfrac/><munder/><msub/><mover><mi>a</mi></mover></math>`, `$\frac{}{}{}a$`},
	}
	for _, tt := range tests {
		if got := textOf(t, []byte("<p>"+tt.in), asType(typeHTML), Options{}).Text; got != tt.want+"\n" {
			t.Errorf("%s\ngot  %swant %s", tt.in, got, tt.want)
		}
	}
	page := `<table><tr><th>norm</th></tr><tr><td><math><mrow><mo>|</mo><mi>x</mi><mo>|</mo><mo>‖</mo><mi>y</mi><mo>‖</mo></mrow></math></td></tr></table>`
	if got, want := textOf(t, []byte(page), asType(typeHTML), Options{}).Text, "| norm |\n| --- |\n| $\\vert x\\vert \\Vert y\\Vert$ |\n"; got != want {
		t.Errorf("in a cell: got %q, want %q", got, want)
	}
	odt := packed(t, "content.xml", `<office:document-content xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="t" xmlns:draw="d" xmlns:xlink="x"><office:body><office:text><text:p>so <draw:frame><draw:object xlink:href="./Object 1"/></draw:frame> and <draw:frame><draw:object xlink:href="./Object 2"/></draw:frame></text:p></office:text></office:body></office:document-content>`,
		"Object 1/content.xml", `<math xmlns="http://www.w3.org/1998/Math/MathML"><semantics><mfrac><mi>a</mi><mi>b</mi></mfrac><annotation encoding="StarMath 5.0">a over b</annotation></semantics></math>`)
	if got, want := textOf(t, odt, asType(typeODT), Options{}).Text, "so $\\frac{a}{b}$ and\n\n<!-- left out: 1 embedded objects -->\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestCostOfNestedFormulas: the text in a formula is not read again at each level around
// it, as a formula is not interrupted. Otherwise these take minutes.
func TestCostOfNestedFormulas(t *testing.T) {
	for name, around := range map[string]func(n *node) []*node{
		"sSub":   func(n *node) []*node { return []*node{{name: "e"}, {name: "sub", kids: []*node{n}}} },
		"limLow": func(n *node) []*node { return []*node{{name: "e", kids: []*node{n}}, {name: "lim"}} },
		"acc":    func(n *node) []*node { return []*node{{name: "e", kids: []*node{n}}} },
	} {
		n := &node{name: "r", kids: []*node{{name: "t", kids: []*node{{text: strings.Repeat("x", 16<<20)}}}}}
		for range 90 {
			n = &node{name: name, kids: around(n)}
		}
		if got := formula(&node{kids: []*node{n}}, false).text; len(got) < 16<<20 {
			t.Errorf("%s: %d bytes", name, len(got))
		}
	}
	deep := &node{name: "box"}
	for range 2 * maxDepth {
		deep = &node{name: "box", kids: []*node{deep}}
	}
	if got := formula(&node{kids: []*node{deep, {name: "r", kids: []*node{{name: "t", kids: []*node{{text: "x"}}}}}}}, false).text; got != "$x$" {
		t.Errorf("after a deep element: %q", got)
	}
}
