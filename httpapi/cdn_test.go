// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/store"
)

// A cdn is a cache in front of a server: it knows what it has by the whole
// address, and takes the rest from the origin, of which it knows nothing else.
type cdn struct {
	*httptest.Server
	origin  string // of the names of files
	mu      sync.Mutex
	kept    map[string]*httptest.ResponseRecorder
	fetched int
}

func newCDN(t *testing.T) *cdn {
	t.Helper()
	c := &cdn{kept: map[string]*httptest.ResponseRecorder{}}
	c.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c.mu.Lock()
		defer c.mu.Unlock()
		key := r.Method + r.URL.String() + r.Header.Get("Range")
		got := c.kept[key]
		if got == nil {
			c.fetched++
			got = c.fetch(t, r)
			if strings.HasPrefix(got.Header().Get("Cache-Control"), "public") {
				c.kept[key] = got
			}
		}
		maps.Copy(w.Header(), got.Header())
		w.WriteHeader(got.Code)
		_, _ = w.Write(got.Body.Bytes())
	}))
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
		c.Server.Close()
	})
	return c
}

// fetch asks the origin, by the CDN's own host.
func (c *cdn) fetch(t *testing.T, r *http.Request) *httptest.ResponseRecorder {
	got := httptest.NewRecorder()
	req, err := http.NewRequestWithContext(r.Context(), r.Method, c.origin+strings.TrimPrefix(r.URL.Path, "/files/")+"?"+r.URL.RawQuery, nil)
	if err != nil {
		t.Error(err)
		return got
	}
	req.Host = r.Host
	req.Header.Set("Range", r.Header.Get("Range"))
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Error(err)
		return got
	}
	defer resp.Body.Close()
	maps.Copy(got.Header(), resp.Header)
	got.WriteHeader(resp.StatusCode)
	_, _ = io.Copy(got, resp.Body)
	return got
}

func TestCDN(t *testing.T) {
	c := newCDN(t)
	var now atomic.Int64
	now.Store(time.Date(2026, 1, 2, 3, 59, 30, 0, time.UTC).Unix())
	b := newBench(t, writes, func(k *app.Config) {
		k.Files.PublicBase = c.URL + "/files/"
		k.Options.Now = func() time.Time { return time.Unix(now.Load(), 0) }
	})
	c.origin = b.url + "/files/tool_results/"
	conv := b.conversation()
	up := b.upload(conv, "red.png", "image/png", png)
	pinned := fileAt(up["ref"].(string) + "@1")

	away := http.Client{Transport: b.http.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	sent := func(method, path string) (string, *http.Response) {
		t.Helper()
		req, err := http.NewRequestWithContext(apptest.Context(t), method, b.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := away.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		return resp.Header.Get("Location"), resp
	}
	to, resp := sent("GET", pinned)
	if resp.StatusCode != 302 || !strings.HasPrefix(to, c.URL+"/files/"+artel.Digest(up["digest"].(string)).Hex()+".png?sig=") || resp.Header.Get("Cache-Control") != "private, max-age=600" {
		t.Fatalf("got %d to %s, %v", resp.StatusCode, to, resp.Header)
	}
	for _, path := range []string{pinned, fileAt("blob:" + up["digest"].(string)), named(up["digest"], ".png")} {
		for _, method := range []string{"GET", "HEAD"} {
			if again, resp := sent(method, path); resp.StatusCode != 302 || again != to {
				t.Errorf("%s %s: got %d to %s, want the same address %s", method, path, resp.StatusCode, again, to)
			}
		}
	}
	for _, path := range []string{fileAt(up["ref"]), pinned + "?preview=true"} { // what may change, and what has to come from here
		if _, resp := sent("GET", path); resp.StatusCode != 200 {
			t.Errorf("%s: got %d", path, resp.StatusCode)
		}
	}
	// Over the cache come the bytes, and the second time from the cache itself.
	for range 2 {
		if a := b.do("GET", pinned, nil); a.StatusCode != 200 || string(a.body) != png || a.Header.Get("Content-Type") != "image/png" || a.Header.Get("Cross-Origin-Resource-Policy") != "cross-origin" {
			t.Errorf("got %d %v", a.StatusCode, a.Header)
		}
	}
	if n := c.fetched; n != 1 {
		t.Errorf("the CDN fetched %d times", n)
	}
	if a := b.do("GET", pinned, nil, header{"Range": "bytes=1-3"}); a.StatusCode != 206 || string(a.body) != png[1:4] {
		t.Errorf("a range: got %d %q", a.StatusCode, a.body)
	}
	if a := b.do("HEAD", pinned, nil); a.StatusCode != 200 || a.Header.Get("ETag") != `"`+up["digest"].(string)+`"` {
		t.Errorf("HEAD: got %d", a.StatusCode)
	}
	signed := b.object(b.do("POST", fileAt(up["ref"])+"/sign", `{}`), 200)["url"].(string)
	if a, err := b.http.Get(signed); err != nil || a.StatusCode != 200 || !strings.HasPrefix(signed, c.URL) {
		t.Errorf("a signed address: got %s, %v, %v", signed, a, err)
	} else {
		_ = a.Body.Close()
	}

	// An hour later it is another address, and the old one opens nothing new.
	now.Add(3600)
	if later, _ := sent("GET", pinned); later == to {
		t.Error("the address never ends")
	}
	now.Add(3600)
	u, err := url.Parse(to)
	if err != nil {
		t.Fatal(err)
	}
	b.problem(b.do("GET", named(up["digest"], ".png")+"?"+u.RawQuery, nil), 403, app.CodeSignatureExpired)
}

// TestServingIsFlat serves a file of a gigabyte, which lies on the disk as a
// hole, and its last bytes.
func TestServingIsFlat(t *testing.T) {
	const size = 1 << 28
	dir := t.TempDir()
	blobs, err := blob.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = blobs.Close() })
	var rows store.Store
	b := newBench(t, writes, func(c *app.Config) { c.Blobs, rows = blobs, c.Store })
	hex := strings.Repeat("ab", 32)
	leaf := filepath.Join(dir, hex[:2], hex[2:4])
	if err := os.MkdirAll(leaf, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(leaf, fmt.Sprintf("%s.%d", hex, size)))
	if err == nil {
		err = f.Truncate(size)
		_ = f.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	conv := artel.ConversationID(b.conversation())
	v := artel.Version{
		Number: 1, Digest: artel.Digest("sha256-" + hex), InBlob: true, Filename: "disk.img", CreatedAt: time.Now(),
		MediaInfo: artel.MediaInfo{MediaType: "application/octet-stream", Kind: artel.KindOther, Size: size},
	}
	err = rows.Update(context.Background(), artel.Local, func(tx store.Tx) error {
		if _, err := tx.Journal.Append(conv, "disk.img", v, nil); err != nil {
			return err
		}
		return tx.Journal.Fold(conv, "disk.img", v, nil)
	})
	if err != nil {
		t.Fatal(err)
	}
	at := b.url + fileAt("artifact:"+string(conv)+"/disk.img@1")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	resp, err := b.http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	runtime.ReadMemStats(&after)
	if grown := after.TotalAlloc - before.TotalAlloc; err != nil || n != size || grown > 4<<20 {
		t.Errorf("%d bytes took %d KB of memory, %v", n, grown>>10, err)
	}
	if a := b.do("GET", strings.TrimPrefix(at, b.url), nil, header{"Range": "bytes=-5"}); a.StatusCode != 206 || string(a.body) != "\x00\x00\x00\x00\x00" {
		t.Errorf("the end: got %d, %d bytes", a.StatusCode, len(a.body))
	}
}
