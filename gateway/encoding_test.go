// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/artelhq/artel/app/apptest"
)

// compressors are those of the encodings that the gateway takes; "raw" is deflate
// without zlib's header.
var compressors = map[string]func(io.Writer) io.WriteCloser{
	"gzip":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"x-gzip":  func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"GZIP":    func(w io.Writer) io.WriteCloser { return gzip.NewWriter(w) },
	"zstd":    func(w io.Writer) io.WriteCloser { z, _ := zstd.NewWriter(w); return z }, // no option, no error
	"deflate": func(w io.Writer) io.WriteCloser { return zlib.NewWriter(w) },
	"raw":     func(w io.Writer) io.WriteCloser { f, _ := flate.NewWriter(w, 6); return f }, // a level that exists
}

func compressed(t *testing.T, how string, text io.Reader) string {
	t.Helper()
	var b bytes.Buffer
	w := compressors[how](&b)
	if _, err := io.Copy(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// TestCompressedRequests: compressed requests are decoded, forwarded and translated,
// with their media; an unknown encoding is a 415 and broken data a 400.
func TestCompressedRequests(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.upstream = says(completion)
	png := picture(40, 3)
	for how := range compressors {
		header := how
		if how == "raw" {
			header = "deflate"
		}
		for _, service := range []string{"chat", "other"} {
			body := `{"model":"` + service + `","messages":[{"role":"user","content":[{"type":"text","text":"` + strings.Repeat("see ", 30_000) + `"},{"type":"image_url","image_url":{"url":"` + dataURL(png) + `"}}]}]}`
			status, got := b.post("/v1/chat/completions", compressed(t, how, strings.NewReader(body)), "Content-Encoding", header)
			if status != 200 {
				t.Fatalf("%s, %s: %d %s", how, service, status, got)
			}
			if service == "chat" && (!strings.Contains(b.last(), encoded(png)) || b.headers[len(b.headers)-1].Get("Content-Encoding") != "") {
				t.Errorf("%s: the service got %d bytes, header %v", how, len(b.last()), b.headers[len(b.headers)-1])
			}
		}
		if cut := compressed(t, how, strings.NewReader(asks("chat", ""))); true {
			if status, got := b.post("/v1/chat/completions", cut[:len(cut)-5], "Content-Encoding", header); status != 400 {
				t.Errorf("%s, cut: %d %s", how, status, got)
			}
		}
	}
	calls := b.calls()
	for _, encoding := range []string{"br", "gzip, gzip", "aes128gcm"} {
		resp := b.send(apptest.Context(t), "/v1/messages", "x", "Content-Encoding", encoding)
		got, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusUnsupportedMediaType || resp.Header.Get("Accept-Encoding") != "gzip, deflate, zstd" || !strings.Contains(string(got), "Unsupported Content-Encoding '"+encoding+"'") {
			t.Errorf("%s: %d %s %v", encoding, resp.StatusCode, got, resp.Header)
		}
	}
	if status, got := b.post("/v1/chat/completions", "no gzip", "Content-Encoding", "gzip"); status != 400 || !strings.Contains(got, "could not be read") {
		t.Errorf("no gzip: %d %s", status, got)
	}
	if b.calls() != calls {
		t.Error("a service was asked")
	}
}

// TestCompressedUploads: uploads and requests that are passed on may be compressed too.
func TestCompressedUploads(t *testing.T) {
	t.Parallel()
	b := newBench(t, setup{services: withOthers})
	b.upstream = says(`{"object":"list","data":[]}`)
	in := `{"input":"a","model":"text-embedding-3-small"}`
	if status, got := b.post("/v1/embeddings", compressed(t, "zstd", strings.NewReader(in)), "Content-Encoding", "zstd"); status != 200 || b.last() != in {
		t.Errorf("%d %s, sent %q", status, got, b.last())
	}
	body, kind := form(t, "purpose", "user_data", "file=a.txt", strings.Repeat("text ", 1000))
	if status, got := b.post("/v1/files", compressed(t, "gzip", strings.NewReader(body)), "Content-Encoding", "gzip", "Content-Type", kind); status != 200 || !strings.Contains(got, `"bytes":5000`) {
		t.Errorf("%d %s", status, got)
	}
	for _, path := range []string{"/v1/embeddings", "/v1/files"} {
		if status, got := b.post(path, "x", "Content-Encoding", "br", "Content-Type", kind); status != http.StatusUnsupportedMediaType {
			t.Errorf("%s: %d %s", path, status, got)
		}
	}
}

// TestDecompressionBomb: a small request that becomes a huge one is refused, in the
// text as in a payload.
func TestDecompressionBomb(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for how, head := range map[string]string{ // the limits are those of texts and of files
		"zstd": `{"model":"chat","messages":[{"role":"user","content":"`,
		"gzip": `{"model":"chat","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`,
	} {
		bomb := compressed(t, how, io.MultiReader(strings.NewReader(head), io.LimitReader(zeros{}, 300<<20)))
		if status, got := b.post("/v1/chat/completions", bomb, "Content-Encoding", how); status != http.StatusRequestEntityTooLarge {
			t.Errorf("%s of %d bytes: %d %s", how, len(bomb), status, got)
		}
	}
	if b.calls() != 0 {
		t.Error("a service was asked")
	}
}

// zeros reads the letter A without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = 'A'
	}
	return len(p), nil
}
