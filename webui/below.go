// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"bytes"
	"regexp"
)

// pathAttribute matches the attributes of rendered HTML whose value is a path of this server.
// Quotes in text are escaped, so that nothing else looks like it.
var pathAttribute = regexp.MustCompile(` (?:href|src|poster|action|formaction|hx-get|hx-post|data-(?:live|app|at|thread|list|self|cancel|watch|copy-from))="/(?:[^/]|$)`)

// addPrefix puts the prefix before each path in the HTML that out has after the first n
// bytes. The templates write paths as they are without a prefix.
func (ui *handler) addPrefix(out *bytes.Buffer, n int) {
	if ui.place.Prefix == "" {
		return
	}
	html := bytes.Clone(out.Bytes()[n:])
	out.Truncate(n)
	last := 0
	for _, m := range pathAttribute.FindAllIndex(html, -1) {
		slash := m[0] + bytes.IndexByte(html[m[0]:m[1]], '/')
		out.Write(html[last:slash])
		out.WriteString(ui.place.Prefix)
		last = slash
	}
	out.Write(html[last:])
}
