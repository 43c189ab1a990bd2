// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"strings"
	"testing"
)

// Every operation refuses a query parameter that it does not know, and names
// the nearest one.
func TestUnknownQuery(t *testing.T) {
	b := newBench(t, writes)
	operations := 0
	for path, item := range b.openAPI()["paths"].(map[string]any) {
		path = strings.TrimPrefix(path, "/api/v1")
		for method := range item.(map[string]any) {
			a := b.do(strings.ToUpper(method), strings.NewReplacer("{", "", "}", "").Replace(path)+"?zzz=1", nil)
			p := b.object(a, http.StatusUnprocessableEntity)
			if p["code"] != "invalid" || !strings.Contains(p["detail"].(string), `"zzz"`) {
				t.Errorf("%s %s: %s", method, path, a.body)
			}
			operations++
		}
	}
	if operations < 80 {
		t.Errorf("only %d operations were asked", operations)
	}
	for query, want := range map[string]string{
		"?limt=3": `"limit"`, "?Limit=3": `"limit"`, "?search=x&corsor=y": `"cursor"`, "?a=1": "There are: cursor, limit", "?=1": `""`,
	} {
		p := b.object(b.do("GET", "/conversations"+query, nil), http.StatusUnprocessableEntity)
		if !strings.Contains(p["detail"].(string), want) || len(p["errors"].([]any)) != 1 {
			t.Errorf("%s: %v", query, p)
		}
	}
	b.object(b.do("GET", "/conversations?limit=3&search=&order=newest", nil), http.StatusOK)
	b.object(b.do("GET", "/conversations?", nil), http.StatusOK)
}

// An upload has its name in the query, too.
func TestFilenameInQuery(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	at := "/conversations/" + c + "/artifacts"
	a := b.object(b.do("POST", at+"?filename=My%20plan.md", "# Plan\n", header{"Content-Type": ""}), http.StatusCreated)
	if a["filename"] != "My plan.md" || a["media_type"] != "text/markdown" || a["id"] != "my_plan.md" {
		t.Errorf("got %v", a)
	}
	p := b.object(b.do("POST", at+"?filename=a.md", "# Plan\n", header{"Content-Type": "", "X-Filename": "b.md"}), http.StatusUnprocessableEntity)
	if !strings.Contains(p["detail"].(string), "X-Filename") {
		t.Errorf("got %v", p)
	}
}

// A file without a name is downloaded under its id with the ending of its type.
func TestDownloadName(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	for id, want := range map[string]string{"report": "report.md", "plan.v2": "plan.v2.md", "notes.md": "notes.md", "main.go": "main.go"} {
		b.object(b.do("POST", "/conversations/"+c+"/tools/create_artifact", map[string]any{"id": id, "title": id, "content": "text\n"}), http.StatusOK)
		for _, path := range []string{"/files/artifact:" + c + "%2F" + id, "/conversations/" + c + "/artifacts/" + id + "/raw"} {
			if got := b.do("GET", path, nil).Header.Get("Content-Disposition"); !strings.HasSuffix(got, "filename="+want) {
				t.Errorf("%s: %s", path, got)
			}
		}
	}
	// What a user calls a file, it is called.
	b.upload(c, "Makefile", "", "all:\n")
	if got := b.do("GET", "/files/artifact:"+c+"%2Fmakefile", nil).Header.Get("Content-Disposition"); !strings.HasSuffix(got, "filename=Makefile") {
		t.Error(got)
	}
}
