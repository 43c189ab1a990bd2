// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/httpapi"
)

// attached attaches to a data directory for the length of a test.
func attached(t *testing.T, data string, errs io.Writer) *attachment {
	t.Helper()
	a, err := (&globals{}).attach(t.Context(), attachOptions{data: data, errs: errs})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.close(); err != nil {
			t.Error(err)
		}
	})
	return a
}

// titles returns the titles of all conversations.
func titles(t *testing.T, a *attachment) string {
	t.Helper()
	list, err := a.client.Conversations(t.Context(), "", 100)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range list.Items {
		out = append(out, c.Title)
	}
	return strings.Join(out, ",")
}

func (a *attachment) create(t *testing.T, title string) {
	t.Helper()
	if _, err := a.client.CreateConversation(t.Context(), httpapi.NewConversation{Title: title}); err != nil {
		t.Fatal(err)
	}
}

// TestAttachToServer uses a server that is found by its data directory. When it
// stops, the command serves the directory itself.
func TestAttachToServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	served := serving(t, dir, bareEnvironment(dir))
	info, err := os.Stat(filepath.Join(data, addressFile))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the address file: %v, %v", info, err)
	}
	var errs apptest.Log
	a := attached(t, data, &errs)
	if a.url != served.url {
		t.Errorf("attached to %s, not to %s", a.url, served.url)
	}
	if want := "artel: the data directory is " + data + "\n"; errs.String() != want {
		t.Errorf("it said %q", errs.String())
	}
	a.create(t, "one")
	if err := served.stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(data, addressFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a server that ended left its address file: %v", err)
	}
	a.create(t, "two") // nothing was sent to the server that ended
	if got := titles(t, a); got != "two,one" {
		t.Errorf("conversations: %s", got)
	}
}

// TestAttachAfterKill notices the address file of a killed server.
func TestAttachAfterKill(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	serving(t, dir, bareEnvironment(dir)).kill()
	if _, err := os.Stat(filepath.Join(data, addressFile)); err != nil {
		t.Fatal(err)
	}
	var errs apptest.Log
	a := attached(t, data, &errs)
	if !strings.Contains(errs.String(), "ended without removing its address file") {
		t.Errorf("it said %q", errs.String())
	}
	a.create(t, "one")
	now, err := readAddress(data)
	if err != nil || now.URL != a.url || now.PID != os.Getpid() {
		t.Errorf("the address file names %+v, %v", now, err)
	}
}

// TestAttachTogether has many commands start at once: one serves, and the next ones
// take over when it ends.
func TestAttachTogether(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	all := make([]*attachment, 6)
	var wg sync.WaitGroup
	for i := range all {
		wg.Go(func() {
			a, err := (&globals{}).attach(t.Context(), attachOptions{data: data, errs: io.Discard})
			if err != nil {
				t.Error(err)
			}
			all[i] = a
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	for _, a := range all {
		if a.url != all[0].url {
			t.Errorf("two servers: %s and %s", a.url, all[0].url)
		}
	}
	all[0].create(t, "kept")
	for len(all) > 0 {
		for _, a := range all {
			if got := titles(t, a); got != "kept" {
				t.Errorf("conversations: %s", got)
			}
		}
		// End the one that serves, or any if an earlier one does.
		at := 0
		for i, a := range all {
			if a.http.Transport.(*follower).ends != nil {
				at = i
			}
		}
		if err := all[at].close(); err != nil {
			t.Error(err)
		}
		all = append(all[:at], all[at+1:]...)
	}
	if _, err := os.Stat(filepath.Join(data, addressFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the last one left its address file: %v", err)
	}
}

// TestForeignAddressFile refuses a file that other accounts can use: it would get
// the token.
func TestForeignAddressFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	serving(t, dir, bareEnvironment(dir))
	data := filepath.Join(dir, "data")
	if err := os.Chmod(filepath.Join(data, addressFile), 0o644); err != nil {
		t.Fatal(err)
	}
	_, err := (&globals{}).attach(t.Context(), attachOptions{data: data, errs: io.Discard})
	if err == nil || !strings.Contains(err.Error(), "other accounts can use this file") {
		t.Errorf("attached: %v", err)
	}
}

// brokenNetwork answers the first requests with errors.
type brokenNetwork struct {
	errs []error
	sent []string
}

func (n *brokenNetwork) RoundTrip(r *http.Request) (*http.Response, error) {
	body := ""
	if r.Body != nil {
		b, _ := io.ReadAll(r.Body)
		body = string(b)
	}
	n.sent = append(n.sent, r.Method+" "+r.URL.String()+" "+body+" "+r.Header.Get("Authorization"))
	if len(n.errs) > 0 {
		err := n.errs[0]
		n.errs = n.errs[1:]
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
}

// TestRepeat sends a request again only if it cannot have been done, or may be done
// twice.
func TestRepeat(t *testing.T) {
	t.Parallel()
	refused := &net.OpError{Op: "dial", Err: errors.New("connection refused")}
	reset := &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}
	for name, c := range map[string]struct {
		method string
		ctx    context.Context
		errs   []error
		sent   int
		fails  bool
	}{
		"refused":           {http.MethodPost, t.Context(), []error{refused}, 2, false},
		"reset":             {http.MethodPost, t.Context(), []error{reset}, 1, true},
		"reset, reading":    {http.MethodGet, t.Context(), []error{reset, reset}, 3, false},
		"reset, repeatable": {http.MethodPost, repeatable(t.Context()), []error{reset}, 2, false},
		"always reset":      {http.MethodGet, t.Context(), []error{reset, reset, reset, reset, reset, reset}, attachTries, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			data := filepath.Join(dir, "data")
			served := serving(t, dir, bareEnvironment(dir))
			n := &brokenNetwork{errs: c.errs}
			f := &follower{next: pingsPass{n}, token: "artel_x", data: data, errs: io.Discard, global: &globals{}}
			client := &http.Client{Transport: f}
			r, err := http.NewRequestWithContext(c.ctx, c.method, "http://127.0.0.1:9/mcp?a=b", strings.NewReader("body"))
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(r)
			if err == nil {
				_ = resp.Body.Close()
			}
			if (err != nil) != c.fails {
				t.Errorf("error: %v", err)
			}
			if len(n.sent) != c.sent {
				t.Errorf("sent %d times: %v", len(n.sent), n.sent)
			}
			for _, s := range n.sent {
				if want := c.method + " " + served.url + "/mcp?a=b body Bearer artel_x"; s != want {
					t.Errorf("sent %q, not %q", s, want)
				}
			}
		})
	}
}

// pingsPass sends the requests by which a server is found to the network.
type pingsPass struct{ *brokenNetwork }

func (p pingsPass) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path == "/healthz" {
		return http.DefaultTransport.RoundTrip(r)
	}
	return p.brokenNetwork.RoundTrip(r)
}

// TestReaddress puts another path below which a server is served in the place of the
// first one's.
func TestReaddress(t *testing.T) {
	t.Parallel()
	f := &follower{prefix: "/artel"}
	r := &http.Request{URL: &url.URL{Scheme: "https", Host: "a", Path: "/artel/api/x y", RawPath: "/artel/api/x%20y"}, Header: http.Header{}}
	for at, want := range map[string]string{
		"http://127.0.0.1:1":        "http://127.0.0.1:1/api/x%20y",
		"http://127.0.0.1:1/b":      "http://127.0.0.1:1/b/api/x%20y",
		"https://example.com/artel": "https://example.com/artel/api/x%20y",
	} {
		got, err := f.readdressed(r, at, false)
		if err != nil || got.URL.String() != want {
			t.Errorf("%s: %v, %v", at, got.URL, err)
		}
	}
}

// TestDataDirectory finds the data directory.
func TestDataDirectory(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	t.Setenv("XDG_DATA_HOME", filepath.Join(dir, "share"))
	t.Setenv("HOME", dir)
	if got, err := dataDirectory(""); err != nil || !strings.HasSuffix(got, string(filepath.Separator)+"artel") {
		t.Errorf("%s, %v", got, err)
	}
	if err := os.Mkdir(defaultData, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := dataDirectory(""); err != nil || filepath.Base(got) != defaultData {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := dataDirectory("given"); err != nil || filepath.Base(got) != "given" {
		t.Errorf("%s, %v", got, err)
	}
}
