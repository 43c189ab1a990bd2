// SPDX-License-Identifier: Apache-2.0

package probe

import (
	"bytes"
	"crypto/rand"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"regexp"
	"strings"

	"golang.org/x/image/font"
	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"
)

// alphabet has letters that are not easily confused.
const alphabet = "ACEFHJKLMNPRTUVWXY"

// length is the number of letters of a canary, enough not to be guessed.
const length = 6

// Letters returns random letters for a canary.
func Letters() string {
	b := make([]byte, length)
	_, _ = rand.Read(b) // it never fails
	for i, c := range b {
		b[i] = alphabet[int(c)%len(alphabet)]
	}
	return string(b)
}

// The measures of a picture: cells of the font, each of whose pixels is a
// square, and as much white around them.
const (
	cellWidth, cellHeight = 7, 13
	square                = 8
	margin                = 2 // cells' pixels
)

// Picture draws letters in black on white, as a PNG of about a kilobyte, large
// enough for every model that sees. The same letters give the same bytes.
func Picture(letters string) ([]byte, error) {
	small := drawn(letters)
	size := small.Bounds().Size()
	large := image.NewPaletted(image.Rect(0, 0, size.X*square, size.Y*square), color.Palette{color.White, color.Black})
	for y := range size.Y * square {
		for x := range size.X * square {
			large.SetColorIndex(x, y, small.ColorIndexAt(x/square, y/square))
		}
	}
	var b bytes.Buffer
	err := png.Encode(&b, large)
	return b.Bytes(), err
}

// drawn draws letters at one pixel for a pixel of the font.
func drawn(letters string) *image.Paletted {
	m := image.NewPaletted(image.Rect(0, 0, len(letters)*cellWidth+2*margin, cellHeight+2*margin), color.Palette{color.White, color.Black})
	d := font.Drawer{
		Dst: m, Src: image.NewUniform(color.Black), Face: basicfont.Face7x13,
		Dot: fixed.P(margin, margin+basicfont.Face7x13.Ascent),
	}
	d.DrawString(letters)
	return m
}

// ReadPicture returns the letters of a picture that [Picture] drew, and ""
// for any other. Fake models with vision use it.
func ReadPicture(data []byte) string {
	conf, err := png.DecodeConfig(bytes.NewReader(data))
	if err != nil || conf.Height != (cellHeight+2*margin)*square || conf.Width > 100*cellWidth*square {
		return ""
	}
	n := (conf.Width/square - 2*margin) / cellWidth
	large, err := png.Decode(bytes.NewReader(data))
	if err != nil || n < 1 {
		return ""
	}
	var out strings.Builder
	for i := range n {
		out.WriteString(readCell(large, margin+i*cellWidth))
	}
	if letters := out.String(); len(letters) == n {
		return letters
	}
	return ""
}

// readCell compares the cell that begins at column x with every letter.
func readCell(large image.Image, x int) string {
	for _, letter := range alphabet {
		template, same := drawn(string(letter)), true
		for dy := range cellHeight {
			for dx := range cellWidth {
				r, _, _, _ := large.At((x+dx)*square+square/2, (margin+dy)*square+square/2).RGBA()
				dark := r < 0x8000
				same = same && dark == (template.ColorIndexAt(margin+dx, margin+dy) == 1)
			}
		}
		if same {
			return string(letter)
		}
	}
	return ""
}

// Document writes letters on the only page of a PDF, as text.
func Document(letters string) []byte {
	content := fmt.Sprintf("BT /F1 36 Tf 60 700 Td (%s) Tj ET", letters)
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	var offsets []int
	for i, object := range []string{
		"<< /Type /Catalog /Pages 2 0 R >>",
		"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
		"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 5 0 R >> >> /Contents 4 0 R >>",
		fmt.Sprintf("<< /Length %d >>\nstream\n%s\nendstream", len(content), content),
		"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
	} {
		offsets = append(offsets, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, object)
	}
	start := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(offsets)+1)
	for _, at := range offsets {
		fmt.Fprintf(&b, "%010d 00000 n \n", at)
	}
	fmt.Fprintf(&b, "trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n", len(offsets)+1, start)
	return b.Bytes()
}

var shown = regexp.MustCompile(`\(([A-Z]{1,40})\) Tj`)

// ReadDocument returns the letters of a PDF that [Document] wrote, and "" for
// any other.
func ReadDocument(data []byte) string {
	m := shown.FindSubmatch(data)
	if m == nil || !bytes.Equal(data, Document(string(m[1]))) {
		return ""
	}
	return string(m[1])
}

// named reports whether an answer names the letters, whatever it writes
// between them.
func named(answer, letters string) bool {
	only := strings.Map(func(r rune) rune {
		if r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, strings.ToUpper(answer))
	return strings.Contains(only, letters)
}
