// SPDX-License-Identifier: Apache-2.0

package render

import "github.com/yuin/goldmark/ast"

// Parse returns the tree of which [Blocks] makes HTML, for rooms that make
// something else of it, and the bytes that its nodes point into. ok is false
// for a text that Blocks shows as plain text, because it is too long or takes
// too much time; there is no tree then, and the bytes are those to be shown.
//
// Nothing in the tree is secured: HTML is there as it was written, and so are
// the destinations of links and images.
func Parse(source string) (doc ast.Node, src []byte, ok bool) {
	source = clean(source)
	src = []byte(source)
	if len(source) > MaxMarkdown || costly(source) {
		return nil, src, false
	}
	doc, _ = parse(src, nil)
	return doc, src, true
}
