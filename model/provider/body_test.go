// SPDX-License-Identifier: Apache-2.0

package provider_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model/provider"
)

func put(tb testing.TB, s blob.Store, data []byte) artel.Digest {
	tb.Helper()
	info, err := s.Put(tb.Context(), bytes.NewReader(data), 0)
	if err != nil {
		tb.Fatal(err)
	}
	return info.Digest
}

// TestBodyIsWhatItSays compares every way to read a body with the plain one.
func TestBodyIsWhatItSays(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		store := blob.NewMemory()
		b := provider.NewBody(store)
		var want strings.Builder
		for range rapid.IntRange(0, 5).Draw(rt, "segments") {
			if rapid.Bool().Draw(rt, "json") {
				s := rapid.String().Draw(rt, "text")
				b.WriteString(s)
				want.WriteString(s)
				continue
			}
			n := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(24<<10-3, 24<<10+3), rapid.IntRange(0, 60_000)).Draw(rt, "size")
			data := make([]byte, n)
			for i := range data {
				data[i] = byte(i * 7 >> 2)
			}
			if rapid.Bool().Draw(rt, "raw") {
				b.WriteRaw(put(t, store, data), int64(n))
				want.Write(data)
				continue
			}
			b.WriteBlob(put(t, store, data), int64(n))
			want.WriteString(base64.StdEncoding.EncodeToString(data))
		}
		if b.Len() != int64(want.Len()) {
			rt.Fatalf("Len is %d, the body has %d bytes", b.Len(), want.Len())
		}
		// Read with a buffer of any size, then change over to WriteTo.
		r := b.Open(t.Context())
		defer r.Close()
		var got bytes.Buffer
		buf := make([]byte, rapid.OneOf(rapid.IntRange(1, 9), rapid.IntRange(1, 70_000)).Draw(rt, "buffer"))
		for range rapid.IntRange(0, 100).Draw(rt, "reads") {
			n, err := r.Read(buf)
			got.Write(buf[:n])
			if err == io.EOF {
				break
			}
			if err != nil {
				rt.Fatal(err)
			}
		}
		if _, err := r.(io.WriterTo).WriteTo(&got); err != nil {
			rt.Fatal(err)
		}
		if got.String() != want.String() {
			rt.Fatalf("got %d bytes that differ from the %d wanted", got.Len(), want.Len())
		}
	})
}

func TestBodyNeverRunsShort(t *testing.T) {
	t.Parallel()
	store := blob.NewMemory()
	d := put(t, store, make([]byte, 50_000))
	for name, c := range map[string]struct {
		digest artel.Digest
		size   int64
	}{
		"shorter than promised": {d, 50_001},
		"longer than promised":  {d, 49_999},
		"missing":               {artel.NewDigest([32]byte{9}), 50_000},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := provider.NewBody(store)
			b.WriteString(`{"x":"`)
			b.WriteBlob(c.digest, c.size)
			b.WriteString(`"}`)
			r := b.Open(t.Context())
			defer r.Close()
			_, err := io.Copy(io.Discard, r)
			m, ok := errors.AsType[*provider.MediaError](err)
			if !ok || m.Digest != c.digest || artel.CodeOf(err) != provider.CodeMediaUnreadable {
				t.Errorf("got %v, want a MediaError that names the blob", err)
			}
		})
	}
}

// liar says one size and has another, as a damaged file can.
type liar struct {
	blob.Store
	extra int64
	open  int
}

type lyingReader struct {
	blob.Reader
	l *liar
}

func (l *liar) Open(ctx context.Context, d artel.Digest) (blob.Reader, error) {
	r, err := l.Store.Open(ctx, d)
	l.open++
	return lyingReader{r, l}, err
}

func (r lyingReader) Size() int64  { return r.Reader.Size() + r.l.extra }
func (r lyingReader) Close() error { r.l.open--; return r.Reader.Close() }

func TestBodyChecksWhatItReads(t *testing.T) {
	t.Parallel()
	for _, extra := range []int64{-10, 10} {
		l := &liar{Store: blob.NewMemory(), extra: extra}
		b := provider.NewBody(l)
		b.WriteBlob(put(t, l, make([]byte, 100_000)), 100_000+extra)
		r := b.Open(t.Context())
		if _, err := io.Copy(io.Discard, r); err == nil || !strings.Contains(err.Error(), "announced") {
			t.Errorf("extra %d: got %v", extra, err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if l.open != 0 {
			t.Errorf("extra %d: %d blobs are still open", extra, l.open)
		}
	}
}

func TestBodyClosesBlobs(t *testing.T) {
	t.Parallel()
	l := &liar{Store: blob.NewMemory()}
	b := provider.NewBody(l)
	b.WriteBlob(put(t, l, make([]byte, 100_000)), 100_000)
	r := b.Open(t.Context())
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	if l.open != 1 {
		t.Fatalf("%d blobs open in the middle, want 1", l.open)
	}
	if err := r.Close(); err != nil || l.open != 0 {
		t.Errorf("Close: %v, %d blobs open", err, l.open)
	}
	if _, err := r.Read(make([]byte, 1)); err == nil {
		t.Error("a closed body can be read")
	}
}

func TestBodyHonoursItsContext(t *testing.T) {
	t.Parallel()
	store := blob.NewMemory()
	b := provider.NewBody(store)
	b.WriteBlob(put(t, store, make([]byte, 1<<20)), 1<<20)
	ctx, cancel := context.WithCancel(t.Context())
	r := b.Open(ctx)
	defer r.Close()
	if _, err := io.ReadFull(r, make([]byte, 1000)); err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := io.Copy(io.Discard, r); artel.KindOf(err) != artel.Canceled {
		t.Errorf("got %v, want canceled", err)
	}
}

func TestBodyHash(t *testing.T) {
	t.Parallel()
	d := artel.NewDigest([32]byte{1})
	build := func(parts ...string) artel.Digest {
		b := provider.NewBody(nil)
		for _, p := range parts {
			if p == "blob" {
				b.WriteBlob(d, 3)
			} else {
				b.WriteString(p)
			}
		}
		return b.Hash()
	}
	if build("a", "b", "blob") != build("ab", "blob") {
		t.Error("how the JSON was written changes the hash")
	}
	seen := map[artel.Digest]int{}
	for i, h := range []artel.Digest{build(), build("ab", "blob"), build("blob", "ab"), build("a", "blob", "b"), build("b" + string(d))} {
		if j, ok := seen[h]; ok {
			t.Errorf("bodies %d and %d have one hash", i, j)
		}
		seen[h] = i
	}
}

func TestBodyIsSentAgain(t *testing.T) {
	t.Parallel()
	store := blob.NewMemory()
	b := provider.NewBody(store)
	b.WriteString("<")
	b.WriteBlob(put(t, store, []byte("hello world")), 11)
	b.WriteString(">")
	var got []string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, string(body))
		if len(got) == 1 {
			http.Redirect(w, r, "/again", http.StatusTemporaryRedirect)
		}
	}))
	defer srv.Close()
	req, err := b.Request(t.Context(), http.MethodPost, srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := srv.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if len(got) != 2 || got[0] != "<aGVsbG8gd29ybGQ=>" || got[1] != got[0] {
		t.Errorf("the server got %q", got)
	}
}

func imageBody(tb testing.TB, size int) (*provider.Body, []byte) {
	data := make([]byte, size)
	for i := range data {
		data[i] = byte(i * 31 >> 3)
	}
	store := blob.NewMemory()
	b := provider.NewBody(store)
	b.WriteString(`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,`)
	b.WriteBlob(put(tb, store, data), int64(size))
	b.WriteString(`"}}]}]}`)
	return b, data
}

// TestBodyMemory sends a large body and watches what is allocated.
func TestBodyMemory(t *testing.T) {
	b, _ := imageBody(t, 50<<20)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.Copy(io.Discard, b.Open(t.Context()))
	runtime.ReadMemStats(&after)
	if err != nil || n != b.Len() {
		t.Fatal(n, err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 256<<10 {
		t.Errorf("50 MiB cost %d bytes of allocation", grown)
	}
}

// naive is how it is usually done: the anchor of the benchmarks.
func naive(data []byte) []byte {
	out, err := json.Marshal(map[string]any{"model": "m", "messages": []any{map[string]any{"role": "user", "content": []any{
		map[string]any{"type": "image_url", "image_url": map[string]any{"url": "data:image/png;base64," + base64.StdEncoding.EncodeToString(data)}},
	}}}})
	if err != nil {
		panic(err)
	}
	return out
}

func BenchmarkDiscard(b *testing.B) {
	for _, mb := range []int{1, 10, 50} {
		size, name := mb<<20, fmt.Sprintf("%dMB", mb)
		body, data := imageBody(b, size)
		b.Run("stream/"+name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				r := body.Open(b.Context())
				if _, err := io.Copy(io.Discard, r); err != nil {
					b.Fatal(err)
				}
				_ = r.Close()
			}
		})
		b.Run("naive/"+name, func(b *testing.B) {
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				_, _ = io.Discard.Write(naive(data))
			}
		})
	}
}

func BenchmarkLoopback50MB(b *testing.B) {
	body, data := imageBody(b, 50<<20)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		buf := make([]byte, 256<<10)
		for {
			if _, err := r.Body.Read(buf); err != nil {
				return
			}
		}
	}))
	defer srv.Close()
	post := func(b *testing.B, request func() (*http.Request, error)) {
		b.SetBytes(50 << 20)
		b.ReportAllocs()
		for b.Loop() {
			req, err := request()
			if err != nil {
				b.Fatal(err)
			}
			resp, err := srv.Client().Do(req)
			if err != nil {
				b.Fatal(err)
			}
			_ = resp.Body.Close()
		}
	}
	b.Run("stream", func(b *testing.B) {
		post(b, func() (*http.Request, error) { return body.Request(b.Context(), http.MethodPost, srv.URL) })
	})
	b.Run("naive", func(b *testing.B) {
		post(b, func() (*http.Request, error) {
			return http.NewRequestWithContext(b.Context(), http.MethodPost, srv.URL, bytes.NewReader(naive(data)))
		})
	})
}
