// SPDX-License-Identifier: Apache-2.0

package media_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/japanese"
	"golang.org/x/text/encoding/korean"
	"golang.org/x/text/encoding/simplifiedchinese"
	"golang.org/x/text/encoding/traditionalchinese"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

func sample(tb testing.TB, name string) []byte {
	tb.Helper()
	b, err := os.ReadFile(filepath.Join("..", "testdata", "files", name))
	if err != nil {
		tb.Fatal(err)
	}
	return b
}

// Evidence has an order: a strong signature that contradicts, the declaration,
// the extension, the bytes.
func TestOrderOfEvidence(t *testing.T) {
	png, jpg, pdf, docx, zip := sample(t, "red.png"), sample(t, "photo.jpg"), sample(t, "report.pdf"), sample(t, "letter.docx"), sample(t, "archive.zip")
	random := []byte{0x93, 0x00, 0x17, 0xFE, 0xB8, 0x00, 0x42, 0xC1, 0x00, 0x99, 0x81, 0x05, 0x00, 0xF0}
	const word = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	tests := []struct {
		name      string
		data      []byte
		hint      media.Hint
		mediaType string
		kind      artel.MediaKind
		by        artel.MediaSource
	}{
		{"picture declared as text", png, media.Hint{DeclaredType: "text/plain"}, "image/png", artel.KindImage, artel.FromSignature},
		{"picture named as text", png, media.Hint{Filename: "a.txt"}, "image/png", artel.KindImage, artel.FromSignature},
		{"JPEG declared and named PNG", jpg, media.Hint{"image/png", "a.png"}, "image/jpeg", artel.KindImage, artel.FromSignature},
		{"PDF declared as picture", pdf, media.Hint{DeclaredType: "image/png"}, "application/pdf", artel.KindDocument, artel.FromSignature},
		{"text declared as picture", []byte("hello"), media.Hint{DeclaredType: "image/png"}, "text/plain", artel.KindText, artel.FromContent},
		{"text declared as PDF", []byte("hello"), media.Hint{DeclaredType: "application/pdf"}, "text/plain", artel.KindText, artel.FromContent},
		{"text named as picture", []byte("hello"), media.Hint{Filename: "a.png"}, "text/plain", artel.KindText, artel.FromContent},
		{"declared with parameters", jpg, media.Hint{DeclaredType: "image/jpeg; charset=utf-8"}, "image/jpeg", artel.KindImage, artel.FromDeclared},
		{"declared in quotes", png, media.Hint{DeclaredType: ` "Image/PNG" `}, "image/png", artel.KindImage, artel.FromDeclared},
		{"declared by another name", jpg, media.Hint{DeclaredType: "image/jpg"}, "image/jpeg", artel.KindImage, artel.FromDeclared},
		{"octet-stream with a name", jpg, media.Hint{octet, "a.jpg"}, "image/jpeg", artel.KindImage, artel.FromExtension},
		{"octet-stream with a false name", jpg, media.Hint{octet, "a.png"}, "image/jpeg", artel.KindImage, artel.FromSignature},
		{"only bytes", png, media.Hint{}, "image/png", artel.KindImage, artel.FromSignature},
		{"unknown bytes declared", random, media.Hint{DeclaredType: "audio/mpeg"}, "audio/mpeg", artel.KindAudio, artel.FromDeclared},
		{"unknown bytes named", random, media.Hint{Filename: "a.mp3"}, "audio/mpeg", artel.KindAudio, artel.FromExtension},
		{"unknown bytes of unknown type", random, media.Hint{DeclaredType: "application/x-own"}, "application/x-own", artel.KindOther, artel.FromDeclared},
		{"unknown bytes declared as text", random, media.Hint{"text/plain", "a.txt"}, octet, artel.KindOther, artel.FromContent},
		{"unknown bytes", random, media.Hint{}, octet, artel.KindOther, artel.FromContent},
		{"a claim narrower than the container", zip, media.Hint{DeclaredType: word}, word, artel.KindDocument, artel.FromDeclared},
		{"a claim wider than the bytes", docx, media.Hint{DeclaredType: "application/zip"}, word, artel.KindDocument, artel.FromSignature},
		{"text has a declared type", []byte("# hi"), media.Hint{DeclaredType: "text/markdown;charset=UTF-8"}, "text/markdown", artel.KindText, artel.FromDeclared},
		{"text has an extension", []byte("# hi"), media.Hint{octet, `C:\dir\notes.MD`}, "text/markdown", artel.KindText, artel.FromExtension},
		{"TypeScript", []byte("let a = 1"), media.Hint{Filename: "a.ts"}, "text/typescript", artel.KindText, artel.FromExtension},
		{"transport stream", random, media.Hint{Filename: "a.ts"}, "video/mp2t", artel.KindVideo, artel.FromExtension},
		{"spreadsheet program's CSV", []byte("a,b\n1,2\n"), media.Hint{"application/vnd.ms-excel", "a.csv"}, "text/csv", artel.KindText, artel.FromExtension},
		{"what curl sends", []byte("hello"), media.Hint{DeclaredType: "application/x-www-form-urlencoded"}, "text/plain", artel.KindText, artel.FromContent},
		{"a font", goregular.TTF, media.Hint{}, "font/ttf", artel.KindOther, artel.FromSignature},
		{"a dot in a folder", []byte("hi"), media.Hint{Filename: "dir.md/README"}, "text/plain", artel.KindText, artel.FromContent},
		{"not a media type", []byte("hi"), media.Hint{DeclaredType: "image/png\r\nX-Evil: 1"}, "text/plain", artel.KindText, artel.FromContent},
		{"empty", nil, media.Hint{}, "text/plain", artel.KindText, artel.FromContent},
		{"empty text", nil, media.Hint{Filename: "a.md"}, "text/markdown", artel.KindText, artel.FromExtension},
		{"empty picture", nil, media.Hint{DeclaredType: "image/png"}, octet, artel.KindOther, artel.FromDeclared},
		{"empty named picture", nil, media.Hint{Filename: "a.png"}, octet, artel.KindOther, artel.FromExtension},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got := media.Detect(tt.data, tt.hint)
			if got.MediaType != tt.mediaType || got.Kind != tt.kind || got.DetectedBy != tt.by {
				t.Errorf("got %+v", got)
			}
		})
	}
}

const octet = "application/octet-stream"

func TestDeclaredTypeIsClean(t *testing.T) {
	for in, want := range map[string]string{
		`"image/png"`: "image/png", " Text/HTML ; charset=x": "text/html", "nonsense": "", "a/b/c": "",
		"image/png\x00": "", "text/plain;charset=": "text/plain", octet: octet, "": "", "/": "",
	} {
		if got := media.Detect([]byte("x"), media.Hint{DeclaredType: in}).DeclaredType; got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
}

// Prose that begins like a signature is prose.
func TestProseStaysText(t *testing.T) {
	tail := " is how this sentence begins, and it goes on for a while.\n"
	for _, start := range []string{
		"BM", "MZ", "GIF", "GIF89a", "PK", "ID3", "%PDF", "%PDF-1.4", "RIFF", "OggS", "fLaC", "FWS", "Rar!", "II*", "MM",
		"SQLite format 3", "!<arch>", "ftyp", "{\\rtf", "d8:announce", "wOFF", "BZh9", "7z", "icns", "FORM", ".snd", "MThd",
	} {
		for _, enc := range []encoding.Encoding{encoding.Nop, charmap.ISO8859_1} {
			text := start + tail
			if enc != encoding.Nop {
				text += strings.Repeat("Là-bas, l'été a été très beau; le garçon était déjà prêt à partir.\n", 3)
			}
			b, err := enc.NewEncoder().Bytes([]byte(text))
			if err != nil {
				t.Fatal(err)
			}
			if got := media.Detect(b, media.Hint{DeclaredType: "image/bmp"}); got.Kind != artel.KindText {
				t.Errorf("%q: %+v", start, got)
			}
		}
	}
}

func TestContentNames(t *testing.T) {
	for text, want := range map[string]string{
		"Hello, world.\nGood day, sir.\n":                      "text/plain",
		"one, two\nthree, four\n":                              "text/plain",
		"你好，世界\n再见，世界\n":                                       "text/plain",
		"a,b\n1,2\n3,4\n":                                      "text/csv",
		`{"a" is no JSON` + strings.Repeat("[1,2,3],\n", 5000): "text/plain",
		`{"a":[` + strings.Repeat("[1,2,3],\n", 5000) + `1]}`:  "application/json",
		"[1] see the note":                                     "text/plain",
		"{":                                                    "text/plain",
		"[]":                                                   "application/json",
		"123":                                                  "text/plain",
		"null":                                                 "text/plain",
		"<!DOCTYPE html><p>hi":                                 "text/html",
		"<?xml version=\"1.0\"?><a/>":                          "application/xml",
		"#!/bin/sh\necho hi\n":                                 "text/x-shellscript",
		"\uFEFF{\"a\":1}":                                      "application/json",
	} {
		if got := media.Detect([]byte(text), media.Hint{}); got.MediaType != want || got.Kind != artel.KindText {
			t.Errorf("%.40q: %+v, want %s", text, got, want)
		}
	}
}

// Old charsets are found in short and long texts, and decode to what was meant.
func TestCharsets(t *testing.T) {
	zh := "今天天气很好，我们去公园散步。公园里有很多人，孩子们在草地上放风筝。"
	tests := []struct {
		charset string
		enc     encoding.Encoding
		text    string
	}{
		{"gb18030", simplifiedchinese.GB18030, zh},
		{"shift_jis", japanese.ShiftJIS, "今日はとても天気がいいので、公園へ散歩に行きました。"},
		{"euc-jp", japanese.EUCJP, "今日はとても天気がいいので、公園へ散歩に行きました。"},
		{"big5", traditionalchinese.Big5, "今天天氣很好，我們去公園散步。公園裡有很多人，孩子們在草地上放風箏。"},
		{"euc-kr", korean.EUCKR, "오늘은 날씨가 아주 좋아서 우리는 공원에 산책하러 갔습니다."},
		{"windows-1251", charmap.Windows1251, "Сегодня хорошая погода, и мы пошли гулять в парк всей семьёй."},
		{"koi8-r", charmap.KOI8R, "Сегодня хорошая погода, и мы пошли гулять в парк всей семьёй."},
	}
	for _, tt := range tests {
		for _, times := range []int{1, 40, 1000} {
			t.Run(fmt.Sprintf("%s/%d", tt.charset, times), func(t *testing.T) {
				text := strings.Repeat(tt.text+"\n", times)
				b, err := tt.enc.NewEncoder().Bytes([]byte(text))
				if err != nil {
					t.Fatal(err)
				}
				got := media.Detect(b, media.Hint{})
				if got.Kind != artel.KindText || got.Charset != tt.charset {
					t.Fatalf("got %+v", got)
				}
				back, err := media.DecodeText(bytes.NewReader(b), got.Charset)
				if err != nil || back != text {
					t.Errorf("decoding lost something: %v", err)
				}
			})
		}
	}
	t.Run("declared", func(t *testing.T) {
		b, _ := simplifiedchinese.GBK.NewEncoder().Bytes([]byte("好"))
		got := media.Detect(b, media.Hint{DeclaredType: `text/plain; charset="GBK"`})
		if got.Kind != artel.KindText || got.Charset != "gb18030" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("after much ASCII", func(t *testing.T) {
		b, _ := simplifiedchinese.GB18030.NewEncoder().Bytes([]byte(strings.Repeat("plain\n", 20_000) + zh))
		if got := media.Detect(b, media.Hint{}); got.Charset != "gb18030" {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("broken late", func(t *testing.T) {
		b, _ := simplifiedchinese.GB18030.NewEncoder().Bytes([]byte(strings.Repeat(zh, 4000)))
		b = append(b, 0xFF, 0xFF)
		if got := media.Detect(b, media.Hint{DeclaredType: "text/plain"}); got.Kind == artel.KindText {
			t.Errorf("got %+v", got)
		}
	})
	t.Run("NUL late", func(t *testing.T) {
		b := append(bytes.Repeat([]byte("plain text\n"), 20_000), 0)
		if got := media.Detect(b, media.Hint{DeclaredType: "text/plain", Filename: "a.txt"}); got.Kind == artel.KindText {
			t.Errorf("got %+v", got)
		}
	})
}

func TestUTF16(t *testing.T) {
	encode := func(order binary.AppendByteOrder, s string) (b []byte) {
		for _, r := range s {
			b = order.AppendUint16(b, uint16(r))
		}
		return b
	}
	for _, text := range []string{"hi", "Hello, world\r\n", "今天 天气很好。", "Привет, мир", strings.Repeat("many words\n", 20_000)} {
		le, be := encode(binary.LittleEndian, text), encode(binary.BigEndian, text)
		for _, tt := range []struct {
			b    []byte
			want string
		}{{le, "utf-16le"}, {be, "utf-16be"}, {append([]byte{0xFF, 0xFE}, le...), "utf-16le"}, {append([]byte{0xFE, 0xFF}, be...), "utf-16be"}} {
			got := media.Detect(tt.b, media.Hint{})
			if got.Kind != artel.KindText || got.Charset != tt.want {
				t.Errorf("%.20q: %+v, want %s", text, got, tt.want)
				continue
			}
			if s, err := media.DecodeText(bytes.NewReader(tt.b), got.Charset); err != nil || s != text {
				t.Errorf("%.20q decoded to %.20q, %v", text, s, err)
			}
		}
		if got := media.Detect(append(le, 'x'), media.Hint{}); got.Kind == artel.KindText {
			t.Errorf("an odd number of bytes is text: %+v", got)
		}
	}
	samples := make([]byte, 0, 2000)
	for i := range 1000 { // a ramp of 16-bit numbers, as in sound
		samples = binary.LittleEndian.AppendUint16(samples, uint16(i*37))
	}
	if got := media.Detect(samples, media.Hint{}); got.Kind == artel.KindText {
		t.Errorf("numbers are text: %+v", got)
	}
}

func TestDecodeText(t *testing.T) {
	if s, err := media.DecodeText(strings.NewReader("\uFEFFa\r\n"), "utf-8"); err != nil || s != "\uFEFFa\r\n" {
		t.Errorf("the mark of UTF-8 is part of the text: %q, %v", s, err)
	}
	if s, err := media.DecodeText(strings.NewReader("a\xFFb"), ""); err != nil || s != "a\uFFFDb" {
		t.Errorf("%q, %v", s, err)
	}
	if _, err := media.DecodeText(strings.NewReader("a"), "no-such"); artel.KindOf(err) != artel.Unsupported {
		t.Errorf("%v", err)
	}
}

func TestExtension(t *testing.T) {
	for in, want := range map[string]string{
		"image/jpeg": ".jpg", "image/jpg": ".jpg", "text/plain; charset=utf-8": ".txt", "text/markdown": ".md",
		"image/svg+xml": ".svg", "application/pdf": ".pdf", "audio/mpeg": ".mp3", "x/unknown": "", "": "", octet: "",
	} {
		if got := media.Extension(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// Random bytes are never text, and seldom anything with certainty.
func TestRandomBytes(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	named := map[string]int{}
	for range 1_000 {
		b := make([]byte, 32+rng.IntN(300))
		for i := range b {
			b[i] = byte(rng.Uint32())
		}
		got := media.Detect(b, media.Hint{DeclaredType: "text/plain", Filename: "a.txt"})
		if got.Kind == artel.KindText {
			t.Fatalf("text: %+v %q", got, b)
		}
		if got.Confidence == 1 {
			named[got.MediaType]++
		}
	}
	for name, n := range named {
		if n > 2 {
			t.Errorf("%d of 1000 are %s for sure", n, name)
		}
	}
}

func TestUTF8IsText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		magic := rapid.SampledFrom([]string{"", "BM", "MZ", "GIF89a", "PK\x03\x04", "\x7fELF", "ID3\x03", "OggS", "RIFF", "%PDF-", "\x1f"}).Draw(t, "magic")
		text := magic + strings.ReplaceAll(strings.ToValidUTF8(rapid.String().Draw(t, "text"), "?"), "\x00", "0")
		h := media.Hint{DeclaredType: rapid.SampledFrom([]string{"", "image/png", "application/pdf", "text/plain", "x"}).Draw(t, "declared")}
		got := media.Detect([]byte(text), h)
		if text != "" && (got.Kind != artel.KindText || got.Charset != "utf-8") {
			t.Fatalf("%q: %+v", text, got)
		}
	})
}

func FuzzSniffer(f *testing.F) {
	for _, c := range corpus(f).Files {
		f.Add(sample(f, c.File), c.File, "", uint16(len(c.File)))
	}
	f.Add([]byte("\xff\xfea\x00"), "a.txt", "text/plain", uint16(1))
	f.Fuzz(func(t *testing.T, b []byte, filename, declared string, step uint16) {
		if len(b) > 0 && step%3 == 0 { // reach beyond the head
			b = bytes.Repeat(b, 1+(70<<10)/len(b))
		}
		h := media.Hint{DeclaredType: declared, Filename: filename}
		before := bytes.Clone(b)
		var whole artel.MediaInfo
		n := allocated(func() { whole = media.Detect(b, h) })
		if n > 4<<20+16*uint64(len(b)) {
			t.Errorf("%d bytes were allocated for %d", n, len(b))
		}
		s := media.NewSniffer(h)
		for p := range splits(b, int(step%4099)+1) {
			if n, err := s.Write(p); n != len(p) || err != nil {
				t.Fatal(n, err)
			}
		}
		if diff := cmp.Diff(whole, s.Info()); diff != "" {
			t.Errorf("pieces of %d change the answer:\n%s", int(step%4099)+1, diff)
		}
		if diff := cmp.Diff(whole, s.Info()); diff != "" {
			t.Errorf("asking twice changes the answer:\n%s", diff)
		}
		if !bytes.Equal(b, before) {
			t.Error("the bytes were changed")
		}
		if !bytes.Contains(b, []byte{0}) && utf8.Valid(b) && len(b) > 0 && whole.Kind != artel.KindText &&
			!bytes.HasPrefix(b, []byte("%PDF-")) && !bytes.HasPrefix(b, []byte(`{\rtf`)) {
			t.Errorf("UTF-8 is not text: %+v", whole)
		}
		if whole.Kind == artel.KindText {
			if _, err := media.DecodeText(bytes.NewReader(b), whole.Charset); err != nil {
				t.Error(err)
			}
		}
		media.Measure(t.Context(), whole, bytes.NewReader(b))
	})
}

func splits(b []byte, n int) func(func([]byte) bool) {
	return func(yield func([]byte) bool) {
		for len(b) > 0 {
			p := b[:min(n, len(b))]
			b = b[len(p):]
			if !yield(p) {
				return
			}
		}
	}
}
