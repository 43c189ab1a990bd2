// SPDX-License-Identifier: Apache-2.0

package media_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gabriel-vasile/mimetype"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/encoding/unicode/utf32"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
)

// The kinds of media are those that models differ in.
func TestKinds(t *testing.T) {
	for file, want := range map[string]artel.MediaKind{
		"notes.md": artel.KindText, "red.png": artel.KindImage, "tone.mp3": artel.KindAudio, "clip.mp4": artel.KindVideo,
		"report.pdf": artel.KindDocument, "archive.zip": artel.KindArchive, "rows.sqlite": artel.KindOther,
	} {
		got := media.Detect(sample(t, file), media.Hint{})
		if got.Kind != want || got.IsBinary() != (want != artel.KindText) {
			t.Errorf("%s is %+v", file, got)
		}
		if media.KindOf(got.MediaType) != want && want != artel.KindText {
			t.Errorf("%s is of kind %s", got.MediaType, media.KindOf(got.MediaType))
		}
	}
}

// The declaration and the name decide where no signature contradicts them; the
// bytes decide where both are missing.
func TestMetadataComesFirst(t *testing.T) {
	noise, png, jpeg := sample(t, "noise.bin"), sample(t, "red.png"), sample(t, "photo.jpg")
	for _, tt := range []struct {
		b    []byte
		h    media.Hint
		want string
		by   artel.MediaSource
	}{
		{noise, media.Hint{DeclaredType: "audio/mpeg", Filename: "a.pdf"}, "audio/mpeg", artel.FromDeclared},
		{noise, media.Hint{DeclaredType: octet, Filename: "a.pdf"}, "application/pdf", artel.FromExtension},
		{jpeg, media.Hint{DeclaredType: octet, Filename: "a.jpg"}, "image/jpeg", artel.FromExtension},
		{png, media.Hint{}, "image/png", artel.FromSignature},
		{png, media.Hint{DeclaredType: octet, Filename: "a.bin"}, "image/png", artel.FromSignature},
	} {
		if got := media.Detect(tt.b, tt.h); got.MediaType != tt.want || got.DetectedBy != tt.by {
			t.Errorf("%+v: %+v", tt.h, got)
		}
	}
}

// Metadata that is damaged counts as missing.
func TestDamagedMetadata(t *testing.T) {
	want := media.Detect(sample(t, "red.png"), media.Hint{})
	for _, declared := range []string{"", "image", "/", "image/", "/png", ";", `"`, "\x00\xff", "image/png, text/plain", "a/b/c", "image/p\x00ng", strings.Repeat("a/", 300), "<nil>", "undefined", "null"} {
		for _, name := range []string{"", ".", "..", "/", "a.", "\x00", "\xff.\xff", "CON", strings.Repeat("x.", 1000)} {
			got := media.Detect(sample(t, "red.png"), media.Hint{DeclaredType: declared, Filename: name})
			if got.MediaType != want.MediaType || got.DetectedBy != artel.FromSignature || got.DeclaredType != "" {
				t.Errorf("%q, %q: %+v", declared, name, got)
			}
		}
	}
}

// Formats that are written in text are text, under their own names.
func TestTextFormatsAreText(t *testing.T) {
	for _, file := range []string{"doc.svg", "bare.svg", "feed.xml", "news.rss", "page.html", "page.xhtml", "data.json", "rows.ndjson", "table.csv", "table.tsv", "code.go.txt", "hello.py", "bundle.min.js", "config.yaml", "cert.pem", "build.log"} {
		for _, h := range []media.Hint{{}, {Filename: file}, {DeclaredType: "application/pdf", Filename: file}} {
			if got := media.Detect(sample(t, file), h); got.Kind != artel.KindText || got.Charset != "utf-8" {
				t.Errorf("%s with %+v: %+v", file, h, got)
			}
		}
	}
}

// All of a text decides, not its beginning, and a character may lie across any
// boundary that a reader stops at.
func TestTheWholeTextDecides(t *testing.T) {
	for _, at := range []int{1 << 10, 3072, 4 << 10, 8 << 10, 32 << 10, 64 << 10, 128 << 10} {
		for _, before := range []int{1, 2, 3} {
			text := strings.Repeat("x", at-before) + strings.Repeat("𠮷世é", 10)
			if got := media.Detect([]byte(text), media.Hint{}); got.Kind != artel.KindText || got.Charset != "utf-8" || got.Confidence != 1 {
				t.Errorf("a character across %d, %d before it: %+v", at, before, got)
			}
		}
		for _, bad := range []string{"\x00", "\xff\x00"} {
			b := []byte(strings.Repeat("text\n", at/5+1) + bad + "more")
			if got := media.Detect(b, media.Hint{DeclaredType: "text/plain", Filename: "a.txt"}); got.Kind == artel.KindText {
				t.Errorf("%q after %d bytes of text: %+v", bad, at, got)
			}
		}
	}
}

// Text of every script is text in every form of Unicode, with a byte order
// mark and, of UTF-16, without.
func TestEveryScriptInEveryForm(t *testing.T) {
	forms := map[string]encoding.Encoding{
		"utf-16le": unicode.UTF16(unicode.LittleEndian, unicode.UseBOM), "utf-16be": unicode.UTF16(unicode.BigEndian, unicode.UseBOM),
		"utf-32le": utf32.UTF32(utf32.LittleEndian, utf32.UseBOM), "utf-32be": utf32.UTF32(utf32.BigEndian, utf32.UseBOM),
	}
	for _, f := range corpus(t).Files {
		if f.Charset != "utf-8" || f.Type != "text/plain" || !strings.HasSuffix(f.File, "_utf8.txt") || f.File == "cut_utf8.txt" {
			continue
		}
		want := string(sample(t, f.File))
		for form, enc := range forms {
			b, err := enc.NewEncoder().Bytes([]byte(want))
			if err != nil {
				t.Fatal(err)
			}
			variants := [][]byte{b}
			if strings.HasPrefix(form, "utf-16") {
				variants = append(variants, b[2:])
			}
			for _, b := range variants {
				got := media.Detect(b, media.Hint{})
				text, err := media.DecodeText(bytes.NewReader(b), got.Charset)
				if got.Kind != artel.KindText || got.Charset != form || err != nil || text != want {
					t.Errorf("%s in %s, %d of %d bytes: %+v, %v", f.File, form, len(b), len(variants[0]), got, err)
				}
			}
		}
	}
}

// Valid UTF-8 without NUL is text whatever is claimed, and comes back byte for
// byte: nothing is parsed, decoded or cleaned.
func TestTextIsNeverTouched(t *testing.T) {
	check := func(tb interface{ Fatalf(string, ...any) }, text string, h media.Hint) {
		got := media.Detect([]byte(text), h)
		if text == "" {
			return
		}
		if got.Kind != artel.KindText || got.IsBinary() {
			tb.Fatalf("%q with %+v: %+v", text, h, got)
		}
		back, err := media.DecodeText(strings.NewReader(text), got.Charset)
		if err != nil || back != text {
			tb.Fatalf("%q with %+v became %q, %v", text, h, back, err)
		}
	}
	hints := []media.Hint{{}, {DeclaredType: "image/png"}, {DeclaredType: "application/json"}, {Filename: "a.png"}, {DeclaredType: "text/plain; charset=latin1"}, {DeclaredType: octet, Filename: "a.pdf"}}
	for _, text := range []string{
		"123", "null", "true", "0", "[1]", `{"a":1,"a":2}`, `{"big":12345678901234567890}`, "abcd", "aGVsbG8=", "data:image/png;base64,iVBORw0KGgo=",
		"\uFEFFmark", "a\r\nb\rc\n", " \t ", "\x1b[31mred\x1b[0m", "e\u0301", "🙂", "\u2028", "%PDF-1.4 is a header", "a\x08b", "a\x0cb",
	} {
		for _, h := range hints {
			check(t, text, h)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		text := strings.ToValidUTF8(strings.ReplaceAll(rapid.String().Draw(t, "text"), "\x00", ""), "")
		check(t, text, rapid.SampledFrom(hints).Draw(t, "hint"))
	})
}

// Bytes that begin with the mark of a binary format and are not text are never
// text, whatever is claimed.
func TestBinaryIsNeverText(t *testing.T) {
	var heads [][]byte
	for _, f := range corpus(t).Files {
		if b := sample(t, f.File); f.Kind != artel.KindText && f.Type != octet && len(b) >= 16 && !utf8.Valid(b[:16]) {
			heads = append(heads, b[:16])
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		b := slices.Concat(rapid.SampledFrom(heads).Draw(t, "head"), rapid.SliceOfN(rapid.Byte(), 48, 400).Draw(t, "rest"))
		h := media.Hint{DeclaredType: rapid.SampledFrom([]string{"", "text/plain", "application/json", "text/html; charset=latin1", "image/svg+xml"}).Draw(t, "declared"), Filename: "a.txt"}
		if got := media.Detect(b, h); got.Kind == artel.KindText {
			t.Fatalf("%q with %+v: %+v", b, h, got)
		}
	})
}

// A signature detector that breaks leaves bytes undetected, which is not the
// same as a type that is merely unknown; text stays text.
func TestFailingDetector(t *testing.T) {
	breaks := func(b []byte, _ uint32) bool {
		if bytes.HasPrefix(b, []byte("detector, break")) {
			panic("broken")
		}
		return false
	}
	mimetype.Extend(breaks, "application/x-breaking", ".breaking")
	mimetype.Lookup("text/plain").Extend(breaks, "text/x-breaking", ".breaking")

	binary := []byte("detector, break\x00\x01\x02\xff")
	for _, h := range []media.Hint{{}, {DeclaredType: "image/png"}, {DeclaredType: "text/plain", Filename: "a.txt"}} {
		got := media.Detect(binary, h)
		if got.MediaType != octet || got.Kind != artel.KindOther || got.Confidence != 0 || got.Size != int64(len(binary)) || !got.IsBinary() {
			t.Errorf("with %+v: %+v", h, got)
		}
	}
	text := []byte("detector, break over this text\n")
	if got := media.Detect(text, media.Hint{}); got.Kind != artel.KindText || got.MediaType != "text/plain" || got.Charset != "utf-8" {
		t.Errorf("text: %+v", got)
	}
	if got := media.Detect(sample(t, "noise.bin"), media.Hint{DeclaredType: "application/x-own"}); got.Kind != artel.KindOther || got.Confidence == 0 {
		t.Errorf("unknown: %+v", got)
	}
}

// A text that broke off inside of a character is UTF-8, not a riddle; one
// letter of an old charset at the end is none.
func TestTextThatBrokeOff(t *testing.T) {
	whole := sample(t, "zh_utf8.txt")
	for n := 10; n < len(whole); n++ {
		got := media.Detect(whole[:n], media.Hint{})
		text, err := media.DecodeText(bytes.NewReader(whole[:n]), got.Charset)
		if got.Kind != artel.KindText || got.Charset != "utf-8" || err != nil || strings.Count(text, "\uFFFD") > 1 {
			t.Errorf("cut at %d: %+v, %q, %v", n, got, text, err)
		}
	}
	if got := media.Detect([]byte("They met at the caf\xe9"), media.Hint{}); got.Charset != "iso-8859-1" {
		t.Errorf("%+v", got)
	}
}

// The escapes of ISO-2022-JP are believed only where they lead there and back,
// and nobody says that the text is UTF-8.
func TestEscapesAreNotAlwaysJapanese(t *testing.T) {
	japanese := sample(t, "ja_iso2022jp.txt")
	for text, want := range map[string]string{
		string(japanese): "iso-2022-jp", "\x1b$B is how this log line begins\n": "utf-8", "\x1b$B\x1b(B\x1b[1m\xe4\xbb\x8a\n": "utf-8", "\x1b[31mred\x1b(B\n": "utf-8",
	} {
		if got := media.Detect([]byte(text), media.Hint{}); got.Kind != artel.KindText || got.Charset != want {
			t.Errorf("%q: %+v", text, got)
		}
	}
	if got := media.Detect(japanese, media.Hint{DeclaredType: "text/plain; charset=utf-8"}); got.Charset != "utf-8" {
		t.Errorf("declared as UTF-8: %+v", got)
	}
}

// A document's own word about its charset counts, when the bytes agree.
func TestDocumentsNameTheirCharset(t *testing.T) {
	encode := func(s string) string {
		b, err := charmap.ISO8859_5.NewEncoder().String(s)
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	for text, want := range map[string]string{
		`<?xml version="1.0" encoding="iso-8859-5"?><a>Да</a>`:                             "iso-8859-5",
		`<?xml version='1.0' encoding = 'ISO-8859-5' ?><a>Да</a>`:                          "iso-8859-5",
		`<html><meta charset=iso-8859-5><p>Да`:                                             "iso-8859-5",
		`<META HTTP-EQUIV="Content-Type" CONTENT="text/html; CHARSET=iso-8859-5"><p>Да`:    "iso-8859-5",
		`<?xml version="1.0"?><a charset="koi8-r">Сегодня хорошая погода, и мы гуляли</a>`: "iso-8859-5",
	} {
		if got := media.Detect([]byte(encode(text)), media.Hint{}); got.Charset != want {
			t.Errorf("%s: %+v", text, got)
		}
	}
	if got := media.Detect([]byte(`<?xml version="1.0" encoding="iso-8859-1"?><a>Да</a>`), media.Hint{}); got.Charset != "utf-8" {
		t.Errorf("UTF-8 that calls itself something else: %+v", got)
	}
}
