// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"image"
	"image/jpeg"
	pngs "image/png"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/image/bmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/media/pdf"
)

func fileAt(ref any) string { return "/files/" + url.PathEscape(ref.(string)) }

func named(digest any, ext string) string {
	return "/files/tool_results/" + artel.Digest(digest.(string)).Hex() + ext
}

func TestServingByName(t *testing.T) {
	b := newBench(t, writes)
	up := b.upload(b.conversation(), "red.png", "image/png", png)
	for _, ext := range []string{".png", "", ".html"} { // an extension decides nothing
		a := b.do("GET", named(up["digest"], ext), nil)
		if a.StatusCode != 200 || string(a.body) != png || a.Header.Get("Content-Type") != "image/png" || !strings.Contains(a.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%q: got %d %v", ext, a.StatusCode, a.Header)
		}
	}
	hex := artel.Digest(up["digest"].(string)).Hex()
	for _, name := range []string{
		hex[1:] + ".png", strings.ToUpper(hex), hex + ".", hex + ".PNG", hex + ".a/b", hex + "..", hex + ".png.exe", "sha256-" + hex, strings.Repeat("0", 64),
	} {
		b.problem(b.do("GET", "/files/tool_results/"+url.PathEscape(name), nil), 404, artel.CodeArtifactNotFound)
	}
}

func TestRanges(t *testing.T) {
	b := newBench(t, writes)
	text := strings.Repeat("0123456789", 20)
	up := b.upload(b.conversation(), "a.bin", "application/octet-stream", "\x00"+text)
	at, etag, whole := fileAt(up["ref"].(string)+"@1"), `"`+up["digest"].(string)+`"`, "\x00"+text
	for _, tt := range []struct {
		headers header
		status  int
		body    string
		span    string
	}{
		{header{"Range": "bytes=0-0"}, 206, whole[:1], "bytes 0-0/201"},
		{header{"Range": "bytes=198-"}, 206, whole[198:], "bytes 198-200/201"},
		{header{"Range": "bytes=198-9999"}, 206, whole[198:], "bytes 198-200/201"},
		{header{"Range": "bytes=-3"}, 206, whole[198:], "bytes 198-200/201"},
		{header{"Range": "bytes=-9999"}, 206, whole, "bytes 0-200/201"},
		{header{"Range": "bytes=201-"}, 416, "", "bytes */201"},
		{header{"Range": "bytes=5-2"}, 416, "", ""},
		{header{"Range": "words=1-2"}, 416, "", ""},
		{header{"Range": "bytes=1-2", "If-Range": etag}, 206, whole[1:3], "bytes 1-2/201"},
		{header{"Range": "bytes=1-2", "If-Range": `"sha256-other"`}, 200, whole, ""},
		{header{"Range": "bytes=1-2", "If-Range": "W/" + etag}, 200, whole, ""}, // a range wants a strong one
		{header{"If-None-Match": `"x", ` + etag}, 304, "", ""},
		{header{"If-None-Match": "*"}, 304, "", ""},
		{header{"If-Match": `"x"`}, 412, "", ""},
	} {
		a := b.do("GET", at, nil, tt.headers)
		if a.StatusCode != tt.status || a.Header.Get("Content-Range") != tt.span || tt.status < 400 && string(a.body) != tt.body {
			t.Errorf("%v: got %d %q %q", tt.headers, a.StatusCode, a.Header.Get("Content-Range"), a.body)
		}
		if head := b.do("HEAD", at, nil, tt.headers); head.StatusCode != tt.status || len(head.body) != 0 || head.Header.Get("ETag") != a.Header.Get("ETag") {
			t.Errorf("HEAD %v: got %d", tt.headers, head.StatusCode)
		}
	}
	a := b.do("GET", at, nil, header{"Range": "bytes=0-1, 100-101, -1"})
	kind, params, err := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if err != nil || a.StatusCode != 206 || kind != "multipart/byteranges" {
		t.Fatalf("several ranges: got %d %v", a.StatusCode, a.Header)
	}
	r := multipart.NewReader(strings.NewReader(string(a.body)), params["boundary"])
	for _, want := range []string{whole[:2], whole[100:102], whole[200:]} {
		p, err := r.NextPart()
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(p); string(got) != want || p.Header.Get("Content-Type") != "application/octet-stream" {
			t.Errorf("got %q of %v, want %q", got, p.Header, want)
		}
	}
	// Ranges that overlap until they are more than the file are the file.
	if a := b.do("GET", at, nil, header{"Range": "bytes=" + strings.Repeat("0-,", 500) + "0-"}); a.StatusCode != 200 || string(a.body) != whole {
		t.Errorf("many ranges: got %d, %d bytes", a.StatusCode, len(a.body))
	}
}

// TestFileNames wants names as they were given in browsers old and new, on one
// line, without folders, and never a header more.
func TestFileNames(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	for name, want := range map[string]string{
		"a b.txt":                `inline; filename="a b.txt"`,
		"图.txt":                  `inline; filename=_.txt; filename*=UTF-8''%E5%9B%BE.txt`,
		`q"uo;te'.txt`:           `inline; filename="q_uo;te'.txt"; filename*=UTF-8''q%22uo%3Bte%27.txt`,
		"100%25.txt":             `inline; filename=100_25.txt; filename*=UTF-8''100%2525.txt`,
		"../../etc/passwd":       `inline; filename=.._.._etc_passwd`,
		`..\..\x.txt`:            `inline; filename=.._.._x.txt`,
		"a\r\nX-Evil: 1\r\n\r\n": `inline; filename="aX-Evil: 1"`,
		"a\x00b\x1b.txt":         `inline; filename=ab.txt`,
		"evil\u202etxt.exe":      `inline; filename=eviltxt.exe`,
	} {
		m := b.upload(c, url.PathEscape(name), "text/plain", "x")
		a := b.do("GET", fileAt(m["ref"]), nil)
		if got := a.Header.Get("Content-Disposition"); got != want || a.Header.Get("X-Evil") != "" {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}

// TestPathsLeadNowhere tries to leave the store through a ref. Nothing of it is
// ever a path, so all of it is just not there.
func TestPathsLeadNowhere(t *testing.T) {
	b := newBench(t, writes)
	up := b.upload(b.conversation(), "a.txt", "text/plain", "x")
	hex := artel.Digest(up["digest"].(string)).Hex()
	for _, path := range []string{
		"..", "../..", "%2e%2e", "%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%5c..%5cwindows", "..%2f" + hex, "%2fetc%2fpasswd", "%00", "a%00b", hex[:2] + "%2f" + hex[2:4] + "%2f" + hex + ".1",
		"blob:" + hex, "blob:sha256-..%2f" + hex, "artifact:..%2f..%2fx", "file:%2f%2f%2fetc%2fpasswd", "tool_results%2f" + hex + ".txt", "%252e%252e%252f", "C:%5cboot.ini", "%ff%fe",
		"tool_results/..%2f" + hex, "tool_results/%2e%2e", "tool_results/" + hex + "%00.txt", "tool_results/%2fetc%2fpasswd", "tool_results/../../conversations", "./" + hex, "/" + hex,
	} {
		for _, query := range []string{"", "?sig=x", "?preview=true"} {
			req, err := http.NewRequestWithContext(apptest.Context(t), http.MethodGet, b.url+"/files/", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.URL.Opaque = "//" + req.URL.Host + httpapi.Base + "/files/" + path + query // as it is, without tidying
			resp, err := b.http.Transport.RoundTrip(req)
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			_ = resp.Body.Close()
			if resp.StatusCode != 404 && resp.StatusCode != 400 && !(query == "?sig=x" && resp.StatusCode == 403) || resp.Header.Get("Location") != "" || strings.Contains(string(got), "/tmp") {
				t.Errorf("%s%s: got %d %s", path, query, resp.StatusCode, got)
			}
		}
	}
}

// TestFilesDoNotAct wants what people and models made never to run, and never to
// be read by pages of others.
func TestFilesDoNotAct(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	script := "<script>parent.owned = 1</script>"
	for name, tt := range map[string]struct{ declared, content, kind string }{
		"a.html":     {"text/html", "<!DOCTYPE html>" + script, "attachment"},
		"b.svg":      {"image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg" onload="owned()">` + script + `</svg>`, "attachment"},
		"c.xhtml":    {"application/xhtml+xml", `<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml">` + script + `</html>`, "attachment"},
		"d.xml":      {"text/xml", `<?xml version="1.0"?><?xml-stylesheet href="x.xsl"?><a/>`, "attachment"},
		"e.pdf":      {"application/pdf", "%PDF-1.4\n1 0 obj\n<</OpenAction<</S/JavaScript/JS(app.alert(1))>>>>\nendobj\n", "attachment"},
		"f.png":      {"image/png", "<!DOCTYPE html><html>" + script + "</html>", "attachment"}, // says that it is a picture
		"g.txt":      {"text/plain", "<html>" + script, ""},
		"h.js":       {"text/javascript", "owned()", "inline"},
		"i.eml":      {"message/rfc822", "MIME-Version: 1.0\nContent-Type: text/html\n\n" + script, "attachment"},
		"j.mht":      {"multipart/related", "MIME-Version: 1.0\nContent-Type: multipart/related; boundary=x\n\n--x\nContent-Type: text/html\n\n" + script, ""},
		"odd\x01.gz": {"te\"xt/<html>", "\x00\x01\x02\x03\xff\xfe\x00\x00\x00", "attachment"},
	} {
		m := b.upload(c, url.PathEscape(name), tt.declared, tt.content)
		a := b.do("GET", fileAt(m["ref"]), nil)
		h := a.Header
		kind, _, _ := mime.ParseMediaType(h.Get("Content-Disposition"))
		sent, _, err := mime.ParseMediaType(h.Get("Content-Type"))
		if a.StatusCode != 200 || err != nil || sent != m["media_type"] || h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "sandbox; default-src 'none'; style-src 'unsafe-inline'" ||
			h.Get("Cross-Origin-Resource-Policy") != "same-origin" || h.Get("Access-Control-Allow-Origin") != "" || h.Get("Referrer-Policy") != "no-referrer" || h.Get("Vary") != "Sec-Fetch-Dest" || tt.kind != "" && kind != tt.kind {
			t.Errorf("%q: got %v of %v", name, h, m["media_type"])
		}
		if strings.Contains(sent, "html") && kind != "attachment" {
			t.Errorf("%q: a page is shown: %v", name, h)
		}
		for _, dest := range []string{"script", "worker", "serviceworker", "style", "xslt", "manifest"} {
			b.problem(b.do("GET", fileAt(m["ref"]), nil, header{"Sec-Fetch-Dest": dest}), 403, "denied")
		}
	}
	// A browser loads a film that is opened by itself once more, from within the
	// document around it.
	m := b.upload(c, "a.wav", "", "RIFF\x24\x00\x00\x00WAVEfmt \x10\x00\x00\x00\x01\x00\x01\x00\x44\xac\x00\x00\x88\x58\x01\x00\x02\x00\x10\x00data\x00\x00\x00\x00")
	a := b.do("GET", fileAt(m["ref"]), nil)
	if p := a.Header.Get("Content-Security-Policy"); !strings.HasPrefix(p, "sandbox allow-same-origin; default-src 'none'; media-src 'self'") || strings.Contains(p, "script") {
		t.Errorf("%v: got %s", m["media_type"], p)
	}
}

func TestSignedFiles(t *testing.T) {
	b := newBench(t, writes)
	up := b.upload(b.conversation(), "red.png", "image/png", png)
	other := b.upload(b.conversation(), "other.txt", "text/plain", "other")
	ref := up["ref"].(string)
	begun := time.Now()
	signed := b.object(b.do("POST", fileAt(ref)+"/sign", map[string]any{"expires_in": 3600}), 200)
	has(t, "a signed file", signed, "url ref expires_at", "")
	if signed["ref"] != ref+"@1" {
		t.Errorf("what is signed may change: %v", signed)
	}
	until, err := time.Parse(time.RFC3339, signed["expires_at"].(string))
	if err != nil || until.Before(begun.Add(time.Hour-time.Second)) || time.Until(until) > time.Hour {
		t.Errorf("asked at %v, it ends at %v, %v", begun, until, err)
	}
	at := strings.TrimPrefix(signed["url"].(string), httpapi.Base)
	path, sig, _ := strings.Cut(at, "?sig=")

	// It opens the file for other sites and through other hosts, where nothing
	// else is open.
	away := header{"Host": "cdn.example", "Origin": "https://other.example", "Sec-Fetch-Site": "cross-site"}
	for _, method := range []string{"GET", "HEAD"} {
		a := b.do(method, at, nil, away)
		h := a.Header
		if a.StatusCode != 200 || method == "GET" && string(a.body) != png || h.Get("Cross-Origin-Resource-Policy") != "cross-origin" || h.Get("Access-Control-Allow-Origin") != "*" ||
			!strings.HasPrefix(h.Get("Cache-Control"), "public, max-age=") || h.Get("Set-Cookie") != "" {
			t.Errorf("%s: got %d %v", method, a.StatusCode, h)
		}
	}
	if a := b.do("GET", at, nil, away, header{"Range": "bytes=1-3"}); a.StatusCode != 206 || string(a.body) != png[1:4] {
		t.Errorf("a range: got %d %q", a.StatusCode, a.body)
	}
	for _, tt := range []struct{ method, path string }{
		{"GET", path}, {"GET", "/conversations?sig=" + sig}, {"POST", path + "/sign?sig=" + sig}, {"GET", "/files/../conversations?sig=" + sig}, {"DELETE", at},
	} {
		if a := b.do(tt.method, tt.path, nil, away); a.StatusCode != 403 {
			t.Errorf("%s %s from elsewhere: got %d %s", tt.method, tt.path, a.StatusCode, a.body)
		}
	}
	// The signature opens no other file, whoever asks.
	refused := func(what, path string) {
		t.Helper()
		for _, from := range []header{away, nil} {
			if a := b.do("GET", path, nil, from); a.StatusCode != 403 || !strings.Contains(string(a.body), app.CodeSignatureInvalid) {
				t.Errorf("%s: got %d %s", what, a.StatusCode, a.body)
			}
		}
	}
	refused("another file", fileAt(other["ref"].(string)+"@1")+"?sig="+sig)
	refused("the same bytes by digest", named(up["digest"], ".png")+"?sig="+sig)
	refused("the head", fileAt(ref)+"?sig="+sig)
	refused("another version", fileAt(ref+"@2")+"?sig="+sig)
	fields := strings.Split(sig, ".")
	refused("a later end", path+"?sig=9"+sig)
	refused("another owner", path+"?sig="+fields[0]+".b3RoZXI."+fields[2])
	refused("no owner", path+"?sig="+fields[0]+".."+fields[2])
	refused("cut", path+"?sig="+sig[:len(sig)-1])
	refused("longer", path+"?sig="+sig+"A")
	refused("nothing signed", path+"?sig=x")
	for i := range fields[2] {
		changed := []byte(fields[2])
		changed[i] ^= 1
		refused("altered", path+"?sig="+url.QueryEscape(fields[0]+"."+fields[1]+"."+string(changed)))
	}
	foreign := newBench(t, writes) // another server with another key
	b2 := foreign.upload(foreign.conversation(), "x.txt", "text/plain", "x")
	theirs := foreign.object(foreign.do("POST", fileAt(b2["ref"])+"/sign", `{}`), 200)["url"].(string)
	_, theirSig, _ := strings.Cut(theirs, "?sig=")
	refused("foreign", path+"?sig="+theirSig)

	for _, seconds := range []int{-1, 604801} {
		b.problem(b.do("POST", fileAt(ref)+"/sign", map[string]any{"expires_in": seconds}), 422, "invalid")
	}
	b.problem(b.do("POST", fileAt(ref+"@9")+"/sign", `{}`), 404, artel.CodeArtifactNotFound)
}

// TestStableURLs wants the address that models see to be the same bytes for all
// spellings of a ref, at any time and on any server.
func TestStableURLs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		want := app.FileURL(artel.Ref{Conversation: "cnv_00000000000000000000000001", Artifact: "图.png", Version: 3})
		for _, spelling := range []string{"artifact:cnv_00000000000000000000000001/图.png@3", "artel://cnv_00000000000000000000000001/图.png@3"} {
			time.Sleep(100 * time.Hour)
			ref, err := artel.ParseRef(spelling)
			if got := app.FileURL(ref); err != nil || got != want || got != "/api/v1/files/artifact:cnv_00000000000000000000000001%2F%E5%9B%BE.png@3" {
				t.Errorf("got %s, %v", got, err)
			}
		}
	})
}

func TestClientSigns(t *testing.T) {
	b := newBench(t, writes)
	up := b.upload(b.conversation(), "a.txt", "text/plain", "hello")
	ref, err := artel.ParseRef(up["ref"].(string))
	if err != nil {
		t.Fatal(err)
	}
	s, err := b.client.Sign(apptest.Context(t), ref, time.Minute)
	if err != nil || s.Ref != ref.String()+"@1" {
		t.Fatalf("got %+v, %v", s, err)
	}
	resp, err := b.http.Get(s.URL) // an address with its host
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got, _ := io.ReadAll(resp.Body); string(got) != "hello" {
		t.Errorf("got %d %s", resp.StatusCode, fmt.Sprint(string(got)))
	}
}

// TestClientVerifies: bytes with another digest than the named one are an error.
func TestClientVerifies(t *testing.T) {
	body, digest := "hello", artel.NewDigest(sha256.Sum256([]byte("hello")))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if digest != "" {
			w.Header().Set("ETag", `"`+string(digest)+`"`)
		}
		_, _ = io.WriteString(w, body)
	}))
	defer server.Close()
	c := httpapi.NewClient(server.URL, server.Client())
	read := func() (string, error) {
		r, err := c.Open(apptest.Context(t), artel.BlobRef(artel.NewDigest([32]byte{})))
		if err != nil {
			return "", err
		}
		defer r.Close()
		got, err := io.ReadAll(r)
		return string(got), err
	}
	if got, err := read(); got != "hello" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	for _, body = range []string{"hell0", "hell", "hello!", ""} {
		if got, err := read(); artel.KindOf(err) != artel.Unavailable {
			t.Errorf("%q: got %q, %v", body, got, err)
		}
	}
	digest = ""
	if _, err := read(); artel.CodeOf(err) != httpapi.CodeUnreachable {
		t.Errorf("without a digest: %v", err)
	}
}

// pictureOf is a picture of noise.
func pictureOf(t *testing.T, w, h int, encode func(io.Writer, image.Image) error) string {
	t.Helper()
	m := image.NewNRGBA(image.Rect(0, 0, w, h))
	for i := range m.Pix {
		m.Pix[i] = byte(i * i >> 7)
		if i%4 == 3 {
			m.Pix[i] = 255
		}
	}
	var b strings.Builder
	if err := encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestThumbnails(t *testing.T) {
	engine := pdf.New(pdf.Options{})
	t.Cleanup(func() { _ = engine.Close() })
	b := newBench(t, writes, func(c *app.Config) { c.Options.Artifacts.PDF = engine })
	c := b.conversation()
	noise := pictureOf(t, 600, 300, func(w io.Writer, m image.Image) error { return jpeg.Encode(w, m, nil) })
	large := pictureOf(t, 600, 300, func(w io.Writer, m image.Image) error { return pngs.Encode(w, m) })
	tall := pictureOf(t, 100, 2000, bmp.Encode)
	for _, tt := range []struct {
		name, content, query string
		mediaType            string
		width, height        int
	}{
		{"a.jpg", noise, "?width=200", "image/jpeg", 256, 128},
		{"a.jpg", noise, "?width=256", "image/jpeg", 256, 128},
		{"a.jpg", noise, "?width=1", "image/jpeg", 64, 32},
		{"a.jpg", noise, "?width=1024", "image/jpeg", 600, 300}, // never enlarged
		{"b.bmp", tall, "?width=50", "", 13, 256},               // never higher than four times as wide
		{"c.png", png, "?width=64", "image/png", 1, 1},
	} {
		m := b.upload(c, tt.name, "", tt.content)
		at := fileAt(m["ref"].(string) + "@1")
		a := b.do("GET", at+tt.query, nil)
		got, kind, err := image.DecodeConfig(strings.NewReader(string(a.body)))
		if err != nil || a.StatusCode != 200 || got.Width != tt.width || got.Height != tt.height || "image/"+kind != a.Header.Get("Content-Type") || tt.mediaType != "" && a.Header.Get("Content-Type") != tt.mediaType {
			t.Errorf("%s%s: got %d %s %+v, %v", tt.name, tt.query, a.StatusCode, a.Header.Get("Content-Type"), got, err)
			continue
		}
		etag := a.Header.Get("ETag")
		if !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || !strings.HasPrefix(a.Header.Get("Content-Disposition"), "inline; filename="+tt.name[:1]+".") {
			t.Errorf("%s%s: got %v", tt.name, tt.query, a.Header)
		}
		if again := b.do("GET", at+tt.query, nil, header{"If-None-Match": etag}); again.StatusCode != 304 {
			t.Errorf("%s%s: another one the second time: %d", tt.name, tt.query, again.StatusCode)
		}
		raw := b.do("GET", "/conversations/"+c+"/artifacts/"+m["id"].(string)+"/raw"+tt.query, nil)
		if raw.StatusCode != 200 || raw.Header.Get("ETag") != etag {
			t.Errorf("%s%s as raw: got %d %v", tt.name, tt.query, raw.StatusCode, raw.Header)
		}
		signed := b.object(b.do("POST", at+"/sign", `{}`), 200)["url"].(string)
		if a := b.do("GET", strings.TrimPrefix(signed, httpapi.Base)+"&"+tt.query[1:], nil, header{"Host": "cdn.example"}); a.StatusCode != 200 || a.Header.Get("ETag") != etag {
			t.Errorf("%s%s with a signature: got %d %s", tt.name, tt.query, a.StatusCode, a.body)
		}
	}
	svg := b.upload(c, "d.svg", "image/svg+xml", `<svg xmlns="http://www.w3.org/2000/svg"/>`)
	if a := b.do("GET", fileAt(svg["ref"])+"?width=64", nil); a.StatusCode != 200 || a.Header.Get("Content-Type") != "image/svg+xml" && !strings.HasPrefix(a.Header.Get("Content-Type"), "image/svg+xml;") {
		t.Errorf("SVG: got %d %v", a.StatusCode, a.Header)
	}
	document, err := os.ReadFile("../testdata/files/report.pdf")
	if err != nil {
		t.Fatal(err)
	}
	report := b.upload(c, "r.pdf", "", string(document))
	page := b.do("GET", fileAt(report["ref"])+"?width=128", nil)
	if got, err := pngs.DecodeConfig(strings.NewReader(string(page.body))); err != nil || page.StatusCode != 200 || got.Width < 128 || got.Height < got.Width {
		t.Errorf("the first page of a PDF: got %d %+v, %v", page.StatusCode, got, err)
	}
	// What cannot be pictured, and what is there to hurt.
	bomb := []byte(png)
	binary.BigEndian.PutUint32(bomb[16:], 60_000)
	binary.BigEndian.PutUint32(bomb[20:], 60_000)
	binary.BigEndian.PutUint32(bomb[29:], crc32.ChecksumIEEE(bomb[12:29]))
	for _, tt := range []struct {
		name, content string
		status        int
		code          string
	}{
		{"a.txt", "words", 415, "unsupported"},
		{"a.pdf", "%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n", 415, "unsupported"},
		{"half.png", large[:len(large)/2], 415, "unsupported"},
		{"half.jpg", noise[:len(noise)/2], 415, "unsupported"},
		{"bomb.png", string(bomb), 413, "too_large"},
	} {
		m := b.upload(c, tt.name, "", tt.content)
		p := b.problem(b.do("GET", fileAt(m["ref"])+"?width=64", nil), tt.status, tt.code)
		if a := b.do("GET", fileAt(m["ref"]), nil); a.StatusCode != 200 {
			t.Errorf("%s itself: got %d after %v", tt.name, a.StatusCode, p)
		}
	}
	at := fileAt(svg["ref"])
	for _, width := range []string{"0", "-1", "1025", "x", "1e3"} {
		if a := b.do("GET", at+"?width="+width, nil); a.StatusCode != 422 {
			t.Errorf("width=%s: got %d", width, a.StatusCode)
		}
	}
}
