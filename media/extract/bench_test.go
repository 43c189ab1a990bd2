// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
)

func BenchmarkText(b *testing.B) {
	var sheet, csv strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&sheet, `<row r="%d"><c r="A%d"><v>%d</v></c><c r="B%d" t="s"><v>1</v></c><c r="C%d" t="str"><v>words</v></c></row>`, i+1, i+1, i, i+1, i+1)
		fmt.Fprintf(&csv, "%d,some words,1.5,天气\n", i)
	}
	var content strings.Builder
	content.WriteString("BT /F 10 Tf 12 TL 50 700 Td ")
	for range 5_000 {
		content.WriteString("[(Some wor) 20 (ds of a line) -300 (that goes on)] TJ T* ")
	}
	content.WriteString("ET")
	paragraph := `<w:p><w:pPr><w:pStyle w:val="Mine"/></w:pPr><w:r><w:t>Some words </w:t></w:r><w:r><w:rPr><w:b/></w:rPr><w:t>and bold ones 天气</w:t></w:r></w:p>`
	tests := []struct {
		name, mediaType string
		data            []byte
		size            int // before it was packed
	}{
		{"docx", typeDOCX, wordDocument(b, strings.Repeat(paragraph, 10_000)), 10_000 * len(paragraph)},
		{"xlsx", typeXLSX, excelFile(b, sheet.String()), sheet.Len()},
		{"pdf", typePDF, pdfOf(content.String(), helvetica), content.Len()},
		{"html", typeHTML, []byte(strings.Repeat("<p>Some words <b>and bold ones</b> 天气</p>", 20_000)), 20_000 * 46},
		{"csv", typeCSV, []byte(csv.String()), csv.Len()},
	}
	for _, tt := range tests {
		b.Run(tt.name, func(b *testing.B) {
			b.SetBytes(int64(tt.size))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := read(b.Context(), bytes.NewReader(tt.data), int64(len(tt.data)), asType(tt.mediaType), Options{PDF: engine}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
