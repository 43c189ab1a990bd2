// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/artelhq/artel/httpapi"
)

const uploadAbout = "`POST /conversations/{id}/artifacts` to a server in a process of its own: bytes of no known format, as a raw body and as a form, and English text. " +
	"Memory is the highest the server's resident memory rose above idle in its first upload; that of binary files must not grow with the file. " +
	"Text is decoded, kept whole and journalled, so it takes memory in proportion, and is limited to 20 MB. " +
	"The anchor streams the same bodies to a file, hashes them with SHA-256 and syncs."

// An upload is one way to upload a file.
type upload struct {
	name    string
	size    int64
	form    bool
	content func(size int64, seed uint64) io.Reader
}

func measureUpload(ctx context.Context, l *lab) []result {
	var memory, speed []result
	for _, u := range []upload{
		{"random bytes, raw", 2e6, false, randomBytes},
		{"random bytes, raw", 20e6, false, randomBytes},
		{"random bytes, raw", 200e6, false, randomBytes},
		{"random bytes, form", 2e6, true, randomBytes},
		{"random bytes, form", 20e6, true, randomBytes},
		{"random bytes, form", 200e6, true, randomBytes},
		{"text, raw", 2e6, false, prose},
		{"text, raw", 15e6, false, prose},
	} {
		var m, s result
		during(fmt.Sprintf("%s, %d bytes", u.name, u.size), func() { m, s = u.measure(ctx, l) })
		if u.size == 200e6 {
			m.target = target{limit: 10e6}
		}
		memory, speed = append(memory, m), append(speed, s)
	}
	return append(memory, speed...)
}

func (u upload) measure(ctx context.Context, l *lab) (memory, speed result) {
	var running processes
	defer running.stop()
	artel, artelURL := running.startArtel(ctx, l)
	plain := running.startRole(ctx, "receiver", "--data", l.folder())
	time.Sleep(300 * time.Millisecond) // until both are idle

	var seed uint64
	send := func(url string) func() error {
		return func() error { seed++; return u.send(ctx, url, seed) }
	}
	above := artel.aboveIdle(send(artelURL))
	plainAbove := plain.aboveIdle(send(plain.url + "/artifacts"))
	rounds := 3
	if u.size < 100e6 {
		rounds = 5
	}
	m := interleave(l.rounds(rounds), seconds(send(artelURL)), seconds(send(plain.url+"/artifacts")))
	size := bytesOf(u.size)
	memory = result{work: u.name + ", memory above idle", size: size, unit: megabytes(), artel: float64(above), anchor: float64(plainAbove)}
	speed = result{work: u.name + ", speed", size: size, unit: mbPerSec(), artel: float64(u.size) / m[0], anchor: float64(u.size) / m[1]}
	return memory, speed
}

// startArtel starts the product on a new data directory with one conversation and
// returns the upload URL of that conversation.
func (ps *processes) startArtel(ctx context.Context, l *lab) (*process, string) {
	p := ps.start(ctx, l.program, "serve", "--data", l.folder())
	c := must(httpapi.NewClient(p.url, nil).CreateConversation(ctx, httpapi.NewConversation{}))
	return p, p.url + httpapi.Base + "/conversations/" + string(c.ID) + "/artifacts"
}

func (u upload) send(ctx context.Context, url string, seed uint64) error {
	content, contentType := u.content(u.size, seed), "application/octet-stream"
	length := u.size
	if u.form {
		var head, tail string
		head, tail, contentType = form()
		length += int64(len(head) + len(tail))
		content = io.MultiReader(strings.NewReader(head), content, strings.NewReader(tail))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, content)
	if err != nil {
		return err
	}
	req.ContentLength = length
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("X-Filename", fmt.Sprintf("file-%d", seed))
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	return discard(resp, http.StatusCreated)
}

// form returns the bytes before and after one file in a form, and the form's media type.
func form() (head, tail, contentType string) {
	const boundary = "artel-bench-boundary"
	head = "--" + boundary + "\r\nContent-Disposition: form-data; name=\"file\"; filename=\"file\"\r\nContent-Type: application/octet-stream\r\n\r\n"
	return head, "\r\n--" + boundary + "--\r\n", "multipart/form-data; boundary=" + boundary
}

// receive is the anchor: the minimum that a server does to store an upload.
func receive(_ context.Context, mux *http.ServeMux, dir string) io.Closer {
	mux.HandleFunc("POST /artifacts", func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if kind, params, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind == "multipart/form-data" {
			part, err := multipart.NewReader(r.Body, params["boundary"]).NextPart()
			if err != nil {
				http.Error(w, err.Error(), http.StatusBadRequest)
				return
			}
			body = part
		}
		if err := keep(dir, body); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusCreated)
	})
	return closers{}
}

func keep(dir string, body io.Reader) error {
	f, err := os.CreateTemp(dir, "upload-")
	if err != nil {
		return err
	}
	defer f.Close()
	hash := sha256.New()
	if _, err := io.CopyBuffer(struct{ io.Writer }{io.MultiWriter(f, hash)}, struct{ io.Reader }{body}, make([]byte, 128<<10)); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return os.Rename(f.Name(), fmt.Sprintf("%s/%x", dir, hash.Sum(nil)))
}
