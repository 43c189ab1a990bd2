// SPDX-License-Identifier: Apache-2.0

package edit

import (
	"context"
	"iter"
	"strings"
)

// findNormalized finds old text in another spelling: other quotes, dashes and
// spaces, another form of Unicode, zero-width characters, trailing white space,
// other line ends, spaces between Chinese and Latin. A match must not split a
// character of the original.
func findNormalized(ctx context.Context, j *job, e Edit, overlap bool) iter.Seq2[match, error] {
	return func(yield func(match, error) bool) {
		doc, err := j.doc.fold(ctx, &j.meter, j.indent)
		if err != nil {
			yield(match{}, err)
			return
		}
		for _, f := range formsOf(e.Old, j.indent) {
			if exact := f.text == e.Old; exact && doc.groups == nil || doc.lacks(f.text, exact) {
				continue // the exact layer has looked for it, or it is not there
			}
			fit := aligner{j: j, e: e}
			for i := range occurrences(doc.text(), f.text, true) {
				m, ok := f.place(doc, i)
				if !ok || !overlap && m.start < fit.last.end {
					continue
				}
				if overlap && fit.any {
					// Two places are refused, even in the strictest form.
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

// A form is one variant of a normalised old text. White space at its edges depends
// on the surrounding text, so there are up to four.
type form struct {
	text string
	lead bool // leading spaces were removed, and must be removed from the text too
	tail bool // trailing white space was removed, and may be removed from the text too
}

// formsOf returns the forms of old, strictest first.
func formsOf(old string, indent bool) []form {
	body := foldText(old, indent).text()
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

// place returns the match in the original for the form at byte i of the folded
// text, if there is one.
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

// An aligner computes the similarity of the matches of an edit, and adapts the new
// text to the document: its line ends, and its indentation if that was ignored.
type aligner struct {
	j       *job
	e       Edit
	any     bool
	last    match  // the last match
	line    int    // start of the line of last
	lineEnd string // of the line of the first match
	close   map[string]float64
}

// maxClose is the number of cached similarities.
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

// similarity returns the similarity of a match to the old text. The cache works
// because most matches of a text have one of a few spellings.
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

// lineEndAt returns the end of the line with byte i; "" if the text has one line.
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

// withLineEnds returns s with the given line ends; "": unchanged.
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
