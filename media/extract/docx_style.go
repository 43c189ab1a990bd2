// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"strconv"
	"strings"
)

// A docxStyle is what a style says about its text.
type docxStyle struct {
	name, parent string
	heading      int // level from 1 on, 0 is none
	list, level  string
	quote, code  bool
	run          docxFormat
	solved       bool
}

// A docxFormat is the look of characters; what is not set is inherited.
type docxFormat struct {
	bold, italic, strike, hidden, code *bool
	rise                               int8
}

func (l docxFormat) over(under docxFormat) docxFormat {
	pick := func(a, b *bool) *bool {
		if a != nil {
			return a
		}
		return b
	}
	l.bold, l.italic, l.strike = pick(l.bold, under.bold), pick(l.italic, under.italic), pick(l.strike, under.strike)
	l.hidden, l.code = pick(l.hidden, under.hidden), pick(l.code, under.code)
	if l.rise == 0 {
		l.rise = under.rise
	}
	return l
}

func yes(b *bool) bool { return b != nil && *b }

// formatOf reads run properties.
func formatOf(props *node) docxFormat {
	var l docxFormat
	if props == nil {
		return l
	}
	for _, k := range props.kids {
		on := isOn(k.attr("val"))
		switch k.name {
		case "b":
			l.bold = &on
		case "i":
			l.italic = &on
		case "strike", "dstrike":
			l.strike = &on
		case "vanish":
			l.hidden = &on
		case "vertAlign":
			switch k.attr("val") {
			case "superscript":
				l.rise = 1
			case "subscript":
				l.rise = -1
			}
		case "rFonts":
			if font := k.attr("ascii"); font != "" {
				mono := isMono(font)
				l.code = &mono
			}
		}
	}
	return l
}

// isMono reports typefaces that people mark code with.
func isMono(font string) bool {
	font = strings.ToLower(font)
	for _, m := range []string{"courier", "consolas", "menlo", "monaco", "monospace", "mono ", "cascadia", "lucida console", "source code"} {
		if strings.Contains(font, m) {
			return true
		}
	}
	return strings.HasSuffix(font, " mono")
}

// readStyles reads the styles and the lists of the document.
func (d *docx) readStyles() error {
	d.styles = map[string]*docxStyle{}
	d.lists = &docxLists{abstracts: map[string]*docxAbstract{}, nums: map[string]*docxNum{}}
	if name := d.part("styles"); name != "" {
		if err := d.subtrees(name, func(n *node) {
			if len(d.styles) < maxStyles {
				d.styles[n.attr("styleId")] = newStyle(n)
			}
		}, "style"); err != nil {
			return err
		}
	}
	if name := d.part("numbering"); name != "" {
		return d.lists.read(d, name)
	}
	return nil
}

func newStyle(n *node) *docxStyle {
	s := &docxStyle{name: strings.ToLower(n.kid("name").attr("val")), parent: n.kid("basedOn").attr("val"), run: formatOf(n.kid("rPr"))}
	props := n.kid("pPr")
	if l := props.kid("outlineLvl"); l != nil {
		s.heading = number(l.attr("val")) + 1
	}
	if num := props.kid("numPr"); num != nil {
		s.list, s.level = num.kid("numId").attr("val"), num.kid("ilvl").attr("val")
	}
	if level, ok := strings.CutPrefix(s.name, "heading "); ok && s.heading == 0 {
		s.heading = number(level)
	}
	switch s.name {
	case "title":
		s.heading = 1
	case "quote", "intense quote", "block text", "quotations", "block quotation":
		s.quote = true
	case "html preformatted", "plain text", "source code", "preformatted text", "macro", "code", "code block", "macro text", "verbatim":
		s.code = n.attr("type") != "character"
	}
	if n.attr("type") == "character" {
		switch s.name {
		case "html code", "code", "source text", "verbatim char", "inline code", "code char", "html typewriter", "html sample", "html keyboard", "teletype":
			on := true
			s.run.code = &on
		}
	}
	if s.heading > 9 || s.heading < 0 {
		s.heading = 0
	}
	return s
}

// style returns a style with what it inherits, never nil.
func (d *docx) style(id string) *docxStyle {
	chain := []*docxStyle{}
	for s := d.styles[id]; s != nil && len(chain) < 32; s = d.styles[s.parent] {
		chain = append(chain, s)
		if s.solved {
			break
		}
	}
	for i := len(chain) - 2; i >= 0; i-- {
		s, under := chain[i], chain[i+1]
		if s.heading == 0 {
			s.heading = under.heading
		}
		if s.list == "" {
			s.list = under.list
		}
		if s.level == "" {
			s.level = under.level
		}
		s.quote, s.code = s.quote || under.quote, s.code || under.code
		s.run = s.run.over(under.run)
	}
	for _, s := range chain {
		s.solved = true
	}
	if len(chain) == 0 {
		return &docxStyle{}
	}
	return chain[0]
}

// paragraphStyle returns the style of a paragraph with what it sets itself.
func (d *docx) paragraphStyle(props *node) *docxStyle {
	st := *d.style(props.kid("pStyle").attr("val"))
	if l := props.kid("outlineLvl"); l != nil {
		if st.heading = number(l.attr("val")) + 1; st.heading > 9 || st.heading < 1 {
			st.heading = 0 // 9 is the level of the body
		}
	}
	return &st
}

// docxLists are the lists of a document and where each one has counted to.
type docxLists struct {
	abstracts map[string]*docxAbstract
	nums      map[string]*docxNum
}

type docxLevel struct {
	format, text string
	start        int
}

// A docxAbstract is the definition of a list; the lists of one definition
// count on together.
type docxAbstract struct {
	levels [9]docxLevel
	counts [9]int
	begun  [9]bool
}

// A docxNum is a list.
type docxNum struct {
	abstract *docxAbstract
	restart  [9]int // where it starts anew, 0 is nowhere
	used     [9]bool
}

func (l *docxLists) read(d *docx, name string) error {
	return d.subtrees(name, func(n *node) {
		if n.name == "abstractNum" {
			a := &docxAbstract{}
			for _, k := range n.kids {
				if i := number(k.attr("ilvl")); k.name == "lvl" && i >= 0 && i < 9 {
					a.levels[i] = docxLevel{
						format: k.kid("numFmt").attr("val"), text: k.kid("lvlText").attr("val"),
						start: number(k.kid("start").attr("val")),
					}
				}
			}
			l.abstracts[n.attr("abstractNumId")] = a
			return
		}
		num := &docxNum{abstract: l.abstracts[n.kid("abstractNumId").attr("val")]}
		if num.abstract == nil {
			return
		}
		for _, k := range n.kids {
			if i := number(k.attr("ilvl")); k.name == "lvlOverride" && i >= 0 && i < 9 {
				if s := k.kid("startOverride"); s != nil {
					num.restart[i] = max(number(s.attr("val")), 1)
				}
			}
		}
		l.nums[n.attr("numId")] = num
	}, "abstractNum", "num")
}

// label counts a paragraph in its list and returns what stands before it: "-",
// or a number as the list writes it. depth is the level from 0 on.
func (d *docx) label(props *node, st *docxStyle) (label string, depth int, ok bool) {
	id, level := st.list, st.level
	if num := props.kid("numPr"); num != nil {
		if k := num.kid("numId"); k != nil {
			id = k.attr("val")
		}
		if k := num.kid("ilvl"); k != nil {
			level = k.attr("val")
		}
	}
	num := d.lists.nums[id]
	if num == nil {
		return "", 0, false // "0" takes a paragraph out of its list
	}
	at := min(max(number(level), 0), 8)
	a := num.abstract
	if num.restart[at] > 0 && !num.used[at] {
		a.counts[at], a.begun[at] = num.restart[at], true
	} else if !a.begun[at] {
		a.counts[at], a.begun[at] = a.levels[at].start, true
	} else {
		a.counts[at] = min(a.counts[at]+1, 1<<30)
	}
	num.used[at] = true
	for i := at + 1; i < 9; i++ {
		a.begun[i] = false
	}
	lv := a.levels[at]
	switch lv.format {
	case "none":
		return "", 0, false
	case "bullet", "":
		return "-", at, true
	}
	var b strings.Builder
	text := lv.text
	for i := 0; i < len(text) && b.Len() < 200; i++ {
		if text[i] == '%' && i+1 < len(text) && text[i+1] >= '1' && text[i+1] <= '9' {
			i++
			of := int(text[i] - '1')
			n := a.counts[of]
			if !a.begun[of] {
				n = max(a.levels[of].start, 1)
			}
			b.WriteString(count(n, a.levels[of].format))
			continue
		}
		b.WriteByte(text[i])
	}
	label = strings.TrimSpace(tidy(b.String()))
	if label == "" {
		label = "-"
	}
	return label, at, true
}

// count writes a number as lists do.
func count(n int, format string) string {
	switch format {
	case "lowerLetter", "upperLetter":
		if n < 1 || n > 26*30 {
			break
		}
		s := strings.Repeat(string(rune('a'+(n-1)%26)), (n-1)/26+1)
		if format == "upperLetter" {
			s = strings.ToUpper(s)
		}
		return s
	case "lowerRoman", "upperRoman":
		if n < 1 || n > 3999 {
			break
		}
		s := roman(n)
		if format == "lowerRoman" {
			s = strings.ToLower(s)
		}
		return s
	case "decimalZero":
		if n < 10 {
			return "0" + strconv.Itoa(n)
		}
	case "chineseCounting", "chineseCountingThousand", "ideographTraditional", "japaneseCounting", "taiwaneseCounting", "taiwaneseCountingThousand":
		return chinese(n)
	case "decimalEnclosedCircle", "decimalEnclosedCircleChinese":
		if n >= 1 && n <= 20 {
			return string(rune('①' + n - 1))
		}
	}
	return strconv.Itoa(n)
}

func roman(n int) string {
	var b strings.Builder
	values := []int{1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1}
	for i, s := range strings.Fields("M CM D CD C XC L XL X IX V IV I") {
		for ; n >= values[i]; n -= values[i] {
			b.WriteString(s)
		}
	}
	return b.String()
}

// chinese writes a number below ten thousand in Chinese.
func chinese(n int) string {
	if n < 0 || n > 9999 {
		return strconv.Itoa(n)
	}
	digits := []rune("零一二三四五六七八九")
	if n < 10 {
		return string(digits[n])
	}
	var b strings.Builder
	gap := false
	for i, unit := range []int{1000, 100, 10, 1} {
		q := n / unit % 10
		if q == 0 {
			gap = gap || b.Len() > 0
			continue
		}
		if gap {
			b.WriteRune('零')
			gap = false
		}
		if unit != 10 || q != 1 || b.Len() > 0 {
			b.WriteRune(digits[q])
		}
		b.WriteString([]string{"千", "百", "十", ""}[i])
	}
	return b.String()
}
