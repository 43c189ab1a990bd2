// SPDX-License-Identifier: Apache-2.0

package render

import "github.com/yuin/goldmark/ast"

// Parse returns the tree that [Blocks] renders, for packages with other output
// formats, and the bytes that its nodes refer to. ok is false for text that
// Blocks renders plain, because it is too long or too costly; then there is no
// tree, and the bytes are the text to show.
//
// The tree is not secured: it contains HTML and the original destinations of
// links and images.
func Parse(source string) (doc ast.Node, src []byte, ok bool) {
	source = clean(source)
	src = []byte(source)
	if len(source) > MaxMarkdown || costly(source) {
		return nil, src, false
	}
	doc, _ = parse(src, nil)
	return doc, src, true
}
