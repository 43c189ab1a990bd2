// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"fmt"
	"strconv"
	"strings"
)

// Unified returns d in the unified format, "" if the texts are equal. A name with
// control characters, quotes or backslashes is quoted with C escapes; "" becomes
// /dev/null, for a missing file. Names must include the prefixes a/ and b/ if they
// are wanted. The output of a diff with Cut cannot be applied.
func (d Diff) Unified(oldName, newName string) string {
	if len(d.Hunks) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n", fileName(oldName), fileName(newName))
	for _, h := range d.Hunks {
		fmt.Fprintf(&out, "@@ -%s +%s @@\n", extent(h.OldStart, h.OldLines), extent(h.NewStart, h.NewLines))
		for _, l := range h.Lines {
			switch l.Op {
			case Equal:
				out.WriteByte(' ')
			case Added:
				out.WriteByte('+')
			case Removed:
				out.WriteByte('-')
			}
			out.WriteString(l.Text)
			out.WriteString(l.End)
			if l.End == "" {
				out.WriteString("\n\\ No newline at end of file\n")
			}
		}
	}
	return out.String()
}

// extent writes the position of a hunk on one side. A length of one is omitted.
func extent(start, lines int) string {
	if lines == 1 {
		return strconv.Itoa(start)
	}
	return strconv.Itoa(start) + "," + strconv.Itoa(lines)
}

// fileName writes a name in the syntax of patch and git apply.
func fileName(name string) string {
	if name == "" {
		return "/dev/null"
	}
	if !strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == 0x7f || r == '"' || r == '\\' }) {
		if strings.Contains(name, " ") {
			return name + "\t" // a name with spaces ends at a tab
		}
		return name
	}
	var out strings.Builder
	out.WriteByte('"')
	for i := range len(name) {
		switch c := name[i]; {
		case c == '"' || c == '\\':
			out.WriteByte('\\')
			out.WriteByte(c)
		case c == '\n':
			out.WriteString(`\n`)
		case c == '\t':
			out.WriteString(`\t`)
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&out, `\%03o`, c)
		default:
			out.WriteByte(c)
		}
	}
	out.WriteByte('"')
	return out.String()
}
