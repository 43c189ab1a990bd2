// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"errors"
	"math"
	"strings"

	"github.com/artelhq/artel"
)

// A matrix maps points as PDF writes it: x' = a·x + c·y + e, y' = b·x + d·y + f.
type matrix [6]float64

func (m matrix) then(n matrix) matrix {
	return matrix{
		m[0]*n[0] + m[1]*n[2], m[0]*n[1] + m[1]*n[3],
		m[2]*n[0] + m[3]*n[2], m[2]*n[1] + m[3]*n[3],
		m[4]*n[0] + m[5]*n[2] + n[4], m[4]*n[1] + m[5]*n[3] + n[5],
	}
}

func (m matrix) point(x, y float64) (float64, float64) {
	return m[0]*x + m[2]*y + m[4], m[1]*x + m[3]*y + m[5]
}

var identity = matrix{1, 0, 0, 1, 0, 0}

// A chunk is a piece of text on a page with one look. y grows upwards.
type chunk struct {
	text               string
	x, end, y, size    float64
	bold, italic, mono bool
	turned             bool // does not run from left to right
	link               string
	rise               int8
}

// A pdfState is what q keeps and Q brings back.
type pdfState struct {
	ctm                   matrix
	font                  *pdfFont
	size, char, word      float64
	scale, leading, shift float64
}

// A pdfPage is read by following its operators.
type pdfPage struct {
	f        *pdfFile
	chunks   []chunk
	pictures int
	forms    int
	unknown  int // glyphs without a meaning

	state      pdfState
	stack      []pdfState
	text, line matrix
	depth      int
	actual     []string // texts that replace what is marked, "\x00" for none
	actualDone bool
}

const (
	maxChunks = 300_000 // of one page
	maxForms  = 8       // forms inside forms
	maxShown  = 5_000   // forms that one page shows
)

// run follows the operators of a stream.
func (p *pdfPage) run(data []byte, resources pdfDict) error {
	l := newLexer(p.f.budget, data)
	var args []any
	for {
		o := l.object()
		if _, end := o.(pdfEnd); end {
			if l.err != nil && p.f.full {
				return l.err
			}
			if err := p.f.stopped(); err != nil {
				return err
			}
			return nil
		}
		w, ok := o.(pdfWord)
		if !ok {
			if len(args) < 1000 {
				args = append(args, o)
			}
			continue
		}
		if w == "BI" {
			skipInline(l)
		} else if err := p.operator(string(w), args, resources); err != nil {
			return err
		}
		args = args[:0]
		if len(p.chunks) > maxChunks {
			p.f.truncate("a page has more text than is read of one")
			return nil
		}
	}
}

// skipInline goes to the end of a picture in the stream.
func skipInline(l *lexer) {
	for {
		switch w := l.token().(type) {
		case pdfEnd:
			return
		case pdfWord:
			if w == "ID" {
				for i := l.pos; i+2 < len(l.buf); i++ {
					if l.buf[i] == 'E' && l.buf[i+1] == 'I' && isPDFSpace(int(l.buf[i-1])) && isPDFSpace(int(l.buf[i+2])) {
						l.pos = i + 2
						return
					}
				}
				l.pos = len(l.buf)
				return
			}
			if w == "EI" {
				return
			}
		}
	}
}

func floats(args []any, n int) ([]float64, bool) {
	if len(args) < n {
		return nil, false
	}
	v := make([]float64, n)
	for i, a := range args[len(args)-n:] {
		f, ok := numeric(a)
		if !ok {
			return nil, false
		}
		v[i] = f
	}
	return v, true
}

// arity returns how many numbers an operator takes.
func arity(op string) int {
	switch op {
	case "cm", "Tm":
		return 6
	case "Td", "TD":
		return 2
	case "Tc", "Tw", "Tz", "TL", "Ts":
		return 1
	}
	return 0
}

func (p *pdfPage) operator(op string, args []any, resources pdfDict) error {
	v, ok := floats(args, arity(op))
	if !ok {
		return nil
	}
	s := &p.state
	switch op {
	case "q":
		if len(p.stack) < 256 {
			p.stack = append(p.stack, *s)
		}
	case "Q":
		if n := len(p.stack); n > 0 {
			*s = p.stack[n-1]
			p.stack = p.stack[:n-1]
		}
	case "cm":
		s.ctm = matrix(v).then(s.ctm)
	case "BT":
		p.text, p.line = identity, identity
	case "Tm":
		p.line = matrix(v)
		p.text = p.line
	case "TD", "Td":
		if op == "TD" {
			s.leading = -v[1]
		}
		p.move(v[0], v[1])
	case "T*":
		p.move(0, -s.leading)
	case "Tc":
		s.char = v[0]
	case "Tw":
		s.word = v[0]
	case "Tz":
		s.scale = v[0] / 100
	case "TL":
		s.leading = v[0]
	case "Ts":
		s.shift = v[0]
	case "Tf":
		if len(args) >= 2 {
			name, _ := args[len(args)-2].(pdfName)
			if size, ok := numeric(args[len(args)-1]); ok {
				s.size = size
			}
			s.font = p.f.font(p.f.dict(resources["Font"])[name])
		}
	case "Tj", "'", "\"":
		if op == "\"" && len(args) >= 3 {
			if w, ok := floats(args[:2], 2); ok {
				s.word, s.char = w[0], w[1]
			}
		}
		if op != "Tj" {
			p.move(0, -s.leading)
		}
		if len(args) > 0 {
			if t, ok := args[len(args)-1].(pdfString); ok {
				p.show([]any{t})
			}
		}
	case "TJ":
		if len(args) > 0 {
			list, _ := args[len(args)-1].([]any)
			p.show(list)
		}
	case "BDC", "BMC":
		p.mark(op, args, resources)
	case "EMC":
		if n := len(p.actual); n > 0 {
			p.actual = p.actual[:n-1]
		}
	case "Do":
		if len(args) > 0 {
			name, _ := args[len(args)-1].(pdfName)
			return p.external(p.f.dict(resources["XObject"])[name], resources)
		}
	}
	return nil
}

func (p *pdfPage) move(x, y float64) {
	p.line = matrix{1, 0, 0, 1, x, y}.then(p.line)
	p.text = p.line
}

// mark begins marked content, which may say its text itself.
func (p *pdfPage) mark(op string, args []any, resources pdfDict) {
	if len(p.actual) > 256 {
		return
	}
	actual := "\x00"
	if op == "BDC" && len(args) >= 2 {
		props, ok := args[1].(pdfDict)
		if name, is := args[1].(pdfName); is && !ok {
			props = p.f.dict(p.f.dict(resources["Properties"])[name])
		}
		if t, ok := p.f.get(props["ActualText"]).(pdfString); ok && len(t) < 64<<10 {
			actual = pdfText(t)
			p.actualDone = false
		}
	}
	p.actual = append(p.actual, actual)
}

// replaced returns the text that stands for what is shown now.
func (p *pdfPage) replaced() (string, bool) {
	for _, a := range p.actual {
		if a != "\x00" {
			if p.actualDone {
				return "", true
			}
			p.actualDone = true
			return a, true
		}
	}
	return "", false
}

// external follows a form and counts a picture.
func (p *pdfPage) external(o any, resources pdfDict) error {
	s, ok := p.f.get(o).(*pdfStream)
	if !ok {
		return nil
	}
	if p.f.name(s.dict["Subtype"]) != "Form" {
		p.pictures++
		return nil
	}
	if p.depth >= maxForms {
		return nil
	}
	if p.forms++; p.forms > maxShown {
		return artel.Errorf(artel.TooLarge, op, "", "a page of the document shows more than %d forms; its text is not read", maxShown)
	}
	ref, _ := o.(pdfRef)
	data, err := p.f.unpack(s, ref)
	if err != nil {
		return p.f.fatal(err)
	}
	if r := p.f.dict(s.dict["Resources"]); r != nil {
		resources = r
	}
	state, stack, text, line := p.state, p.stack, p.text, p.line
	if m, ok := floats(p.f.list(s.dict["Matrix"]), 6); ok {
		p.state.ctm = matrix(m).then(p.state.ctm)
	}
	p.stack = nil
	p.depth++
	err = p.run(data, resources)
	p.depth--
	p.state, p.stack, p.text, p.line = state, stack, text, line
	return err
}

// fatal returns errors that end the document; others end a part of it.
func (f *pdfFile) fatal(err error) error {
	if f.stopped() != nil || !damaged(err) && !errors.Is(err, errPicture) {
		return err
	}
	return nil
}

// show adds the text of strings and of the gaps between them.
func (p *pdfPage) show(list []any) {
	s := &p.state
	if s.font == nil || s.size == 0 {
		return
	}
	var b strings.Builder
	var c chunk
	begin := func() {
		m := p.text.then(s.ctm)
		c = chunk{bold: s.font.bold, italic: s.font.italic, mono: s.font.mono}
		c.x, c.y = m.point(0, s.shift)
		c.size = math.Abs(s.size) * math.Hypot(m[2], m[3])
		c.turned = math.Abs(m[1]) > 0.3*math.Abs(m[0]) || m[0]*s.size < 0
		if s.shift > 0.1*s.size {
			c.rise = 1
		} else if s.shift < -0.1*s.size {
			c.rise = -1
		}
	}
	flush := func() {
		if b.Len() > 0 && finite(c.x) && finite(c.y) && finite(c.size) {
			c.end, _ = p.text.then(s.ctm).point(0, 0)
			c.text = b.String()
			p.chunks = append(p.chunks, c)
		}
		b.Reset()
	}
	begin()
	for _, o := range list {
		if n, ok := numeric(o); ok {
			if n < -180 { // a gap
				flush()
			}
			p.advance(-n / 1000 * s.size * s.scale)
			if b.Len() == 0 {
				begin()
			}
			continue
		}
		str, ok := o.(pdfString)
		if !ok {
			continue
		}
		actual, replaced := p.replaced()
		b.WriteString(actual)
		for _, g := range s.font.decode(string(str)) {
			if g.text == "" && !replaced {
				p.unknown++
				g.text = "\uFFFD"
			}
			if !replaced {
				b.WriteString(g.text)
			}
			w := g.width/1000*s.size + s.char
			if g.space {
				w += s.word
			}
			p.advance(w * s.scale)
		}
	}
	flush()
}

func (p *pdfPage) advance(x float64) { p.text = matrix{1, 0, 0, 1, x, 0}.then(p.text) }

func finite(f float64) bool { return f > -1e7 && f < 1e7 }
