// SPDX-License-Identifier: Apache-2.0

package token

// A splitter returns the end of the piece that begins at s[i]. The text is
// valid UTF-8 and i < len(s). The end may depend on the text after the piece,
// but not on the text before it.
type splitter func(t *classes, s string, i int) int

// splitO200k cuts as the expression of o200k_base does, whose alternatives are,
// in this order:
//
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n/]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitO200k(t *classes, s string, i int) int {
	class, width := t.at(s, i)
	switch {
	case class&letter != 0:
		end, _ := t.cased(s, i)
		return contraction(s, end)
	case class&number != 0:
		return t.digits(s, i)
	case class&newline != 0:
		return t.blank(s, i)
	}
	next := i + width
	after, _ := t.at(s, next)
	if after&word != 0 {
		end, capitals := t.cased(s, next)
		if capitals && class&mark != 0 {
			// The first alternative is tried without a character in front
			// before the second is with one: the mark alone is its match.
			return next
		}
		return contraction(s, end)
	}
	switch {
	case class&mark != 0:
		return contraction(s, next)
	case class&space == 0:
		return t.marks(s, next, true)
	case s[i] == ' ' && next < len(s) && after&(space|letter|number) == 0:
		return t.marks(s, next, true)
	}
	return t.blank(s, i)
}

// splitCl100k cuts as the expression of cl100k_base does:
//
//	(?i:'s|'t|'re|'ve|'m|'ll|'d)
//	[^\r\n\p{L}\p{N}]?\p{L}+
//	\p{N}{1,3}
//	 ?[^\s\p{L}\p{N}]+[\r\n]*
//	\s*[\r\n]+
//	\s+(?!\S)
//	\s+
func splitCl100k(t *classes, s string, i int) int {
	class, width := t.at(s, i)
	next := i + width
	switch {
	case class&letter != 0:
		return t.letters(s, next)
	case class&number != 0:
		return t.digits(s, i)
	case class&newline != 0:
		return t.blank(s, i)
	}
	if end := contraction(s, i); end > i {
		return end
	}
	after, w := t.at(s, next)
	switch {
	case after&letter != 0:
		return t.letters(s, next+w)
	case class&space == 0:
		return t.marks(s, next, false)
	case s[i] == ' ' && next < len(s) && after&(space|number) == 0:
		return t.marks(s, next, false)
	}
	return t.blank(s, i)
}

// cased returns the end of the word at s[i], which is a letter or a mark:
// capitals and then small letters, with letters without case and marks as both.
// A word of only capitals ends after its last letter without case or mark, if
// it has one.
func (t *classes) cased(s string, i int) (end int, capitals bool) {
	both := 0
	for i < len(s) && s[i] < 0x80 && t.ascii[s[i]]&upper != 0 {
		i++
	}
	class, width := t.at(s, i)
	for class&(upper|uncased|mark) != 0 {
		i += width
		if class&upper == 0 {
			both = i
		}
		class, width = t.at(s, i)
	}
	if class&lower == 0 {
		if both > 0 {
			return both, false
		}
		return i, true
	}
	for {
		i += width
		for i < len(s) && s[i] < 0x80 && t.ascii[s[i]]&lower != 0 {
			i++
		}
		if class, width = t.at(s, i); class&(lower|uncased|mark) == 0 {
			return i, false
		}
	}
}

func (t *classes) letters(s string, i int) int {
	for {
		for i < len(s) && s[i] < 0x80 && t.ascii[s[i]]&letter != 0 {
			i++
		}
		class, width := t.at(s, i)
		if class&letter == 0 {
			return i
		}
		i += width
	}
}

// digits returns the end of the number at s[i], of at most three characters.
func (t *classes) digits(s string, i int) int {
	for range 3 {
		class, width := t.at(s, i)
		if class&number == 0 {
			break
		}
		i += width
	}
	return i
}

// marks returns the end of a run of characters that are neither space, letter
// nor number, with the line ends after it, and slashes if they count as line
// ends.
func (t *classes) marks(s string, i int, slashes bool) int {
	for i < len(s) {
		class, width := t.at(s, i)
		if class&(space|letter|number) != 0 {
			break
		}
		i += width
	}
	for i < len(s) && (s[i] == '\n' || s[i] == '\r' || slashes && s[i] == '/') {
		i++
	}
	return i
}

// blank returns the end of the white space at s[i]: after its last line end;
// without one, the end of the text, or before its last character, which belongs
// to the next piece, unless it is the only one.
func (t *classes) blank(s string, i int) int {
	last, line := i, 0
	end := i
	for end < len(s) {
		class, width := t.at(s, end)
		if class&space == 0 {
			break
		}
		last = end
		end += width
		if class&newline != 0 {
			line = end
		}
	}
	switch {
	case line > 0:
		return line
	case end == len(s) || last == i:
		return end
	}
	return last
}

// contraction returns the end of one of 's 't 're 've 'm 'll 'd at s[i], in any
// case, or i if there is none. The long s counts as s.
func contraction(s string, i int) int {
	if i+1 >= len(s) || s[i] != '\'' {
		return i
	}
	switch s[i+1] {
	case 's', 't', 'm', 'd', 'S', 'T', 'M', 'D':
		return i + 2
	}
	if i+2 >= len(s) {
		return i
	}
	switch a, b := s[i+1], s[i+2]; {
	case a == 0xC5 && b == 0xBF,
		(a == 'r' || a == 'R' || a == 'v' || a == 'V') && (b == 'e' || b == 'E'),
		(a == 'l' || a == 'L') && (b == 'l' || b == 'L'):
		return i + 3
	}
	return i
}
