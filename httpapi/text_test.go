// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"crypto/sha256"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel"
)

func sample(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "testdata", "files", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestTextOfDocuments uploads documents and reads them as a program, as a
// person with curl, and as a model.
func TestTextOfDocuments(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	for _, tt := range []struct {
		name, declared, line string
		pages                float64
	}{
		{"brief.docx", "", "| Berlin | 2 | 1,250.50 |", 0},
		{"brief.pdf", "application/pdf", "# Trip report 出差报告", 1},
		{"data.xlsx", "application/octet-stream", "## Sales 销售", 3},
	} {
		data := sample(t, tt.name)
		b.upload(c, tt.name, tt.declared, data)
		path := "/conversations/" + c + "/artifacts/" + tt.name + "/text"
		v := b.object(b.do("GET", path, nil), 200)
		has(t, "a text", v, "text media_type derived pages cut left_out version digest", "")
		text, _ := v["text"].(string)
		if !strings.Contains(text, tt.line+"\n") || v["media_type"] != "text/markdown" || v["derived"] != true || v["pages"] != tt.pages ||
			v["cut"] != false || v["version"] != 1.0 || v["digest"] != string(artel.NewDigest(sha256.Sum256([]byte(data)))) {
			t.Errorf("%s: got %v", tt.name, v)
		}
		for _, a := range []answered{
			b.do("GET", path, nil, header{"Accept": "text/markdown"}),
			b.do("GET", path+"?version=1&format=text", nil),
		} {
			if string(a.body) != text || a.Header.Get("Content-Type") != "text/markdown; charset=utf-8" || !slices.Contains(a.Header.Values("Vary"), "Accept") {
				t.Errorf("%s: got %s of type %s", tt.name, a.body, a.Header.Get("Content-Type"))
			}
		}
		if json := b.object(b.do("GET", path+"?format=json", nil, header{"Accept": "text/markdown"}), 200); json["text"] != text {
			t.Errorf("%s: got %v", tt.name, json)
		}
		r := b.object(b.do("POST", "/conversations/"+c+"/tools/read_artifact", map[string]any{"id": tt.name}), 200)
		if content, _ := r["content"].(string); r["ok"] != true || !strings.Contains(content, "\n"+text+"\n</artifact_slice>") || !strings.Contains(content, ` derived="text/markdown, taken out of `) {
			t.Errorf("%s: the model reads %v", tt.name, r)
		}
		if raw := b.do("GET", "/conversations/"+c+"/artifacts/"+tt.name+"/raw", nil); string(raw.body) != data {
			t.Errorf("%s: the original was replaced", tt.name)
		}
	}
	if list := b.object(b.do("GET", "/conversations/"+c+"/artifacts", nil), 200)["items"].([]any); len(list) != 3 {
		t.Errorf("got %d artifacts, want the three that were uploaded", len(list))
	}
}

func TestTextOfTexts(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	at := "/conversations/" + c + "/artifacts/"
	b.upload(c, "page.html", "text/html", "<script>x()</script><h1>Hi</h1>")
	b.upload(c, "run.js", "", "let x = 1\n")
	b.ended(c, `{"text":"Go."}`) // writes the artifact note
	for _, tt := range []struct {
		path, mediaType, served string
		derived                 bool
		want                    string
	}{
		{"page.html/text", "text/markdown", "text/markdown", true, "# Hi\n"},
		{"run.js/text", "text/javascript", "text/plain", false, "let x = 1\n"},
		{"note/text", "text/markdown", "text/markdown", false, b.object(b.do("GET", at+"note", nil), 200)["content"].(string)},
	} {
		v := b.object(b.do("GET", at+tt.path, nil), 200)
		if text, _ := v["text"].(string); !strings.HasPrefix(text, tt.want) || v["media_type"] != tt.mediaType || v["derived"] != tt.derived {
			t.Errorf("%s: got %v", tt.path, v)
		}
		a := b.do("GET", at+tt.path, nil, header{"Accept": "text/markdown, */*;q=0.1"})
		if string(a.body) != v["text"] || a.Header.Get("Content-Type") != tt.served+"; charset=utf-8" || a.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: got %v %s", tt.path, a.Header, a.body)
		}
	}
	number := b.object(b.do("GET", at+"note", nil), 200)["version"].(float64)
	if v := b.object(b.do("GET", at+"note/text", nil), 200); v["version"] != number {
		t.Errorf("got version %v, want %v", v["version"], number)
	}
	b.problem(b.do("GET", at+"note/text?version=1", nil), http.StatusNotFound, artel.CodeArtifactNotFound) // only the journal has it
}

func TestTextThatThereIsNot(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	b.upload(c, "p.png", "image/png", png)
	b.upload(c, "locked.pdf", "", sample(t, "locked.pdf"))
	damaged := sample(t, "brief.docx")
	b.upload(c, "damaged.docx", "", damaged[:len(damaged)-200])
	for _, tt := range []struct {
		path   string
		status int
		code   string
	}{
		{"p.png/text", http.StatusUnsupportedMediaType, "unsupported"},
		{"locked.pdf/text", http.StatusUnsupportedMediaType, "unsupported"},
		{"damaged.docx/text", http.StatusUnprocessableEntity, "invalid"},
		{"nothing/text", http.StatusNotFound, artel.CodeArtifactNotFound},
		{"p.png/text?version=9", http.StatusNotFound, artel.CodeArtifactNotFound},
		{"p.png/text?version=0", http.StatusUnprocessableEntity, "invalid"},
		{"p.png/text?format=pdf", http.StatusUnprocessableEntity, "invalid"},
	} {
		b.problem(b.do("GET", "/conversations/"+c+"/artifacts/"+tt.path, nil), tt.status, tt.code)
	}
}
