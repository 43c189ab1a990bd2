// SPDX-License-Identifier: Apache-2.0

package rule

import (
	"strconv"
	"strings"
)

// A piece is one part of a replacement.
type piece struct {
	kind  pieceKind
	text  string // of literal, and the name of named
	group int
}

type pieceKind uint8

const (
	literal pieceKind = iota
	group             // $1
	named             // $<name>
	whole             // $&
	before            // $`
	after             // $'
)

// A value of a macro is written into a replacement as its index in a list, between
// these characters, so that the value is always literal.
const (
	valueBegin = "\uFDD0"
	valueEnd   = "\uFDD1"
)

// parseTemplate parses a replacement for a pattern with this many groups, and
// with or without named groups.
func parseTemplate(s string, values []string, groups int, names bool) []piece {
	var out []piece
	add := func(text string) {
		if n := len(out); n > 0 && out[n-1].kind == literal {
			out[n-1].text += text
			return
		}
		out = append(out, piece{kind: literal, text: text})
	}
	for s != "" {
		i := strings.IndexAny(s, `$\`+valueBegin)
		if i < 0 {
			add(s)
			break
		}
		if i > 0 {
			add(s[:i])
			s = s[i:]
		}
		p, size := parsePiece(s, values, groups, names)
		if p.kind == literal {
			add(p.text)
		} else {
			out = append(out, p)
		}
		s = s[size:]
	}
	return out
}

// parsePiece parses the piece at the start of s, and returns its length.
func parsePiece(s string, values []string, groups int, names bool) (piece, int) {
	if rest, ok := strings.CutPrefix(s, valueBegin); ok {
		number, _, _ := strings.Cut(rest, valueEnd)
		i, _ := strconv.Atoi(number)
		return piece{text: values[i]}, len(valueBegin) + len(number) + len(valueEnd)
	}
	if len(s) == 1 {
		return piece{text: s}, 1
	}
	if s[0] == '\\' {
		if text, ok := map[byte]string{'n': "\n", 't': "\t", '\\': `\`}[s[1]]; ok {
			return piece{text: text}, 2
		}
		return piece{text: `\`}, 1
	}
	switch c := s[1]; {
	case c == '$':
		return piece{text: "$"}, 2
	case c == '&':
		return piece{kind: whole}, 2
	case c == '`':
		return piece{kind: before}, 2
	case c == '\'':
		return piece{kind: after}, 2
	case c == '<' && names:
		if name, _, ok := strings.Cut(s[2:], ">"); ok {
			return piece{kind: named, text: name}, len(name) + 3
		}
	case c >= '0' && c <= '9':
		n := int(c - '0')
		if len(s) > 2 && s[2] >= '0' && s[2] <= '9' {
			if two := n*10 + int(s[2]-'0'); two >= 1 && two <= groups {
				return piece{kind: group, group: two}, 3
			}
		}
		if n >= 1 && n <= groups {
			return piece{kind: group, group: n}, 2
		}
	}
	return piece{text: "$"}, 1
}
