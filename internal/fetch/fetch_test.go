// SPDX-License-Identifier: Apache-2.0

package fetch_test

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func client(t *testing.T, o fetch.Options) *http.Client {
	c := fetch.NewClient(o)
	t.Cleanup(c.CloseIdleConnections)
	return c
}

func serve(t *testing.T, h http.HandlerFunc) *httptest.Server {
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s
}

func get(t *testing.T, c *http.Client, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := fetch.ReadAll(resp.Body, 1<<20)
	return string(b), err
}

func wantDenied(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, artel.Denied) || artel.KindOf(err) != artel.Denied {
		t.Errorf("error %v (kind %q), want kind denied", err, artel.KindOf(err))
	}
	if fetch.Unreachable(err) {
		t.Errorf("%v counts as unreachable", err)
	}
}

func TestLoopbackIsRefused(t *testing.T) {
	var hits atomic.Int32
	s := serve(t, func(http.ResponseWriter, *http.Request) { hits.Add(1) })
	_, err := get(t, client(t, fetch.Options{}), s.URL)
	wantDenied(t, err)
	if hits.Load() != 0 {
		t.Error("the server was reached")
	}
}

func TestLoopbackWhenAllowed(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	body, err := get(t, client(t, fetch.Options{AllowPrivate: true}), s.URL)
	if err != nil || body != "hello" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestMetadataIsRefusedAlways(t *testing.T) {
	for _, url := range []string{"http://169.254.169.254/latest/", "http://[::ffff:169.254.169.254]/", "http://[fe80::1]/"} {
		_, err := get(t, client(t, fetch.Options{AllowPrivate: true}), url)
		wantDenied(t, err)
	}
}

func TestRedirectInsideIsRefused(t *testing.T) {
	// The guard would refuse the first hop, which a test can only have on
	// loopback, so the redirect leads to an address that is never allowed.
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://169.254.169.254/latest/meta-data/", http.StatusFound)
	})
	_, err := get(t, client(t, fetch.Options{AllowPrivate: true}), s.URL)
	wantDenied(t, err)
}

func TestRedirectToOtherScheme(t *testing.T) {
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "file:///etc/passwd")
		w.WriteHeader(http.StatusFound)
	})
	_, err := get(t, client(t, fetch.Options{AllowPrivate: true}), s.URL)
	wantDenied(t, err)
	_, err = get(t, client(t, fetch.Options{}), "ftp://example.com/")
	wantDenied(t, err)
}

func TestRedirectsAreCapped(t *testing.T) {
	var hits atomic.Int32
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		http.Redirect(w, r, "/again", http.StatusFound)
	})
	_, err := get(t, client(t, fetch.Options{AllowPrivate: true, MaxRedirects: 3}), s.URL)
	wantDenied(t, err)
	if hits.Load() != 4 {
		t.Errorf("%d requests, want 4", hits.Load())
	}

	resp, err := client(t, fetch.Options{AllowPrivate: true, MaxRedirects: -1}).Get(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		t.Errorf("status %d, want the redirect itself", resp.StatusCode)
	}
}

func TestRedirectFromTLSToPlain(t *testing.T) {
	plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the plain server was reached") })
	s := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(s.Close)
	c := s.Client() // trusts the server's certificate
	c.CheckRedirect = fetch.NewClient(fetch.Options{}).CheckRedirect
	_, err := get(t, c, s.URL)
	wantDenied(t, err)
}

func TestKeysStayWithTheirHost(t *testing.T) {
	var got http.Header
	other := serve(t, func(_ http.ResponseWriter, r *http.Request) { got = r.Header })
	s := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			http.Redirect(w, r, "/same", http.StatusTemporaryRedirect)
			return
		}
		if r.Header.Get("X-Api-Key") == "" {
			t.Error("the key was lost on the way to the same host")
		}
		http.Redirect(w, r, other.URL, http.StatusTemporaryRedirect)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"X-Api-Key", "X-Goog-Api-Key", "Api-Key"} {
		req.Header.Set(h, "secret")
	}
	req.Header.Set("Accept", "text/plain")
	resp, err := client(t, fetch.Options{AllowPrivate: true}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if strings.Contains(strings.Join(got.Values("X-Api-Key"), "")+got.Get("X-Goog-Api-Key")+got.Get("Api-Key"), "secret") || got.Get("Accept") != "text/plain" {
		t.Errorf("the other host got %v", got)
	}
}

// TestRebinding: the name is public when it is looked up, and loopback when the
// client connects. The guard sees what is connected to.
func TestRebinding(t *testing.T) {
	s := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was reached") })
	_, port, err := net.SplitHostPort(s.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	var asked atomic.Int32
	resolver := &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		near, far := net.Pipe()
		go answerDNS(far, &asked)
		return near, nil
	}}
	_, err = get(t, client(t, fetch.Options{Resolver: resolver}), "http://rebind.example:"+port+"/")
	wantDenied(t, err)
	if asked.Load() == 0 {
		t.Error("the name was not resolved")
	}
}

// answerDNS answers every question on c (DNS over a stream, RFC 1035 §4.2.2):
// A with 127.0.0.1, anything else with nothing.
func answerDNS(c net.Conn, asked *atomic.Int32) {
	defer c.Close()
	for {
		var size [2]byte
		if _, err := io.ReadFull(c, size[:]); err != nil {
			return
		}
		msg := make([]byte, binary.BigEndian.Uint16(size[:]))
		if _, err := io.ReadFull(c, msg); err != nil {
			return
		}
		asked.Add(1)
		end := 12
		for msg[end] != 0 {
			end += int(msg[end]) + 1
		}
		end += 5 // the root label, type, class
		isA := binary.BigEndian.Uint16(msg[end-4:]) == 1
		reply := append([]byte{}, msg[:end]...)
		copy(reply[2:], []byte{0x81, 0x80, 0, 1, 0, 0, 0, 0, 0, 0})
		if isA {
			reply[7] = 1
			reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4, 127, 0, 0, 1)
		}
		if _, err := c.Write(append(binary.BigEndian.AppendUint16(nil, uint16(len(reply))), reply...)); err != nil {
			return
		}
	}
}

func TestProxyOnlyWhenAsked(t *testing.T) {
	t.Setenv("HTTP_PROXY", "http://127.0.0.1:1")
	s := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "direct") })
	if body, err := get(t, client(t, fetch.Options{AllowPrivate: true}), s.URL); body != "direct" {
		t.Errorf("%q, %v", body, err)
	}
	proxy := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, "by proxy: "+r.URL.Host) })
	c := client(t, fetch.Options{AllowPrivate: true, Proxy: func(*http.Request) (*url.URL, error) { return url.Parse(proxy.URL) }})
	if body, err := get(t, c, "http://somewhere.example/"); body != "by proxy: somewhere.example" {
		t.Errorf("%q, %v", body, err)
	}
}

func TestResponseTimeout(t *testing.T) {
	release := make(chan struct{})
	s := serve(t, func(http.ResponseWriter, *http.Request) { <-release })
	t.Cleanup(func() { close(release) }) // before the server closes, which waits for its handlers
	_, err := get(t, client(t, fetch.Options{AllowPrivate: true, ResponseTimeout: 20 * time.Millisecond}), s.URL)
	if err == nil || errors.Is(err, artel.Denied) {
		t.Errorf("error %v, want a timeout", err)
	}
}

func TestUnreachable(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close()
	_, err = get(t, client(t, fetch.Options{AllowPrivate: true}), "http://"+address)
	if !fetch.Unreachable(err) {
		t.Errorf("%v does not count as unreachable", err)
	}
	if fetch.Unreachable(nil) || fetch.Unreachable(io.EOF) {
		t.Error("nothing and io.EOF count as unreachable")
	}
}

func TestReadAll(t *testing.T) {
	for _, tt := range []struct {
		in    string
		limit int64
		kind  artel.Kind
	}{
		{"", 0, ""},
		{"abc", 3, ""},
		{"abcd", 3, artel.TooLarge},
		{"a", 0, artel.TooLarge},
	} {
		b, err := fetch.ReadAll(strings.NewReader(tt.in), tt.limit)
		if artel.KindOf(err) != tt.kind || err == nil && string(b) != tt.in {
			t.Errorf("ReadAll(%q, %d) = %q, %v", tt.in, tt.limit, b, err)
		}
	}
	if _, err := fetch.ReadAll(iotest.ErrReader(io.ErrUnexpectedEOF), 9); artel.KindOf(err) != artel.Unavailable {
		t.Errorf("broken body: %v", err)
	}
	if _, err := fetch.ReadAll(iotest.ErrReader(context.Canceled), 9); artel.KindOf(err) != artel.Canceled {
		t.Errorf("canceled body: %v", err)
	}
}
