// SPDX-License-Identifier: Apache-2.0

// Command docx-check exports Markdown files as DOCX, lets LibreOffice open
// them, and compares what it shows with what was written. It needs soffice and
// pdftotext, which the tests do not, as they check the structure of the files:
//
//	apt-get install --no-install-recommends libreoffice-writer poppler-utils
//	go run ./scripts/docx-check [FILE.md …]
package main

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/artifact/export"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	files := os.Args[1:]
	if len(files) == 0 {
		files = []string{"artifact/export/testdata/rich.md"}
	}
	for _, file := range files {
		n, err := check(ctx, file)
		if err != nil {
			fmt.Fprintf(os.Stderr, "FAIL %s: %v\n", file, err)
			os.Exit(1)
		}
		fmt.Printf("ok   %s: LibreOffice shows all %d paragraphs, in a text and in a PDF\n", file, n)
	}
}

func check(ctx context.Context, file string) (paragraphs int, err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "docx-check")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	var out bytes.Buffer
	err = export.DOCX(ctx, &out, export.Document{
		Title: filepath.Base(file), Text: string(text), Open: square,
		Link: func(ref artel.Ref) string { return "https://artel.example/" + string(ref.Artifact) },
	})
	if err != nil {
		return 0, err
	}
	docx := filepath.Join(dir, "check.docx")
	if err := os.WriteFile(docx, out.Bytes(), 0o600); err != nil {
		return 0, err
	}
	want, err := paragraphsOf(out.Bytes())
	if err != nil {
		return 0, err
	}
	for _, format := range []string{"txt:Text (encoded):UTF8", "pdf"} {
		run := exec.CommandContext(ctx, "soffice", "-env:UserInstallation=file://"+filepath.Join(dir, "profile"), "--headless", "--convert-to", format, "--outdir", dir, docx)
		if log, err := run.CombinedOutput(); err != nil {
			return 0, fmt.Errorf("soffice: %w\n%s", err, log)
		}
	}
	plain, err := os.ReadFile(filepath.Join(dir, "check.txt"))
	if err != nil {
		return 0, err
	}
	printed, err := exec.CommandContext(ctx, "pdftotext", "-raw", filepath.Join(dir, "check.pdf"), "-").Output()
	if err != nil {
		return 0, fmt.Errorf("pdftotext: %w", err)
	}
	return len(want), errors.Join(inOrder(want, string(plain)), enough(want, string(printed)))
}

// square opens every ref as the same picture.
func square(context.Context, artel.Ref) (artifact.Content, error) {
	var b bytes.Buffer
	if err := png.Encode(&b, image.NewGray(image.Rect(0, 0, 1200, 300))); err != nil {
		return artifact.Content{}, err
	}
	v := artel.Version{Number: 1}
	v.MediaType = "image/png"
	return artifact.Content{Reader: file{bytes.NewReader(b.Bytes())}, Version: v, Visible: true}, nil
}

type file struct{ *bytes.Reader }

func (file) Close() error { return nil }

// paragraphsOf returns the texts of all paragraphs of a DOCX.
func paragraphsOf(docx []byte) ([]string, error) {
	z, err := zip.NewReader(bytes.NewReader(docx), int64(len(docx)))
	if err != nil {
		return nil, err
	}
	part, err := z.Open("word/document.xml")
	if err != nil {
		return nil, err
	}
	defer part.Close()
	var list []string
	var in bool
	d := xml.NewDecoder(part)
	for {
		t, err := d.Token()
		if err == io.EOF {
			return list, nil
		}
		if err != nil {
			return nil, err
		}
		switch t := t.(type) {
		case xml.StartElement:
			in = t.Name.Local == "t"
			if t.Name.Local == "p" {
				list = append(list, "")
			}
		case xml.EndElement:
			in = false
		case xml.CharData:
			if in {
				list[len(list)-1] += string(t)
			}
		}
	}
}

// inOrder finds every paragraph after the one before it. White space is not
// compared.
func inOrder(paragraphs []string, shown string) error {
	rest := squeeze(shown)
	for i, p := range paragraphs {
		p = squeeze(p)
		at := strings.Index(rest, p)
		if at < 0 {
			return fmt.Errorf("the text lacks paragraph %d, %q", i+1, p)
		}
		rest = rest[at+len(p):]
	}
	return nil
}

// enough checks that each character occurs as often as in the paragraphs. Order is
// not compared, because a table row may continue on the next page.
func enough(paragraphs []string, shown string) error {
	left := map[rune]int{}
	for _, r := range squeeze(shown) {
		left[r]++
	}
	for i, p := range paragraphs {
		for _, r := range squeeze(p) {
			if left[r]--; left[r] < 0 {
				return fmt.Errorf("the PDF lacks %q of paragraph %d, %q", r, i+1, p)
			}
		}
	}
	return nil
}

func squeeze(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) || r == '\f' || r == '\uFEFF' {
			return -1
		}
		return r
	}, s)
}
