// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"io"
	"regexp"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// maxPreview is the largest page that is shown in place, in bytes.
const maxPreview = 20 << 20

// isMarkup reports whether browsers read a type as HTML or XML.
func isMarkup(mediaType string) bool {
	return strings.Contains(mediaType, "html") || strings.Contains(mediaType, "xml") || strings.Contains(mediaType, "xsl")
}

// inert returns a page in UTF-8 in which the elements are renamed that connect
// to other servers although policy and sandbox forbid every load: <link
// rel=preconnect> does, and frames hold documents with such links in an
// attribute. The name of an element cannot be written in another way than in
// these letters, whatever is around it, so no parser has to agree with the
// browser's. In XML an entity can; declarations of entities that could are made
// invalid, and the browser shows an error.
func inert(r io.Reader, m artel.MediaInfo) (string, error) {
	text, err := media.DecodeText(r, m.Charset)
	if err != nil {
		return "", err
	}
	text = connecting.ReplaceAllString(text, "<${1}x-${2}")
	if strings.Contains(m.MediaType, "xml") || strings.Contains(m.MediaType, "xsl") {
		text = entity.ReplaceAllStringFunc(text, func(s string) string {
			if strings.ContainsAny(s, "&%") {
				return "<!x-" + s[len("<!"):]
			}
			return s
		})
	}
	return text, nil
}

var (
	connecting = regexp.MustCompile(`(?i)<(/?(?:[^\s<>/:"'=]*:)?)((?:link|iframe|frame|object|embed|portal|fencedframe)\b)`)
	entity     = regexp.MustCompile(`(?s)<!ENTITY\s(?:[^"'>]|"[^"]*"|'[^']*')*`)
)
