// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/fetch"
)

const parameters = `{"type":"object","properties":{"id":{"type":"string"},"n":{"type":"integer"},"tags":{"type":"array"},"q":{"type":"string"}},"required":["id"]}`

func TestEndpointRequests(t *testing.T) {
	var got string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		got = strings.TrimSpace(r.Method + " " + r.RequestURI + " " + string(body))
		if r.Header.Get("X-Key") != "sesame" {
			t.Errorf("the header is %q", r.Header)
		}
		_, _ = io.WriteString(w, "you sent sesame")
	}))
	defer server.Close()
	for _, c := range []struct {
		method, url string
		body        any
		args, want  string
	}{
		{"", "/v/{id}?q={q}&n={n}&fixed=1", nil, `{"id":"a/b?c#d é","q":"x&y=z"}`, "GET /v/a%2Fb%3Fc%23d%20%C3%A9?q=x%26y%3Dz&fixed=1"},
		{"", "/v/./{id}{id}/x", nil, `{"id":"..."}`, "GET /v/./....../x"},
		{"", "/v?id={id}&n={n}", nil, `{"id":"..","n":12345678901234567}`, "GET /v?id=..&n=12345678901234567"},
		{"POST", "/v/{id}", nil, `{"id":"a","n":3,"tags":["x"]}`, `POST /v/a {"n":3,"tags":["x"]}`},
		{"", "/v", map[string]any{"i": "{id}", "all": "{tags}", "no": "{q}", "text": "is {id}, {q}", "list": []any{"{n}", 1}}, `{"id":"\"a","tags":[1,"b"]}`, `POST /v {"all":[1,"b"],"i":"\"a","list":[1],"text":"is \"a, "}`},
		{"DELETE", "/v/{id}", nil, `{"id":"a"}`, "DELETE /v/a"},
	} {
		made, err := tool.Endpoint{
			Method: c.method, URL: server.URL + c.url, Body: c.body, Header: http.Header{"X-Key": {"sesame"}}, Secrets: map[string]string{"KEY": "sesame"},
			Client: fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1}),
		}.Tool(tool.Tool{Name: "api", Schema: json.RawMessage(parameters)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := made.Call(t.Context(), &tool.Env{}, json.RawMessage(c.args))
		if err != nil || r.IsError || r.Content != "you sent [KEY]" || got != c.want {
			t.Errorf("%s %s: got %s and %+v, %v, want %s", c.method, c.url, got, r, err, c.want)
		}
	}
}

func TestEndpointAnswers(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/missing":
			http.Error(w, "no such thing, sesame", http.StatusNotFound)
		case "/moved":
			http.Redirect(w, r, "/secret", http.StatusFound)
		case "/secret":
			t.Error("a redirect was followed")
		case "/slow":
			<-r.Context().Done()
		case "/long":
			_, _ = io.WriteString(w, strings.Repeat("x", 2000))
		case "/broken":
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, "x")
		case "/png":
			_, _ = io.WriteString(w, "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		}
	}))
	defer server.Close()
	call := func(private bool, id string) tool.Result {
		t.Helper()
		limit := time.Minute
		if id == "slow" {
			limit = 300 * time.Millisecond
		}
		made, err := tool.Endpoint{
			URL: server.URL + "/{id}", Secrets: map[string]string{"KEY": "sesame"}, Client: fetch.NewClient(fetch.Options{AllowPrivate: private, MaxRedirects: -1}),
			Limits: tool.EndpointLimits{Time: limit, Answer: 1000},
		}.Tool(tool.Tool{Name: "api", Schema: json.RawMessage(parameters)})
		if err != nil {
			t.Fatal(err)
		}
		r, err := made.Call(t.Context(), &tool.Env{}, json.RawMessage(`{"id":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for id, want := range map[string]string{
		"missing": "404 Not Found: no such thing, [KEY]", "moved": "redirects are not followed", "slow": "within 300ms", "long": "more than 1000 bytes",
		"broken": "no answer came", "..": "cannot stand in a path",
	} {
		if r := call(true, id); !r.IsError || !strings.Contains(r.Content, want) {
			t.Errorf("%s: got %+v, want %q", id, r, want)
		}
	}
	for id, want := range map[string]string{"png": "image/png, 16 bytes", "none": "204 No Content without content"} {
		if r := call(true, id); r.IsError || !strings.Contains(r.Content, want) {
			t.Errorf("%s: got %+v, want %q", id, r, want)
		}
	}
	if r := call(false, "none"); !r.IsError || !strings.Contains(r.Content, "loopback") || !strings.Contains(r.Content, "allow_private") {
		t.Errorf("a private address: got %+v", r)
	}
}

// TestEndpointPaths: arguments that make a segment together lead nowhere else
// either.
func TestEndpointPaths(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("it was asked") }))
	defer server.Close()
	for at, id := range map[string]string{"/v/{id}{id}/x": ".", "/v/{id}./x": ".", "/v/.{id}": ".", "/v/{id}": ".."} {
		made, err := tool.Endpoint{URL: server.URL + at, Client: fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})}.
			Tool(tool.Tool{Name: "api", Schema: json.RawMessage(parameters)})
		if err != nil {
			t.Fatal(err)
		}
		if r, err := made.Call(t.Context(), &tool.Env{}, json.RawMessage(`{"id":"`+id+`"}`)); err != nil || !r.IsError || !strings.Contains(r.Content, "cannot stand in a path") {
			t.Errorf("%s: got %+v, %v", at, r, err)
		}
	}
}

func TestEndpointChecks(t *testing.T) {
	for want, p := range map[string]tool.Endpoint{
		"method":                    {Method: "BREW", URL: "https://a.example/"},
		"want http://":              {URL: "ftp://a.example/"},
		"without a name":            {URL: "https://me:pw@a.example/"},
		"the host is fixed":         {URL: "https://{id}.example/"},
		"no required parameter":     {URL: "https://a.example/{n}"},
		"no parameter for {else}":   {URL: "https://a.example/?x={else}"},
		"body: there is no":         {URL: "https://a.example/", Body: "{else}"},
		"body: GET has none":        {Method: "GET", URL: "https://a.example/", Body: "x"},
		"body cannot be written as": {URL: "https://a.example/", Body: func() {}},
	} {
		if _, err := p.Tool(tool.Tool{Name: "api", Schema: json.RawMessage(parameters)}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}
