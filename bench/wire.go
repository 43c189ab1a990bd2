// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model/provider"
)

const wireAbout = "A JPEG on its way to a model that sees, as the bytes of a body. The body of a request, with the picture in base64, is read out of the folder of blobs into a writer that discards it; " +
	"the anchor copies as many bytes from memory to memory, which no encoder can reach. Over loopback `GET …/artifacts/{id}/route?capabilities=vision` is asked on one connection, " +
	"and the figures are bytes of the file; the anchor is a net/http handler that reads the file and marshals the same object with encoding/json. " +
	"Memory is the rise of the server's resident set, with one answer of 100 MB and with 100 of 10 MB at once."

func measureWire(ctx context.Context, l *lab) []result {
	dir := l.folder()
	blobs := must(blob.OpenDir(dir))
	defer blobs.Close()
	const size = 10e6
	info := must(blobs.Put(ctx, jpeg(size), 0))
	body := provider.NewBody(blobs)
	body.WriteString(`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpeg;base64,`)
	body.WriteBlob(info.Digest, info.Size)
	body.WriteString(`"}}]}]}`)
	from, to := make([]byte, size), make([]byte, size)
	m := interleave(l.rounds(5), perSecond(size, 150*time.Millisecond, func() error {
		r := body.Open(ctx)
		defer r.Close()
		_, err := r.(io.WriterTo).WriteTo(io.Discard)
		return err
	}), perSecond(size, 50*time.Millisecond, func() error { copy(to, from); return nil }))
	encoded := result{work: "image to the bytes of a request", size: bytesOf(size), unit: gbPerSec(), artel: m[0], anchor: m[1], target: target{limit: 3e9}}
	return append([]result{encoded}, wireOverHTTP(ctx, l)...)
}

func wireOverHTTP(ctx context.Context, l *lab) (results []result) {
	var running processes
	defer running.stop()
	server, uploads := running.startArtel(ctx, l)
	naive := running.startRole(ctx, "inline", "--data", l.folder())
	paths := map[int64]string{}
	for i, size := range []int64{10e6, 100e6} {
		a := uploadImage(ctx, uploads, size, i)
		paths[size] = strings.TrimPrefix(uploads, server.url) + "/" + string(a.ID) + "/route?capabilities=vision&inline=true"
	}
	const size = 10e6
	m := interleave(l.rounds(3),
		perSecond(size, 300*time.Millisecond, func() error { return discardMany(ctx, server, paths[size], 1) }),
		perSecond(size, 300*time.Millisecond, func() error { return discardMany(ctx, naive, fmt.Sprintf("/route?size=%d", int64(size)), 1) }))
	results = append(results, result{work: "image over loopback", size: bytesOf(size), unit: gbPerSec(), artel: m[0], anchor: m[1], target: target{limit: 1e9}})
	for _, c := range []struct {
		work  string
		size  int64
		many  int
		limit float64
	}{{"image over loopback, rise of the server's memory", 100e6, 1, 10e6}, {"100 images at once, rise of the server's memory", 10e6, 100, 200e6}} {
		above := server.aboveIdle(func() error { return discardMany(ctx, server, paths[c.size], c.many) })
		plain := naive.aboveIdle(func() error { return discardMany(ctx, naive, fmt.Sprintf("/route?size=%d", c.size), c.many) })
		results = append(results, result{work: c.work, size: bytesOf(c.size), unit: megabytes(), artel: float64(above), anchor: float64(plain), target: target{limit: c.limit}})
	}
	return results
}

// discardMany sends many requests at once with a minimal client and discards the
// answers.
func discardMany(ctx context.Context, p *process, path string, many int) error {
	return atOnce(many, func(int) error { return discardOne(ctx, strings.TrimPrefix(p.url, "http://"), path) })
}

func discardOne(ctx context.Context, addr, path string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET "+path+" HTTP/1.0\r\nHost: "+addr+"\r\n\r\n"); err != nil {
		return err
	}
	in := bufio.NewReaderSize(conn, 256<<10)
	line, err := in.ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") {
		return fmt.Errorf("%s answers %q: %w", addr, line, err)
	}
	_, err = io.Copy(io.Discard, in)
	return err
}

// serveInline answers as naive Go code does: the file, its base64 and its JSON are all
// in memory.
func serveInline(_ context.Context, mux *http.ServeMux, data string) io.Closer {
	mux.HandleFunc("GET /route", func(w http.ResponseWriter, r *http.Request) {
		var size int64
		if _, err := fmt.Sscan(r.FormValue("size"), &size); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		file, err := readOrMake(filepath.Join(data, r.FormValue("size")), size)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		url := map[string]any{"url": "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(file)}
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(map[string]any{
			"contentType": "image", "routing": "image_url", "imageUrl": map[string]any{"type": "image_url", "image_url": url},
		})
	})
	return closers{}
}

// readOrMake reads a file of size bytes and creates it the first time.
func readOrMake(path string, size int64) ([]byte, error) {
	data, err := os.ReadFile(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return data, err
	}
	if data, err = io.ReadAll(jpeg(size)); err != nil {
		return nil, err
	}
	return data, os.WriteFile(path, data, 0o600)
}
