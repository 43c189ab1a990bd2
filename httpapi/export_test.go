// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"archive/zip"
	"bytes"
	"io"
	"mime"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact/export"
)

// entriesOf unpacks a ZIP, of which a DOCX is one.
func entriesOf(t *testing.T, b []byte) map[string]string {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(r)
		if err != nil {
			t.Fatalf("%s: %v", f.Name, err)
		}
		out[f.Name] = string(content)
	}
	return out
}

// downloaded checks what every exported file comes with.
func (b *bench) downloaded(a answered, mediaType, filename, version string) []byte {
	b.t.Helper()
	kind, params, err := mime.ParseMediaType(a.Header.Get("Content-Disposition"))
	h := a.Header
	if a.StatusCode != 200 || h.Get("Content-Type") != mediaType || err != nil || kind != "attachment" || params["filename"] != filename ||
		h.Get("X-Artel-Version") != version || h.Get("X-Content-Type-Options") != "nosniff" || !strings.HasPrefix(h.Get("Content-Security-Policy"), "sandbox") {
		b.t.Errorf("%s: %d %v %.300s", a.Request.URL, a.StatusCode, h, a.body)
	}
	return a.body
}

func TestExportArtifact(t *testing.T) {
	b := newBench(t, "")
	c := b.conversation()
	b.upload(c, "dot.png", "image/png", png)
	b.upload(c, url.PathEscape("报告 1.md"), "text/markdown", "# One\n\n![a dot](artifact:dot.png) and ![none](artifact:nothing.png)\n")
	b.upload(c, "code.py", "text/x-python", "print('<b>')\n")
	b.upload(c, "old.txt", "text/plain", "\xd6\xd0\xce\xc4\xb5\xc4\xce\xc4\xb1\xbe\xa3\xac\xb9\xbb\xb3\xa4")
	report := "/conversations/" + c + "/artifacts/" + url.PathEscape("报告_1.md")
	b.object(b.do("PUT", report, "# Two\n\n![a dot](artifact:dot.png)\n", ifMatch(`"1"`), header{"Content-Type": "text/markdown"}), 200)

	const docx = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
	parts := entriesOf(t, b.downloaded(b.do("GET", report+"/export?format=docx&version=1", nil), docx, "报告 1.docx", "1"))
	var names []string
	for name := range parts {
		names = append(names, name)
	}
	text := parts["word/document.xml"]
	if !strings.Contains(text, ">One<") || !strings.Contains(text, "none") || !strings.Contains(text, "<w:drawing>") || parts["[Content_Types].xml"] == "" ||
		!slices.ContainsFunc(names, func(n string) bool { return parts[n] == png }) {
		t.Errorf("docx: %v\n%s", names, text)
	}
	if parts := entriesOf(t, b.downloaded(b.do("GET", report+"/export?format=docx", nil), docx, "报告 1.docx", "2")); !strings.Contains(parts["word/document.xml"], ">Two<") {
		t.Errorf("the newest: %s", parts["word/document.xml"])
	}
	page := string(b.downloaded(b.do("GET", report+"/export?format=html&version=1", nil), "text/html; charset=utf-8", "报告 1.html", "1"))
	if !strings.Contains(page, "<h1") || !strings.Contains(page, "data:image/png;base64,") || strings.Contains(page, "artifact:") {
		t.Errorf("html: %s", page)
	}
	if md := b.downloaded(b.do("GET", report+"/export?format=md", nil), "text/markdown; charset=utf-8", "报告 1.md", "2"); string(md) != "# Two\n\n![a dot](artifact:dot.png)\n" {
		t.Errorf("md: %q", md)
	}

	at := "/conversations/" + c + "/artifacts/"
	page = string(b.downloaded(b.do("GET", at+"code.py/export?format=html", nil), "text/html; charset=utf-8", "code.html", "1"))
	if !strings.Contains(page, "&lt;b&gt;") || strings.Contains(page, "<b>") {
		t.Errorf("code as html: %s", page)
	}
	code := b.do("GET", at+"code.py", nil)
	if s := b.downloaded(b.do("GET", at+"code.py/export?format=md", nil), b.object(code, 200)["media_type"].(string)+"; charset=utf-8", "code.py", "1"); string(s) != "print('<b>')\n" {
		t.Errorf("code as md: %q", s)
	}
	if s := b.downloaded(b.do("GET", at+"old.txt/export?format=md", nil), "text/plain; charset=utf-8", "old.txt", "1"); string(s) != "中文的文本，够长" {
		t.Errorf("another charset: %q", s)
	}
	b.object(b.do("PUT", at+"code.py", "", ifMatch(`"1"`), header{"Content-Type": "text/x-python"}), 200)
	if s := b.downloaded(b.do("GET", at+"code.py/export?format=md", nil), "text/x-python; charset=utf-8", "code.py", "2"); len(s) != 0 {
		t.Errorf("an empty text: %q", s)
	}

	for path, want := range map[string]struct {
		status int
		code   string
		text   string
	}{
		at + "code.py/export?format=pdf":                                                   {422, "invalid", "docx"},
		at + "code.py/export":                                                              {422, "invalid", "format"},
		at + "code.py/export?format=zip":                                                   {422, "invalid", "docx"},
		at + "code.py/export?format=md&version=0":                                          {422, "invalid", "version"},
		at + "code.py/export?format=md&version=9":                                          {404, "artifact_not_found", "9"},
		at + "nothing/export?format=md":                                                    {404, "artifact_not_found", "nothing"},
		at + "dot.png/export?format=docx":                                                  {415, "unsupported", "download its bytes"},
		at + "code.py/export?format=md&at=msg_no":                                          {404, "not_found", ""},
		"/conversations/" + c + "/export?format=md":                                        {422, "invalid", "zip"},
		"/conversations/cnv_01jq0000000000000000000000/export":                             {404, "not_found", ""},
		"/conversations/cnv_01jq0000000000000000000000/artifacts/code.py/export?format=md": {404, "not_found", ""},
		"/conversations/rubbish/export":                                                    {404, "not_found", ""},
	} {
		a := b.do("GET", path, nil)
		if p := b.problem(a, want.status, want.code); !strings.Contains(string(a.body), want.text) || a.Header.Get("Content-Disposition") != "" {
			t.Errorf("%s: %v", path, p)
		}
	}
}

func TestExportConversation(t *testing.T) {
	b := newBench(t, writes)
	c := b.object(b.do("POST", "/conversations", map[string]string{"title": "Q3: plan/notes"}), 201)["id"].(string)
	b.upload(c, "dot.png", "image/png", png)
	b.ended(c, `{"text":"Go.","attachments":["dot.png"]}`)
	b.object(b.do("PUT", "/conversations/"+c+"/artifacts/note", "See <artifact:dot.png>.\n", ifMatch("*"), header{"Content-Type": "text/markdown"}), 200)
	b.downloaded(b.do("GET", "/conversations/"+c+"/artifacts/note/export?format=html", nil), "text/html; charset=utf-8", "note.html", "3")
	body := b.downloaded(b.do("GET", "/conversations/"+c+"/export?format=zip", nil, header{"Accept-Language": "zh-CN"}), "application/zip", "Q3_ plan_notes.zip", "")
	z, err := export.ReadZIP(apptest.Context(t), bytes.NewReader(body), int64(len(body)), export.ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	messages := b.object(b.do("GET", "/conversations/"+c+"/messages", nil), 200)["items"].([]any)
	if string(z.Conversation.ID) != c || z.Messages != len(messages) || z.Artifacts != 2 || z.Versions != 3 {
		t.Errorf("got %d messages of %d, %d artifacts, %d versions", z.Messages, len(messages), z.Artifacts, z.Versions)
	}
	for a, err := range z.EachArtifact(apptest.Context(t)) {
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range a.Versions {
			r, err := z.Open(a.ID, v.Number)
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(r)
			_ = r.Close()
			want := b.do("GET", "/files/"+url.PathEscape(artel.Ref{Conversation: artel.ConversationID(c), Artifact: a.ID, Version: v.Number}.String()), nil)
			if err != nil || want.StatusCode != 200 || !bytes.Equal(got, want.body) {
				t.Errorf("%s@%d: %q, %v", a.ID, v.Number, got, err)
			}
		}
	}
	entries := entriesOf(t, body)
	if entries["files/note.md"] != "See [artifact:dot.png](dot.png).\n" || entries["files/dot.png"] != png || !strings.Contains(entries["README.md"], "对话") {
		t.Errorf("README.md: %q, note: %q", entries["README.md"], entries["files/note.md"])
	}
	if got := b.downloaded(b.do("GET", "/conversations/"+c+"/export", nil), "application/zip", "Q3_ plan_notes.zip", ""); !strings.Contains(entriesOf(t, got)["README.md"], "This conversation was exported") {
		t.Error("the README is not in English where nothing is asked for")
	}
}

func TestExportClient(t *testing.T) {
	b := newBench(t, "")
	c := b.conversation()
	b.upload(c, "a.md", "text/markdown", "# Hi\n")
	ref := artel.Ref{Conversation: artel.ConversationID(c), Artifact: "a.md", Version: 1}
	d, err := b.client.Export(apptest.Context(t), ref, "md")
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(d)
	_ = d.Close()
	if string(text) != "# Hi\n" || err != nil || d.Filename != "a.md" || d.MediaType != "text/markdown" || d.Version != 1 {
		t.Errorf("%q, %v, %+v", text, err, d)
	}
	ref.Version = 7
	if _, err := b.client.Export(apptest.Context(t), ref, "md"); err == nil || !strings.Contains(err.Error(), "7") {
		t.Errorf("got %v", err)
	}
	if d, err = b.client.ExportConversation(apptest.Context(t), ref.Conversation); err != nil {
		t.Fatal(err)
	}
	_ = d.Close()
	if d.Filename != c+".zip" || d.MediaType != "application/zip" || d.Version != 0 {
		t.Errorf("%+v", d)
	}
}

func TestImport(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	b.upload(c, "dot.png", "image/png", png)
	b.ended(c, `{"text":"Go.","attachments":["dot.png"]}`)
	z := b.do("GET", "/conversations/"+c+"/export", nil).body
	send := func(body string, h ...header) answered {
		return b.do("POST", "/conversations/import", body, append(h, header{"Content-Type": "application/zip"})...)
	}
	made := b.object(send(string(z), header{"Idempotency-Key": "once"}), 201)
	has(t, "an import", made, "conversation messages artifacts versions", "")
	id := made["conversation"].(map[string]any)["id"].(string)
	if id == c || made["artifacts"] != 2.0 || made["versions"] != 2.0 {
		t.Errorf("got %v", made)
	}
	if again := b.object(send(string(z), header{"Idempotency-Key": "once"}), 201); again["conversation"].(map[string]any)["id"] != id {
		t.Errorf("the same key again made another one: %v", again)
	}
	b.problem(send(string(z)+"x", header{"Idempotency-Key": "once"}), 422, "idempotency_key_reused")
	if raw := b.do("GET", "/conversations/"+id+"/artifacts/dot.png/raw", nil); string(raw.body) != png {
		t.Errorf("the picture is %q", raw.body)
	}
	if a := b.object(b.do("GET", "/conversations/"+id+"/artifacts/note", nil), 200); a["content"] != "1 two" || a["version"] != 2.0 {
		t.Errorf("the note is %v", a)
	}
	b.problem(send("rubbish"), 422, "invalid")
	b.problem(send(""), 422, "invalid")
	if list := b.object(b.do("GET", "/conversations", nil), 200)["items"].([]any); len(list) != 2 {
		t.Errorf("%d conversations", len(list))
	}
	done, err := b.client.Import(apptest.Context(t), bytes.NewReader(z), int64(len(z)))
	if err != nil || done.Versions != 2 {
		t.Errorf("%+v, %v", done, err)
	}
}
