// SPDX-License-Identifier: Apache-2.0

package edit

import "strings"

// reindent gives new text the document's indentation at text[start:end], where the
// old text was found with another indentation. line is the start of the line with
// start; first reports whether no earlier match is on it. It returns the start of
// the replaced span: line if the indentation of the first line changes.
func reindent(text string, line, start, end int, first bool, e Edit) (int, string) {
	own := text[line:start]
	whole := first && indentOf(own) == own // false: the match begins within a line
	known := map[string]string{}           // from the indentation of old to that of the document
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

// translate converts an indentation of the new text to the document's. If it is not
// known, translate extends the longest known one that is a prefix of it; if none is,
// it shortens the first known one that in is a prefix of.
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

// indentOf returns the leading white space of a line.
func indentOf(line string) string {
	return line[:len(line)-len(strings.TrimLeftFunc(line, isBlank))]
}
