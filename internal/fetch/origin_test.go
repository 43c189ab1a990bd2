// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/artelhq/artel/internal/fetch"
)

// TestRedirectsStayAtTheService plays a model service that redirects a call to a
// server inside the network, with prompt and key.
func TestRedirectsStayAtTheService(t *testing.T) {
	var hits atomic.Int32
	internal := serve(t, func(w http.ResponseWriter, _ *http.Request) { hits.Add(1); _, _ = io.WriteString(w, "INTERNAL SECRET") })
	status, target := http.StatusTemporaryRedirect, internal.URL+"/internal"
	service := serve(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/here":
			_, _ = io.WriteString(w, "here")
		default:
			http.Redirect(w, r, target, status)
		}
	})
	c := client(t, fetch.Options{AllowPrivate: true, MaxRedirects: fetch.SameOrigin})
	call := func(method string) (string, error) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, service.URL+"/v1/chat/completions", strings.NewReader("prompt"))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer sk-secret")
		resp, err := c.Do(r)
		if err != nil {
			return "", err
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		return string(b), err
	}
	for _, status = range []int{301, 302, 303, 307, 308} {
		for _, method := range []string{"POST", "GET", "PUT", "DELETE"} {
			_, err := call(method)
			wantDenied(t, err)
			if err == nil || !strings.Contains(err.Error(), "baseURL") {
				t.Errorf("%d %s: the error does not say what to do: %v", status, method, err)
			}
		}
	}
	for _, target = range []string{strings.Replace(service.URL, "http:", "https:", 1) + "/here", "//" + strings.TrimPrefix(internal.URL, "http://") + "/", "http://user@" + strings.TrimPrefix(service.URL, "http://") + "/here"} {
		if _, err := call("GET"); err == nil && !strings.Contains(target, "user@") {
			t.Errorf("%s was followed", target)
		}
	}
	if hits.Load() != 0 {
		t.Errorf("%d requests reached the other server", hits.Load())
	}
	// Lists of models are read where the service itself has moved them; a body is
	// sent to no second address.
	target = "/here"
	if got, err := call("GET"); err != nil || got != "here" {
		t.Errorf("got %q, %v", got, err)
	}
	for _, status = range []int{302, 307} {
		_, err := call("POST")
		wantDenied(t, err)
	}
}

// TestOtherMetadataIsRefusedAlways covers metadata services outside the
// link-local range.
func TestOtherMetadataIsRefusedAlways(t *testing.T) {
	for _, url := range []string{
		"http://100.100.100.200/latest/meta-data/", "http://192.0.0.192/opc/", "http://[fd00:ec2::254]/", "http://168.63.129.16/metadata", "http://[fd20:ce::254]/computeMetadata/",
		"http://169.254.170.2/", "http://[64:ff9b::6464:64c8]/", "http://[fd00:c1::a9fe:a9fe]/opc/", "http://[::ffff:100.100.100.200]/", "http://[2002:6464:64c8::]/",
	} {
		_, err := get(t, client(t, fetch.Options{AllowPrivate: true}), url)
		wantDenied(t, err)
	}
}
