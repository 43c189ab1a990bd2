// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway/backend"
)

// form is the body of an upload. "field=name" is a file.
func form(t *testing.T, fields ...string) (body, contentType string) {
	t.Helper()
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for i := 0; i < len(fields); i += 2 {
		name, value := fields[i], fields[i+1]
		var part io.Writer
		var err error
		if field, filename, ok := strings.Cut(name, "="); ok {
			part, err = w.CreateFormFile(field, filename)
		} else {
			part, err = w.CreateFormField(name)
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(part, value); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String(), w.FormDataContentType()
}

// do makes any request and returns the answer with its body.
func (b *bench) do(method, path, body string, header ...string) (*http.Response, string) {
	b.t.Helper()
	r, err := http.NewRequestWithContext(apptest.Context(b.t), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp, string(data)
}

// upload uploads a file and returns what is said of it.
func (b *bench) upload(header []string, fields ...string) map[string]any {
	b.t.Helper()
	body, kind := form(b.t, fields...)
	resp, text := b.do("POST", "/v1/files", body, append(header, "Content-Type", kind)...)
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil || resp.StatusCode != 200 {
		b.t.Fatalf("%d %s", resp.StatusCode, text)
	}
	return out
}

const tinyPDF = "%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj 2 0 obj<</Type/Pages/Kids[]/Count 0>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n"

func TestFiles(t *testing.T) {
	b := newBench(t)
	// UTF-16 comes back as it was, though texts are kept as UTF-8 elsewhere.
	odd := "\xff\xfeh\x00i\x00"
	text := b.upload(nil, "purpose", "user_data", "file=odd.txt", odd, "expires_after[anchor]", "created_at", "expires_after[seconds]", "3600")
	pdf := b.upload(nil, "file=paper.pdf", tinyPDF, "purpose", "assistants")
	if text["object"] != "file" || text["bytes"] != float64(len(odd)) || text["filename"] != "odd.txt" || text["purpose"] != "user_data" ||
		text["expires_at"] != text["created_at"].(float64)+3600 || pdf["expires_at"] != nil {
		t.Errorf("%v\n%v", text, pdf)
	}
	id := pdf["id"].(string)
	resp, content := b.do("GET", "/v1/files/"+text["id"].(string)+"/content", "")
	if content != odd || resp.Header.Get("Content-Disposition") != "attachment; filename=odd.txt" || resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		t.Errorf("%q %v", content, resp.Header)
	}
	if resp, part := b.do("GET", "/v1/files/"+id+"/content", "", "Range", "bytes=0-3"); resp.StatusCode != 206 || part != "%PDF" || resp.Header.Get("Content-Type") != "application/pdf" {
		t.Errorf("%d %q %v", resp.StatusCode, part, resp.Header)
	}
	if e := b.entry(); e.Status != 206 || e.BytesOut != 4 {
		t.Errorf("entry %+v", e)
	}

	// By its id in a request it is the bytes, in either dialect.
	status, _ := b.post("/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"`+id+`"}}]}]}`)
	if status != 200 || !strings.Contains(b.last(), `"file_data":"data:application/pdf;base64,JVBERi`) || !strings.Contains(b.last(), `"paper.pdf"`) {
		t.Errorf("%d, sent %s", status, b.last())
	}
	status, _ = b.post("/v1/messages", `{"model":"messages","max_tokens":9,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"`+id+`"}}]}]}`, "anthropic-version", "2023-06-01")
	if !strings.Contains(b.last(), `"type":"base64"`) || !strings.Contains(b.last(), "JVBERi") || strings.Contains(b.last(), id) { // whatever this service says of it
		t.Errorf("%d, sent %s", status, b.last())
	}
	// One that is not ours is the service's.
	status, _ = b.post("/v1/chat/completions", `{"model":"chat","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-theirs"}}]}]}`)
	if !strings.Contains(b.last(), `"file_id":"file-theirs"`) {
		t.Errorf("%d, sent %s", status, b.last())
	}

	_, list := b.do("GET", "/v1/files?limit=1", "")
	_, rest := b.do("GET", "/v1/files?limit=1&after="+id, "")
	_, oldest := b.do("GET", "/v1/files?order=asc", "")
	if !strings.Contains(list, id) || !strings.Contains(list, `"has_more":true`) || !strings.Contains(rest, `"odd.txt"`) || !strings.Contains(rest, `"has_more":false`) ||
		strings.Index(oldest, "odd.txt") > strings.Index(oldest, "paper.pdf") {
		t.Errorf("%s\n%s\n%s", list, rest, oldest)
	}
	if _, gone := b.do("DELETE", "/v1/files/"+id, ""); !strings.Contains(gone, `"deleted":true`) {
		t.Error(gone)
	}
	for _, path := range []string{"/v1/files/" + id, "/v1/files/" + id + "/content", "/v1/files/..%2f..", "/v1/files/" + id + "/other"} {
		if resp, body := b.do("GET", path, ""); resp.StatusCode != 404 || !strings.Contains(body, `"error"`) {
			t.Errorf("%s: %d %s", path, resp.StatusCode, body)
		}
	}
}

func TestFilesOfAnthropic(t *testing.T) {
	b := newBench(t)
	version := []string{"anthropic-version", "2023-06-01"}
	var ids []string
	for _, name := range []string{"a.pdf", "b.pdf", "c.pdf"} {
		f := b.upload(version, "file="+name, tinyPDF)
		if f["type"] != "file" || f["mime_type"] != "application/pdf" || f["size_bytes"] != float64(len(tinyPDF)) {
			t.Errorf("%v", f)
		}
		ids = append(ids, f["id"].(string))
	}
	_, before := b.do("GET", "/v1/files?limit=1&before_id="+ids[0], "", version...)
	_, after := b.do("GET", "/v1/files?after_id="+ids[2], "", version...)
	if !strings.Contains(before, `"b.pdf"`) || strings.Contains(before, `"c.pdf"`) || strings.Index(after, "b.pdf") > strings.Index(after, "a.pdf") || strings.Contains(after, "c.pdf") {
		t.Errorf("%s\n%s", before, after)
	}
	if _, gone := b.do("DELETE", "/v1/files/"+ids[0], "", version...); !strings.Contains(gone, `"file_deleted"`) {
		t.Error(gone)
	}
	if resp, body := b.do("GET", "/v1/files/"+ids[0], "", version...); resp.StatusCode != 404 || !strings.Contains(body, `"not_found_error"`) {
		t.Errorf("%d %s", resp.StatusCode, body)
	}
}

func TestFilesRefused(t *testing.T) {
	b := newBench(t)
	for want, fields := range map[string][]string{
		"'file' is a required property":    {"purpose", "user_data"},
		"'purpose' is a required property": {"file=a.txt", "a"},
		"this one has two":                 {"purpose", "user_data", "file=a.txt", "a", "file=b.txt", "b"},
		"between 3600 and 2592000":         {"purpose", "user_data", "file=a.txt", "a", "expires_after[anchor]", "created_at", "expires_after[seconds]", "60"},
		"more than 1000 bytes":             {"purpose", strings.Repeat("p", 2000), "file=a.txt", "a"},
	} {
		body, kind := form(t, fields...)
		if resp, text := b.do("POST", "/v1/files", body, "Content-Type", kind); resp.StatusCode != 400 || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", want, resp.StatusCode, text)
		}
	}
	body, kind := form(t, "purpose", "user_data", "file=a.txt", "abc")
	for _, broken := range []string{body[:len(body)/2], "", "nonsense"} {
		if resp, text := b.do("POST", "/v1/files", broken, "Content-Type", kind); resp.StatusCode != 400 {
			t.Errorf("%d %s", resp.StatusCode, text)
		}
	}
	if resp, _ := b.do("PUT", "/v1/files", ""); resp.StatusCode != 405 {
		t.Error(resp.StatusCode)
	}
	if _, list := b.do("GET", "/v1/files", ""); !strings.Contains(list, `"data":[]`) {
		t.Errorf("what was refused is kept: %s", list)
	}
	for _, limit := range []string{"0", "x", "99999"} {
		if resp, _ := b.do("GET", "/v1/files?limit="+limit, ""); resp.StatusCode != 400 {
			t.Errorf("limit %s: %d", limit, resp.StatusCode)
		}
	}
	if resp, _ := b.do("GET", "/v1/files?after=file-none", ""); resp.StatusCode != 400 {
		t.Error(resp.StatusCode)
	}
}

// A program sees its own files, and those of no other key.
func TestFilesOfAKey(t *testing.T) {
	b := newBench(t, setup{options: backend.Options{Keys: []backend.Key{{Name: "one", Secret: "key-one"}, {Name: "two", Secret: "key-two"}}}})
	one, two := []string{"Authorization", "Bearer key-one"}, []string{"Authorization", "Bearer key-two"}
	id := b.upload(one, "purpose", "user_data", "file=a.pdf", tinyPDF)["id"].(string)
	for _, verb := range []string{"GET", "DELETE"} {
		if resp, _ := b.do(verb, "/v1/files/"+id, "", two...); resp.StatusCode != 404 {
			t.Errorf("%s: %d", verb, resp.StatusCode)
		}
	}
	if _, list := b.do("GET", "/v1/files", "", two...); strings.Contains(list, id) {
		t.Error(list)
	}
	ask := `{"model":"chat","messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"` + id + `"}}]}]}`
	b.post("/v1/chat/completions", ask, two...)
	if strings.Contains(b.last(), "JVBERi") {
		t.Error("another key's file was sent")
	}
	b.post("/v1/chat/completions", ask, one...)
	if !strings.Contains(b.last(), "JVBERi") {
		t.Errorf("sent %s", b.last())
	}
	if resp, _ := b.do("GET", "/v1/files", ""); resp.StatusCode != 401 {
		t.Error(resp.StatusCode)
	}
}
