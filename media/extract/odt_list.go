// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"cmp"
	"strings"
)

// An odtLevel is what a list style says about one level.
type odtLevel struct {
	format         string // of the numbers, in the words of [count]; "": there are none
	prefix, suffix string
	start          int
	shown          int  // how many levels a label has
	letters        bool // the letters after z are aa, bb and not aa, ab
}

// odtFormats are the formats of numbers that [count] knows by other names.
var odtFormats = map[string]string{
	"1": "decimal", "a": "lowerLetter", "A": "upperLetter", "i": "lowerRoman", "I": "upperRoman",
	"①, ②, ③, ...": "decimalEnclosedCircle", "一, 二, 三, ...": "chineseCounting",
}

func newODTLevels(n *node) *[10]odtLevel {
	levels := &[10]odtLevel{}
	for _, k := range n.kids {
		at := number(k.attr("level"))
		if k.name != "list-level-style-number" || at < 1 || at > 10 || k.attr("num-format") == "" {
			continue
		}
		levels[at-1] = odtLevel{
			format: cmp.Or(odtFormats[k.attr("num-format")], "decimal"), prefix: k.attr("num-prefix"), suffix: k.attr("num-suffix"),
			start: number(cmp.Or(k.attr("start-value"), "1")), shown: number(k.attr("display-levels")), letters: k.attr("num-letter-sync") == "true",
		}
	}
	return levels
}

// An odtCount is where a list has counted to on each level.
type odtCount struct {
	at    [10]int
	begun [10]bool
}

// back makes the levels from depth on begin anew.
func (c *odtCount) back(depth int) {
	for i := min(depth, 10); i < 10; i++ {
		c.begun[i] = false
	}
}

// odtCounts are those of a document.
type odtCounts struct {
	byID    map[string]*odtCount
	byStyle map[string]*odtCount // of the newest list of a style
}

// of returns the count of a list that is in no other: a new one, or the one that it
// continues.
func (c *odtCounts) of(n *node, style string) *odtCount {
	var count *odtCount
	if id := n.attr("continue-list"); id != "" {
		count = c.byID[id]
	} else if n.attr("continue-numbering") == "true" {
		count = c.byStyle[style]
	}
	if count == nil {
		count = &odtCount{}
	}
	if c.byID == nil {
		c.byID, c.byStyle = map[string]*odtCount{}, map[string]*odtCount{}
	}
	if id := n.attr("id"); id != "" && len(c.byID) < maxRelations {
		c.byID[id] = count
	}
	if len(c.byStyle) < maxStyles {
		c.byStyle[style] = count
	}
	return count
}

// label counts an item and returns what stands before it: "-", or a number as the list
// writes it. start is the number that the item sets, 0 for none.
func (d *odt) label(style string, depth, start int, c *odtCount) string {
	depth = min(depth, 9)
	levels := d.lists[style]
	if levels == nil {
		levels = &[10]odtLevel{}
	}
	l := levels[depth]
	switch {
	case start > 0:
		c.at[depth] = start
	case !c.begun[depth]:
		c.at[depth] = l.start
	default:
		c.at[depth] = min(c.at[depth]+1, 1<<30)
	}
	c.begun[depth] = true
	c.back(depth + 1)
	if l.format == "" {
		return "-"
	}
	var b strings.Builder
	b.WriteString(l.prefix)
	for i := max(0, depth-max(l.shown, 1)+1); i <= depth; i++ {
		if levels[i].format == "" {
			continue
		}
		n := c.at[i]
		if !c.begun[i] {
			n = levels[i].start
		}
		b.WriteString(levels[i].count(n))
		if i < depth {
			b.WriteByte('.')
		}
	}
	b.WriteString(l.suffix)
	label := strings.TrimSpace(tidy(b.String()))
	if len(label) > 200 || label == "" {
		return "-"
	}
	return label
}

func (l odtLevel) count(n int) string {
	if letter := l.format == "lowerLetter" || l.format == "upperLetter"; !letter || l.letters || n <= 26 {
		return count(n, l.format)
	}
	if l.format == "upperLetter" {
		return columnName(n)
	}
	return strings.ToLower(columnName(n))
}

// A odtEntry is a part of an item of a list.
type odtEntry struct {
	*node
	depth int
	label string // what stands before it; "" if it is not the first of its item
}

// items calls f with the parts of the items of a list, and of those in it.
func (d *odt) items(n *node, style string, depth int, c *odtCount, f func(odtEntry)) {
	for _, item := range n.kids {
		if item.name != "list-item" && item.name != "list-header" {
			continue
		}
		first, begun := item.name == "list-item", false
		for _, k := range item.kids {
			switch k.name {
			case "":
			case "list":
				if begun && k.attr("continue-numbering") != "true" {
					c.back(depth + 1)
				}
				d.items(k, cmp.Or(k.attr("style-name"), style), depth+1, c, f)
				begun = true
			case "p", "h":
				e := odtEntry{node: k, depth: depth}
				if first {
					e.label = d.label(style, depth, number(item.attr("start-value")), c)
				}
				f(e)
				first, begun = false, true
			default:
				f(odtEntry{node: k, depth: depth})
			}
		}
	}
}

// list writes a list that is in no other.
func (d *odt) list(n *node) {
	style := n.attr("style-name")
	d.items(n, style, 0, d.counts.of(n, style), func(e odtEntry) {
		if e.name != "p" && e.name != "h" {
			d.block(e.node)
			return
		}
		spans := d.spans(e.node, d.apply(span{}, e.attr("style-name")))
		switch {
		case e.name == "h":
			if e.label != "" && e.label != "-" && !blank(spans) {
				spans = append([]span{plain(e.label + " ")}, spans...)
			}
			d.o.heading(max(number(e.attr("outline-level")), 1), spans)
			d.inList = false
		case e.label != "" && !blank(spans):
			mark, text := marked(e.label, spans)
			d.o.item(e.depth, mark, text, d.inList)
			d.inList = true
		default:
			d.o.paragraph(spans)
		}
	})
	d.inList = false
}

// cellParts calls f with the paragraphs and headings in a cell, and with what stands
// before each in a list.
func (d *odt) cellParts(n *node, f func(p *node, label string)) {
	for _, k := range n.kids {
		switch k.name {
		case "p", "h":
			f(k, "")
		case "list":
			style := k.attr("style-name")
			d.items(k, style, 0, d.counts.of(k, style), func(e odtEntry) {
				if e.name == "p" || e.name == "h" {
					f(e.node, e.label)
				} else {
					d.cellParts(e.node, f)
				}
			})
		default:
			d.cellParts(k, f)
		}
	}
}
