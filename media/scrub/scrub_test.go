// SPDX-License-Identifier: Apache-2.0

package scrub_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/media/scrub"
)

// A sink keeps hits by digest, as the product does.
type sink struct {
	kept  [][]byte
	hints []scrub.Hint
}

func (s *sink) keep(_ context.Context, r io.Reader, h scrub.Hint) (string, error) {
	b, err := io.ReadAll(r)
	if err != nil {
		return "", err
	}
	s.kept, s.hints = append(s.kept, b), append(s.hints, h)
	return refOf(b), nil
}

func refOf(b []byte) string { return artel.BlobRef(artel.NewDigest(sha256.Sum256(b))).String() }

// text scrubs s in every way that there is and wants the same from each.
func text(t interface {
	Helper()
	Fatalf(string, ...any)
}, s string,
) (string, *sink) {
	t.Helper()
	var whole sink
	out, err := scrub.Text(context.Background(), s, whole.keep)
	if err != nil {
		t.Fatalf("Text: %v", err)
	}
	for name, r := range map[string]io.Reader{
		"Copy": strings.NewReader(s), "Copy by bytes": iotest.OneByteReader(strings.NewReader(s)), "Copy with data and EOF": iotest.DataErrReader(strings.NewReader(s)),
	} {
		if name == "Copy by bytes" && len(s) > 20_000 {
			continue // it takes long, and smaller texts are cut as finely
		}
		var other sink
		var b bytes.Buffer
		if err := scrub.Copy(context.Background(), &b, r, other.keep); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if b.String() != out || !slices.EqualFunc(whole.kept, other.kept, bytes.Equal) || !slices.Equal(whole.hints, other.hints) {
			t.Fatalf("%s differs: %s", name, cmp.Diff(out, b.String()))
		}
	}
	var other sink
	again, err := scrub.Text(context.Background(), out, other.keep)
	if err != nil || again != out || len(other.kept) > 0 {
		t.Fatalf("scrubbing twice changes it, or finds %d: %s", len(other.kept), cmp.Diff(out, again))
	}
	return out, &whole
}

func read(t testing.TB, name string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "..", "testdata", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func wrap(s string, width int, sep string) string {
	var b strings.Builder
	for len(s) > width {
		b.WriteString(s[:width] + sep)
		s = s[width:]
	}
	return b.String() + s
}

func quote(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(b)
}

// unmarked are files whose first bytes chance could make, or that are known by
// later ones. In bare base64 they stay text; a block or a data URI has them.
var unmarked = map[string]string{
	"gnu.tar": "known at byte 257", "posix.tar": "known at byte 257", "bundle.iso": "known at byte 32769", "scan.dcm": "known at byte 128",
	"sans.eot": "known at byte 34", "late.pdf": "begins with white space", "empty.zip": "shorter than 24 bytes", "plain.zlib": "two bytes",
	"photo.jxl": "two bytes", "hello.pyc": "two bytes", "raw.ppm": "three letters",
}

// TestEveryFormat finds every binary file of the corpus as bare base64, so that
// the formats known here and those of package media do not drift apart.
func TestEveryFormat(t *testing.T) {
	files, err := filepath.Glob("../../testdata/files/*")
	if err != nil || len(files) < 20 {
		t.Fatal(len(files), err)
	}
	binary := 0
	for _, name := range files {
		b := read(t, filepath.Base(name))
		info := media.Detect(b, media.Hint{})
		if !info.IsBinary() || info.DetectedBy != artel.FromSignature {
			continue
		}
		if unmarked[filepath.Base(name)] != "" {
			continue
		}
		binary++
		out, s := text(t, "here: "+base64.StdEncoding.EncodeToString(b)+"\n")
		if out != "here: "+refOf(b)+"\n" || len(s.kept) != 1 {
			t.Errorf("%s (%s): kept %d, %s", name, info.MediaType, len(s.kept), artel.Shorten(out, 100))
			continue
		}
		if got := media.KindOf(s.hints[0].Signature); got != info.Kind && info.Kind != artel.KindDocument && got != artel.KindAudio && info.Kind != artel.KindAudio {
			t.Errorf("%s: signature %s is %s, want %s", name, s.hints[0].Signature, got, info.Kind)
		}
	}
	if binary < 80 {
		t.Errorf("only %d files are binary", binary)
	}
}

// blocks are the shapes in which media travel. Each gets base64 and a media
// type; the payload is all that is replaced.
var blocks = map[string]string{
	"openai image_url":       `{"type":"image_url","image_url":{"url":"data:MIME;base64,DATA","detail":"low"}}`,
	"openai input_image":     `{"type":"input_image","image_url":"data:MIME;base64,DATA"}`,
	"openai input_audio":     `{"type":"input_audio","input_audio":{"data":"DATA","format":"wav"}}`,
	"openai file":            `{"type":"file","file":{"filename":"a.pdf","file_data":"data:MIME;base64,DATA"}}`,
	"openai file bare":       `{"type":"file","file":{"filename":"a.pdf","file_data":"DATA"}}`,
	"openai b64_json":        `{"created":1,"data":[{"b64_json":"DATA"}]}`,
	"anthropic image":        `{"type":"image","source":{"type":"base64","media_type":"MIME","data":"DATA"}}`,
	"anthropic sorted":       `{"source":{"data":"DATA","media_type":"MIME","type":"base64"},"type":"image"}`,
	"anthropic document":     `[{"type":"tool_result","content":[{"type":"document","source":{"type":"base64","media_type":"MIME","data":"DATA"}}]}]`,
	"gemini":                 `{"inlineData":{"mimeType":"MIME","data":"DATA"}}`,
	"gemini snake":           `{"inline_data": {"mime_type": "MIME", "data": "DATA"}}`,
	"gemini sorted":          `{"parts":[{"inlineData":{"data":"DATA","mimeType":"MIME"}}]}`,
	"mcp image":              `{"content":[{"type":"image","data":"DATA","mimeType":"MIME","annotations":{"audience":["user"]}}]}`,
	"mcp sorted":             `{"data":"DATA","mimeType":"MIME","type":"image"}`,
	"mcp resource":           `{"type":"resource","resource":{"uri":"file:///a.bin","mimeType":"MIME","blob":"DATA"}}`,
	"mcp resource contents":  `{"contents":[{"uri":"file:///a.bin","mimeType":"MIME","blob":"DATA"}]}`,
	"ai sdk file":            `{"type":"file","mediaType":"MIME","data":"DATA"}`,
	"ai sdk image-data":      `[{"type":"text","text":"hi"},{"type":"image-data","data":"DATA","mediaType":"MIME"}]`,
	"ai sdk file-data":       `[{"data":"DATA","filename":"a","mediaType":"MIME","type":"file-data"}]`,
	"ai sdk media":           `[{"type":"media","data":"DATA","mediaType":"MIME"}]`,
	"langchain v0":           `{"type":"image","source_type":"base64","data":"DATA","mime_type":"MIME"}`,
	"langchain v1":           `{"type":"file","base64":"DATA","mime_type":"MIME"}`,
	"origin's metadata":      `{"content_type":"image","media_type":"MIME","encoding":"base64","data":"DATA"}`,
	"pretty":                 "{\n  \"type\": \"image\",\n  \"source\": {\n    \"type\": \"base64\",\n    \"media_type\": \"MIME\",\n    \"data\": \"DATA\"\n  }\n}",
	"behind nested siblings": `{"type":"image","meta":{"a":[1,{"b":"}]\""}]},"mimeType":"MIME","x":null,"data":"DATA"}`,
}

func fill(block, mime, data string) string {
	return strings.NewReplacer("MIME", mime, "DATA", data).Replace(block)
}

// TestBlocks takes media of no known signature out of every block, in which
// order its members ever stand, and however often it is put into a string.
func TestBlocks(t *testing.T) {
	data := bytes.Repeat([]byte("no signature at all, but bytes: \x00\x01\x02\xfe"), 50)
	for name, block := range blocks {
		mime := "application/x-unknown"
		if name == "openai input_audio" || name == "openai b64_json" {
			continue // they name a format, which is checked
		}
		in := fill(block, mime, base64.StdEncoding.EncodeToString(data))
		want := fill(strings.ReplaceAll(block, "data:MIME;base64,DATA", "DATA"), mime, refOf(data))
		for depth := range 4 {
			if out, s := text(t, in); out != want || len(s.kept) != 1 {
				t.Errorf("%s, %d strings deep: kept %d\n got %s\nwant %s", name, depth, len(s.kept), artel.Shorten(out, 400), want)
			}
			in, want = quote(in), quote(want)
		}
	}
}

// TestHits is the property: hits, in nestings, in encodings, cut anywhere.
func TestHits(t *testing.T) {
	files := map[string][]byte{"image/png": read(t, "red.png"), "image/jpeg": read(t, "photo.jpg"), "image/gif": read(t, "anim.gif"), "application/pdf": read(t, "brief.pdf")[:3000]}
	mimes := []string{"image/png", "image/jpeg", "image/gif", "application/pdf"}
	rapid.Check(t, func(t *rapid.T) {
		mime := rapid.SampledFrom(mimes).Draw(t, "mime")
		data := files[mime]
		if n := len(data); n > 200 && rapid.Bool().Draw(t, "cut") {
			data = data[:rapid.IntRange(100, n).Draw(t, "length")]
		}
		encoded := rapid.SampledFrom([]func() string{
			func() string { return base64.StdEncoding.EncodeToString(data) },
			func() string { return base64.RawStdEncoding.EncodeToString(data) },
			func() string { return base64.URLEncoding.EncodeToString(data) },
			func() string { return base64.RawURLEncoding.EncodeToString(data) },
			func() string { return wrap(base64.StdEncoding.EncodeToString(data), 76, "\r\n") },
			func() string { return wrap(base64.StdEncoding.EncodeToString(data), 64, "\n") },
			func() string { return wrap(base64.StdEncoding.EncodeToString(data), 64, "\n  ") },
		}).Draw(t, "encoding")()
		before, after := rapid.SampledFrom([]string{"", "see ", "key=", "a\n", "日本", "<b>", "- "}).Draw(t, "before"), rapid.SampledFrom([]string{"", " and more", "\n\nmore", ", x", ")", "。"}).Draw(t, "after")
		ref := refOf(data)
		var in, want string
		flat := !strings.ContainsAny(encoded, "\n")
		switch form := rapid.IntRange(0, 4).Draw(t, "form"); {
		case form == 0:
			in, want = before+encoded+after, before+ref+after
		case form == 1 && flat:
			in, want = before+"![p](data:"+mime+";base64,"+encoded+")"+after, before+"![p]("+ref+")"+after
		case form == 2 && flat:
			in, want = `<img src="data:`+mime+`;charset=x;name=b;base64,`+encoded+`"/>`+after, `<img src="`+ref+`"/>`+after
		case form == 3:
			in, want = before+hex.EncodeToString(data)+" "+after, before+ref+" "+after
			if !strings.HasPrefix(mime, "image/") {
				want = in
			}
		default:
			name := rapid.SampledFrom([]string{"anthropic image", "gemini", "mcp image", "ai sdk file", "mcp resource", "anthropic sorted"}).Draw(t, "block")
			in = fill(blocks[name], mime, strings.Trim(quote(encoded), `"`))
			want = fill(blocks[name], mime, ref)
		}
		for range rapid.IntRange(0, 3).Draw(t, "depth") {
			in, want = quote(in), quote(want)
			if rapid.Bool().Draw(t, "slashes") {
				in = strings.ReplaceAll(in, "/", `\/`)
				want = strings.ReplaceAll(want, "/", `\/`)
			}
			if rapid.Bool().Draw(t, "member") {
				in, want = `{"a":[1,`+in+`],"b":"x"}`, `{"a":[1,`+want+`],"b":"x"}`
			}
		}
		out, s := text(t, in)
		if out != want {
			t.Fatalf("%s\nin   %.600q\n got %.600q\nwant %.600q", mime, in, out, want)
		}
		if want != in && (len(s.kept) != 1 || !bytes.Equal(s.kept[0], data)) {
			t.Fatalf("kept %d", len(s.kept))
		}
		if json.Valid([]byte(in)) && !json.Valid([]byte(out)) {
			t.Fatalf("no JSON any more: %.600q", out)
		}
		// A stream gives the same in any pieces.
		var other sink
		st := scrub.NewStream(context.Background(), other.keep)
		var got strings.Builder
		for rest := in; rest != ""; {
			n := rapid.IntRange(1, min(len(rest), 200)).Draw(t, "piece")
			o, err := st.Write(rest[:n])
			if err != nil {
				t.Fatal(err)
			}
			got.WriteString(o)
			rest = rest[n:]
		}
		o, err := st.Close()
		if got.WriteString(o); err != nil || got.String() != want {
			t.Fatalf("stream: %v, %.600q", err, got.String())
		}
	})
}

// TestLeftAlone is the corpus of what only looks like media.
func TestLeftAlone(t *testing.T) {
	random := make([]byte, 3000)
	for i := range random {
		random[i] = byte(i*i*31 + i*7 + i>>3)
	}
	random[0] = 0x12
	b64 := base64.StdEncoding.EncodeToString(random)
	key := "-----BEGIN PRIVATE KEY-----\n" + wrap(b64[:1600], 64, "\n") + "\n-----END PRIVATE KEY-----\n"
	for name, s := range map[string]string{
		"jwt":              "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c",
		"keys":             "sk-proj-AAAAAAAAAAAAAAAABBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBBB AKIAIOSFODNN7EXAMPLE wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY ghp_0123456789abcdefghijABCDEFGHIJ012345",
		"hashes":           "sha256-9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08 sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg== ffd8ff81884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
		"pem":              key,
		"certificate":      strings.ReplaceAll(key, "PRIVATE KEY", "CERTIFICATE"),
		"base64":           b64,
		"base64 in JSON":   `{"token":"` + b64 + `","data":"` + b64 + `","ok":true}`,
		"wrapped":          wrap(b64, 76, "\n"),
		"minified":         `!function(e,t){"object"==typeof exports?module.exports=t():e.R0=t()}(this,function(){return{iVBOR:1,JVBERi0:2,UEsDB:"UEsDBB",k:"R0lGOD",n:function(a){return a/9j/2}}});`,
		"source map":       `{"version":3,"sources":["a.ts"],"names":["AAAA"],"mappings":"AAAA,SAASA,KAAKC,CAAC,EAAEC,CAAC;AACzB,OAAOC,IAAIC,AAAAA,MAAM,AAAAA;AAAAA,AAAAAA,AAAA,CAAAC"}`,
		"prose":            "The scheme is data: followed by a type. In data:image/png;base64,... the dots stand for the data; `data:text/plain,hello` needs none.",
		"template":         "url(data:image/png;base64,${icon}) and 'data:image/png;base64,' + icon and f\"data:image/png;base64,{b64}\" and data:image/png;base64,<your data>",
		"yaml":             "data: image/png\nmetadata:\n  data:\n    base64: true\n",
		"svg uri":          `background:url("data:image/svg+xml;utf8,<svg xmlns='http://www.w3.org/2000/svg'/>")`,
		"plain uri":        "data:text/plain;charset=utf-8,hello%20world and data:,x",
		"file listing":     `{"type":"file","name":"a.txt","data":"hello"}`,
		"listing, base64?": `[{"type":"file","data":"test"},{"type":"image","image":"cat"},{"type":"video","url":"clip","data":"not here"}]`,
		"document of text": `{"type":"document","source":{"type":"text","media_type":"text/plain","data":"plain words"}}`,
		"text in a block":  `{"type":"file","mediaType":"text/plain","data":"plain words"}`,
		"an address":       `{"type":"image","data":"https://example.com/a.png","mimeType":"image/png"}`,
		"a ref":            `{"type":"image","data":"artifact:cnv_01/image_1.png@1","mimeType":"image/png"} blob:sha256-89504e470d0a1a0a9a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		"a mark":           `{"type":"image","data":"[invalid media: it is empty]","mimeType":"image/png"}`,
		"numbers":          "42 4d 47 49 00 00 0x89 0x50, 89:50:4e:47 00000000: 8950 00000000  89 50",
		"mac and ipv6":     "ff:d8:ff:e0:00:10 4749:4638::1 52:49:46:46",
		"paths":            `C:\new\iVBOR\R0lG /usr/lib/9j/4AAQ /9j/ //cdn.example.com/a`,
		"escapes":          `\u4e2d\u6587 \x41 \/ \\ \" \`,
		"go":               `var x = []byte{0x89, 0x50} // \x89PNG`,
		"nothing":          "",
		"lone letters":     "R 0 / + i V - _ = A",
	} {
		out, kept := text(t, s)
		if out != s || len(kept.kept) > 0 {
			t.Errorf("%s: kept %d\n%s", name, len(kept.kept), cmp.Diff(s, out))
		}
	}
}

func TestInvalid(t *testing.T) {
	png := base64.StdEncoding.EncodeToString(read(t, "red.png"))
	pdf := base64.StdEncoding.EncodeToString(read(t, "brief.pdf"))
	for in, want := range map[string]string{
		`<img src="data:image/png;base64,">`:                             `<img src="[invalid media: it is empty]">`,
		`{"url":"data:image/png;base64,"}`:                               `{"url":"[invalid media: it is empty]"}`,
		`{"url":"data:image/png;base64,!!!"}`:                            `{"url":"[invalid media: it is not base64]"}`,
		`![](data:image/png;base64,)`:                                    `![]([invalid media: it is empty])`,
		`{"type":"image","data":"","mimeType":"image/png"}`:              `{"type":"image","data":"[invalid media: it is empty]","mimeType":"image/png"}`,
		`{"type":"image","mimeType":"image/png","data":"what is this?"}`: `{"type":"image","mimeType":"image/png","data":"[invalid media: it says image/png and is not]"}`,
		`{"inlineData":{"mimeType":"image/png","data":"QUJDREVG"}}`:      `{"inlineData":{"mimeType":"image/png","data":"[invalid media: it says image/png and is not]"}}`,
		"data:image/png;base64," + png[:40] + "!" + png[40:]:             `[invalid media: it is not base64]`,
		"data:image/png;base64," + png[:41]:                              `[invalid media: it is cut off]`,
		"data:image/png;base64," + pdf + " x":                            `[invalid media: it says image/png and is application/pdf] x`,
		"cut: " + png[:61] + "\n[output truncated]":                      "cut: [invalid media: it is cut off]\n[output truncated]",
	} {
		if out, s := text(t, in); out != want || len(s.kept) > 0 {
			t.Errorf("%.100s\n got %.200s\nwant %s (kept %d)", in, out, want, len(s.kept))
		}
	}
}

func TestOther(t *testing.T) {
	png, jpg := read(t, "red.png"), read(t, "photo.jpg")
	b64 := base64.StdEncoding.EncodeToString(png)
	b64j := base64.StdEncoding.EncodeToString(jpg)
	spaced := strings.Trim(strings.ReplaceAll(fmt.Sprintf("% x", png), " ", ", 0x"), " ")
	var percent strings.Builder
	for _, c := range png {
		fmt.Fprintf(&percent, "%%%02X", c)
	}
	p, j := refOf(png), refOf(jpg)
	for in, want := range map[string]string{
		"two: " + b64 + " " + b64j:                                                 "two: " + p + " " + j,
		"glued: " + b64j + b64:                                                     "glued: " + j + p, // the first ends with padding
		"a label that is wrong: data:image/jpeg;base64," + b64:                     "a label that is wrong: " + p,
		"DATA:IMAGE/PNG;BASE64," + b64 + ".":                                       p + ".",
		`url('data:image/png;base64,` + b64 + `')`:                                 `url('` + p + `')`,
		"data:image/png;base64," + strings.ReplaceAll(b64, "/", "%2F"):             p,
		`{"net":"` + strings.ReplaceAll(b64j, "+", `\u002B`) + `"}`:                `{"net":"` + j + `"}`,
		`<img src="data:image/png;base64,` + strings.ReplaceAll(b64, "+", "&#43;"): `<img src="` + p,
		"data:image/png," + percent.String() + ")":                                 p + ")",
		"+" + b64 + "\n-" + b64j:                                                   "+" + p + "\n-" + j, // a diff
		"[0x" + spaced + "]":                                                       "[" + p + "]",
		"hex " + strings.ToUpper(hex.EncodeToString(png)) + ".":                    "hex " + p + ".",
		"dump\n" + hex.Dump(jpg) + "end":                                           "dump\n" + j + "\nend",
		xxd(jpg) + "end":                                                           j + "\nend",
		quote("see:\n" + xxd(jpg)):                                                 quote("see:\n" + j + "\n"),
		"SGVsbG8= data:text/plain;base64,SGVsbG8gd29ybGQ= x":                       "SGVsbG8= " + refOf([]byte("Hello world")) + " x",
		"//# sourceMappingURL=data:application/json;charset=utf-8;base64,e30=":     "//# sourceMappingURL=" + refOf([]byte("{}")),
	} {
		if out, _ := text(t, in); out != want {
			t.Errorf("%.100s\n got %.300s\nwant %.300s", in, out, want)
		}
	}
}

// xxd writes what the program of that name does.
func xxd(b []byte) string {
	var out strings.Builder
	for at := 0; at < len(b); at += 16 {
		row := b[at:min(at+16, len(b))]
		fmt.Fprintf(&out, "%08x: ", at)
		for i := range 16 {
			if i < len(row) {
				fmt.Fprintf(&out, "%02x", row[i])
			} else {
				out.WriteString("  ")
			}
			if i%2 == 1 {
				out.WriteByte(' ')
			}
		}
		out.WriteByte(' ')
		for _, c := range row {
			if c < ' ' || c > '~' {
				c = '.'
			}
			out.WriteByte(c)
		}
		out.WriteByte('\n')
	}
	return out.String()
}

// TestStreamLetsGo holds a stream to letting go of what can be no hit.
func TestStreamLetsGo(t *testing.T) {
	st := scrub.NewStream(t.Context(), (&sink{}).keep)
	var out strings.Builder
	for _, piece := range []string{"Hello", " world", ", this is", " some text", " with words"} {
		o, err := st.Write(piece)
		if err != nil {
			t.Fatal(err)
		}
		out.WriteString(o)
	}
	if got := out.String(); got != "Hello world, this is some text with words" {
		t.Errorf("so far %q", got)
	}
	if rest, err := st.Close(); err != nil || rest != "" {
		t.Errorf("at the end %q, %v", rest, err)
	}
	if rest, err := st.Close(); err != nil || rest != "" {
		t.Errorf("closed again %q, %v", rest, err)
	}
}

func TestKeepFails(t *testing.T) {
	png := base64.StdEncoding.EncodeToString(read(t, "red.png"))
	broken := errors.New("no room")
	in := "a " + png + " b"
	if _, err := scrub.Text(t.Context(), in, func(context.Context, io.Reader, scrub.Hint) (string, error) { return "", broken }); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
	out, err := scrub.Text(t.Context(), in, func(context.Context, io.Reader, scrub.Hint) (string, error) {
		return "", artel.Errorf(artel.TooLarge, "", "", "larger than 5 bytes")
	})
	if out != "a [invalid media: larger than 5 bytes] b" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	out, err = scrub.Text(t.Context(), in, func(context.Context, io.Reader, scrub.Hint) (string, error) { return "\"x\\\n", nil })
	if out != "a _x__ b" || err != nil {
		t.Errorf("got %q, %v", out, err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if err := scrub.Copy(ctx, io.Discard, strings.NewReader(in), (&sink{}).keep); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := scrub.Line("title " + png); got != "title [image/png, 96 bytes]" {
		t.Errorf("got %q", got)
	}
}

// endless is a picture that does not end.
type endless struct{ n, max int }

func (e *endless) Read(p []byte) (int, error) {
	if e.n >= e.max {
		return 0, io.EOF
	}
	for i := range p {
		p[i] = 'A'
	}
	e.n += len(p)
	return len(p), nil
}

// TestFlat takes 100 MB of payload through a window that stays small.
func TestFlat(t *testing.T) {
	png := base64.StdEncoding.EncodeToString(read(t, "red.png")[:48])
	src := io.MultiReader(strings.NewReader(`{"mimeType":"image/png","type":"image","data":"`+png), &endless{max: 100 << 20}, strings.NewReader(`"}`))
	var out bytes.Buffer
	kept := int64(0)
	allocated := testing.Benchmark(func(b *testing.B) {
		b.ReportAllocs()
		if b.N > 1 {
			return
		}
		err := scrub.Copy(t.Context(), &out, src, func(_ context.Context, r io.Reader, _ scrub.Hint) (string, error) {
			var err error
			kept, err = io.Copy(io.Discard, r)
			return "x", err
		})
		if err != nil {
			t.Error(err)
		}
	})
	if kept < 75<<20 || out.String() != `{"mimeType":"image/png","type":"image","data":"x"}` {
		t.Fatalf("kept %d, left %.100q", kept, out.String())
	}
	if n := allocated.MemBytes; n > 2<<20 {
		t.Errorf("allocated %d bytes", n)
	}
}

// again repeats a text for as long as it is read.
type again struct {
	text string
	left int // how often
	at   int
}

func (a *again) Read(p []byte) (n int, err error) {
	for n < len(p) {
		if a.left == 0 {
			return n, io.EOF
		}
		c := copy(p[n:], a.text[a.at:])
		n += c
		if a.at += c; a.at == len(a.text) {
			a.at = 0
			a.left--
		}
	}
	return n, nil
}

// TestFlatNested takes 50 MB of nested JSON with a picture here and there
// through as small a window.
func TestFlatNested(t *testing.T) {
	png := read(t, "red.png")
	chunk := nested(100_000, 50, png)
	const times = 500
	want := sha256.New()
	_, err := io.Copy(want, &again{text: strings.ReplaceAll(string(chunk), base64.StdEncoding.EncodeToString(png), "blob:x"), left: times})
	if err != nil {
		t.Fatal(err)
	}
	got := sha256.New()
	hits := 0
	n := allocated(func() {
		err = scrub.Copy(t.Context(), got, &again{text: string(chunk), left: times}, func(ctx context.Context, r io.Reader, h scrub.Hint) (string, error) {
			hits++
			return ref(ctx, r, h)
		})
	})
	if err != nil || !bytes.Equal(got.Sum(nil), want.Sum(nil)) || hits < 2*times {
		t.Errorf("%v, %d hits", err, hits)
	}
	if n > 2<<20+uint64(hits)<<10 {
		t.Errorf("%d bytes were allocated", n)
	}
}

// allocated is how many bytes work allocates.
func allocated(work func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	work()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func FuzzText(f *testing.F) {
	png := base64.StdEncoding.EncodeToString(read(f, "red.png"))
	for _, block := range blocks {
		f.Add(fill(block, "image/png", png), uint8(7))
		f.Add(quote(fill(block, "image/png", png[:50])), uint8(1))
	}
	f.Add(xxd(read(f, "red.png")), uint8(3))
	f.Add("00000000  89 50 4e 47 0d 0a 1a 0a  00 00 00 0d 49 48 44 52  |x|\n*\n00000040\n", uint8(9))
	f.Add("data:image/png;base64,"+png[:20]+"...", uint8(2))
	f.Fuzz(func(t *testing.T, s string, piece uint8) {
		var whole, parts sink
		var out string
		var err error
		n := allocated(func() { out, err = scrub.Text(t.Context(), s, whole.keep) })
		if err != nil {
			t.Fatal(err)
		}
		if n > 2<<20+64*uint64(len(s)) {
			t.Fatalf("%d bytes were allocated for %d", n, len(s))
		}
		st := scrub.NewStream(t.Context(), parts.keep)
		var b strings.Builder
		for rest := s; rest != ""; {
			n := min(len(rest), 1+int(piece))
			o, err := st.Write(rest[:n])
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(o)
			rest = rest[n:]
		}
		o, err := st.Close()
		if b.WriteString(o); err != nil || b.String() != out || !slices.EqualFunc(whole.kept, parts.kept, bytes.Equal) {
			t.Fatalf("pieces differ: %v\n%s", err, cmp.Diff(out, b.String()))
		}
		if json.Valid([]byte(s)) && !json.Valid([]byte(out)) {
			t.Fatalf("no JSON any more: %q", out)
		}
		if len(whole.kept) == 0 && !strings.Contains(out, "[invalid media") && out != s {
			t.Fatal("changed without a hit")
		}
	})
}
