// SPDX-License-Identifier: Apache-2.0

package render

import (
	"bytes"
	"html/template"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
	"github.com/yuin/goldmark/ast"
	tables "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/util"
)

// A Stream renders an answer while it is being written. It keeps the blocks
// that can no longer change and reads only what follows them again, so a piece
// costs what the last block costs, however long the answer is. Blocks that are
// large are drawn anew only when they have grown by a 64th.
//
// What is unfinished is shown as what it will most likely become: an open fence
// is a block of code, open emphasis is closed, an unfinished link is its text,
// and marks that may still become something else wait for what follows them.
//
// A Stream is for one goroutine at a time.
type Stream struct {
	o        Options
	text     []byte // all that came, clean
	partial  []byte // the beginning of a rune
	settled  int    // bytes of text that segments hold
	segments []segment
	shown    []template.HTML // what the caller has
	drawn    int             // bytes of text that shown was made of

	refs    []parser.Reference // defined in the segments
	allRefs []parser.Reference // and in what follows them
	known   map[string]string  // destination and title of allRefs by label
	cost    cost               // of the lines that are complete
	lined   int                // bytes of them
	pen     pen
}

// A segment is a stretch of text whose blocks are final, unless a reference is
// defined that they use.
type segment struct {
	from, to int
	grown    int // as secure counts
	blocks   []template.HTML
}

// NewStream begins an answer.
func NewStream(o Options) *Stream {
	return &Stream{o: o, known: map[string]string{}, pen: pen{lamp: newLamp(maxBlock, maxBlocks)}}
}

// Append adds a piece of text and returns what changed: blocks takes the place
// of all that was shown from index first on. When nothing changed, first is the
// number of blocks and blocks is empty. A piece may end anywhere, also inside
// of a character.
func (s *Stream) Append(piece string) (first int, blocks []template.HTML) {
	s.take(piece)
	if grown := len(s.text) - s.drawn; grown == 0 || grown < s.reluctance() {
		return len(s.shown), nil
	}
	s.drawn = len(s.text)
	if s.tooMuch() {
		return s.show([]template.HTML{plain(string(s.text))})
	}
	s.settle()
	tail, grown := s.tail()
	next := make([]template.HTML, 0, len(s.shown)+len(tail))
	for _, g := range s.segments {
		next = append(next, g.blocks...)
		grown += g.grown
	}
	if grown > allowance(len(s.text)) {
		return s.show([]template.HTML{plain(string(s.text))})
	}
	return s.show(append(next, tail...))
}

// Finish ends the answer and returns what changes by that, as Append does. From
// then on the blocks are those that the function [Blocks] returns for the whole
// text.
func (s *Stream) Finish() (first int, blocks []template.HTML) {
	s.text = append(s.text, clean(string(s.partial))...)
	s.partial = nil
	return s.show(Blocks(string(s.text), s.o))
}

// Blocks returns all blocks as they are shown now.
func (s *Stream) Blocks() []template.HTML { return slices.Clone(s.shown) }

// take keeps the bytes of a rune that is not there as a whole.
func (s *Stream) take(piece string) {
	piece = string(s.partial) + piece
	end := len(piece)
	for i := max(0, end-utf8.UTFMax+1); i < len(piece); i++ {
		if utf8.RuneStart(piece[i]) && !utf8.FullRuneInString(piece[i:]) {
			end = i
			break
		}
	}
	s.partial = []byte(piece[end:])
	s.text = append(s.text, clean(piece[:end])...)
	for {
		n := bytes.IndexByte(s.text[s.lined:], '\n') + 1
		if n == 0 {
			return
		}
		s.cost.add(string(s.text[s.lined : s.lined+n]))
		s.lined += n
	}
}

// reluctance is how much the text must grow before it is drawn again: more
// where that takes long, so that all drawings together take no longer than a
// fixed number of drawings of the whole.
func (s *Stream) reluctance() int {
	const small = 8 << 10
	weight := len(s.text) - s.settled + s.cost.marks*s.cost.marks/50
	return max(0, weight-small) / 64
}

func (s *Stream) tooMuch() bool {
	c := s.cost
	c.add(string(s.text[s.lined:]))
	return len(s.text) > MaxMarkdown || c.over()
}

// show makes next what the caller has. Blocks that stayed are the same
// strings, so comparing them takes no time.
func (s *Stream) show(next []template.HTML) (first int, blocks []template.HTML) {
	for first < len(next) && first < len(s.shown) && next[first] == s.shown[first] {
		first++
	}
	s.shown = next
	return first, slices.Clone(next[first:])
}

// settle moves the blocks that are final from the tail into segments.
func (s *Stream) settle() {
	tail := s.text[s.settled:]
	doc, pc := parse(tail, s.refs)
	cut := border(doc, tail)
	if cut == 0 {
		return
	}
	// References of the rest may still change, so only those before the cut are
	// taken; for that, its part is read by itself.
	part := tail[:cut:cut]
	if len(pc.References()) > len(s.refs) {
		_, pc = parse(part, s.refs)
		s.refs = pc.References()
	}
	s.allRefs = pc.References()
	g := segment{from: s.settled, to: s.settled + cut}
	s.drawSegment(&g)
	s.segments = append(s.segments, g)
	s.settled += cut
	s.pen.settle()
}

// drawSegment draws with the references that are known up to now, in the text
// before and in the tail.
func (s *Stream) drawSegment(g *segment) {
	src := s.text[g.from:g.to:g.to]
	g.blocks, g.grown = s.draw(src, func(language, code string, _ bool) string { return s.pen.paint(language, code, false) })
}

func (s *Stream) draw(src []byte, painter func(language, code string, open bool) string) ([]template.HTML, int) {
	doc, _ := parse(src, s.allRefs)
	grown := secure(doc, src, s.o)
	if grown > allowance(len(s.text)) {
		return []template.HTML{plain(string(src))}, grown
	}
	paint(doc, src, painter)
	return draw(doc, src), grown
}

// tail draws what is not final, as it will most likely become, and segments
// again that use references which it defines.
func (s *Stream) tail() ([]template.HTML, int) {
	src := []byte(shape(string(s.text[s.settled:]), s.refs))
	_, pc := parse(src, s.refs)
	s.allRefs = pc.References()
	for i, changed := 0, s.learn(); i < len(s.segments) && len(changed) > 0; i++ {
		if g := &s.segments[i]; mentions(s.text[g.from:g.to], changed) {
			s.drawSegment(g)
		}
	}
	return s.draw(src, s.pen.paint)
}

// learn keeps where references lead and returns the labels of those that lead
// elsewhere than before.
func (s *Stream) learn() []string {
	now := make(map[string]string, len(s.allRefs))
	for _, r := range s.allRefs {
		now[util.ToLinkReference(r.Label())] = string(r.Destination()) + "\x00" + string(r.Title())
	}
	var changed []string
	for label, to := range now {
		if was, ok := s.known[label]; !ok || was != to {
			changed = append(changed, label)
		}
	}
	for label := range s.known {
		if _, ok := now[label]; !ok {
			changed = append(changed, label)
		}
	}
	s.known = now
	return changed
}

// mentions reports whether src may use one of labels: it says yes where a label
// goes over lines, since quotes put marks in between.
func mentions(src []byte, labels []string) bool {
	for {
		i := bytes.IndexByte(src, '[')
		if i < 0 {
			return false
		}
		src = src[i+1:]
		end := 0
		for end < len(src) && src[end] != ']' && src[end] != '[' {
			if src[end] == '\\' {
				end++
			}
			end++
		}
		if end >= len(src) || src[end] == '[' {
			continue
		}
		label := src[:end]
		if bytes.IndexByte(label, '\n') >= 0 || slices.Contains(labels, util.ToLinkReference(label)) {
			return true
		}
	}
}

// border returns where the last block begins that no later text can join with
// the one before it, or 0.
func border(doc ast.Node, src []byte) int {
	// A line that goes on may still become anything.
	complete := bytes.LastIndexByte(src, '\n') + 1
	cut := 0
	for n := doc.FirstChild(); n != nil; n = n.NextSibling() {
		before := n.PreviousSibling()
		if before == nil || n.Pos() <= before.Pos() {
			continue
		}
		at := bytes.LastIndexByte(src[:n.Pos()], '\n') + 1
		if at >= complete {
			break
		}
		// Definitions, text and tables may be parts of what is one paragraph
		// until it ends.
		line := bytes.LastIndexByte(src[:max(at-1, 0)], '\n') + 1
		blank := len(bytes.TrimSpace(src[line:at])) == 0
		if blank || !loose(n) || !loose(before) {
			cut = at
		}
	}
	return cut
}

func loose(n ast.Node) bool {
	switch n.Kind() {
	case ast.KindParagraph, ast.KindLinkReferenceDefinition, ast.KindHeading, tables.KindTable:
		return true
	}
	return false
}

// A pen paints code and remembers what it painted since blocks were settled.
// Lexers are slow, and the last block is drawn with each piece.
type pen struct {
	lamp *lamp
	done map[string]string // HTML by language and code
	// The code that is being written, its beginning painted piece by piece: a
	// piece ends with a line, and is lexed by itself.
	language, code string
	html           string
}

// chunk is how many bytes of open code are lexed anew at most, but for one
// line.
const chunk = 256

func (p *pen) paint(language, code string, open bool) string {
	if open {
		return p.paintOpen(language, lines(code))
	}
	key := language + "\x00" + code
	if _, ok := p.done[key]; !ok {
		if p.done == nil {
			p.done = map[string]string{}
		}
		p.done[key] = block(code, language, p.lamp)
	}
	return p.done[key]
}

func (p *pen) settle() { p.done, p.language, p.code, p.html = nil, "", "", "" }

func (p *pen) paintOpen(language, code string) string {
	l := lexerOf(language)
	if language != p.language || p.code == "" || !strings.HasPrefix(code, p.code) {
		p.language, p.code = language, ""
		var b strings.Builder
		openCode(&b, l, language, "code")
		p.html = b.String()
	}
	for len(code)-len(p.code) > chunk {
		rest := code[len(p.code):]
		end := strings.IndexByte(rest[chunk:], '\n') + 1
		if end == 0 || chunk+end == len(rest) {
			break // the last line may go on: the parser ends it in any case
		}
		piece := rest[:chunk+end]
		p.html += p.light(l, piece)
		p.code += piece
	}
	return p.html + p.light(l, code[len(p.code):]) + closeCode
}

// light highlights a piece of code that is open. It takes nothing from what the
// finished blocks may take, unless the lexer is one that does not come back.
func (p *pen) light(l chroma.Lexer, piece string) string {
	var b strings.Builder
	w := spans{b: &b}
	left, spare := p.lamp.left, p.lamp.spare
	for _, t := range p.lamp.tokens(l, piece) {
		w.write(t)
	}
	p.lamp.left = left
	if spare-p.lamp.spare < patience/10 {
		p.lamp.spare = spare
	}
	w.close()
	return b.String()
}
