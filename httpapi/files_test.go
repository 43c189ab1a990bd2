// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
)

func TestUpload(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	m := b.upload(c, url.PathEscape("Bericht für 李.txt"), "text/plain; charset=utf-8", "hällo")
	has(t, "an artifact", m, "id ref version title filename media_type declared_type kind is_binary size digest source created_at",
		"conversation_id charset detected_by confidence last_editor updated_at")
	want := map[string]any{
		"ref": "artifact:" + c + "/" + m["id"].(string), "version": 1.0, "title": "Bericht für 李.txt", "filename": "Bericht für 李.txt",
		"media_type": "text/plain", "declared_type": "text/plain", "kind": "text", "is_binary": false, "size": 6.0, "source": "user_upload",
		"digest": string(artel.NewDigest(sha256.Sum256([]byte("hällo")))),
	}
	for k, v := range want {
		if m[k] != v {
			t.Errorf("%s: got %v, want %v", k, m[k], v)
		}
	}
	if again := b.upload(c, url.PathEscape("Bericht für 李.txt"), "", "other"); again["id"] == m["id"] || again["declared_type"] != "" {
		t.Errorf("got %v", again)
	}
	if empty := b.object(b.do("POST", "/conversations/"+c+"/artifacts", "", header{"Content-Type": ""}), 201); empty["size"] != 0.0 || empty["filename"] != "" {
		t.Errorf("an empty file: got %v", empty)
	}
	if curl := b.upload(c, "x", "application/x-www-form-urlencoded", "plain words"); curl["media_type"] != "text/plain" {
		t.Errorf("what curl sends: got %v", curl)
	}
	a := b.object(b.do("GET", "/conversations/"+c+"/artifacts/"+url.PathEscape(m["id"].(string)), nil), 200)
	if a["content"] != "hällo" {
		t.Errorf("got %v", a)
	}
	versions := b.object(b.do("GET", "/conversations/"+c+"/artifacts/"+url.PathEscape(m["id"].(string))+"/versions", nil), 200)["items"].([]any)
	if len(versions) != 1 || versions[0].(map[string]any)["update_type"] != "create" {
		t.Errorf("got %v", versions)
	}
	v := b.object(b.do("GET", "/conversations/"+c+"/artifacts/"+url.PathEscape(m["id"].(string))+"/versions/1", nil), 200)
	if v["content"] != "hällo" || v["version"] != 1.0 || v["author"] != "user" {
		t.Errorf("got %v", v)
	}
	if list := b.object(b.do("GET", "/conversations/"+c+"/artifacts", nil), 200)["items"].([]any); len(list) != 4 {
		t.Errorf("got %d artifacts", len(list))
	}
}

// form encodes files as a multipart body: name and content by turns.
func form(field string, files ...string) (body, contentType string) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i+1 < len(files); i += 2 {
		h := textproto.MIMEHeader{}
		h.Set("Content-Disposition", fmt.Sprintf(`form-data; name="%s"; filename="%s"`, field, files[i]))
		p, _ := w.CreatePart(h)
		_, _ = io.WriteString(p, files[i+1])
	}
	_ = w.Close()
	return b.String(), w.FormDataContentType()
}

func TestUploadForm(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	at := "/conversations/" + c + "/artifacts"
	body, contentType := form("file", "a.txt", "one", "b.png", png, "../../etc/passwd", "x", `C:\\temp\\d.txt`, "y", "", "z", "中.md", "# 中")
	items := b.object(b.do("POST", at, body, header{"Content-Type": contentType}), 201)["items"].([]any)
	if len(items) != 6 {
		t.Fatalf("got %v", items)
	}
	for _, item := range items {
		m := item.(map[string]any)
		if _, err := artel.ParseArtifactID(m["id"].(string)); err != nil || strings.ContainsAny(m["id"].(string), `/\`) {
			t.Errorf("got id %v", m["id"])
		}
	}
	count := func() int { return len(b.object(b.do("GET", at, nil), 200)["items"].([]any)) }
	before := count()
	refused := func(what, body, contentType string, status int, code string) {
		t.Helper()
		b.problem(b.do("POST", at, body, header{"Content-Type": contentType}), status, code)
		if n := count(); n != before {
			t.Errorf("%s: %d artifacts were left", what, n-before)
		}
	}
	good, contentType := form("file", "a.txt", "one", "b.txt", "two")
	refused("cut inside a file", good[:len(good)-80], contentType, 400, "malformed")
	for n := 0; n < len(good)-len("--\r\n"); n += 5 {
		if a := b.do("POST", at, good[:n], header{"Content-Type": contentType}); a.StatusCode != 400 {
			t.Errorf("cut after %d of %d bytes: got %d %s", n, len(good), a.StatusCode, a.body)
		}
	}
	refused("cut between files", good[:strings.LastIndex(good, "--"+boundaryOf(contentType))], contentType, 400, "malformed")
	refused("no files", "--x--\r\n", "multipart/form-data; boundary=x", 422, "invalid")
	refused("no boundary", good, "multipart/form-data", 400, "malformed")
	refused("no form", "words", contentType, 400, "malformed")
	refused("nothing", "", contentType, 400, "malformed")
	other, contentType := form("picture", "a.txt", "one")
	refused("another field", other, contentType, 422, "invalid")
	large, contentType := form("file", "a.txt", "one", "b.bin", strings.Repeat("\x00", maxUpload+1))
	refused("one too large", large, contentType, 413, "too_large")
	bad, contentType := form("file", "a\xff.txt", "one")
	refused("a name that is not UTF-8", bad, contentType, 400, "malformed")
}

func boundaryOf(contentType string) string {
	_, params, _ := mime.ParseMediaType(contentType)
	return params["boundary"]
}

func TestUploadIsRefused(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	at := "/conversations/" + c + "/artifacts"
	b.problem(b.do("POST", at, "x", header{"X-Filename": "%ZZ"}), 400, "malformed")
	b.problem(b.do("POST", at, "x", header{"X-Filename": "%FF"}), 400, "malformed")
	b.problem(b.do("POST", "/conversations/cnv_x/artifacts", "x"), 404, "not_found")
	m := b.problem(b.do("POST", at, bytes.NewReader(make([]byte, maxUpload+1)), header{"Content-Type": "image/png"}), 413, "too_large")
	if !strings.Contains(m["detail"].(string), fmt.Sprint(maxUpload)) {
		t.Errorf("the limit is not named: %v", m)
	}
	// A body that breaks off: the connection ends before what was announced.
	r, w := io.Pipe()
	go func() {
		_, _ = w.Write([]byte("half"))
		_ = w.CloseWithError(io.ErrUnexpectedEOF)
	}()
	if a, err := b.try("POST", at, r, header{"Content-Type": "text/plain"}); err == nil {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
	if list := b.object(b.do("GET", at, nil), 200)["items"].([]any); len(list) != 0 {
		t.Errorf("something was left: %v", list)
	}
}

// TestUploadStreams uploads much more than may stay in memory.
func TestUploadStreams(t *testing.T) {
	b := newBench(t, writes)
	b.conversation() // the first request makes the operations
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	for range 8 {
		b.object(b.do("POST", "/media/detect", io.LimitReader(zeros{}, maxUpload), header{"Content-Type": "application/octet-stream"}), 200)
	}
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 8*maxUpload/2 {
		t.Errorf("8 MB took %d KB of memory", grown>>10)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestServing(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	up := b.upload(c, url.PathEscape("Größe 图.png"), "image/png", png)
	digest, id := up["digest"].(string), up["id"].(string)
	ref := up["ref"].(string)
	pinned := "/files/" + url.PathEscape(ref+"@1")
	for what, tt := range map[string]struct {
		path      string
		immutable bool
	}{
		"pinned": {pinned, true},
		"head":   {"/files/" + url.PathEscape(ref), false},
		"uri":    {"/files/" + url.PathEscape("artel://"+c+"/"+id+"@1"), true},
		"digest": {"/files/" + url.PathEscape("blob:"+digest), true},
		"raw":    {"/conversations/" + c + "/artifacts/" + url.PathEscape(id) + "/raw", false},
		"raw 1":  {"/conversations/" + c + "/artifacts/" + url.PathEscape(id) + "/raw?version=1", true},
	} {
		a := b.do("GET", tt.path, nil)
		if a.StatusCode != 200 || string(a.body) != png {
			t.Errorf("%s: got %d %.100s", what, a.StatusCode, a.body)
			continue
		}
		h := a.Header
		if h.Get("Content-Type") != "image/png" || h.Get("ETag") != `"`+digest+`"` || h.Get("X-Content-Type-Options") != "nosniff" ||
			!strings.Contains(h.Get("Content-Security-Policy"), "sandbox") || !strings.Contains(h.Get("Content-Security-Policy"), "default-src 'none'") ||
			!strings.Contains(h.Get("Cache-Control"), "private") || strings.Contains(h.Get("Cache-Control"), "immutable") != tt.immutable {
			t.Errorf("%s: got %v", what, h)
		}
		if what == "digest" {
			continue
		}
		kind, params, err := mime.ParseMediaType(h.Get("Content-Disposition"))
		if err != nil || kind != "inline" || params["filename"] != "Größe 图.png" || !strings.Contains(h.Get("Content-Disposition"), "filename*=UTF-8''") {
			t.Errorf("%s: got %s", what, h.Get("Content-Disposition"))
		}
	}
	part := b.do("GET", pinned, nil, header{"Range": "bytes=1-3"})
	if part.StatusCode != 206 || string(part.body) != png[1:4] || part.Header.Get("Content-Range") != fmt.Sprintf("bytes 1-3/%d", len(png)) {
		t.Errorf("a range: got %d %q", part.StatusCode, part.body)
	}
	if a := b.do("GET", pinned, nil, header{"Range": "bytes=-2"}); string(a.body) != png[len(png)-2:] {
		t.Errorf("the end: got %q", a.body)
	}
	if a := b.do("GET", pinned, nil, header{"Range": "bytes=9999-"}); a.StatusCode != 416 {
		t.Errorf("beyond: got %d", a.StatusCode)
	}
	if a := b.do("GET", pinned, nil, header{"If-None-Match": `"` + digest + `"`}); a.StatusCode != 304 || len(a.body) != 0 {
		t.Errorf("what the client has: got %d", a.StatusCode)
	}
	if a := b.do("GET", pinned, nil, header{"If-Range": `"other"`, "Range": "bytes=1-3"}); a.StatusCode != 200 {
		t.Errorf("a range of something else: got %d", a.StatusCode)
	}
	if a := b.do("HEAD", pinned, nil); a.StatusCode != 200 || a.ContentLength != int64(len(png)) || len(a.body) != 0 || a.Header.Get("ETag") == "" {
		t.Errorf("HEAD: got %d, %d bytes", a.StatusCode, a.ContentLength)
	}
	for _, ref := range []string{"artifact:" + id, "blob:" + string(artel.NewDigest([32]byte{1})), ref + "@2", "artifact:cnv_00000000000000000000000000/x"} {
		m := b.object(b.do("GET", "/files/"+url.PathEscape(ref), nil), 404)
		if ref != "artifact:cnv_00000000000000000000000000/x" && m["code"] != "artifact_not_found" {
			t.Errorf("%s: got %v", ref, m)
		}
	}
}

func TestDispositions(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	for name, tt := range map[string]struct{ content, plain, preview string }{
		"a.html": {"<!DOCTYPE html><script>alert(1)</script>", "attachment", "inline"},
		"a.svg":  {`<svg xmlns="http://www.w3.org/2000/svg"/>`, "attachment", "inline"},
		"a.xml":  {`<?xml version="1.0"?><a/>`, "attachment", "inline"},
		"a.pdf":  {"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n1 0 obj\n<<>>\nendobj\n", "attachment", "inline"},
		"a.txt":  {"text", "inline", "inline"},
		"a.js":   {"alert(1)", "inline", "inline"},
		"a.zip":  {"PK\x03\x04\x14\x00\x00\x00\x08\x00", "attachment", "attachment"},
		"a.bin":  {"\x00\x01\x02\x03", "attachment", "attachment"},
	} {
		m := b.upload(c, name, "", tt.content)
		path := "/files/" + url.PathEscape(m["ref"].(string))
		for query, want := range map[string]string{"": tt.plain, "?preview=true": tt.preview} {
			a := b.do("GET", path+query, nil)
			kind, params, err := mime.ParseMediaType(a.Header.Get("Content-Disposition"))
			if err != nil || kind != want || params["filename"] != name || a.Header.Get("Content-Type") == "" || !strings.Contains(a.Header.Get("Content-Security-Policy"), "sandbox") {
				t.Errorf("%s%s: got %v", name, query, a.Header)
			}
		}
	}
	// Names that try to break out of the header.
	for _, name := range []string{"a\"b.txt", "a;b.txt", "a\r\nX-Evil: 1.txt", "é\".txt"} {
		m := b.upload(c, url.PathEscape(name), "text/plain", "x")
		a := b.do("GET", "/files/"+url.PathEscape(m["ref"].(string)), nil)
		if a.StatusCode != 200 || a.Header.Get("X-Evil") != "" {
			t.Errorf("%q: got %d %v", name, a.StatusCode, a.Header)
		}
	}
}

func TestCharsetOfRawText(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	gbk := "\xd6\xd0\xce\xc4\xb1\xe0\xc2\xeb\xb5\xc4\xce\xc4\xb1\xbe\xce\xc4\xbc\xfe\xa3\xac\xd5\xe2\xca\xc7\xb5\xda\xb6\xfe\xbe\xe4\xa1\xa3"
	m := b.upload(c, "a.txt", "text/plain; charset=gb18030", gbk)
	raw := b.do("GET", "/conversations/"+c+"/artifacts/a.txt/raw", nil)
	if string(raw.body) != gbk || !strings.Contains(raw.Header.Get("Content-Type"), "charset=gb") {
		t.Errorf("got %s of %v", raw.Header.Get("Content-Type"), m)
	}
	if a := b.object(b.do("GET", "/conversations/"+c+"/artifacts/a.txt", nil), 200); !strings.HasPrefix(a["content"].(string), "中文编码") {
		t.Errorf("got %v", a["content"])
	}
}

func TestClientFiles(t *testing.T) {
	b := newBench(t, writes)
	ctx := apptest.Context(t)
	c, err := b.client.CreateConversation(ctx, newConversation)
	if err != nil {
		t.Fatal(err)
	}
	a, err := b.client.Upload(ctx, c.ID, "Größe.txt", "text/plain", strings.NewReader("hello"), -1)
	if err != nil || a.Filename != "Größe.txt" || a.Size != 5 {
		t.Fatalf("got %+v, %v", a, err)
	}
	r, err := b.client.Open(ctx, a.Ref)
	if err != nil {
		t.Fatal(err)
	}
	got, _ := io.ReadAll(r)
	_ = r.Close()
	if string(got) != "hello" {
		t.Errorf("got %q", got)
	}
	head, err := b.client.Artifact(ctx, a.Ref)
	old, err2 := b.client.Artifact(ctx, a.MediaPart().Ref)
	if err != nil || err2 != nil || *head.Content != "hello" || *old.Content != "hello" || old.Version != 1 || old.ID != a.ID {
		t.Errorf("got %+v, %+v, %v, %v", head, old, err, err2)
	}
	if list, err := b.client.Artifacts(ctx, c.ID); err != nil || len(list.Items) != 1 {
		t.Errorf("got %+v, %v", list, err)
	}
	_, err = b.client.Open(ctx, artel.Ref{Conversation: c.ID, Artifact: "nothing"})
	if p, ok := asProblem(err); !ok || p.Status != http.StatusNotFound || p.Code != artel.CodeArtifactNotFound {
		t.Errorf("got %v", err)
	}
}

// TestLongFileNames: a name of megabytes would be in every list from then on.
func TestLongFileNames(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	at := "/conversations/" + c + "/artifacts"
	for _, name := range []string{strings.Repeat("x", 3_000_000) + ".txt", strings.Repeat("字", 1_000_000) + ".md", "x." + strings.Repeat("y", 1_000_000), strings.Repeat("😀", 70) + ".png"} {
		body, contentType := form("file", name, "hello")
		m := b.object(b.do("POST", at, body, header{"Content-Type": contentType}), 201)["items"].([]any)[0].(map[string]any)
		got := m["filename"].(string)
		if len(got) > 255 || len(got) < 200 || !utf8.ValidString(got) || strings.ContainsRune(got, '\ufffd') || strings.HasSuffix(name, ".md") != strings.HasSuffix(got, ".md") {
			t.Errorf("a name of %d bytes: got %q of %d", len(name), got, len(got))
		}
		if got, ok := m["declared_type"].(string); ok && len(got) > 255 {
			t.Errorf("the type has %d bytes", len(got))
		}
	}
	if list := b.do("GET", at, nil); len(list.body) > 20_000 {
		t.Errorf("the list has %d bytes", len(list.body))
	}
}
