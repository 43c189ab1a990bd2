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
// that can no longer change and parses only the text after them again, so a
// piece costs as much as the last block, whatever the length of the answer.
// Large blocks are redrawn only after growing by a 64th.
//
// Unfinished constructs are shown in their most likely form: an open fence is a
// block of code, open emphasis is closed, an unfinished link is its text;
// ambiguous marks are held back.
//
// A Stream is for one goroutine at a time.
type Stream struct {
	o        Options
	text     []byte // all text, cleaned
	partial  []byte // incomplete rune at the end
	settled  int    // bytes of text covered by segments
	segments []segment
	shown    []template.HTML // the caller's blocks
	drawn    int             // bytes of text that shown was rendered from

	refs    []parser.Reference // defined in the segments
	allRefs []parser.Reference // refs and those of the text after them
	known   map[string]string  // destination and title of allRefs by label
	cost    cost               // of the complete lines
	lined   int                // bytes of them
	code    codeCache
}

// A segment is a range of text whose blocks are final, unless a reference used
// in them is defined later.
type segment struct {
	from, to int
	grown    int // result of secure
	blocks   []template.HTML
}

// NewStream begins an answer.
func NewStream(o Options) *Stream {
	return &Stream{o: o, known: map[string]string{}, code: codeCache{highlighter: newHighlighter(maxBlock, maxBlocks)}}
}

// Append adds a piece of text and returns the change: blocks replaces all
// blocks from index first on. Without a change, first is the number of blocks
// and blocks is empty. A piece may end inside a character.
func (s *Stream) Append(piece string) (first int, blocks []template.HTML) {
	s.take(piece)
	if grown := len(s.text) - s.drawn; grown == 0 || grown < s.redrawStep() {
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

// Finish ends the answer and returns the change, like Append. Afterwards the
// blocks equal the result of the function [Blocks] for the whole text.
func (s *Stream) Finish() (first int, blocks []template.HTML) {
	s.text = append(s.text, clean(string(s.partial))...)
	s.partial = nil
	return s.show(Blocks(string(s.text), s.o))
}

// Blocks returns all current blocks.
func (s *Stream) Blocks() []template.HTML { return slices.Clone(s.shown) }

// take appends piece to the text, and holds an incomplete rune back.
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

// redrawStep is how much the text must grow before it is redrawn: proportional
// to the cost, so that all redraws together cost a fixed number of full
// renderings.
func (s *Stream) redrawStep() int {
	const small = 8 << 10
	weight := len(s.text) - s.settled + s.cost.marks*s.cost.marks/50
	return max(0, weight-small) / 64
}

func (s *Stream) tooMuch() bool {
	c := s.cost
	c.add(string(s.text[s.lined:]))
	return len(s.text) > MaxMarkdown || c.over()
}

// show makes next the caller's blocks. Unchanged blocks are identical strings,
// which compare in no time.
func (s *Stream) show(next []template.HTML) (first int, blocks []template.HTML) {
	for first < len(next) && first < len(s.shown) && next[first] == s.shown[first] {
		first++
	}
	s.shown = next
	return first, slices.Clone(next[first:])
}

// settle moves final blocks from the tail into segments.
func (s *Stream) settle() {
	tail := s.text[s.settled:]
	doc, pc := parse(tail, s.refs)
	cut := border(doc, tail)
	if cut == 0 {
		return
	}
	// References after the cut may still change, so the part before it is
	// parsed by itself.
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
	s.code.settle()
}

// drawSegment renders a segment with the references known so far, from the
// segments and the tail.
func (s *Stream) drawSegment(g *segment) {
	src := s.text[g.from:g.to:g.to]
	g.blocks, g.grown = s.draw(src, func(language, code string, _ bool) string { return s.code.paint(language, code, false) })
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

// tail renders the unfinished text, and again the segments that use references
// defined in it.
func (s *Stream) tail() ([]template.HTML, int) {
	src := []byte(shape(string(s.text[s.settled:]), s.refs))
	_, pc := parse(src, s.refs)
	s.allRefs = pc.References()
	for i, changed := 0, s.learn(); i < len(s.segments) && len(changed) > 0; i++ {
		if g := &s.segments[i]; mentions(s.text[g.from:g.to], changed) {
			s.drawSegment(g)
		}
	}
	return s.draw(src, s.code.paint)
}

// learn records the destinations of references and returns the labels whose
// destination changed.
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

// mentions reports whether src may use one of labels; it returns true for a
// label across lines, because of quote marks in between.
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

// border returns the beginning of the last block that later text cannot merge
// with its predecessor, or 0.
func border(doc ast.Node, src []byte) int {
	// An incomplete line may still become any kind of block.
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
		// Definitions, text and tables may be parts of one paragraph until that
		// ends.
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

// A codeCache highlights code and caches the result until blocks are settled. Lexers
// are slow, and the last block is redrawn with each piece.
type codeCache struct {
	highlighter *highlighter
	done        map[string]string // HTML by language and code
	// The open block of code, highlighted in chunks of whole lines.
	language, code string
	html           string
}

// chunk is how many bytes of open code are lexed again at most, not counting
// one line.
const chunk = 256

func (p *codeCache) paint(language, code string, open bool) string {
	if open {
		return p.paintOpen(language, lines(code))
	}
	key := language + "\x00" + code
	if _, ok := p.done[key]; !ok {
		if p.done == nil {
			p.done = map[string]string{}
		}
		p.done[key] = block(code, language, p.highlighter)
	}
	return p.done[key]
}

func (p *codeCache) settle() { p.done, p.language, p.code, p.html = nil, "", "", "" }

func (p *codeCache) paintOpen(language, code string) string {
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
			break // the last line is incomplete; the parser ends it in any case
		}
		piece := rest[:chunk+end]
		p.html += p.highlightChunk(l, piece)
		p.code += piece
	}
	return p.html + p.highlightChunk(l, code[len(p.code):]) + closeCode
}

// highlightChunk highlights a chunk of open code. Its time does not count against the
// finished blocks, unless the lexer hangs.
func (p *codeCache) highlightChunk(l chroma.Lexer, piece string) string {
	var b strings.Builder
	w := spans{b: &b}
	left, spare := p.highlighter.left, p.highlighter.spare
	for _, t := range p.highlighter.tokens(l, piece) {
		w.write(t)
	}
	p.highlighter.left = left
	if spare-p.highlighter.spare < maxTime/10 {
		p.highlighter.spare = spare
	}
	w.close()
	return b.String()
}
