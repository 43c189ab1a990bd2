// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/url"
	"strings"
	"testing"
)

func TestSearchOverHTTP(t *testing.T) {
	b := newBench(t, "-- turn 1 --\nThe lighthouse is on the cliff.\n")
	c := b.conversation()
	b.ended(c, `{"text":"Where does the 渡轮 go?"}`)
	b.object(b.do("POST", "/conversations", `{"title":"Lighthouses"}`), 201)
	find := func(search string) []any {
		t.Helper()
		return b.object(b.do("GET", "/conversations?search="+url.QueryEscape(search), nil), 200)["items"].([]any)
	}
	if items := find("LIGHTHOUSE"); len(items) != 2 {
		t.Errorf("got %v", items)
	} else {
		titled, talked := items[0].(map[string]any), items[1].(map[string]any)
		if _, ok := titled["excerpt"]; ok || titled["title"] != "Lighthouses" {
			t.Errorf("got %v, want the newest one, whose title matches, without an excerpt", titled)
		}
		if talked["id"] != c || talked["excerpt"] != "The lighthouse is on the cliff." {
			t.Errorf("got %v", talked)
		}
	}
	if items := find("轮"); len(items) != 1 || items[0].(map[string]any)["excerpt"] != nil { // the title was made of this message
		t.Errorf("got %v", items)
	}
	if items := find("cliff 渡轮"); len(items) != 1 || items[0].(map[string]any)["excerpt"] != "The lighthouse is on the cliff." {
		t.Errorf("got %v", items)
	}
	for _, search := range []string{"100%", `"`, "cliff OR ferry", "nothing*"} {
		if items := find(search); len(items) != 0 {
			t.Errorf("%q: got %v", search, items)
		}
	}
	if items := find(strings.Repeat("长", 200)); len(items) != 0 {
		t.Errorf("got %v", items)
	}
	b.problem(b.do("GET", "/conversations?search="+url.QueryEscape(strings.Repeat("长", 201)), nil), 422, "invalid")
	b.problem(b.do("GET", "/conversations?search=%ff", nil), 422, "invalid")
}

func TestRenameOverHTTP(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	at := "/conversations/" + c
	before := b.object(b.do("GET", at, nil), 200)
	got := b.object(b.do("PATCH", at, `{"title":" New "}`), 200)
	if got["title"] != "New" || got["updated_at"] != before["updated_at"] {
		t.Errorf("got %v, was %v", got, before)
	}
	for _, body := range []string{`{"title":""}`, `{"title":"  "}`, `{"title":"a\nb"}`, `{}`, `{"title":"x","agent":"x"}`, `{"title":"` + strings.Repeat("x", 257) + `"}`} {
		b.problem(b.do("PATCH", at, body), 422, "invalid")
	}
	b.problem(b.do("PATCH", at, `{"title":`), 400, "malformed")
	b.problem(b.do("PATCH", "/conversations/cnv_0123456789abcdef0123456789", `{"title":"x"}`), 404, "not_found")
	if again := b.object(b.do("GET", at, nil), 200); again["title"] != "New" {
		t.Errorf("got %v", again)
	}
}

func TestRestoreOverHTTP(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	b.ended(c, `{"text":"Go."}`)
	at := "/conversations/" + c
	before := b.object(b.do("GET", at, nil), 200)
	b.problem(b.do("POST", at+"/restore", nil), 404, "not_found") // it is there
	if a := b.do("DELETE", at, nil); a.StatusCode != 204 || len(a.body) != 0 {
		t.Errorf("got %d %s", a.StatusCode, a.body)
	}
	for _, path := range []string{"", "/messages", "/artifacts", "/artifacts/note", "/events?format=json"} {
		b.problem(b.do("GET", at+path, nil), 404, "not_found")
	}
	if got := b.object(b.do("POST", at+"/restore", nil), 200); got["leaf"] != before["leaf"] || got["updated_at"] != before["updated_at"] {
		t.Errorf("got %v, was %v", got, before)
	}
	b.object(b.do("GET", at+"/artifacts/note", nil), 200)
	b.problem(b.do("POST", at+"/restore", nil), 404, "not_found")
}
