// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"
)

// etag is the version that an answer shows.
func (a answered) etag() string { return a.Header.Get("ETag") }

func ifMatch(v string) header { return header{"If-Match": v} }

func TestPeopleWrite(t *testing.T) {
	b := newBench(t, "")
	c := b.conversation()
	b.upload(c, "a.md", "text/markdown", "one\ntwo\nthree\nfour\nfive\n")
	at := "/conversations/" + c + "/artifacts/a.md"
	read := b.do("GET", at, nil)
	b.object(read, 200)
	if read.etag() != `"1"` {
		t.Fatalf("the ETag is %s", read.etag())
	}

	saved := b.do("PUT", at, "ONE\ntwo\nthree\nfour\nfive\n", ifMatch(read.etag()), header{"Content-Type": "text/markdown; charset=utf-8", "X-Title": "%E6%A0%87%E9%A2%98"})
	if a := b.object(saved, 200); a["version"] != 2.0 || a["title"] != "标题" || a["last_editor"] != "user" || saved.etag() != `"2"` || a["source"] != "user_upload" {
		t.Errorf("saved: %v", a)
	}
	if a := b.object(b.do("GET", at, nil), 200); a["content"] != "ONE\ntwo\nthree\nfour\nfive\n" || a["media_type"] != "text/markdown" {
		t.Errorf("read: %v", a)
	}

	// Another client changed another line of version 1.
	late := b.object(b.do("PUT", at, `{"content":"one\ntwo\nthree\nfour\nFIVE\n"}`, ifMatch(`"1"`)), 412)
	merge := late["merge"].(map[string]any)
	if late["code"] != "stale" || late["base"] != 1.0 || late["current"].(map[string]any)["version"] != 2.0 || merge["clean"] != true ||
		merge["text"] != "ONE\ntwo\nthree\nfour\nFIVE\n" || len(merge["conflicts"].([]any)) != 0 {
		t.Errorf("stale: %v", late)
	}
	b.object(b.do("PUT", at, map[string]any{"content": merge["text"]}, ifMatch(`"2"`)), 200)

	// And the same line.
	late = b.object(b.do("PUT", at, `{"content":"eins\ntwo\nthree\nfour\nfive\n"}`, ifMatch(`"1"`)), 412)
	merge = late["merge"].(map[string]any)
	conflicts := merge["conflicts"].([]any)
	if merge["clean"] != false || len(conflicts) != 1 || conflicts[0].(map[string]any)["mine"] != "eins\n" ||
		!strings.Contains(merge["text"].(string), "<<<<<<< yours\neins\n||||||| version 1\none\n=======\nONE\n>>>>>>> version 3\n") {
		t.Errorf("conflict: %v", late)
	}

	// What is there already needs no other version, as after a lost answer.
	again := b.do("PUT", at, "ONE\ntwo\nthree\nfour\nFIVE\n", ifMatch(`"2"`), header{"Content-Type": "text/plain"})
	if b.object(again, 200); again.etag() != `"3"` {
		t.Errorf("again: %s %s", again.etag(), again.body)
	}

	if a := b.object(b.do("PATCH", at, `{"title":" New title "}`, ifMatch(`"3"`)), 200); a["version"] != 4.0 || a["title"] != "New title" {
		t.Errorf("renamed: %v", a)
	}
	b.object(b.do("PATCH", at, `{"title":"Other"}`, ifMatch(`"3"`)), 412)
	if a := b.do("DELETE", at, nil, ifMatch(`"4"`)); a.StatusCode != 204 {
		t.Errorf("deleted: %d %s", a.StatusCode, a.body)
	}
	if p := b.object(b.do("GET", at, nil), 404); p["code"] != "artifact_not_found" || !strings.Contains(p["detail"].(string), "deleted") {
		t.Errorf("deleted: %v", p)
	}
	b.object(b.do("DELETE", at, nil), 404)
	b.object(b.do("PUT", at, "x", ifMatch(`"5"`), header{"Content-Type": "text/plain"}), 404)
	if list := b.object(b.do("GET", "/conversations/"+c+"/artifacts", nil), 200); len(list["items"].([]any)) != 0 {
		t.Errorf("listed: %v", list)
	}
	if list := b.object(b.do("GET", "/conversations/"+c+"/artifacts?deleted=true", nil), 200)["items"].([]any); len(list) != 1 || list[0].(map[string]any)["deleted"] != true {
		t.Errorf("deleted: %v", list)
	}
	restored := b.do("POST", at+"/restore", nil)
	if a := b.object(restored, 200); a["version"] != 6.0 || a["title"] != "New title" || restored.etag() != `"6"` {
		t.Errorf("restored: %v", a)
	}
	if a := b.object(b.do("POST", at+"/restore", `{"version":1}`), 200); a["version"] != 7.0 || a["title"] != "a.md" {
		t.Errorf("restored: %v", a)
	}
	if body := b.do("GET", at+"/raw", nil).body; string(body) != "one\ntwo\nthree\nfour\nfive\n" {
		t.Errorf("raw: %q", body)
	}
	b.object(b.do("POST", at+"/restore", `{}`), 422)
	b.object(b.do("POST", at+"/restore", `{"version":99}`), 404)
	b.object(b.do("POST", at+"/restore", `{"version":5}`), 422)

	var types []string
	for _, v := range b.object(b.do("GET", at+"/versions", nil), 200)["items"].([]any) {
		v := v.(map[string]any)
		types = append(types, fmt.Sprintf("%v %v %v %v", v["version"], v["update_type"], v["author"], v["visible"]))
	}
	want := []string{
		"1 create user true", "2 rewrite user true", "3 rewrite user true", "4 rename user true", "5 delete user true",
		"6 restore user true", "7 restore user true",
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Error(diff)
	}
}

func TestBadWrites(t *testing.T) {
	b := newBench(t, "")
	c := b.conversation()
	b.upload(c, "a.txt", "text/plain", "hello")
	b.upload(c, "b.png", "image/png", png)
	at := "/conversations/" + c + "/artifacts/"
	plain := header{"Content-Type": "text/plain"}
	for _, tt := range []struct {
		method, path string
		body         any
		status       int
		headers      []header
	}{
		{"PUT", "a.txt", "x", 428, []header{plain}},
		{"PUT", "a.txt", "x", 400, []header{plain, ifMatch("one")}},
		{"PUT", "a.txt", "x", 400, []header{plain, ifMatch(`W/"1"`)}},
		{"PUT", "a.txt", "x", 400, []header{plain, ifMatch(`"0"`)}},
		{"PUT", "a.txt", "x", 412, []header{plain, ifMatch(`"7"`)}},
		{"PUT", "nothing", "x", 404, []header{plain, ifMatch(`"1"`)}},
		{"PUT", "..", "x", 404, []header{plain, ifMatch(`"1"`)}},
		{"PUT", "a%0a", "x", 404, []header{plain, ifMatch(`"1"`)}},
		{"PUT", strings.Repeat("a", 65), "x", 404, []header{plain, ifMatch(`"1"`)}},
		{"PUT", "a.txt", `{"content":1}`, 422, []header{ifMatch(`"1"`)}},
		{"PUT", "a.txt", `{"text":"x"}`, 422, []header{ifMatch(`"1"`)}},
		{"PUT", "a.txt", `{"title":""}`, 422, []header{ifMatch(`"1"`)}},
		{"PUT", "a.txt", `{"content":"x"`, 400, []header{ifMatch(`"1"`)}},
		{"PUT", "a.txt", `{"content":"\ud800"}`, 400, []header{ifMatch(`"1"`)}},
		{"PUT", "a.txt", "{\"content\":\"\xff\"}", 400, []header{ifMatch(`"1"`)}},
		{"PUT", "a.txt", "x", 400, []header{plain, ifMatch(`"1"`), {"X-Title": "%ff"}}},
		{"PUT", "a.txt", strings.Repeat("x", maxUpload+1), 413, []header{plain, ifMatch(`"1"`)}},
		{"PATCH", "a.txt", `{"title":" \u200b "}`, 422, nil},
		{"PATCH", "a.txt", `{}`, 422, nil},
		{"PATCH", "a.txt", `{"title":"x"}`, 412, []header{ifMatch(`"2"`)}},
		{"PATCH", "nothing", `{"title":"x"}`, 404, nil},
		{"DELETE", "a.txt", nil, 412, []header{ifMatch(`"2"`)}},
		{"POST", "a.txt/restore", `{"version":1}`, 422, nil},
		{"POST", "a.txt/restore", `{"version":0}`, 422, nil},
		{"POST", "nothing/restore", `{"version":1}`, 404, nil},
		{"GET", "b.png/diff", nil, 415, nil},
		{"GET", "nothing/diff", nil, 404, nil},
		{"GET", "a.txt/diff?from=7", nil, 404, nil},
		{"GET", "a.txt/diff?format=pdf", nil, 422, nil},
		{"GET", "a.txt/versions/0", nil, 422, nil},
		{"GET", "a.txt/versions/2?live=true", nil, 404, nil},
	} {
		a := b.do(tt.method, at+tt.path, tt.body, tt.headers...)
		if a.StatusCode != tt.status || a.Header.Get("Content-Type") != "application/problem+json" {
			t.Errorf("%s %s %.40v: got %d, want %d: %s", tt.method, tt.path, tt.body, a.StatusCode, tt.status, a.body)
		}
	}
	if a := b.object(b.do("GET", at+"a.txt", nil), 200); a["version"] != 1.0 || a["content"] != "hello" {
		t.Errorf("something was written: %v", a)
	}
	// If-Match: * accepts any version.
	if a := b.object(b.do("PUT", at+"a.txt", "", plain, ifMatch("*")), 200); a["version"] != 2.0 || a["size"] != 0.0 || a["kind"] != "text" {
		t.Errorf("emptied: %v", a)
	}
}

// Bytes have versions too.
func TestPutBytes(t *testing.T) {
	b := newBench(t, "")
	c := b.conversation()
	b.upload(c, "b.png", "image/png", png)
	at := "/conversations/" + c + "/artifacts/b.png"
	other := png + "more"
	if a := b.object(b.do("PUT", at, other, ifMatch(`"1"`), header{"Content-Type": "image/png"}), 200); a["version"] != 2.0 || a["is_binary"] != true {
		t.Errorf("saved: %v", a)
	}
	if p := b.object(b.do("PUT", at, "x", ifMatch(`"1"`), header{"Content-Type": "text/plain"}), 412); p["merge"] != nil || p["current"] == nil {
		t.Errorf("stale: %v", p)
	}
	if a := b.object(b.do("PUT", at, "now a text", ifMatch(`"2"`), header{"Content-Type": "text/plain"}), 200); a["version"] != 3.0 || a["kind"] != "text" {
		t.Errorf("saved: %v", a)
	}
	b.object(b.do("POST", at+"/restore", `{"version":1}`), 200)
	for version, want := range map[string]string{"": png, "?version=1": png, "?version=2": other, "?version=3": "now a text", "?version=4": png} {
		if a := b.do("GET", at+"/raw"+version, nil); string(a.body) != want {
			t.Errorf("raw%s: %.40q", version, a.body)
		}
	}
	if a := b.object(b.do("PATCH", at, `{"title":"Picture"}`), 200); a["version"] != 5.0 || a["media_type"] != "image/png" {
		t.Errorf("renamed: %v", a)
	}
}

func TestDiffOfVersions(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	b.ended(c, `{"text":"Go."}`)
	at := "/conversations/" + c + "/artifacts/note"
	versions := b.object(b.do("GET", at+"/versions", nil), 200)["items"].([]any)
	edits := b.object(b.do("GET", at+"/versions?edits=true", nil), 200)["items"].([]any)
	if len(versions) != 1 || len(edits) < 2 {
		t.Fatalf("%d versions of %d edits", len(versions), len(edits))
	}
	for i, e := range edits {
		e := e.(map[string]any)
		if e["visible"] != (i == len(edits)-1) || e["author"] != "lead_agent" || e["run_id"] == nil || e["message_id"] == nil || e["update_type"] == nil {
			t.Errorf("edit %d: %v", i, e)
		}
	}
	b.object(b.do("GET", at+"/versions/1", nil), 404)
	if v := b.object(b.do("GET", at+"/versions/1?live=true", nil), 200); v["visible"] != false || v["content"] == "" {
		t.Errorf("edit 1: %v", v)
	}
	b.object(b.do("GET", at+"/diff?from=1", nil), 404)
	d := b.object(b.do("GET", at+"/diff?from=1&live=true", nil), 200)
	if d["from"] != 1.0 || d["to"] != float64(len(edits)) || len(d["hunks"].([]any)) != 1 {
		t.Errorf("diff: %v", d)
	}
	patch := b.do("GET", at+"/diff?from=1&live=true", nil, header{"Accept": "text/x-diff"})
	if patch.Header.Get("Content-Type") != "text/x-diff; charset=utf-8" || !strings.HasPrefix(string(patch.body), "--- a/note\n+++ b/note\n@@ ") || string(patch.body) != d["unified"] {
		t.Errorf("patch: %s", patch.body)
	}
	if same := b.do("GET", at+"/diff?from=1&live=true&format=unified", nil); string(same.body) != string(patch.body) {
		t.Errorf("format=unified: %s", same.body)
	}
	if d := b.object(b.do("GET", at+"/diff", nil), 200); d["from"] != 0.0 || d["stats"].(map[string]any)["removed"] != 0.0 {
		t.Errorf("against nothing: %v", d)
	}
}

// TestStaleFitsItsSchema: the 412 is described as well.
func TestStaleFitsItsSchema(t *testing.T) {
	b := newBench(t, "")
	doc := b.openAPI()
	c := b.conversation()
	b.upload(c, "a.txt", "text/plain", "one\n")
	path := "/conversations/" + c + "/artifacts/a.txt"
	for i, want := range []int{http.StatusOK, http.StatusPreconditionFailed} {
		a := b.do("PUT", path, fmt.Sprintf(`{"content":"%d\n"}`, i), ifMatch(`"1"`))
		if a.StatusCode != want {
			t.Fatalf("got %d: %s", a.StatusCode, a.body)
		}
		var schema *jsonschema.Schema
		if schema = responseSchema(t, doc, "PUT", "/conversations/{cid}/artifacts/{id}", "200"); want != http.StatusOK {
			schema = responseSchema(t, doc, "PUT", "/conversations/{cid}/artifacts/{id}", "default")
		}
		resolved, err := schema.Resolve(nil)
		if err != nil {
			t.Fatal(err)
		}
		var v any
		if err := json.Unmarshal(a.body, &v); err != nil {
			t.Fatal(err)
		}
		if err := resolved.Validate(v); err != nil {
			t.Errorf("%v: %s", err, a.body)
		}
	}
}
