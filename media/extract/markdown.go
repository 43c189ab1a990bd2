// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

// A span is a piece of a line with one formatting.
type span struct {
	text   string
	link   string // where it leads; "" is no link
	bold   bool
	italic bool
	strike bool
	code   bool
	rise   int8 // 1 superscript, -1 subscript
	raw    bool // text is Markdown already
}

func plain(text string) span { return span{text: text} }

func raw(markdown string) span { return span{text: markdown, raw: true} }

// image returns the mark of a picture.
func image(alt, name string) span {
	if name == "" || name == "." || name == "/" {
		name = "unnamed"
	}
	alt = strings.Join(strings.Fields(tidy(alt)), " ")
	alt = strings.NewReplacer("[", "(", "]", ")", "\\", "/").Replace(alt)
	return raw("![" + escape(alt) + "](" + destination(name) + ")")
}

// pictureName returns the name of the picture at target: a part of the document or a
// URL. Data URIs never enter the text.
func pictureName(target string, external bool) string {
	switch {
	case strings.HasPrefix(strings.ToLower(strings.TrimSpace(target)), "data:"), len(target) > 4096:
		return "embedded"
	case external:
		return target
	}
	return path.Base(target)
}

// destination escapes the target of a link.
func destination(url string) string {
	url = strings.Map(func(r rune) rune {
		if r < 0x20 || r == 0x7F {
			return -1
		}
		return r
	}, strings.TrimSpace(url))
	if strings.ContainsAny(url, " <>()\\") || url == "" {
		url = strings.NewReplacer(" ", "%20", "<", "%3C", ">", "%3E", "(", "%28", ")", "%29", "\\", "%5C").Replace(url)
	}
	return url
}

// A lineWriter collects a line. It separates adjacent marks, which Markdown would
// read as one.
type lineWriter struct {
	strings.Builder
	*budget
	closed int  // the length at which the last look ended
	links  bool // brackets in it would be read as links
}

// inline writes spans as Markdown. Line breaks in text become hard breaks. After the
// end of the context the line is incomplete, and the next step fails.
func (b *budget) inline(spans []span) string {
	spans = merge(spans)
	w := lineWriter{budget: b, closed: -1, links: linksIn(spans)}
	writeSpans(&w, spans, 0, utf8.RuneError)
	return strings.TrimSpace(w.String())
}

// linksIn is hasLinks of the text of spans, without joining it.
func linksIn(spans []span) bool {
	before := "" // a mark may begin in one span and end in the next
	for _, s := range spans {
		if hasLinks(s.text) || hasLinks(before+s.text[:min(len(s.text), 1)]) {
			return true
		}
		if s.text != "" {
			before = s.text[len(s.text)-1:]
		}
	}
	return false
}

// blank reports spans that have nothing to show.
func blank(spans []span) bool {
	for _, s := range spans {
		if strings.TrimSpace(s.text) != "" && (s.raw || strings.TrimSpace(tidy(s.text[:min(len(s.text), maxPiece)])) != "") {
			return false
		}
	}
	return true
}

// merge joins adjacent spans of the same formatting and drops empty ones.
func merge(spans []span) []span {
	var merged []span
	var text strings.Builder // of the last one
	flush := func() {
		if n := len(merged); n > 0 {
			merged[n-1].text = text.String()
		}
		text.Reset()
	}
	for _, s := range spans {
		if s.text == "" {
			continue
		}
		n := len(merged)
		if !s.raw && strings.TrimSpace(s.text) == "" { // blanks have no look
			s = span{text: s.text, link: s.link}
			if n > 0 && !merged[n-1].raw && merged[n-1].link == s.link {
				last := merged[n-1]
				last.text = s.text
				s = last
			}
		}
		if n > 0 {
			last := merged[n-1]
			last.text = s.text
			if last == s {
				text.WriteString(s.text)
				continue
			}
		}
		flush()
		merged = append(merged, s)
		text.WriteString(s.text)
	}
	flush()
	return merged
}

// The kinds of formatting, outermost first.
const (
	lookLink = iota
	lookBold
	lookItalic
	lookStrike
	lookText
)

func (s span) same(look int, t span) bool {
	switch look {
	case lookLink:
		return s.link == t.link
	case lookBold:
		return s.bold == t.bold
	case lookItalic:
		return s.italic == t.italic
	default:
		return s.strike == t.strike
	}
}

// writeSpans writes spans with the formatting from look inwards. next is the rune
// after them.
func writeSpans(b *lineWriter, spans []span, look int, next rune) {
	for i := 0; i < len(spans); {
		j := i + 1
		for j < len(spans) && look < lookText && spans[i].same(look, spans[j]) {
			j++
		}
		after := next
		if j < len(spans) {
			after, _ = utf8.DecodeRuneInString(spans[j].text)
		}
		group := spans[i:j]
		switch {
		case look == lookText:
			writeText(b, group[0])
		case look == lookLink && group[0].link != "":
			inner := lineWriter{budget: b.budget, closed: -1, links: b.links}
			writeSpans(&inner, group, look+1, ']')
			writeLink(b, inner.String(), group[0].link)
		case look == lookBold && group[0].bold:
			writeMarked(b, group, look, "**", after)
		case look == lookItalic && group[0].italic:
			writeMarked(b, group, look, "*", after)
		case look == lookStrike && group[0].strike:
			writeMarked(b, group, look, "~~", after)
		default:
			writeSpans(b, group, look+1, after)
		}
		i = j
	}
}

func writeLink(b *lineWriter, text, url string) {
	text = strings.ReplaceAll(text, "  \n", " ")
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	tail := text[len(strings.TrimRight(text, " ")):]
	text = strings.TrimSpace(text)
	if text == "" {
		b.WriteString(lead)
		return
	}
	if strings.Contains(text, "](") && !strings.HasPrefix(text, "![") { // a link holds no link
		b.WriteString(lead + text + tail)
		return
	}
	if !strings.HasPrefix(text, "![") {
		text = escapeBrackets(text)
	}
	b.WriteString(lead + "[" + text + "](" + destination(url) + ")" + tail)
}

// escapeBrackets escapes unescaped brackets.
func escapeBrackets(s string) string {
	if !strings.ContainsAny(s, "[]") {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			if i+1 < len(s) && strings.IndexByte(punctuation, s[i+1]) >= 0 {
				b.WriteByte(s[i])
				i++
			}
		case '[', ']':
			b.WriteByte('\\')
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// maxOutside limits the characters moved out of marks at each end.
const maxOutside = 64

// writeMarked puts marks around a group. Blanks at its ends, and punctuation beside
// which Markdown ignores marks, stay outside. An empty group has no marks.
func writeMarked(b *lineWriter, group []span, look int, mark string, next rune) {
	group = append([]span(nil), group...)
	var lead, tail []span
	for len(lead) < maxOutside && len(group) > 0 && !group[0].raw && !group[0].code {
		t := group[0].text
		r, n := utf8.DecodeRuneInString(t)
		if !unicode.IsSpace(r) && (!isMark(r) || opens(b, lead)) {
			break
		}
		lead = append(lead, span{text: t[:n], link: group[0].link})
		if group[0].text = t[n:]; group[0].text == "" {
			group = group[1:]
		}
	}
	for len(tail) < maxOutside && len(group) > 0 && !group[len(group)-1].raw && !group[len(group)-1].code {
		t := group[len(group)-1].text
		r, n := utf8.DecodeLastRuneInString(t)
		outside := next
		if len(tail) > 0 {
			outside, _ = utf8.DecodeRuneInString(tail[0].text)
		}
		if !unicode.IsSpace(r) && (!isMark(r) || outside == utf8.RuneError || unicode.IsSpace(outside)) {
			break
		}
		tail = append([]span{{text: t[len(t)-n:], link: group[0].link}}, tail...)
		if group[len(group)-1].text = t[:len(t)-n]; group[len(group)-1].text == "" {
			group = group[:len(group)-1]
		}
	}
	writeSpans(b, merge(lead), lookText, utf8.RuneError)
	after := next
	if len(tail) > 0 {
		after, _ = utf8.DecodeRuneInString(tail[0].text)
	}
	if len(group) > 0 && b.Len() != b.closed && !bare(group, mark, b.String(), after) {
		b.WriteString(mark)
		plainEnds(group)
		writeSpans(b, group, look+1, '*')
		b.WriteString(mark)
		b.closed = b.Len()
	} else {
		writeSpans(b, group, look+1, after)
	}
	writeSpans(b, merge(tail), lookText, utf8.RuneError)
}

// plainEnds takes a look that only a part of the group has from its ends, where
// its marks would stand beside the group's own and be read as one with them.
func plainEnds(group []span) {
	mixed := func(look int) bool {
		for _, s := range group {
			if !s.same(look, group[0]) {
				return true
			}
		}
		return false
	}
	first, last := &group[0], &group[len(group)-1]
	if mixed(lookItalic) {
		first.italic, last.italic = false, false
	}
	if mixed(lookStrike) {
		first.strike, last.strike = false, false
	}
}

// bare reports a group whose marks Markdown would ignore: it begins or ends with
// other Markdown beside a letter, or contains the characters of its mark.
func bare(group []span, mark, before string, next rune) bool {
	prev, _ := utf8.DecodeLastRuneInString(before)
	first, last := group[0], group[len(group)-1]
	if mark == "~~" && (strings.Contains(plainText(group), "~") || strings.HasSuffix(before, "~") || next == '~') {
		return true
	}
	word := func(r rune) bool { return r != utf8.RuneError && !unicode.IsSpace(r) && !isMark(r) }
	return (first.raw || first.code || first.rise != 0) && word(prev) || (last.raw || last.code || last.rise != 0) && word(next)
}

// opens reports whether a mark followed by punctuation would open here.
func opens(b *lineWriter, lead []span) bool {
	before := b.String()
	if len(lead) > 0 {
		before = lead[len(lead)-1].text
	}
	if before == "" {
		return true
	}
	r, _ := utf8.DecodeLastRuneInString(before)
	return unicode.IsSpace(r)
}

func isMark(r rune) bool { return unicode.IsPunct(r) || unicode.IsSymbol(r) }

func writeText(b *lineWriter, s span) {
	switch {
	case s.raw:
		b.WriteString(s.text)
	case s.code:
		writeCode(b, s.text)
	case s.rise > 0:
		b.WriteString("<sup>" + b.lines(s.text) + "</sup>")
	case s.rise < 0:
		b.WriteString("<sub>" + b.lines(s.text) + "</sub>")
	default:
		b.WriteString(b.lines(s.text))
	}
}

// maxPiece bounds the text between two checks of the context.
const maxPiece = 256 << 10

// lines escapes text and makes its line breaks hard.
func (b *lineWriter) lines(text string) string {
	if len(text) <= maxPiece {
		return lines(text, b.links)
	}
	var w strings.Builder
	w.Grow(len(text))
	for text != "" && (b.stopped == nil || b.stopped() == nil) {
		n := min(len(text), maxPiece)
		for n < len(text) && (!utf8.RuneStart(text[n]) || n < maxPiece+1<<10 && !cuttable(text, n)) {
			n++
		}
		w.WriteString(lines(text[:n], b.links))
		text = text[n:]
	}
	return w.String()
}

// cuttable reports a place within a text whose sides can be escaped each by itself: it
// has a letter on either side and is not in an entity.
func cuttable(s string, n int) bool {
	letter := func(c byte) bool { return c >= utf8.RuneSelf || c|0x20 >= 'a' && c|0x20 <= 'z' }
	return letter(s[n-1]) && letter(s[n]) && strings.LastIndexByte(s[n-40:n], '&') <= strings.LastIndexByte(s[n-40:n], ';')
}

// lines escapes text and makes its line breaks hard. Blanks at its ends separate it
// from its neighbours and stay.
func lines(text string, links bool) string {
	text = tidy(text)
	if !strings.Contains(text, "\n") {
		return escapeText(text, links)
	}
	parts := strings.Split(text, "\n")
	for i, p := range parts {
		if i < len(parts)-1 {
			p = strings.TrimRight(p, " ")
		}
		if i > 0 {
			p = strings.TrimLeft(p, " ")
		}
		parts[i] = escapeText(p, links)
	}
	return strings.Join(parts, "  \n")
}

func writeCode(b *lineWriter, text string) {
	text = strings.ReplaceAll(tidy(text), "\n", " ")
	lead := text[:len(text)-len(strings.TrimLeft(text, " "))]
	tail := text[len(strings.TrimRight(text, " ")):]
	text = strings.TrimSpace(text)
	if text == "" {
		b.WriteString(lead)
		return
	}
	ticks := strings.Repeat("`", longest(text, '`')%80+1)
	pad := ""
	if text[0] == '`' || text[len(text)-1] == '`' {
		pad = " "
	}
	b.WriteString(lead + ticks + pad + text + pad + ticks + tail)
}

// longest returns the length of the longest run of c in s.
func longest(s string, c byte) int {
	most, n := 0, 0
	for i := range len(s) {
		if s[i] != c {
			n = 0
			continue
		}
		n++
		most = max(most, n)
	}
	return most
}

// tidy drops control characters, soft hyphens, byte order marks and invalid UTF-8;
// tabs and other blanks become spaces.
func tidy(s string) string {
	clean := true
	for i := range len(s) {
		if s[i] < 0x20 && s[i] != '\n' || s[i] >= 0x7F {
			clean = false
			break
		}
	}
	if clean {
		return s
	}
	s = lineFeeds(s)
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n':
			return r
		case r == '\t', r == '\u2028', r == '\u2029', r == '\u0085', r == '\v', r == '\f':
			return ' '
		case unicode.IsControl(r), r == '\u00AD', r == '\uFEFF', r == '\u200B':
			return -1
		}
		return r
	}, strings.ToValidUTF8(s, "\uFFFD"))
}

const punctuation = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"

// escape escapes only characters that Markdown would interpret inside of a line.
func escape(s string) string { return escapeText(s, hasLinks(s)) }

// hasLinks reports text with brackets that may be a Markdown link.
func hasLinks(s string) bool {
	return strings.Contains(s, "](") || strings.Contains(s, "]:") || strings.Contains(s, "[^") || strings.Contains(s, "][")
}

func escapeText(s string, links bool) string {
	if !strings.ContainsAny(s, "\\`*_~[<&") {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 16)
	for i, r := range s {
		next := byte(' ')
		if i+1 < len(s) {
			next = s[i+1]
		}
		yes := false
		switch r {
		case '\\':
			yes = strings.IndexByte(punctuation, next) >= 0 || i+1 == len(s)
		case '`', '*':
			yes = true
		case '_':
			prev, _ := utf8.DecodeLastRuneInString(s[:i])
			after, _ := utf8.DecodeRuneInString(s[i+1:])
			yes = !wordRune(prev) || !wordRune(after)
		case '~':
			prev, _ := utf8.DecodeLastRuneInString(s[:i])
			yes = next == '~' || !unicode.IsSpace(prev) // at the beginning, too
		case '[':
			yes = links || i+1 == len(s)
		case '<':
			yes = next == '/' || next == '!' || next == '?' || next|0x20 >= 'a' && next|0x20 <= 'z' || i+1 == len(s)
		case '&':
			yes = next == '#' || next|0x20 >= 'a' && next|0x20 <= 'z'
			if end := strings.IndexByte(s[i:min(len(s), i+40)], ';'); end < 0 {
				yes = false
			}
		}
		if yes {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func wordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

// guard escapes what Markdown would interpret at the beginning of a line.
func guard(line string) string {
	if line == "" {
		return line
	}
	switch c := line[0]; {
	case c == '#', c == '-', c == '+', c == '=', c == '|', c == ':':
		rest := strings.TrimLeft(line, string(c))
		if rest == "" || rest[0] == ' ' || strings.Trim(line, "-=|:+ ") == "" {
			return "\\" + line
		}
	case c == '>':
		return "\\" + line
	case c >= '0' && c <= '9':
		rest := strings.TrimLeft(line, "0123456789")
		if rest != "" && (rest[0] == '.' || rest[0] == ')') && (len(rest) == 1 || rest[1] == ' ') {
			return line[:len(line)-len(rest)] + "\\" + rest
		}
	}
	return line
}

// guardLines guards every line of a paragraph.
func guardLines(s string) string {
	if !strings.Contains(s, "\n") {
		return guard(s)
	}
	parts := strings.Split(s, "\n")
	for i, p := range parts {
		parts[i] = guard(p)
	}
	return strings.Join(parts, "\n")
}
