// SPDX-License-Identifier: Apache-2.0

package media_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/mediatest"
)

func corpus(tb testing.TB) *mediatest.Corpus {
	tb.Helper()
	c, err := mediatest.Read(filepath.Join("..", "testdata", "files"))
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// Each file of the corpus is what the manifest says: by its bytes alone, with
// its name, and with a true declaration under every name the type has.
func TestCorpus(t *testing.T) {
	c := corpus(t)
	for _, f := range c.Files {
		t.Run(f.File, func(t *testing.T) {
			b := sample(t, f.File)
			check := func(h media.Hint, named bool) {
				t.Helper()
				info := media.Detect(b, h)
				got := media.Measure(t.Context(), info, bytes.NewReader(b))
				if err := f.Check(got, len(b), named, true); err != nil {
					t.Errorf("with %+v by %s: %v", h, got.DetectedBy, err)
				}
				got.Width, got.Height, got.Pages, got.Duration = 0, 0, 0, 0
				if got != info {
					t.Errorf("measuring changed something else: %+v", got)
				}
			}
			check(media.Hint{}, false)
			check(media.Hint{Filename: f.File}, true)
			check(media.Hint{Filename: `C:\dir\` + strings.ToUpper(f.File)}, true)
			if f.Type != octet && len(b) > 0 {
				for _, name := range append(slices.Clone(f.Aliases), f.Type) {
					check(media.Hint{DeclaredType: name}, false)
					check(media.Hint{DeclaredType: ` "` + strings.ToUpper(name) + `"; v=1`}, false)
				}
			}
			if f.TypeNamed() != octet && len(b) > 0 {
				check(media.Hint{DeclaredType: f.TypeNamed(), Filename: f.File}, true)
			}
		})
	}
}

// The manifest and the folder name the same files, and the corpus stays small.
func TestCorpusIsWhole(t *testing.T) {
	c := corpus(t)
	dir := filepath.Join("..", "testdata", "files")
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var there, named []string
	var size int64
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			t.Fatal(err)
		}
		size += info.Size()
		if e.Name() != "README.md" && e.Name() != "manifest.json" {
			there = append(there, e.Name())
		}
	}
	for _, f := range c.Files {
		named = append(named, f.File)
		if f.Text != "" && !slices.ContainsFunc(c.Files, func(g mediatest.File) bool { return g.File == f.Text }) {
			t.Errorf("%s: no %s", f.File, f.Text)
		}
	}
	slices.Sort(named)
	if diff := cmp.Diff(there, named); diff != "" {
		t.Errorf("in the folder (-) and in the manifest (+):\n%s", diff)
	}
	if size > 3<<20 {
		t.Errorf("%d bytes are too many to keep with the source", size)
	}
}

// A contradiction is resolved by a strong signature, else by the declaration,
// the name, the content; text is text whatever it is called.
func TestClaims(t *testing.T) {
	for _, claim := range corpus(t).Claims {
		got := media.Detect(sample(t, claim.File), media.Hint{DeclaredType: claim.Declared, Filename: claim.Name})
		if err := claim.Check(got); err != nil {
			t.Error(err)
		}
	}
}

// Text of every encoding means what its twin in UTF-8 says, to the byte.
func TestTextIsUnderstood(t *testing.T) {
	for _, f := range corpus(t).Files {
		b := sample(t, f.File)
		switch {
		case f.Text != "":
			for _, h := range []media.Hint{{}, {DeclaredType: "text/plain", Filename: f.File}, {DeclaredType: "text/plain; charset=" + f.Charset}} {
				info := media.Detect(b, h)
				text, err := media.DecodeText(bytes.NewReader(b), info.Charset)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(string(sample(t, f.Text)), text); diff != "" {
					t.Errorf("%s with %+v, read as %s:\n%s", f.File, h, info.Charset, diff)
				}
			}
		case f.Charset == "utf-8" && utf8.Valid(b):
			text, err := media.DecodeText(bytes.NewReader(b), f.Charset)
			if err != nil || text != string(b) {
				t.Errorf("%s is not itself: %v", f.File, err)
			}
		}
	}
}

// A file that was cut anywhere is what it was, less than that, or plain text
// where what is left of it is; nobody is sure of something that it never was.
func TestTruncations(t *testing.T) {
	for _, f := range corpus(t).Files {
		b := sample(t, f.File)
		if f.Kind == artel.KindText || f.Type == octet {
			continue
		}
		for _, n := range []int{1, 8, 64, len(b) / 2} {
			if n >= len(b) {
				continue
			}
			cut := b[:n]
			got := media.Measure(t.Context(), media.Detect(cut, media.Hint{}), bytes.NewReader(cut))
			switch {
			case got.MediaType == f.Type, got.MediaType == octet && got.Kind == artel.KindOther && got.Confidence == 0:
			case utf8.Valid(cut) && !bytes.Contains(cut, []byte{0}):
				if got.Kind != artel.KindText && got.MediaType != f.Type {
					t.Errorf("%s cut at %d, all ASCII: %+v", f.File, n, got)
				}
			case got.Kind == artel.KindText:
				t.Errorf("%s cut at %d is text: %+v", f.File, n, got)
			case got.Confidence == 1 && !slices.Contains(containers(f.Type), got.MediaType):
				t.Errorf("%s cut at %d: %+v", f.File, n, got)
			}
			told := media.Detect(cut, media.Hint{DeclaredType: f.Type})
			if told.Kind != artel.KindText && told.MediaType != f.Type {
				t.Errorf("%s cut at %d and declared truly: %+v", f.File, n, told)
			}
		}
	}
}

// containers are the formats that others are made of, and are told from with
// what comes later in the file.
func containers(mediaType string) (all []string) {
	for _, family := range [][]string{
		{"application/zip", "officedocument", "opendocument", "epub", "java-archive", "android"},
		{"application/x-ole-storage", "msword", "ms-excel", "ms-powerpoint"},
		{"video/x-matroska", "matroska", "webm"},
		{"video/webm", "webm"},
		{"video/x-ms-asf", "wma"},
		{"application/ogg", "ogg"},
		{"audio/ogg", "video/ogg"},
		{"application/x-archive", "debian"},
		{"application/x-elf", "x-object", "x-sharedlib", "x-executable"},
	} {
		if slices.ContainsFunc(family[1:], func(part string) bool { return strings.Contains(mediaType, part) }) {
			all = append(all, family[0])
		}
	}
	return all
}
