// SPDX-License-Identifier: Apache-2.0

package extract

import (
	"archive/zip"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

var update = flag.Bool("update", false, "write the texts of the samples anew")

const (
	typeDOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	typeXLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
	typePPTX = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
	typeODT  = "application/vnd.oasis.opendocument.text"
	typeEPUB = "application/epub+zip"
	typeRTF  = "application/rtf"
	typePDF  = "application/pdf"
	typeHTML = "text/html"
	typeCSV  = "text/csv"
)

func textOf(tb testing.TB, b []byte, info artel.MediaInfo, o Options) Extracted {
	tb.Helper()
	o.PDF = engine
	x, err := read(tb.Context(), bytes.NewReader(b), int64(len(b)), info, o)
	if err != nil {
		tb.Fatal(err)
	}
	return x
}

func asType(mediaType string) artel.MediaInfo { return artel.MediaInfo{MediaType: mediaType} }

// packed makes a ZIP of names and texts in turn.
func packed(tb testing.TB, parts ...string) []byte {
	tb.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := 0; i < len(parts); i += 2 {
		w, err := z.Create(parts[i])
		if err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(parts[i+1])); err != nil {
			tb.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		tb.Fatal(err)
	}
	return b.Bytes()
}

func TestSamples(t *testing.T) {
	for _, name := range []string{
		"brief.docx", "brief.odt", "brief.rtf", "brief.html", "brief.pdf", "open.pdf", "data.xlsx", "talk.pptx",
		"report.pdf", "packed.pdf", "letter.docx", "memo.rtf", "table.csv",
	} {
		t.Run(name, func(t *testing.T) {
			b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "files", name))
			if err != nil {
				t.Fatal(err)
			}
			x, err := Text(t.Context(), bytes.NewReader(b), int64(len(b)), media.Detect(b, media.Hint{Filename: name}), Options{PDF: engine})
			if err != nil {
				t.Fatal(err)
			}
			got := fmt.Sprintf("pages %d, cut %t, left out %v\n%s", x.Pages, x.Cut, x.LeftOut, x.Text)
			golden := filepath.Join("testdata", name+".md")
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o666); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

// TestSameContent holds what the formats say about one document against each
// other: the words are the same in all of them.
func TestSameContent(t *testing.T) {
	words := []string{
		"# Trip report 出差报告", "**three**", "*two of them new*", "Visited the plant", "Line B", "1. First step", "3. 第三步",
		"上海 and more", "420", "Quality is everything.", `Stars \* and \_under\_ and # are text. 5 < 6 & 7 > 2.`,
	}
	for _, name := range []string{"brief.docx", "brief.odt", "brief.html", "brief.pdf"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "files", name))
		if err != nil {
			t.Fatal(err)
		}
		x := textOf(t, b, media.Detect(b, media.Hint{Filename: name}), Options{})
		for _, w := range words {
			if !strings.Contains(x.Text, w) {
				t.Errorf("%s: %q is missing in\n%s", name, w, x.Text)
			}
		}
	}
}

func TestSupports(t *testing.T) {
	for mediaType, want := range map[string]bool{
		typeDOCX: true, typeXLSX: true, typePPTX: true, typePDF: true, typeHTML: true, typeCSV: true, typeRTF: true, typeODT: true, typeEPUB: true,
		"text/tab-separated-values": true, "application/vnd.ms-word.document.macroenabled.12": true, "application/vnd.ms-excel": false,
		"application/msword": false, "text/plain": false, "image/png": false, "": false,
	} {
		if got := Supports(mediaType); got != want {
			t.Errorf("Supports(%q) = %t", mediaType, got)
		}
	}
}

const ole = "\xD0\xCF\x11\xE0\xA1\xB1\x1A\xE1"

func TestErrors(t *testing.T) {
	locked, err := os.ReadFile("../../testdata/files/locked.pdf")
	if err != nil {
		t.Fatal(err)
	}
	good := wordDocument(t, `<w:p><w:r><w:t>hello</w:t></w:r></w:p>`)
	sealed := bytes.Clone(good)
	for i := 0; i+4 <= len(sealed); i++ { // the flag of encryption in both headers of each part
		switch string(sealed[i : i+4]) {
		case "PK\x03\x04":
			sealed[i+6] |= 1
		case "PK\x01\x02":
			sealed[i+8] |= 1
		}
	}
	deep := strings.Repeat("<w:sdt>", 5000) + strings.Repeat("</w:sdt>", 5000)
	zeros := strings.Repeat(" ", 3<<20)
	tests := []struct {
		name      string
		mediaType string
		data      string
		o         Options
		kind      artel.Kind
		says      string
	}{
		{"other type", "image/png", "x", Options{}, artel.Unsupported, "docx"},
		{"old office", "application/msword", ole, Options{}, artel.Unsupported, "before 2007"},
		{"encrypted office", "application/x-ole-storage", ole + "E\x00n\x00c\x00r\x00y\x00p\x00t\x00e\x00d\x00P\x00a\x00c\x00k\x00a\x00g\x00e\x00", Options{}, artel.Unsupported, "without a password"},
		{"old office by another name", typeDOCX, ole, Options{}, artel.Unsupported, "before 2007"},
		{"encrypted part", typeDOCX, string(sealed), Options{}, artel.Unsupported, "without a password"},
		{"encrypted pdf", typePDF, string(locked), Options{}, artel.Unsupported, "without a password"},
		{"no zip", typeDOCX, "hello", Options{}, artel.Invalid, "damaged"},
		{"empty", typeXLSX, "", Options{}, artel.Invalid, "damaged"},
		{"cut zip", typeDOCX, string(good[:len(good)/2]), Options{}, artel.Invalid, "damaged"},
		{"no document", typeDOCX, string(packed(t, "a", "b")), Options{}, artel.Invalid, "word/document.xml"},
		{"broken xml", typeDOCX, string(packed(t, "word/document.xml", "<a><b></a>")), Options{}, artel.Invalid, "damaged"},
		{"cut xml", typePPTX, string(packed(t, "ppt/presentation.xml", "<a><b>")), Options{}, artel.Invalid, "damaged"},
		{"unknown version of xml", typeDOCX, string(packed(t, "word/document.xml", `<?xml version="1.<"?><a/>`)), Options{}, artel.Invalid, "damaged"},
		{"deep xml", typeDOCX, string(wordDocument(t, deep)), Options{}, artel.TooLarge, "nests"},
		{"bomb", typeDOCX, string(wordDocument(t, zeros)), Options{MaxExpanded: 1 << 20}, artel.TooLarge, "1 MB"},
		{"deep html", typeHTML, strings.Repeat("<div>", 5000), Options{}, artel.TooLarge, "512"},
		{"deep rtf", typeRTF, `{\rtf1` + strings.Repeat("{", 5000), Options{}, artel.TooLarge, "nests"},
		{"no pdf", typePDF, "%PDF-1.4\nnothing", Options{}, artel.Invalid, "damaged"},
		{"pdf without pages", typePDF, "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]>>endobj", Options{}, artel.Invalid, "no pages"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(t.Context(), strings.NewReader(tt.data), int64(len(tt.data)), asType(tt.mediaType), tt.o)
			var e *artel.Error
			if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v (%s), want %s with %q", err, artel.KindOf(err), tt.kind, tt.says)
			}
		})
	}
}

type failing struct{ error }

func (f failing) ReadAt([]byte, int64) (int, error) { return 0, f.error }

func TestStorageFailure(t *testing.T) {
	for _, mediaType := range []string{typeDOCX, typePDF, typeHTML, typeRTF} {
		_, err := Text(t.Context(), failing{artel.Errorf(artel.Unavailable, "blob.Open", "x", "the disk is gone")}, 1000, asType(mediaType), Options{})
		if !errors.Is(err, artel.Unavailable) {
			t.Errorf("%s: %v", mediaType, err)
		}
	}
}

func TestCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, name := range []string{"brief.docx", "brief.pdf", "brief.html", "data.xlsx", "talk.pptx", "brief.rtf", "brief.odt"} {
		b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "files", name))
		if err != nil {
			t.Fatal(err)
		}
		_, err = Text(ctx, bytes.NewReader(b), int64(len(b)), media.Detect(b, media.Hint{Filename: name}), Options{})
		if !errors.Is(err, artel.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestCut(t *testing.T) {
	doc := wordDocument(t, strings.Repeat(`<w:p><w:r><w:t>天气很好 and so on</w:t></w:r></w:p>`, 1000))
	x := textOf(t, doc, asType(typeDOCX), Options{MaxText: 1000})
	if !x.Cut || len(x.Text) > 1200 || !strings.Contains(x.Text, "<!-- cut here: the text is longer than 1000 bytes -->") || strings.Contains(x.Text, "\uFFFD") {
		t.Errorf("cut %t: %s", x.Cut, x.Text)
	}
	var rows strings.Builder
	for i := range 100 {
		fmt.Fprintf(&rows, "%d,b,c\n", i)
	}
	x = textOf(t, []byte(rows.String()), asType(typeCSV), Options{MaxCells: 30})
	if !x.Cut || strings.Contains(x.Text, "| 10 | b") || !strings.Contains(x.Text, "| 10 | 9 |") {
		t.Errorf("cut %t: %s", x.Cut, x.Text)
	}
	x = textOf(t, []byte(rows.String()), asType(typeCSV), Options{MaxText: 500})
	if !x.Cut || !strings.Contains(x.Text, "| 20 | 19 |") {
		t.Errorf("a long CSV: cut %t: %s", x.Cut, x.Text)
	}
	page := "<table>" + strings.Repeat("<tr><td>a<td>b", 50) + "</table>" + strings.Repeat("x", 2000)
	x = textOf(t, []byte(page), asType(typeHTML), Options{MaxText: 400})
	if !x.Cut || strings.Count(x.Text, "| a | b |") < 30 {
		t.Errorf("a long page: cut %t: %s", x.Cut, x.Text)
	}
	pdf, err := os.ReadFile("../../testdata/files/report.pdf")
	if err != nil {
		t.Fatal(err)
	}
	x = textOf(t, pdf, asType(typePDF), Options{MaxPages: 1})
	if !x.Cut || x.Pages != 2 || strings.Contains(x.Text, "outlook") || !strings.Contains(x.Text, "Revenue") {
		t.Errorf("cut %t, %d pages: %s", x.Cut, x.Pages, x.Text)
	}
}

func TestCharsets(t *testing.T) {
	gb := "<h1>\xcc\xec\xc6\xf8</h1>" // 天气
	x := textOf(t, []byte(gb), artel.MediaInfo{MediaType: typeHTML, Charset: "gb18030"}, Options{})
	if x.Text != "# 天气\n" {
		t.Errorf("got %q", x.Text)
	}
	x = textOf(t, []byte("a;b\n\xcc\xec;1\n"), artel.MediaInfo{MediaType: typeCSV, Charset: "gb18030"}, Options{})
	if x.Text != "| | A | B |\n| --- | --- | --- |\n| 1 | a | b |\n| 2 | 天 | 1 |\n" {
		t.Errorf("got %q", x.Text)
	}
}
