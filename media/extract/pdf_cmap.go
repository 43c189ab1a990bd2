// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// A cmap maps codes to text, and says how long codes are.
type cmap struct {
	spaces []cmapSpace
	single map[cmapCode]string
	ranges []cmapRange
}

type (
	cmapCode  struct{ code, length uint32 }
	cmapSpace struct {
		length int
		lo, hi string
	}
	cmapRange struct {
		lo, hi uint32
		length uint32
		text   string // of lo; the last character counts on
	}
)

const maxCMap = 200_000

func (f *pdfFile) cmap(s *pdfStream, o any) *cmap {
	ref, _ := o.(pdfRef)
	data, err := f.unpack(s, ref)
	if err != nil {
		return nil
	}
	return readCMap(f.budget, data)
}

func readCMap(b *budget, data []byte) *cmap {
	m := &cmap{single: map[cmapCode]string{}}
	l := newLexer(b, data)
	var stack []any
	for {
		o := l.object()
		if _, end := o.(pdfEnd); end {
			break
		}
		w, ok := o.(pdfWord)
		if !ok {
			if len(stack) < 3000 {
				stack = append(stack, o)
			}
			continue
		}
		if len(m.single)+len(m.ranges) < maxCMap {
			m.take(string(w), stack)
		}
		stack = stack[:0]
	}
	slices.SortStableFunc(m.ranges, func(a, b cmapRange) int { return cmp.Compare(a.lo, b.lo) })
	return m
}

// take reads the operands of a section that w ends.
func (m *cmap) take(w string, stack []any) {
	switch w {
	case "endcodespacerange":
		for i := 0; i+1 < len(stack) && len(m.spaces) < 100; i += 2 {
			lo, ok1 := stack[i].(pdfString)
			hi, ok2 := stack[i+1].(pdfString)
			if ok1 && ok2 && len(lo) == len(hi) && len(lo) > 0 && len(lo) <= 4 {
				m.spaces = append(m.spaces, cmapSpace{len(lo), string(lo), string(hi)})
			}
		}
	case "endbfchar":
		for i := 0; i+1 < len(stack); i += 2 {
			code, ok1 := stack[i].(pdfString)
			switch to := stack[i+1].(type) {
			case pdfString:
				if ok1 && len(to) <= 64 {
					m.single[codeOf(code)] = utf16BE(string(to))
				}
			case pdfName:
				m.single[codeOf(code)] = glyphText(string(to))
			}
		}
	case "endbfrange":
		for i := 0; i+2 < len(stack); i += 3 {
			lo, ok1 := stack[i].(pdfString)
			hi, ok2 := stack[i+1].(pdfString)
			if !ok1 || !ok2 {
				continue
			}
			from, to := codeOf(lo), codeOf(hi)
			switch text := stack[i+2].(type) {
			case pdfString:
				if len(text) <= 64 {
					m.ranges = append(m.ranges, cmapRange{from.code, to.code, from.length, utf16BE(string(text))})
				}
			case []any:
				for k, t := range text {
					if t, ok := t.(pdfString); ok && uint32(k) <= to.code-from.code && len(t) <= 64 {
						m.single[cmapCode{from.code + uint32(k), from.length}] = utf16BE(string(t))
					}
				}
			}
		}
	}
}

func codeOf(s pdfString) cmapCode {
	c := cmapCode{length: uint32(len(s))}
	for i := range min(len(s), 4) {
		c.code = c.code<<8 | uint32(s[i])
	}
	return c
}

func (m *cmap) lookup(code uint32, length int) (string, bool) {
	if m == nil {
		return "", false
	}
	if t, ok := m.single[cmapCode{code, uint32(length)}]; ok {
		return t, true
	}
	i, _ := slices.BinarySearchFunc(m.ranges, code, func(r cmapRange, c uint32) int {
		if r.lo <= c {
			return -1
		}
		return 1
	})
	for i--; i >= 0; i-- {
		r := m.ranges[i]
		if code <= r.hi && r.length == uint32(length) {
			last, n := utf8.DecodeLastRuneInString(r.text)
			return r.text[:len(r.text)-n] + string(last+rune(code-r.lo)), true
		}
		if code-r.lo > 1<<16 || i > 0 && m.ranges[i-1].hi < code {
			break
		}
	}
	return "", false
}

// length returns how long the code at the beginning of s is.
func (m *cmap) length(s string) int {
	for n := 1; n <= 4 && n <= len(s); n++ {
		for _, sp := range m.spaces {
			if sp.length == n && within(s[:n], sp.lo, sp.hi) {
				return n
			}
		}
	}
	if len(m.spaces) > 0 {
		return m.spaces[0].length
	}
	return 2
}

func within(s, lo, hi string) bool {
	for i := range len(s) {
		if s[i] < lo[i] || s[i] > hi[i] {
			return false
		}
	}
	return true
}

// glyphText returns the text of a glyph by its name, as fonts name them.
func glyphText(name string) string {
	name, _, _ = strings.Cut(name, ".") // "a.sc" is an a
	if name == "" {
		return ""
	}
	if strings.Contains(name, "_") { // "f_i" is a ligature
		var b strings.Builder
		for part := range strings.SplitSeq(name, "_") {
			b.WriteString(glyphText(part))
		}
		return b.String()
	}
	if r, n := utf8.DecodeRuneInString(name); n == len(name) && r > 0x20 {
		return name
	}
	if hex, ok := strings.CutPrefix(name, "uni"); ok && len(hex) >= 4 && len(hex)%4 == 0 {
		if s := hexText(hex, 4); s != "" {
			return s
		}
	}
	if hex, ok := strings.CutPrefix(name, "u"); ok && len(hex) >= 4 && len(hex) <= 6 {
		if s := hexText(hex, len(hex)); s != "" {
			return s
		}
	}
	if t, ok := glyphNames()[name]; ok {
		return t
	}
	for accent, mark := range accents { // "eacute": a letter and its accent
		if letter, ok := strings.CutSuffix(name, accent); ok && letter != "" {
			base := letter
			if letter == "dotlessi" {
				base = "i"
			}
			if len(base) == 1 {
				return norm.NFC.String(base + mark)
			}
		}
	}
	return ""
}

func hexText(hex string, width int) string {
	var b strings.Builder
	for ; len(hex) >= width; hex = hex[width:] {
		r := rune(0)
		for i := range width {
			v := unhex(int(hex[i]))
			if v < 0 {
				return ""
			}
			r = r<<4 | rune(v)
		}
		if !utf8.ValidRune(r) {
			return ""
		}
		b.WriteRune(r)
	}
	return b.String()
}
