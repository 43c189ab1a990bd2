// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
)

// Other sites' pages can make nothing happen here.
func TestForeignRequests(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "hello", nil)
	c := "/c/" + string(id)
	before := len(s.all(t))
	for _, path := range []string{"/c", "/try", "/fit", c, c + "/title", c + "/delete", c + "/restore", "/r/run_00000000000000000000000000/cancel", "/settings", "/pipeline", "/me", "/me/settings"} {
		for name, header := range map[string][]string{
			"another site":    {"Origin", "https://evil.example"},
			"no site":         {"Origin", "null"},
			"another port":    {"Origin", "http://127.0.0.1:1"},
			"a likely name":   {"Origin", s.URL + ".evil.example"},
			"cross-site":      {"Sec-Fetch-Site", "cross-site"},
			"same-site":       {"Sec-Fetch-Site", "same-site"},
			"another address": {"Host", "evil.example"},
		} {
			contentType, body := form(t, map[string]string{"text": "x", "title": "owned", "theme": "dark"}, nil)
			if path == c+"/title" || path == "/settings" {
				contentType, body = "application/x-www-form-urlencoded", strings.NewReader("title=owned&theme=dark")
			}
			req, err := http.NewRequestWithContext(apptest.Context(t), "POST", s.URL+path, body)
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", contentType)
			if header[0] == "Host" {
				req.Host = header[1]
			} else {
				req.Header.Set(header[0], header[1])
			}
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusForbidden || resp.Header.Get("Set-Cookie") != "" {
				t.Errorf("POST %s from %s: status %d, cookie %q", path, name, resp.StatusCode, resp.Header.Get("Set-Cookie"))
			}
		}
	}
	if after := s.all(t); len(after) != before || after[0].Title == "owned" {
		t.Errorf("foreign requests changed something: %+v", after)
	}
	if a := s.ask(t, "GET", "/", "", nil); a.Header.Get("X-Frame-Options") == "" && !strings.Contains(a.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'") {
		t.Error("other sites can show the page in a frame")
	}
}

// Junk gets a clear answer.
func TestJunk(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "hello", map[string]string{"a.md": "# A\n"})
	c := "/c/" + string(id)
	long := strings.Repeat("x", 3000)
	for _, one := range []struct {
		path string
		want int
	}{
		{c + "/a/a.md?v=x", 404},
		{c + "/a/a.md?v=0", 404},
		{c + "/a/a.md?v=-1", 404},
		{c + "/a/a.md?v=99999999999999999999", 404},
		{c + "/a/a.md?v=1.5", 404},
		{c + "/a/a.md?v=%00", 404},
		{c + "/a/a.md?v=" + long, 404},
		{c + "/a/a.md?view=x", 200},
		{c + "/a/a.md?view=%3Cscript%3E", 200},
		{c + "/a/a.md?view=" + long, 200},
		{c + "/a/a.md?v=1&v=x&view=", 200},
		{c + "/a/%00", 404},
		{c + "/a/" + long, 404},
		{c + "/a/%ff%fe", 404},
		{c + "/a/a%0d%0aSet-Cookie:x", 404},
		{c + "/older?before=x", 422},
		{c + "/older?before=", 422},
		{c + "/older?before=msg_00000000000000000000000000", 404},
		{c + "/older?before=%ff" + long, 422},
		{"/c?cursor=x", 422},
		{"/c?cursor=%00%ff", 422},
		{"/c?cursor=" + long, 422},
		{"/c?group=%3Cb%20id=junk%3E", 200},
		{"/c?search=%00%ff%25", 422},
		{"/c?search=" + long, 422},
		{"/c?search=\"*()^:NEAR", 200},
		{"/c/%00", 404},
		{"/c/" + long, 404},
		{"/?deleted=x", 200},
		{"/sample/..%2f..%2fgo.mod", 404},
		{"/sample/%00", 404},
		{"/static/x/%2e%2e/webui.go", 404},
		{"/static/x/", 404},
		{"/static/", 404},
	} {
		for _, fragment := range []string{"", "true"} {
			a := s.ask(t, "GET", strings.ReplaceAll(one.path, "\"", "%22"), "", nil, "HX-Request", fragment)
			if a.StatusCode != one.want && !(a.StatusCode >= 400 && a.StatusCode < 500 && one.want >= 400) {
				t.Errorf("%.90s (fragment %q): status %d, want %d", one.path, fragment, a.StatusCode, one.want)
			}
			if strings.Contains(a.body, "<b id=junk>") || strings.Contains(a.body, "<script>") {
				t.Errorf("%.90s: what was asked is in the page as it is", one.path)
			}
			if a.StatusCode >= 400 && !strings.HasPrefix(one.path, "/static") && !strings.Contains(a.body, `role="alert"`) {
				t.Errorf("%.90s: status %d, and the page does not say what is wrong:\n%.400s", one.path, a.StatusCode, a.body)
			}
		}
	}
	for name, header := range map[string][]string{
		"cookie": {"Cookie", "artel=%zz; theme=<script>; =;;; artel=language=xx&theme=%3Cscript%3E&motion=1"}, "long cookie": {"Cookie", "artel=" + long},
		"language": {"Accept-Language", "zz-<script>, *;q=x, " + long}, "current": {"HX-Current-URL", "http://[::1]:namedport/%zz"}, "fragment": {"HX-Request", "1"},
		"range": {"Range", "bytes=9-1"}, "encoding": {"Accept-Encoding", "x, *;q=0"}, "etag": {"If-None-Match", "\"" + long}, "type": {"Content-Type", "multipart/form-data"},
	} {
		for _, path := range []string{"/", c, "/settings", "/c", c + "/a/a.md"} {
			a := s.ask(t, "GET", path, "", nil, header...)
			if a.StatusCode != 200 || strings.Contains(a.body, "<script>") {
				t.Errorf("%s with a junk %s: status %d", path, name, a.StatusCode)
			}
		}
	}
	for _, last := range []string{"x", "-1", "99999999999999999999", "1.5", "1 OR 1", "\x00"[:0]} {
		ctx, stop := context.WithTimeout(apptest.Context(t), 5*time.Minute)
		req, err := http.NewRequestWithContext(ctx, "GET", s.URL+c+"/live?after=junk", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Last-Event-ID", last)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		first := make([]byte, 3)
		_, err = io.ReadFull(resp.Body, first)
		if resp.StatusCode != 200 || err != nil {
			t.Errorf("Last-Event-ID %q: status %d, %q (%v)", last, resp.StatusCode, first, err)
		}
		_ = resp.Body.Close()
		stop()
	}
}

// Text that is no text is refused, and leaves nothing behind.
func TestBrokenText(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "hello", nil)
	contentType, body := form(t, map[string]string{"text": "\xff\xfe \xc3("}, nil)
	for path, a := range map[string]answer{
		"/c":              s.ask(t, "POST", "/c", contentType, body),
		"/title":          s.ask(t, "POST", "/c/"+string(id)+"/title", "application/x-www-form-urlencoded", strings.NewReader("title=%ff%fe")),
		"/conversations":  s.ask(t, "POST", "/api/v1/conversations", "application/json", strings.NewReader("{\"title\":\"\xff\xfe\"}")),
		"/messages":       s.ask(t, "POST", "/api/v1/conversations/"+string(id)+"/messages", "application/json", strings.NewReader("{\"text\":\"\xff\"}")),
		"/messages, part": s.ask(t, "POST", "/api/v1/conversations/"+string(id)+"/messages", "application/json", strings.NewReader("{\"text\":\"\\ud800\"}")),
	} {
		if a.StatusCode >= 500 || !utf8.ValidString(a.body) {
			t.Errorf("%s: status %d, %.300q", path, a.StatusCode, a.body)
		}
		t.Logf("%s: status %d", path, a.StatusCode)
	}
	for _, c := range s.all(t) {
		if !utf8.ValidString(c.Title) {
			t.Errorf("a title is not text: %q", c.Title)
		}
	}
	if a := s.ask(t, "GET", "/c/"+string(id), "", nil); a.StatusCode != http.StatusOK || !utf8.ValidString(a.body) {
		t.Errorf("the page afterwards: status %d", a.StatusCode)
	}
}

// Whatever is asked, and however: the server has an answer, and is not the one
// who fails.
func TestAnyRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "hello", map[string]string{"a.md": "# A\n"})
	c := "/c/" + string(id)
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	segments := rapid.SampledFrom([]string{"c", string(id), "a", "a.md", "task_plan", "live", "older", "title", "delete", "restore", "fit", "try", "settings", "sample", "static", "ui", "style", "r", "cancel", "api", "v1", "..", ".", ""})
	// A connection that is used again after HEAD must not belong to a stream.
	for _, method := range []string{"HEAD", "GET"} {
		if a := s.ask(t, method, map[string]string{"HEAD": c + "/live", "GET": c}[method], "", nil); a.StatusCode != http.StatusOK {
			t.Fatalf("%s: status %d", method, a.StatusCode)
		}
	}
	rapid.Check(t, func(rt *rapid.T) {
		path := rapid.SampledFrom([]string{"/", "/c", c, c + "/a/a.md", c + "/older", c + "/live", c + "/title", "/fit", "/try", "/settings", "/sample/notes.md", "/r/x/cancel", ""}).Draw(rt, "path")
		for range rapid.IntRange(0, 3).Draw(rt, "more") {
			path += "/" + url.PathEscape(rapid.OneOf(segments, rapid.String()).Draw(rt, "segment"))
		}
		q := url.Values{}
		for range rapid.IntRange(0, 3).Draw(rt, "parameters") {
			name := rapid.SampledFrom([]string{"v", "view", "cursor", "before", "search", "group", "deleted", "keep", "after"}).Draw(rt, "name")
			q.Add(name, rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"1", "-1", "preview", "\xff", "%", "99999999999"})).Draw(rt, "value"))
		}
		if !strings.HasPrefix(path, "/") {
			path = "/" + path
		}
		body := rapid.SliceOf(rapid.Byte()).Draw(rt, "body")
		req, err := http.NewRequestWithContext(apptest.Context(t), rapid.SampledFrom([]string{"GET", "POST", "HEAD", "PUT", "DELETE", "PATCH", "OPTIONS"}).Draw(rt, "method"), s.URL+path+"?"+q.Encode(), bytes.NewReader(body))
		if err != nil {
			return // no client can ask that
		}
		req.Header.Set("Content-Type", rapid.SampledFrom([]string{"", "multipart/form-data; boundary=x", "multipart/form-data", "application/x-www-form-urlencoded", "application/json", "\"", "multipart/mixed; boundary="}).Draw(rt, "type"))
		req.Header.Set("Cookie", "artel="+url.QueryEscape(rapid.String().Draw(rt, "cookie")))
		if rapid.Bool().Draw(rt, "fragment") {
			req.Header.Set("HX-Request", "true")
			req.Header.Set("HX-Current-URL", url.PathEscape(rapid.String().Draw(rt, "current")))
		}
		resp, err := client.Do(req)
		if err != nil {
			rt.Fatalf("%s %s: %v", req.Method, req.URL, err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode >= 500 {
			rt.Fatalf("%s %s: status %d", req.Method, req.URL, resp.StatusCode)
		}
	})
}

// TestUnknownPath: a program that asks for a path that does not exist reads JSON; a
// browser gets a page.
func TestUnknownPath(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	for accept, want := range map[string]string{"": "application/problem+json", "*/*": "application/problem+json", "text/html,*/*;q=0.8": "text/html"} {
		r, err := http.NewRequestWithContext(apptest.Context(t), http.MethodGet, s.URL+"/health", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Accept", accept)
		a, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_ = a.Body.Close() // the header is enough
		if got := a.Header.Get("Content-Type"); a.StatusCode != 404 || !strings.HasPrefix(got, want) {
			t.Errorf("Accept %q: %d %s, want %s", accept, a.StatusCode, got, want)
		}
	}
}
