// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
)

// TestSignatureIsReadOnce sends queries that two parsers read differently: a
// guard that sees a signature must be followed by a handler that checks it.
func TestSignatureIsReadOnce(t *testing.T) {
	b := newBench(t, writes)
	up := b.upload(b.conversation(), "secret.txt", "text/plain", "TOP SECRET NOTES")
	for _, at := range []string{fileAt(up["ref"]), named(up["digest"], ".txt")} {
		for _, query := range []string{
			"sig=%zz&sig=x", "sig=%&sig=s", "sig&sig=x", "sig=&sig=x", "sig=x&sig=", "sig=x&sig=y", "%73ig=%zz&sig=x", "sig=;&sig=x", "a;sig=x&sig=", "sig=x&width=%zz", "sig=%zz",
		} {
			for _, from := range []header{{"Host": "evil.example:18420"}, {"Origin": "http://evil.example"}} {
				if a := b.do("GET", at+"?"+query, nil, from); a.StatusCode != 403 && a.StatusCode != 400 || strings.Contains(string(a.body), "SECRET") {
					t.Errorf("%s from %v: got %d %s", query, from, a.StatusCode, a.body)
				}
			}
		}
		// Without signature, or with an empty one, a file is as open as any other
		// address.
		for _, query := range []string{"", "?preview=true"} {
			if a := b.do("GET", at+query, nil); a.StatusCode != 200 {
				t.Errorf("%q: got %d %s", query, a.StatusCode, a.body)
			}
		}
		// A signature that cannot be read is no missing one.
		for _, query := range []string{"sig=%zz", "sig=x&sig=", "sig=&sig=x", "sig="} {
			if a := b.do("GET", at+"?"+query, nil); a.StatusCode == 200 {
				t.Errorf("%q: a broken signature opens a file: %s", query, a.body)
			}
		}
	}
}

// FuzzSigned looks for a query with which a page of another site, or a name
// that was pointed to this machine, reads a file.
func FuzzSigned(f *testing.F) {
	a, _ := newApp(f, writes)
	h := apptest.As(httpapi.Guard(httpapi.New(a, httpapi.Options{})))
	call := func(method, target, body string, set func(*http.Request)) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, target, strings.NewReader(body))
		r.Host = "127.0.0.1:7420"
		set(r)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	json := func(r *http.Request) { r.Header.Set("Content-Type", "application/json") }
	field := func(w *httptest.ResponseRecorder, name string) string {
		_, rest, _ := strings.Cut(w.Body.String(), `"`+name+`":"`)
		value, _, ok := strings.Cut(rest, `"`)
		if !ok {
			f.Fatalf("no %s in %s", name, w.Body)
		}
		return value
	}
	c := field(call("POST", httpapi.Base+"/conversations", `{}`, json), "id")
	up := call("POST", httpapi.Base+"/conversations/"+c+"/artifacts", "TOP SECRET NOTES", func(r *http.Request) { r.Header.Set("X-Filename", "secret.txt") })
	at := httpapi.Base + fileAt(field(up, "ref"))
	byName := httpapi.Base + named(field(up, "digest"), ".txt")
	for _, seed := range []string{"", "sig=x", "sig=", "sig", "sig=a.b.c", "sig=x&preview=true", "width=64&sig=x", "%73ig=x", "sig=%zz&sig=x", "sig=x;sig=y", "sig=x&sig=", "?sig=x", "sig==x", "&sig=x&"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, query string) {
		for _, path := range []string{at, byName} {
			u, err := url.Parse(path)
			if err != nil {
				t.Fatal(err)
			}
			u.RawQuery = query
			w := call("GET", path, "", func(r *http.Request) { r.Host, r.URL = "evil.example", u })
			if w.Code < 400 || strings.Contains(w.Body.String(), "SECRET") {
				t.Errorf("%s?%s: got %d %s", path, query, w.Code, w.Body)
			}
		}
	})
}

// TestNothingOfTheAPIRuns wants every address that can answer with words of
// models and documents to be neither script nor style, on any page.
func TestNothingOfTheAPIRuns(t *testing.T) {
	b := newBench(t, writes)
	c := b.conversation()
	js := b.upload(c, "x.js", "text/javascript", "window.owned = 1")
	at := "/conversations/" + c + "/artifacts/" + js["id"].(string)
	for _, path := range []string{
		at + "/export?format=md", at + "/export?format=html", at + "/raw", at + "/text", at, fileAt(js["ref"]), named(js["digest"], ".js"), "/conversations", "/openapi.json", "/conversations/" + c + "/export", "/nowhere",
	} {
		for _, dest := range []string{"script", "style", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet", "xslt", "manifest", "json", "fencedframe"} {
			if a := b.do("GET", path, nil, header{"Sec-Fetch-Dest": dest}); a.StatusCode != 403 {
				t.Errorf("%s as %s: got %d", path, dest, a.StatusCode)
			}
		}
		a := b.do("GET", path, nil, header{"Sec-Fetch-Dest": "empty"})
		h := a.Header
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Cross-Origin-Resource-Policy") != "same-origin" || !strings.Contains(strings.Join(h.Values("Vary"), ","), "Sec-Fetch-Dest") {
			t.Errorf("%s: got %d %v", path, a.StatusCode, h)
		}
	}
	// Pictures and streams of other sites' pages take none of the few connections
	// that a browser opens to one host.
	for _, path := range []string{"/conversations/" + c + "/events", "/conversations", fileAt(js["ref"])} {
		for _, from := range []header{
			{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "image", "Sec-Fetch-Mode": "no-cors"},
			{"Sec-Fetch-Site": "same-site", "Sec-Fetch-Dest": "iframe", "Sec-Fetch-Mode": "navigate"},
		} {
			if a := b.do("GET", path, nil, from); a.StatusCode != 403 {
				t.Errorf("%s by %v: got %d", path, from, a.StatusCode)
			}
		}
	}
	if a := b.do("GET", fileAt(js["ref"]), nil, header{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Dest": "document", "Sec-Fetch-Mode": "navigate"}); a.StatusCode != 200 {
		t.Errorf("a link that is followed: got %d %s", a.StatusCode, a.body)
	}
	// This page's own pictures are files; an event stream is none.
	if a := b.do("GET", "/conversations/"+c+"/events", nil, header{"Sec-Fetch-Dest": "image"}); a.StatusCode != 403 {
		t.Errorf("an event stream as a picture: got %d", a.StatusCode)
	}
}
