// SPDX-License-Identifier: Apache-2.0

package mediatest

import (
	"fmt"
	"strings"
)

// Scan makes a PDF whose pages are only pictures.
func Scan(pages int) []byte {
	var b, kids strings.Builder
	for i := range pages {
		fmt.Fprintf(&kids, "%d 0 R ", 10+i)
		fmt.Fprintf(&b, "%d 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 %d]/Contents 4 0 R/Resources<</XObject<</I 5 0 R>>>>>>endobj\n", 10+i, 600+i)
	}
	const draw, pixel = "400 0 0 600 0 0 cm /I Do", "\x80"
	return fmt.Appendf(nil, "%%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n2 0 obj<</Type/Pages/Kids[%s]/Count %d>>endobj\n"+
		"4 0 obj<</Length %d>>stream\n%s\nendstream endobj\n"+
		"5 0 obj<</Type/XObject/Subtype/Image/Width 1/Height 1/BitsPerComponent 8/ColorSpace/DeviceGray/Length 1>>stream\n%s\nendstream endobj\n%strailer<</Root 1 0 R>>\n",
		kids.String(), pages, len(draw), draw, pixel, b.String())
}
