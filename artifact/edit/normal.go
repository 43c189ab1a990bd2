// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"iter"
	"strings"
)

// findNormalized finds old text that is written otherwise: with other quotes,
// dashes and spaces, in another form of Unicode, with characters that take no
// room, with white space at the end of lines, with the other kind of line
// ends, with or without spaces between Chinese and Latin. Matches that cut a
// character of the original in two are none.
func findNormalized(ctx context.Context, j *job, e Edit, overlap bool) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		doc, err := j.doc.fold(ctx, &j.meter, j.indent)
		if err != nil {
			yield(match{}, err)
			return
		}
		for _, f := range formsOf(e.Old, j.indent) {
			if f.text == e.Old && doc.groups == nil {
				continue // the exact layer has looked for just that
			}
			fit := aligner{j: j, e: e}
			for i := range occurrences(doc.text, f.text, true) {
				m, ok := f.place(doc, i)
				if !ok || !overlap && m.start < fit.last.end {
					continue
				}
				if overlap && fit.any {
					// Two places are refused, however close they are.
					if !yield(m, nil) {
						return
					}
					continue
				}
				if err := fit.match(ctx, m); !yield(fit.last, err) || err != nil {
					return
				}
			}
			if fit.any {
				return
			}
		}
	}
}

// A form is one way in which a normalised old text can stand in a normalised
// text. White space at its edges depends on what stands around it, so that it
// has up to four.
type form struct {
	text string
	lead bool // it began with spaces, which have to be left out of the text too
	tail bool // it ended with white space, which may be left out of the text too
}

// formsOf returns the forms of old, the closest first.
func formsOf(old string, indent bool) []form {
	body := foldText(old, indent).text
	last := old[strings.LastIndex(old, lineEnd)+1:]
	blanks := compatible(last[len(strings.TrimRightFunc(last, isBlank)):])
	if indent && strings.Trim(last, " \t") == "" {
		blanks = "" // indentation of the line that follows
	}
	var forms []form
	add := func(f form) {
		if f.text != "" {
			forms = append(forms, f)
		}
	}
	variants := func(text string, lead bool) {
		if blanks != "" {
			add(form{text + blanks, lead, false})
		}
		add(form{text, lead, blanks != ""})
	}
	variants(body, false)
	if bare := strings.TrimLeft(body, " "); bare != body && bare != "" {
		variants(bare, true)
	}
	return forms
}

// place returns the place in the original of the form that stands at byte i of
// the folded text, if there is one.
func (f form) place(doc *folded, i int) (match, bool) {
	start, ok := doc.start(i)
	if !ok {
		return match{}, false
	}
	end, ok := doc.end(i + len(f.text))
	if !ok {
		return match{}, false
	}
	if f.lead {
		begin := doc.leftOutBefore(i)
		if begin == start {
			return match{}, false
		}
		start = begin
	}
	if f.tail {
		end = doc.leftOutAfter(i+len(f.text), end)
	}
	return match{start: start, end: end}, true
}

// A aligner says how close the matches of an edit are, one after the other, and
// makes the new text fit in: with the line ends of the document, and its
// indentation where that was left out.
type aligner struct {
	j       *job
	e       Edit
	any     bool
	last    match  // the match that it has fitted
	line    int    // where the line of last begins
	lineEnd string // where the first match is
	close   map[string]float64
}

// maxClose is how many ways to write the old text are remembered.
const maxClose = 1000

func (f *aligner) match(ctx context.Context, m match) error {
	text := f.j.doc.text
	if !f.any {
		f.lineEnd = lineEndAt(text, m.start)
	}
	m.put = f.e.New
	if f.j.indent {
		first := !f.any // on its line
		if i := strings.LastIndex(text[f.last.start:m.start], lineEnd); i >= 0 {
			f.line, first = f.last.start+i+1, true
		}
		m.start, m.put = reindent(text, f.line, m.start, m.end, first, f.e)
	}
	m.put = withLineEnds(m.put, f.lineEnd)
	var err error
	m.similarity, err = f.similarity(ctx, text[m.start:m.end])
	f.any, f.last = true, m
	return err
}

// similarity says how close what was matched is to the old text. Most places
// of a text write it in one of a few ways.
func (f *aligner) similarity(ctx context.Context, matched string) (float64, error) {
	if s, ok := f.close[matched]; ok {
		return s, nil
	}
	old, there := []rune(f.e.Old), []rune(matched)
	d, err := distance(ctx, &f.j.meter, old, there)
	s := 1 - float64(d)/float64(max(len(old), len(there)))
	if f.close == nil {
		f.close = map[string]float64{}
	}
	if len(f.close) < maxClose {
		f.close[matched] = s
	}
	return s, err
}

// lineEndAt returns how the line ends that byte i is on; "" where the text has
// one line.
func lineEndAt(text string, i int) string {
	at := strings.Index(text[i:], lineEnd)
	if at >= 0 {
		at += i
	} else if at = strings.LastIndex(text[:i], lineEnd); at < 0 {
		return ""
	}
	if at > 0 && text[at-1] == '\r' {
		return "\r\n"
	}
	return lineEnd
}

// withLineEnds returns s with its line ends as given; "": as they are.
func withLineEnds(s, end string) string {
	if end == "" || !strings.Contains(s, lineEnd) {
		return s
	}
	s = strings.ReplaceAll(s, "\r\n", lineEnd)
	if end != lineEnd {
		s = strings.ReplaceAll(s, lineEnd, end)
	}
	return s
}
