// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
)

// A Scanner builds the [Layout] of a request whose contents are strings or lists of
// parts.
type Scanner struct {
	Layout
	Text   string                                      // the type of parts of text
	Medium func(part gjson.Result) (m Medium, ok bool) // reads a part of media
}

// Result adds the result of a call, and what its content holds.
func (s *Scanner) Result(call string, content gjson.Result) {
	r := Result{Call: artel.CallID(call), Element: len(s.Elements), Content: SpanOf(content), List: content.IsArray()}
	if content.Type == gjson.String {
		r.Texts = []Span{SpanOf(content)}
	}
	s.Results = append(s.Results, r)
	s.parts(content, len(s.Results)-1)
}

// Parts adds what the content of a message holds.
func (s *Scanner) Parts(content gjson.Result) { s.parts(content, -1) }

func (s *Scanner) parts(content gjson.Result, result int) {
	EachElement(content, func(_, part gjson.Result) bool {
		s.part(part, result)
		return true
	})
}

// Part adds a part of a message.
func (s *Scanner) Part(part gjson.Result) { s.part(part, -1) }

// part adds a part of the result with an index, or with -1 of a message.
func (s *Scanner) part(part gjson.Result, result int) {
	var in *Result
	if result >= 0 {
		in = &s.Results[result]
		if t := part.Get("text"); t.Type == gjson.String && part.Get("type").String() == s.Text {
			in.Texts = append(in.Texts, SpanOf(t))
		}
	}
	if m, ok := s.Medium(part); ok {
		m.Result, m.Element = result, len(s.Elements)
		s.Media = append(s.Media, m)
		return
	}
	if IsLibraryPart(part) {
		p := LibraryPart{Span: SpanOf(part)}
		if in != nil {
			p.Call, p.Result = in.Call, true
		}
		s.LibraryParts = append(s.LibraryParts, p)
	}
}

// AppendCalls appends the calls that find appends for each element of a list.
func AppendCalls(to []CallText, list gjson.Result, find func(to []CallText, v gjson.Result) []CallText) []CallText {
	EachElement(list, func(_, v gjson.Result) bool {
		to = find(to, v)
		return true
	})
	return to
}
