// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
)

func TestProblems(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	long := strings.Repeat("x", 400)
	tests := []struct {
		method, path string
		body         any
		headers      header
		status       int
		code         string
	}{
		{"GET", "/nothing", nil, nil, 404, "not_found"},
		{"GET", "/conversations/", nil, nil, 404, "not_found"},
		{"GET", "//conversations", nil, nil, 404, "not_found"},
		{"GET", "/conversations/../tools", nil, nil, 404, "not_found"},
		{"PUT", "/conversations", nil, nil, 405, "method_not_allowed"},
		{"PUT", "/conversations/" + c, nil, nil, 405, "method_not_allowed"},
		{"GET", "/edit", nil, nil, 405, "method_not_allowed"},
		{"POST", "/conversations", `{"title":`, nil, 400, "malformed"},
		{"POST", "/conversations", "{\"title\":\"\xff\"}", nil, 400, "malformed"},
		{"POST", "/conversations", `{"title":"\ud800"}`, nil, 400, "malformed"},
		{"POST", "/conversations", `{"title":"\udc00\ud800"}`, nil, 400, "malformed"},
		{"POST", "/conversations", `{"title":"x"} {}`, nil, 400, "malformed"},
		{"POST", "/conversations", `{"title":3}`, nil, 422, "invalid"},
		{"POST", "/conversations", `{"titel":"x"}`, nil, 422, "invalid"},
		{"POST", "/conversations", `[]`, nil, 422, "invalid"},
		{"POST", "/conversations", `{"title":"` + strings.Repeat("x", 257) + `"}`, nil, 422, "invalid"},
		{"POST", "/conversations", `{}`, header{"Content-Type": "text/plain"}, 415, "unsupported"},
		{"POST", "/conversations", `{}`, header{"Content-Type": "application/x-www-form-urlencoded"}, 415, "unsupported"},
		{"POST", "/conversations", bytes.NewReader(bytes.Repeat([]byte(" "), 5<<20)), nil, 413, "too_large"},
		{"POST", "/edit", nil, nil, 400, "malformed"},
		{"GET", "/conversations?limit=0", nil, nil, 422, "invalid"},
		{"GET", "/conversations?limit=many", nil, nil, 422, "invalid"},
		{"GET", "/conversations?cursor=xyz", nil, nil, 422, "invalid"},
		{"GET", "/conversations/" + long, nil, nil, 404, "not_found"},
		{"GET", "/conversations/" + c + "/artifacts/" + long, nil, nil, 404, "artifact_not_found"},
		{"GET", "/conversations/" + c + "/artifacts/nothing", nil, nil, 404, "artifact_not_found"},
		{"GET", "/conversations/" + c + "/artifacts/a%2fb", nil, nil, 404, "artifact_not_found"},
		{"GET", "/conversations/" + c + "/artifacts/nothing/versions", nil, nil, 404, "artifact_not_found"},
		{"GET", "/conversations/" + c + "/artifacts/nothing/versions/1", nil, nil, 404, "artifact_not_found"},
		{"GET", "/conversations/" + c + "/artifacts/nothing/versions/0", nil, nil, 422, "invalid"},
		{"GET", "/conversations/" + c + "/artifacts/nothing/raw", nil, nil, 404, "artifact_not_found"},
		{"GET", "/runs/" + long, nil, nil, 404, "not_found"},
		{"POST", "/conversations/" + c + "/tools/" + long, `{}`, nil, 404, "tool_not_found"},
		{"GET", "/files/" + long, nil, nil, 404, "artifact_not_found"},
		{"GET", "/files/..%2f..%2fetc%2fpasswd", nil, nil, 404, "artifact_not_found"},
		{"POST", "/conversations", `{}`, header{"Idempotency-Key": long}, 422, "invalid"},
	}
	for _, tt := range tests {
		a := b.do(tt.method, tt.path, tt.body, tt.headers)
		m := b.problem(a, tt.status, tt.code)
		if tt.status == 405 && a.Header.Get("Allow") == "" {
			t.Errorf("%s: no Allow", tt.path)
		}
		if tt.code == "artifact_not_found" && (m["error"] != "artifact_not_found" || m["ref"] == nil) {
			t.Errorf("%s: got %v", tt.path, m)
		}
	}
}

func TestPointers(t *testing.T) {
	b := newBench(t, writes)
	m := b.problem(b.do("POST", "/edit", `{"content":1,"edits":[{"old":"a","new":"b"},{"old":2,"a/b":3}],"more":true}`), 422, "invalid")
	got := map[string]bool{}
	for _, e := range m["errors"].([]any) {
		got[e.(map[string]any)["pointer"].(string)] = true
	}
	for _, want := range []string{"/content", "/edits/1/old", "/edits/1/new", "/edits/1/a~1b", "/more"} {
		if !got[want] {
			t.Errorf("no error at %s: %v", want, m["errors"])
		}
	}
}

func TestGuard(t *testing.T) {
	ok := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	h := httpapi.Guard(ok, "Artel.Example")
	tests := []struct {
		method, host, origin, site string
		want                       int
	}{
		{"GET", "127.0.0.1:7420", "", "", 418},
		{"GET", "localhost", "", "", 418},
		{"GET", "LOCALHOST.:80", "", "", 418},
		{"GET", "page.localhost:80", "", "", 418},
		{"GET", "[::1]:7420", "", "", 418},
		{"GET", "[::1]", "", "", 418},
		{"GET", "127.8.9.1", "", "", 418},
		{"GET", "artel.example:443", "", "", 418},
		{"GET", "evil.example", "", "", 403},
		{"GET", "127.0.0.1.evil.example", "", "", 403},
		{"GET", "localhost.evil.example", "", "", 403},
		{"GET", "10.0.0.1", "", "", 403},
		{"GET", "0.0.0.0:7420", "", "", 403},
		{"GET", "", "", "", 403},
		{"GET", "127.0.0.1:7420", "http://127.0.0.1:7420", "same-origin", 418},
		{"POST", "127.0.0.1:7420", "http://127.0.0.1:7420", "same-origin", 418},
		{"POST", "[::1]:7420", "http://[::1]:7420", "same-origin", 418},
		{"POST", "127.0.0.1:7420", "http://127.0.0.1:8000", "same-site", 403},
		{"POST", "127.0.0.1:7420", "http://localhost:7420", "cross-site", 403},
		{"GET", "127.0.0.1:7420", "http://evil.example", "", 403},
		{"POST", "127.0.0.1:7420", "null", "", 403},
		{"POST", "127.0.0.1:7420", "http://%zz", "", 403},
		{"POST", "127.0.0.1:7420", "", "cross-site", 403},
		{"DELETE", "127.0.0.1:7420", "", "same-site", 403},
		{"POST", "127.0.0.1:7420", "", "none", 418},
		{"GET", "127.0.0.1:7420", "", "cross-site", 418}, // a link that is followed
	}
	for _, tt := range tests {
		r := httptest.NewRequest(tt.method, "/", nil)
		r.Host = tt.host
		if tt.origin != "" {
			r.Header.Set("Origin", tt.origin)
		}
		if tt.site != "" {
			r.Header.Set("Sec-Fetch-Site", tt.site)
		}
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		if w.Code != tt.want {
			t.Errorf("%+v: got %d %s", tt, w.Code, w.Body)
		}
		if w.Code == 403 && w.Header().Get("Content-Type") != "application/problem+json" {
			t.Errorf("%+v: not a problem: %s", tt, w.Body)
		}
	}
}

// FuzzBodies sends hostile bodies everywhere: never a fault of ours.
func FuzzBodies(f *testing.F) {
	for _, s := range []string{
		`{}`, `null`, `[]`, `"x"`, `1e999`, `{"text":"x"}`, `{"content":"a","edits":[{"old":"a","new":"b"}]}`, `{"edits":[null]}`,
		`{"content":"\u0000","edits":[{"old":"\u0000","new":"\ufffd"}]}`, `{"title":"\ud83d\ude00"}`, `{"attachments":["",null,"@1"]}`,
		`{"id":"x","title":"y","content":"z"}`, `{"ref":"artifact:cnv_/x@99999999999999999999"}`, `{"parent_id":null}`, "\xff\xfe", `{"a":{"a":{"a":[[[[]]]]}}}`,
		`{"text":"x","service":"sees"}`, `{"title":"x","title":"y"}`, `{"TITLE":"x"}`,
	} {
		f.Add([]byte(s))
	}
	a, log := newApp(f, "-- turn 1 --\nok\n")
	h := apptest.As(httpapi.New(a, httpapi.Options{Log: slog.New(slog.DiscardHandler)}))
	f.Fuzz(func(t *testing.T, body []byte) {
		post := func(path string) *httptest.ResponseRecorder {
			w := httptest.NewRecorder()
			r := httptest.NewRequest("POST", httpapi.Base+path, bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			h.ServeHTTP(w, r)
			if w.Code >= 500 || !json.Valid(w.Body.Bytes()) {
				t.Errorf("%s: %d %s\n%s", path, w.Code, w.Body, log)
			}
			return w
		}
		post("/conversations")
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest("POST", httpapi.Base+"/conversations", nil))
		var c struct{ ID string }
		if err := json.Unmarshal(w.Body.Bytes(), &c); err != nil || c.ID == "" {
			t.Fatalf("%v: %s", err, w.Body)
		}
		for _, path := range []string{"/messages", "/artifacts", "/tools/create_artifact", "/tools/update_artifact", "/tools/get_artifact", "/tools/read_artifact"} {
			post("/conversations/" + c.ID + path)
		}
		for _, path := range []string{"/edit", "/media/detect", "/route?capabilities=vision,file"} {
			post(path)
		}
	})
}

// TestRevoked: a client whose token is revoked during its request is told so.
func TestRevoked(t *testing.T) {
	a, log := newApp(t, writes)
	h := httpapi.New(a, httpapi.Options{Log: slog.New(slog.NewTextHandler(log, nil))})
	server := httptest.NewServer(apptest.As(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, end := context.WithCancelCause(r.Context())
		end(access.Unknown())
		h.ServeHTTP(w, r.WithContext(ctx))
	})))
	t.Cleanup(server.Close)
	_, err := httpapi.NewClient(server.URL, server.Client()).Conversations(t.Context(), "", 1)
	if p, ok := errors.AsType[*httpapi.Problem](err); !ok || p.Status != http.StatusUnauthorized {
		t.Errorf("the answer is %v", err)
	}
}
