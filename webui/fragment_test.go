// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"bytes"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/html"
	"golang.org/x/net/html/atom"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model/provider/demo"
	"github.com/artelhq/artel/store"
)

// ask as htmx does, on a page of this site.
func (s *site) askFragment(t *testing.T, method, path, page string, fields url.Values) answer {
	t.Helper()
	var body io.Reader
	contentType := ""
	if fields != nil {
		body, contentType = strings.NewReader(fields.Encode()), "application/x-www-form-urlencoded"
	}
	a := s.ask(t, method, path, contentType, body, "HX-Request", "true", "HX-Current-URL", s.URL+page)
	if strings.Contains(a.body, "<html") || strings.Contains(a.body, "<head>") {
		t.Errorf("%s %s answers with a whole page", method, path)
	}
	return a
}

// elements returns the elements of a fragment, or of a page, that have an id,
// without the space between tags.
func elements(t *testing.T, src string) map[string]string {
	t.Helper()
	nodes, err := html.ParseFragment(strings.NewReader(src), &html.Node{Type: html.ElementNode, Data: "body", DataAtom: atom.Body})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	space := regexp.MustCompile(`\s+`)
	keep := func(n *html.Node) {
		if id := attribute(n, "id"); id != "" {
			var b strings.Builder
			if err := html.Render(&b, n); err != nil {
				t.Fatal(err)
			}
			out[id] = space.ReplaceAllString(b.String(), " ")
		}
	}
	for _, n := range nodes {
		keep(n)
		for d := range n.Descendants() {
			keep(d)
		}
	}
	return out
}

// A fragment is a part of the page as it is loaded whole: what script puts
// into its place and what a reload shows is the same.
func TestFragmentsArePartsOfPages(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "look", map[string]string{"a.md": "# A\n", "b.csv": "x,y\n1,2\n"})
	c := "/c/" + string(id)
	for path, names := range map[string][]string{
		c: {"panel"}, c + "/a": {"panel", "artifacts", "plan"}, c + "/a/a.md": {"panel", "viewer"}, c + "/a/a.md?v=1": {"panel", "viewer"},
		c + "/a/b.csv?view=code": {"panel", "viewer"}, "/c?search=look": {"conversations"}, "/c?search=nothing": {"conversations"},
	} {
		a := s.askFragment(t, "GET", path, c, nil)
		page := s.ask(t, "GET", path, "", nil)
		if a.StatusCode != http.StatusOK || a.Header.Get("Cache-Control") != "no-store" || !strings.Contains(strings.Join(a.Header.Values("Vary"), ","), "HX-Request") {
			t.Errorf("%s: status %d, header %v", path, a.StatusCode, a.Header)
		}
		part, whole := elements(t, a.body), elements(t, page.body)
		for _, name := range names {
			got := part[name]
			if strings.HasPrefix(path, "/c?") {
				got = strings.ReplaceAll(got, ` aria-current="page"`, "") // the fragment knows which one is shown
			}
			if diff := cmp.Diff(whole[name], got); diff != "" || got == "" {
				t.Errorf("%s: #%s of the fragment differs from the page's:\n%s", path, name, diff)
			}
		}
	}
}

// The list is changed by fragments that say where they belong.
func TestListFragments(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	one, two := s.send(t, "first", nil), s.send(t, "second", nil)
	path, page := "/c/"+string(one), "/c/"+string(two)
	has := func(a answer, status int, parts ...string) {
		t.Helper()
		if a.StatusCode != status {
			t.Errorf("%s: status %d, want %d", a.Request.URL, a.StatusCode, status)
		}
		for _, p := range parts {
			if !strings.Contains(a.body, p) {
				t.Errorf("%s: there is no %s in\n%s", a.Request.URL, p, a.body)
			}
		}
	}
	has(s.askFragment(t, "GET", path+"/title", page, nil), 200, `id="c-`+string(one), `<input type="text" name="title" value="first"`)
	has(s.askFragment(t, "GET", path+"/title?keep=1", page, nil), 200, `id="c-`+string(one), `href="`+path+`"`)
	a := s.askFragment(t, "POST", path+"/title", page, url.Values{"title": {"Better"}})
	has(a, 200, `id="c-`+string(one), "Better")
	if strings.Contains(a.body, `id="heading"`) {
		t.Error("the heading of another conversation changes")
	}
	has(s.askFragment(t, "POST", path+"/title", path, url.Values{"title": {"Best"}}), 200, `id="heading"`, "Best", `aria-current="page"`)
	for _, bad := range []string{"", "  ", "two\nlines", strings.Repeat("x", 257)} {
		a := s.askFragment(t, "POST", path+"/title", page, url.Values{"title": {bad}})
		if a.StatusCode < 400 || a.StatusCode >= 500 || !strings.Contains(a.body, `data-into="#toasts"`) {
			t.Errorf("the title %.20q: status %d: %s", bad, a.StatusCode, a.body)
		}
		if a := s.ask(t, "POST", path+"/title", "application/x-www-form-urlencoded", strings.NewReader(url.Values{"title": {bad}}.Encode())); a.StatusCode < 400 || !strings.Contains(a.body, `role="alert"`) {
			t.Errorf("the title %.20q without script: status %d", bad, a.StatusCode)
		}
	}
	has(s.askFragment(t, "POST", path+"/delete", page, url.Values{}), 200, `id="c-`+string(one)+`" data-gone`, path+"/restore")
	has(s.askFragment(t, "POST", path+"/delete", page, url.Values{}), 404, `data-into="#toasts"`)
	has(s.askFragment(t, "POST", path+"/restore", page, url.Values{}), 200, `id="conversations"`, "Best", `id="toast-`+string(one)+`" data-gone`)
	if a := s.askFragment(t, "POST", page+"/delete", page, url.Values{}); a.Header.Get("HX-Redirect") != "/?deleted="+string(two) {
		t.Errorf("deleting what is shown leads to %q", a.Header.Get("HX-Redirect"))
	}
	if a := s.askFragment(t, "POST", page+"/restore", "/?deleted="+string(two), url.Values{}); a.Header.Get("HX-Redirect") != page {
		t.Errorf("bringing it back leads to %q", a.Header.Get("HX-Redirect"))
	}
}

// Settings are kept in a cookie that scripts cannot read, but for the language,
// which is the profile's; what is unknown is not kept, and junk in its place
// does no harm.
func TestSettingsCookie(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	a := s.ask(t, "POST", "/settings", "application/x-www-form-urlencoded", strings.NewReader("language=zh&theme=dark&motion=off&more=x"))
	cookies := a.Cookies()
	if a.StatusCode != http.StatusSeeOther || len(cookies) != 1 || !cookies[0].HttpOnly || cookies[0].SameSite != http.SameSiteStrictMode || strings.Contains(cookies[0].Value, "more") || strings.Contains(cookies[0].Value, "language") {
		t.Fatalf("status %d, cookies %v", a.StatusCode, cookies)
	}
	page := s.ask(t, "GET", "/settings", "", nil, "Cookie", cookies[0].Name+"="+cookies[0].Value).body
	for _, want := range []string{`<html lang="zh" data-theme="dark" data-motion="off">`, `value="zh" checked`, `value="dark" checked`, `value="off" checked`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page does not hold %s", want)
		}
	}
	for _, junk := range []string{"%", "language=xx", "theme=%22%3E%3Cscript%3E", strings.Repeat("a", 4000)} {
		a := s.ask(t, "GET", "/settings", "", nil, "Cookie", cookies[0].Name+"="+junk)
		if a.StatusCode != http.StatusOK || !strings.Contains(a.body, `<html lang="zh">`) {
			t.Errorf("the cookie %.20q: status %d\n%.100s", junk, a.StatusCode, a.body)
		}
	}
}

// The samples are there for a newcomer, and one form sends them all.
func TestSamples(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	names, err := filepath.Glob("../cmd/artel/samples/*")
	if err != nil || len(names) == 0 {
		t.Fatal(err)
	}
	for _, name := range names {
		want, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if a := s.ask(t, "GET", "/sample/"+filepath.Base(name), "", nil); a.StatusCode != 200 || a.body != string(want) {
			t.Errorf("%s: status %d, %d bytes", name, a.StatusCode, len(a.body))
		}
	}
	a := s.ask(t, "POST", "/try", "application/x-www-form-urlencoded", strings.NewReader(""), "Accept-Language", "zh")
	id, err := artel.ParseConversationID(strings.TrimPrefix(a.Header.Get("Location"), "/c/"))
	if err != nil {
		t.Fatalf("status %d: %v", a.StatusCode, err)
	}
	waitFinal(t, s, id)
	list, err := s.app.Artifacts.List(apptest.Context(t), id, "")
	if err != nil || len(list) != len(names)+2 {
		t.Errorf("there are %d artifacts (%v), want the samples, a plan and a report", len(list), err)
	}
}

// Before sending, the page asks by the beginnings of files what a model would
// get of them.
func TestFit(t *testing.T) {
	t.Parallel()
	s := newSiteOf(t, setup{services: services(t)})
	photo, err := os.ReadFile(sample(t, "photo.jpg"))
	if err != nil {
		t.Fatal(err)
	}
	ask := func(service string, heads map[string]string, sizes ...string) answer {
		t.Helper()
		var b bytes.Buffer
		w := multipart.NewWriter(&b)
		if err := w.WriteField("service", service); err != nil {
			t.Fatal(err)
		}
		for name, head := range heads {
			part, err := w.CreatePart(textproto.MIMEHeader{"Content-Disposition": {`form-data; name="head"; filename="` + name + `"`}, "Content-Type": {"application/octet-stream"}})
			if err == nil {
				_, err = io.WriteString(part, head)
			}
			if err != nil {
				t.Fatal(err)
			}
			for _, size := range sizes {
				if err := w.WriteField("size", size); err != nil {
					t.Fatal(err)
				}
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		return s.ask(t, "POST", "/fit", w.FormDataContentType(), &b, "HX-Request", "true")
	}
	if a := ask("reader", map[string]string{"photo.jpg": string(photo), "a.txt": "text"}); a.StatusCode != 200 || !strings.Contains(a.body, "photo.jpg") || strings.Contains(a.body, "a.txt") || !strings.Contains(a.body, `data-choose="seer"`) {
		t.Errorf("status %d: %s", a.StatusCode, a.body)
	}
	if a := ask("reader", map[string]string{"photo.jpg": string(photo)}, "2097152"); !strings.Contains(a.body, "2.0 MB") {
		t.Errorf("the size of the whole file is not said: %s", a.body)
	}
	for name, a := range map[string]answer{"the model sees": ask("seer", map[string]string{"photo.jpg": string(photo)}), "no files": ask("reader", nil), "an empty file": ask("reader", map[string]string{"empty": ""})} {
		if a.StatusCode != 200 && name != "an empty file" || strings.Contains(a.body, "note warn") && name != "an empty file" || a.StatusCode >= 500 {
			t.Errorf("%s: status %d: %s", name, a.StatusCode, a.body)
		}
	}
	if a := ask("nobody", map[string]string{"a.txt": "text"}); a.StatusCode != 422 || !strings.Contains(a.body, `data-into="#toasts"`) {
		t.Errorf("no such model: status %d: %s", a.StatusCode, a.body)
	}
	if a := s.ask(t, "POST", "/fit", "text/plain", strings.NewReader("junk"), "HX-Request", "true"); a.StatusCode != 422 {
		t.Errorf("junk: status %d", a.StatusCode)
	}
}

// The page's own files are kept by browsers until the program changes, and
// travel compressed.
func TestStaticFiles(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	page := s.ask(t, "GET", "/", "", nil).body
	found := regexp.MustCompile(`"(/static/[^"#]+)`).FindAllStringSubmatch(page, -1)
	if len(found) < 4 {
		t.Fatalf("the page names %d files", len(found))
	}
	for _, m := range found {
		a := s.ask(t, "GET", m[1], "", nil, "Accept-Encoding", "gzip")
		if a.StatusCode != 200 || !strings.Contains(a.Header.Get("Cache-Control"), "immutable") || strings.Contains(m[1], "vendor") && a.Header.Get("Content-Encoding") != "gzip" {
			t.Errorf("%s: status %d, header %v", m[1], a.StatusCode, a.Header)
		}
	}
	old := "/static/000000000000/style.css"
	if a := s.ask(t, "GET", old, "", nil); a.StatusCode != 200 || a.Header.Get("Cache-Control") != "no-cache" {
		t.Errorf("%s: status %d, %q", old, a.StatusCode, a.Header.Get("Cache-Control"))
	}
	for _, path := range []string{"/static/", "/static/x/none.js", "/static/000000000000/../../webui.go"} {
		if a := s.ask(t, "GET", path, "", nil); a.StatusCode == 200 && !strings.Contains(a.body, "<pre>") || a.StatusCode >= 500 {
			t.Errorf("%s: status %d", path, a.StatusCode)
		}
	}
}

// A title that a model gives is told live, in the heading and in the list.
func TestTitleByModel(t *testing.T) {
	t.Parallel()
	s := newSite(t, demo.Options{})
	id := s.send(t, "hello there", nil)
	last, err := s.app.Events.Last(apptest.Context(t), id)
	if err != nil {
		t.Fatal(err)
	}
	err = s.store.Update(apptest.Context(t), artel.Local, func(tx store.Tx) error {
		c, err := tx.Conversations.Get(id)
		if err != nil {
			return err
		}
		c.Title = "A greeting"
		if err := tx.Conversations.Update(c); err != nil {
			return err
		}
		_, err = tx.Events.Append(id, artel.Event{Type: artel.EventConversationTitled, Data: []byte(`{"title":"A greeting"}`)})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	frames := s.fragments(t, id, last, last+1)
	got, page := frames[len(frames)-1], elements(t, s.ask(t, "GET", "/c/"+string(id), "", nil).body)
	live := elements(t, strings.ReplaceAll(got, "\ndata: ", "\n"))
	for _, name := range []string{"heading", "c-" + string(id), "total"} {
		if diff := cmp.Diff(page[name], live[name]); diff != "" || page[name] == "" {
			t.Errorf("#%s live differs from the page's (- page, + live):\n%s", name, diff)
		}
	}
	if !strings.Contains(live["heading"], "A greeting") {
		t.Errorf("the heading is %s", live["heading"])
	}
}
