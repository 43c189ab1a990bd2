// SPDX-License-Identifier: Apache-2.0

package export

import (
	"bufio"
	"bytes"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	markup "github.com/yuin/goldmark/renderer/html"

	"github.com/artelhq/artel"
)

// A look is the formatting of a run of text.
type look struct{ bold, italic, strike, code, link bool }

// inline is the state of writing a paragraph.
type inline struct {
	last rune // the last character; 0: none that counts
	soft bool // the source has a line break here
}

// properties returns w:rPr, whose elements have a fixed order.
func (l look) properties() string {
	if l == (look{}) {
		return ""
	}
	s := `<w:rPr>`
	switch {
	case l.link:
		s += `<w:rStyle w:val="Hyperlink"/>`
	case l.code:
		s += `<w:rStyle w:val="CodeText"/>`
	}
	if l.code && l.link {
		s += monospaced
	}
	if l.bold {
		s += `<w:b/><w:bCs/>`
	}
	if l.italic {
		s += `<w:i/><w:iCs/>`
	}
	if l.strike {
		s += `<w:strike/>`
	}
	return s + `</w:rPr>`
}

// inlines writes the inline content of n, pictures at most width wide.
func (b *body) inlines(n ast.Node, l look, width int) {
	for c := n.FirstChild(); c != nil; c = c.NextSibling() {
		b.inline(c, l, width)
	}
}

func (b *body) inline(n ast.Node, l look, width int) {
	switch n := n.(type) {
	case *ast.Text:
		b.run(l, textValue(n, b.src))
		switch {
		case n.HardLineBreak():
			b.put(`<w:r><w:br/></w:r>`)
			b.line = inline{}
		case n.SoftLineBreak():
			b.line.soft = true
		}
	case *ast.String:
		b.run(l, string(n.Value))
	case *ast.CodeSpan:
		l.code = true
		b.run(l, textOf(n, b.src))
	case *ast.Emphasis:
		if n.Level > 1 {
			l.bold = true
		} else {
			l.italic = true
		}
		b.inlines(n, l, width)
	case *tables.Strikethrough:
		l.strike = true
		b.inlines(n, l, width)
	case *tables.TaskCheckBox:
		b.checkBox(n.IsChecked)
	case *ast.Link:
		to, ok := b.d.link(string(n.Destination))
		if !ok || l.link {
			b.inlines(n, l, width)
			return
		}
		b.space(firstOf(textOf(n, b.src)))
		b.openLink(to, string(n.Title))
		l.link = true
		b.inlines(n, l, width)
		b.put(`</w:hyperlink>`)
	case *ast.AutoLink:
		b.autoLink(n, l)
	case *ast.Image:
		if p := b.pictures[string(n.Destination)]; p != nil {
			b.space(0)
			b.picture(p, textOf(n, b.src), width)
			return
		}
		b.inlines(n, l, width) // the alternative text
	case *ast.RawHTML:
		b.run(l, string(n.Segments.Value(b.src)))
	default:
		b.inlines(n, l, width)
	}
}

func (b *body) openLink(to, title string) {
	b.put(`<w:hyperlink r:id="`, b.relate(to), `" w:history="1"`)
	if title != "" {
		b.put(` w:tooltip="`, attr(artel.Shorten(title, 200)), `"`)
	}
	b.put(`>`)
}

func (b *body) autoLink(n *ast.AutoLink, l look) {
	label := string(n.Label(b.src))
	to := string(n.URL(b.src))
	if n.AutoLinkType == ast.AutoLinkEmail && !strings.HasPrefix(strings.ToLower(to), "mailto:") {
		to = "mailto:" + to
	}
	to, ok := b.d.link(to)
	if !ok || l.link {
		b.run(l, label)
		return
	}
	b.space(firstOf(label))
	b.openLink(to, "")
	l.link = true
	b.run(l, label)
	b.put(`</w:hyperlink>`)
}

// space writes the space that a line break of the source stands for. There is
// none between characters of scripts without spaces.
func (b *body) space(next rune) {
	if !b.line.soft {
		return
	}
	b.line.soft = false
	if !isUnspaced(b.line.last) || !isUnspaced(next) {
		b.put(`<w:r><w:t xml:space="preserve"> </w:t></w:r>`)
	}
}

// run writes text of one format.
func (b *body) run(l look, s string) {
	if s == "" {
		return
	}
	b.space(firstOf(s))
	b.line.last, _ = utf8.DecodeLastRuneInString(s)
	b.put(`<w:r>`, l.properties())
	for s != "" {
		i := strings.IndexAny(s, "\t\n")
		piece := s
		if i >= 0 {
			piece = s[:i]
		}
		if piece != "" {
			b.put(`<w:t xml:space="preserve">`, attr(piece), `</w:t>`)
		}
		if i < 0 {
			break
		}
		if s[i] == '\t' {
			b.put(`<w:tab/>`)
		} else {
			b.put(`<w:br/>`)
		}
		s = s[i+1:]
	}
	b.put(`</w:r>`)
}

// checkBox writes a check box that works in Word.
func (b *body) checkBox(checked bool) {
	b.controls++
	state, sign := "0", "☐"
	if checked {
		state, sign = "1", "☒"
	}
	b.put(`<w:sdt><w:sdtPr><w:id w:val="`, strconv.Itoa(b.controls), `"/><w14:checkbox><w14:checked w14:val="`, state,
		`"/><w14:checkedState w14:val="2612" w14:font="MS Gothic"/><w14:uncheckedState w14:val="2610" w14:font="MS Gothic"/></w14:checkbox></w:sdtPr>`,
		`<w:sdtContent><w:r><w:rPr><w:rFonts w:ascii="MS Gothic" w:eastAsia="MS Gothic" w:hAnsi="MS Gothic" w:hint="eastAsia"/></w:rPr><w:t>`, sign,
		`</w:t></w:r></w:sdtContent></w:sdt><w:r><w:tab/></w:r>`)
	b.line = inline{}
}

// picture writes a drawing, scaled down to width (in twentieths of a point)
// and the height of a page, where a pixel is 1/96 inch.
func (b *body) picture(p *picture, alt string, width int) {
	if p.number == 0 {
		b.used = append(b.used, p)
		p.number = len(b.used)
	}
	b.controls++
	const perPixel, perTwip = 9525, 635 // English metric units
	w, h := float64(p.width)*perPixel, float64(p.height)*perPixel
	scale := min(1, float64(max(width, indentStep)*perTwip)/w, float64(pageHeight*perTwip)*0.95/h)
	cx, cy := int(math.Max(1, w*scale)), int(math.Max(1, h*scale))
	size := `cx="` + strconv.Itoa(cx) + `" cy="` + strconv.Itoa(cy) + `"`
	id := strconv.Itoa(b.controls)
	alt = attr(artel.Shorten(alt, 1000))
	b.put(`<w:r><w:drawing><wp:inline distT="0" distB="0" distL="0" distR="0"><wp:extent `, size, `/>`,
		`<wp:docPr id="`, id, `" name="Picture `, id, `" descr="`, alt, `"/>`,
		`<wp:cNvGraphicFramePr><a:graphicFrameLocks noChangeAspect="1"/></wp:cNvGraphicFramePr>`,
		`<a:graphic><a:graphicData uri="http://schemas.openxmlformats.org/drawingml/2006/picture"><pic:pic>`,
		`<pic:nvPicPr><pic:cNvPr id="`, id, `" name="Picture `, id, `" descr="`, alt, `"/><pic:cNvPicPr/></pic:nvPicPr>`,
		`<pic:blipFill><a:blip r:embed="`, p.relation(), `"/><a:stretch><a:fillRect/></a:stretch></pic:blipFill>`,
		`<pic:spPr><a:xfrm><a:off x="0" y="0"/><a:ext `, size, `/></a:xfrm><a:prstGeom prst="rect"><a:avLst/></a:prstGeom></pic:spPr>`,
		`</pic:pic></a:graphicData></a:graphic></wp:inline></w:drawing></w:r>`)
	b.line = inline{}
}

// textOf returns the text of n without markup, on one line.
func textOf(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.WriteString(strings.ReplaceAll(textValue(n, src), "\n", " "))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.AutoLink:
			b.Write(n.Label(src))
		case *ast.RawHTML:
			b.Write(n.Segments.Value(src))
		}
		return ast.WalkContinue, nil
	})
	return b.String()
}

// textValue returns the text of n with its escapes and entities resolved, by the
// HTML renderer: the syntax tree holds the source.
func textValue(n *ast.Text, src []byte) string {
	value := n.Value(src)
	if n.IsRaw() || !bytes.ContainsAny(value, `\&`) {
		return string(value)
	}
	var out bytes.Buffer
	w := bufio.NewWriter(&out)
	markup.DefaultWriter.Write(w, value)
	_ = w.Flush() // to memory
	return html.UnescapeString(out.String())
}

func firstOf(s string) rune {
	r, _ := utf8.DecodeRuneInString(s)
	return r
}

// isUnspaced reports whether r belongs to a script without spaces between
// words: Chinese and Japanese with their punctuation.
func isUnspaced(r rune) bool {
	return unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana) || 0x3000 <= r && r <= 0x303F || 0xFF00 <= r && r <= 0xFFEF
}

// isWide reports whether r is as wide as two Latin letters.
func isWide(r rune) bool { return isUnspaced(r) || unicode.Is(unicode.Hangul, r) }
