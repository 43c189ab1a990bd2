// SPDX-License-Identifier: Apache-2.0

package render

import (
	"html"
	"html/template"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
)

// Lexers are backtracking regular expressions that take 0.4 to 3 µs per byte of
// ordinary code. These bounds keep a page of code below a second, and hostile
// code near it.
const (
	maxBlock    = 32 << 10        // bytes of one block of code in Markdown
	maxBlocks   = 256 << 10       // bytes of all blocks of code in one Markdown text
	maxDocument = 128 << 10       // bytes of one document
	maxLine     = 8 << 10         // bytes of one line
	maxTime     = 2 * time.Second // for all code of one text
)

// Code renders a whole document with its lines in elements of class "line",
// which a stylesheet can number with a counter that is neither copied nor read
// aloud. language is a result of [LanguageOf] or a usual name after a fence;
// for an unknown language and for long documents, the lines are plain.
func Code(source, language string) template.HTML {
	source = lines(clean(source))
	l := lexerOf(language)
	var b strings.Builder
	openCode(&b, l, language, "code document")
	w := spans{b: &b, lines: true}
	w.open()
	h := newHighlighter(maxDocument, maxDocument)
	for _, t := range h.tokens(l, source) {
		w.write(t)
	}
	w.close()
	b.WriteString(closeCode)
	return template.HTML(b.String()) //nolint:gosec // spans escapes what it writes
}

// block renders a block of code; language may be "".
func block(source, language string, h *highlighter) string {
	source = lines(source)
	var b strings.Builder
	l := lexerOf(language)
	openCode(&b, l, language, "code")
	w := spans{b: &b}
	for _, t := range h.tokens(l, source) {
		w.write(t)
	}
	w.close()
	b.WriteString(closeCode)
	return b.String()
}

const closeCode = "</code></pre></figure>\n"

// openCode begins a figure. The group around the code is labelled with its
// language, because scrolling areas take the keyboard focus and need a name.
func openCode(b *strings.Builder, l chroma.Lexer, language, class string) {
	shown, id := language, language
	if l != nil {
		shown, id = titleOf(l), nameOf(l)
	}
	shown = html.EscapeString(label(shown))
	b.WriteString(`<figure class="` + class + `"><figcaption>`)
	if shown != "" {
		b.WriteString(`<span class="lang">` + shown + `</span>`)
	}
	b.WriteString(`</figcaption><pre tabindex="0"`)
	if shown != "" {
		b.WriteString(` role="group" aria-label="` + shown + `"`)
	}
	b.WriteString(`><code`)
	if named(id) {
		b.WriteString(` class="language-` + id + `"`)
	}
	b.WriteString(`>`)
}

// named reports whether id is valid in a language class.
func named(id string) bool {
	odd := strings.ContainsFunc(id, func(r rune) bool {
		return !unicode.IsLetter(r) && !unicode.IsNumber(r) && !strings.ContainsRune("+#_.-", r)
	})
	return id != "" && !odd && utf8.RuneCountInString(id) <= 40
}

// label makes a single line without bidirectional control characters.
func label(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) || unicode.IsControl(r) {
			return -1
		}
		return r
	}, s)
	s = strings.Join(strings.Fields(s), " ")
	if r := []rune(s); len(r) > 40 {
		s = string(r[:39]) + "…"
	}
	return s
}

// lines normalizes line ends as lexers do, so that highlighted and plain output
// agree.
func lines(s string) string {
	if strings.IndexByte(s, '\r') < 0 {
		return s
	}
	return strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
}

// A highlighter highlights the code of one text within its bounds; code beyond them is
// plain.
type highlighter struct {
	each  int           // bytes of one block
	left  int           // bytes left for further blocks
	spare time.Duration // time left for them
}

func newHighlighter(each, all int) *highlighter {
	return &highlighter{each: each, left: all, spare: maxTime}
}

// tokens splits source at token borders, or returns it as one token. The
// concatenated tokens always equal source.
func (p *highlighter) tokens(l chroma.Lexer, source string) []chroma.Token {
	plain := []chroma.Token{{Type: chroma.Text, Value: source}}
	if l == nil || len(source) > p.each || len(source) > p.left || p.spare <= 0 || longLine(source) {
		return plain
	}
	p.left -= len(source)
	begun := time.Now()
	defer func() { p.spare -= time.Since(begun) }()
	found, ok := lex(l, source, begun.Add(p.spare))
	if !ok {
		return plain
	}
	return found
}

// lex returns false if the lexer fails, times out or changes the text. A single
// rule gives up after a quarter of a second.
func lex(l chroma.Lexer, source string, end time.Time) (found []chroma.Token, ok bool) {
	// A lexer with a faulty description panics: the code stays plain.
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	next, err := l.Tokenise(&chroma.TokeniseOptions{State: "root"}, source)
	if err != nil {
		return nil, false
	}
	rest := source
	for t := next(); t != chroma.EOF; t = next() {
		if !strings.HasPrefix(rest, t.Value) {
			// Some lexers append a line feed.
			if rest+"\n" != t.Value {
				return nil, false
			}
			t.Value = rest
		}
		rest = rest[len(t.Value):]
		found = append(found, t)
		if time.Now().After(end) {
			return nil, false
		}
	}
	if rest != "" {
		found = append(found, chroma.Token{Type: chroma.Text, Value: rest})
	}
	return found, true
}

func longLine(source string) bool {
	for line := range strings.Lines(source) {
		if len(line) > maxLine {
			return true
		}
	}
	return false
}

// class is the class of a token, or "" for plain text.
func class(t chroma.TokenType) string {
	switch t {
	case chroma.KeywordType, chroma.NameClass, chroma.NameException, chroma.NameNamespace:
		return "t"
	case chroma.NameBuiltin, chroma.NameBuiltinPseudo, chroma.NameTag, chroma.NameAttribute, chroma.NameProperty,
		chroma.NameConstant, chroma.NameEntity, chroma.NameLabel:
		return "n"
	case chroma.NameFunction, chroma.NameFunctionMagic:
		return "f"
	case chroma.NameDecorator, chroma.CommentPreproc, chroma.CommentPreprocFile, chroma.CommentHashbang,
		chroma.GenericHeading, chroma.GenericSubheading, chroma.GenericPrompt:
		return "h"
	case chroma.GenericInserted:
		return "i"
	case chroma.GenericDeleted:
		return "d"
	case chroma.Date:
		return "m"
	}
	switch {
	case t.InCategory(chroma.Keyword):
		return "k"
	case t.InSubCategory(chroma.NameVariable):
		return "n"
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber):
		return "m"
	case t.InCategory(chroma.Operator):
		return "o"
	case t.InCategory(chroma.Comment):
		return "c"
	}
	return ""
}

// spans writes tokens as elements, one per run of tokens of the same class. It
// escapes all text.
type spans struct {
	b     *strings.Builder
	lines bool   // wrap each line
	class string // of the open element; "": none
	fresh bool   // a line is open and empty
}

func (w *spans) open() {
	if w.lines {
		w.b.WriteString(`<span class="line">`)
		w.fresh = true
	}
}

func (w *spans) write(t chroma.Token) {
	to := class(t.Type)
	for line := range strings.Lines(t.Value) {
		if w.lines && !w.fresh && w.ended() {
			w.turn("")
			w.b.WriteString(`</span>`)
			w.open()
		}
		// No separate element for white space of another class.
		if to != w.class && (w.lines || strings.TrimSpace(line) != "" || w.class == "") {
			w.turn(to)
		}
		w.b.WriteString(html.EscapeString(line))
		w.fresh = false
	}
}

// ended reports whether the output ends with a line end.
func (w *spans) ended() bool { return strings.HasSuffix(w.b.String(), "\n") }

func (w *spans) turn(class string) {
	if w.class == class {
		return
	}
	if w.class != "" {
		w.b.WriteString(`</span>`)
	}
	if class != "" {
		w.b.WriteString(`<span class="` + class + `">`)
	}
	w.class = class
}

func (w *spans) close() {
	w.turn("")
	if w.lines {
		w.b.WriteString(`</span>`)
		w.lines = false
	}
}
