// SPDX-License-Identifier: Apache-2.0

package toolindex

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
	"strings"
	"unicode"
	"unicode/utf8"
)

// List returns the tools in at most limit tokens, with as much about each as there is room
// for: name and first sentence, name and a few words, names, names grouped by their prefix,
// prefixes with numbers, and at last the largest groups. It is "" if there is no room for
// anything.
func (x *Index) List(limit int, count func(string) int) string {
	if len(x.tools) == 0 {
		return ""
	}
	groups := x.groups()
	for _, form := range []func() string{
		func() string { return x.lines(160) },
		func() string { return x.lines(60) },
		func() string { return strings.Join(x.names(), ", ") + "\n" },
		func() string { return grouped(groups) },
		func() string { return counted(groups, 3, len(groups)) },
		func() string { return counted(groups, 0, len(groups)) },
	} {
		if text := form(); count(text) <= limit {
			return text
		}
	}
	shown := sort.Search(len(groups), func(n int) bool { return count(counted(groups, 0, n+1)) > limit })
	if text := counted(groups, 0, shown); count(text) <= limit {
		return text
	}
	return ""
}

// lines is one line for each tool, with the beginning of its description.
func (x *Index) lines(longest int) string {
	var b strings.Builder
	for _, t := range x.tools {
		b.WriteString("- " + oneLine(t.Name))
		if about := sentence(t.Description, longest); about != "" {
			b.WriteString(": " + about)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func (x *Index) names() []string {
	out := make([]string, len(x.tools))
	for i, t := range x.tools {
		out[i] = oneLine(t.Name)
	}
	return out
}

// oneLine keeps a name from looking like another line.
func oneLine(name string) string { return strings.Join(strings.Fields(cut(name, 128)), " ") }

// sentence returns the first sentence of a description, of at most that many bytes.
func sentence(s string, longest int) string {
	s = strings.Join(strings.Fields(clip(s, 4*longest)), " ")
	s = strings.ToValidUTF8(s, "")
	for _, end := range []string{". ", "。", "！", "？"} {
		if i := strings.Index(s, end); i > 0 {
			s = s[:i]
		}
	}
	return cut(strings.TrimSuffix(s, "."), longest)
}

// A group is the tools whose names begin with the same word. Without a second such tool, a
// tool is its own group.
type group struct {
	prefix string   // with its sign, as in "github_"; "": a single tool
	rests  []string // the names without prefix, in the order of the tools
}

// groups returns the groups in the order of their first tools.
func (x *Index) groups() []group {
	size := map[string]int{}
	for _, n := range x.names() {
		size[n[:prefixEnd(n)]]++
	}
	at := map[string]int{}
	var out []group
	for _, n := range x.names() {
		p := n[:prefixEnd(n)]
		if p == "" || size[p] == 1 {
			out = append(out, group{"", []string{n}})
			continue
		}
		i, ok := at[p]
		if !ok {
			i = len(out)
			at[p] = i
			out = append(out, group{prefix: p})
		}
		out[i].rests = append(out[i].rests, n[len(p):])
	}
	return out
}

// prefixEnd returns the end of the first word of a name, including the sign after it; 0 for
// a name of one word.
func prefixEnd(name string) int {
	var before rune
	for i, r := range name {
		switch {
		case i > 0 && strings.ContainsRune("_-./: ", r):
			if end := i + utf8.RuneLen(r); end < len(name) {
				return end
			}
			return 0
		case unicode.IsUpper(r) && unicode.IsLower(before):
			return i
		}
		before = r
	}
	return 0
}

func grouped(groups []group) string {
	var b strings.Builder
	for _, g := range groups {
		if g.prefix == "" {
			b.WriteString(g.rests[0] + "\n")
			continue
		}
		b.WriteString(g.prefix + "{" + strings.Join(g.rests, ",") + "}\n")
	}
	return b.String()
}

// counted is a line for each of the n largest groups, with a few of their tools, and one for
// all others.
func counted(groups []group, examples, n int) string {
	order := make([]int, len(groups))
	for i := range order {
		order[i] = i
	}
	if n < len(groups) {
		slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(len(groups[b].rests), len(groups[a].rests)) })
	}
	var b strings.Builder
	for _, i := range order[:n] {
		g := groups[i]
		switch {
		case g.prefix == "":
			b.WriteString(g.rests[0])
		case examples > 0 && len(g.rests) > examples:
			fmt.Fprintf(&b, "%s{%s,… %d in all}", g.prefix, strings.Join(g.rests[:examples], ","), len(g.rests))
		case examples > 0:
			b.WriteString(g.prefix + "{" + strings.Join(g.rests, ",") + "}")
		default:
			fmt.Fprintf(&b, "%s* (%d tools)", g.prefix, len(g.rests))
		}
		b.WriteByte('\n')
	}
	if n < len(groups) {
		left := 0
		for _, i := range order[n:] {
			left += len(groups[i].rests)
		}
		fmt.Fprintf(&b, "and %d more tools\n", left)
	}
	return b.String()
}
