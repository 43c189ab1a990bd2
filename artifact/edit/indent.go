// SPDX-License-Identifier: Apache-2.0

package edit

import "strings"

// reindent gives new text the indentation that the document has where the old
// text, indented otherwise, was found at text[start:end]. line is where the
// line begins that start is on, and first says that nothing before was found
// on it. It returns where the replaced span begins, which is at the beginning
// of its line if the first line gets another indentation than it had.
func reindent(text string, line, start, end int, first bool, e Edit) (int, string) {
	own := text[line:start]
	whole := first && indentOf(own) == own // else the match begins within a line
	known := map[string]string{}           // the indentation of old: that of the document
	var order []string
	begin := start
	if whole {
		begin = line
	}
	theirs := strings.Split(text[begin:end], lineEnd)
	for i, l := range strings.Split(e.Old, lineEnd) {
		in := indentOf(l)
		if i >= len(theirs) || i == 0 && !whole || strings.TrimSpace(l) == "" {
			continue
		}
		if _, ok := known[in]; !ok {
			known[in] = indentOf(theirs[i])
			order = append(order, in)
		}
	}
	lines := strings.Split(e.New, lineEnd)
	for i, l := range lines {
		in := indentOf(l)
		switch {
		case i == 0 && !whole:
			lines[i] = strings.TrimPrefix(l, indentOf(e.Old))
		case strings.TrimSpace(l) != "":
			lines[i] = translate(in, known, order) + l[len(in):]
		}
	}
	if !whole {
		return start, strings.Join(lines, lineEnd)
	}
	if rest, ok := strings.CutPrefix(lines[0], own); ok {
		lines[0] = rest
		return start, strings.Join(lines, lineEnd)
	}
	return line, strings.Join(lines, lineEnd)
}

// translate returns the document's indentation for one of the new text: the
// known one, else the longest known one that it goes beyond, with the rest,
// else the first known one that goes beyond it, without the rest.
func translate(in string, known map[string]string, order []string) string {
	if out, ok := known[in]; ok {
		return out
	}
	longest, ok := "", false
	for _, k := range order {
		if strings.HasPrefix(in, k) && len(k) >= len(longest) {
			longest, ok = k, true
		}
	}
	if ok {
		return known[longest] + in[len(longest):]
	}
	for _, k := range order {
		if rest, ok := strings.CutPrefix(k, in); ok {
			if out, ok := strings.CutSuffix(known[k], rest); ok {
				return out
			}
		}
	}
	return in
}

// indentOf returns the white space that a line begins with.
func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeftFunc(line, isBlank))]
}
