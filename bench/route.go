// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model/route"
)

const routeAbout = "What a model gets of a file. An image for a model that sees goes from the folder of blobs to a writer that discards it; the anchor reads the file and marshals the same object with encoding/json. " +
	"For a model that takes text alone the answer is a description, and costs the same for every size; the anchor marshals the finished answer, which is less than the work. " +
	"Over HTTP, 16 connections ask `GET …/artifacts/{id}/route?capabilities=text`; the anchor is a net/http handler that marshals the finished answer and has no database to ask."

func measureRoute(ctx context.Context, l *lab) []result {
	dir := l.folder()
	blobs := must(blob.OpenDir(dir))
	defer blobs.Close()
	var images, texts []result
	for _, size := range []int64{1e6, 10e6, 100e6} {
		info := must(blobs.Put(ctx, jpeg(size), 0))
		image, text := routeInProcess(ctx, l, blobs, info)
		images, texts = append(images, image), append(texts, text)
	}
	images[1].target = target{limit: 3e9}
	return append(append(images, texts...), routeOverHTTP(ctx, l)...)
}

func routeInProcess(ctx context.Context, l *lab, blobs blob.Store, info blob.Info) (image, text result) {
	source := route.Source{
		ID: "picture.jpg", Filename: "picture.jpg", Info: artel.MediaInfo{MediaType: "image/jpeg", Kind: artel.KindImage, Size: info.Size},
		Open: func() (io.ReadCloser, error) { return blobs.Open(ctx, info.Digest) },
	}
	answer := func(t route.Target) func() error {
		return func() error { return route.New(source, t, phrase.English).Encode(ctx, io.Discard) }
	}
	naive := func() error {
		f := must(source.Open())
		defer f.Close()
		data := must(io.ReadAll(f))
		url := map[string]any{"url": "data:image/jpeg;base64," + base64.StdEncoding.EncodeToString(data)}
		return json.NewEncoder(io.Discard).Encode(map[string]any{
			"contentType": "image", "routing": "image_url", "imageUrl": map[string]any{"type": "image_url", "image_url": url},
		})
	}
	const while = 150 * time.Millisecond
	m := interleave(l.rounds(3),
		perSecond(float64(info.Size), while, answer(route.Target{Capabilities: seeing()})), perSecond(float64(info.Size), while, naive),
		perSecond(1, while, answer(route.Target{})), perSecond(1, while, func() error { return json.NewEncoder(io.Discard).Encode(finished()) }))
	size := bytesOf(info.Size)
	return result{work: "image to a discarding writer", size: size, unit: gbPerSec(), artel: m[0], anchor: m[1]},
		result{work: "text-only answer, in process", size: size, unit: times("answers"), artel: m[2], anchor: m[3], target: target{limit: 20e3}}
}

// finished is an answer in the shape of a [route.Result].
func finished() any {
	return struct {
		ContentType string           `json:"contentType"`
		Routing     string           `json:"routing"`
		Content     string           `json:"content"`
		Metadata    route.Metadata   `json:"metadata"`
		IsBinary    bool             `json:"isBinary"`
		Step        artel.Step       `json:"step"`
		Reason      artel.Reason     `json:"reason"`
		Need        artel.Capability `json:"need"`
		Suggested   []string         `json:"suggestedServices"`
	}{
		"image", "text", strings.Repeat("The file is an image. ", 20),
		route.Metadata{ID: "picture.jpg", Type: "image", Filename: "picture.jpg", MimeType: "image/jpeg", Size: 1e6, CreatedAt: "2026-01-01T00:00:00Z", BinaryType: "image"},
		true, artel.StepDescribed, artel.ReasonCapabilityMissing, artel.CanVision,
		[]string{},
	}
}

func servePlain(_ context.Context, mux *http.ServeMux, _ string) io.Closer {
	mux.HandleFunc("GET /route", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(finished())
	})
	return closers{}
}

const connections = 16

func routeOverHTTP(ctx context.Context, l *lab) (results []result) {
	var running processes
	defer running.stop()
	server, uploads := running.startArtel(ctx, l)
	plain := running.startRole(ctx, "plain")
	var memory []result
	for i, size := range []int64{1e6, 10e6, 100e6} {
		a := uploadImage(ctx, uploads, size, i)
		path := strings.TrimPrefix(uploads, server.url) + "/" + string(a.ID) + "/route?capabilities=text"
		asked := requestsPerSecond(ctx, server, path)
		asked() // so that the heap has the size of this load
		var m []float64
		above := server.aboveIdle(func() error {
			m = interleave(l.rounds(3), asked, requestsPerSecond(ctx, plain, "/route"))
			return nil
		})
		text := bytesOf(size)
		results = append(results, result{work: "text-only answer, over HTTP", size: text, unit: times("answers"), artel: m[0], anchor: m[1], target: target{limit: 8e3, reference: 35e3}})
		memory = append(memory, result{work: "text-only answer, rise of the server's memory", size: text, unit: megabytes(), artel: float64(above)})
	}
	return append(results, memory...)
}

func uploadImage(ctx context.Context, uploads string, size int64, n int) artel.Artifact {
	base, rest, _ := strings.Cut(uploads, httpapi.Base+"/conversations/")
	id, _, _ := strings.Cut(rest, "/")
	return must(httpapi.NewClient(base, nil).Upload(ctx, artel.ConversationID(id), fmt.Sprintf("picture-%d.jpg", n), "image/jpeg", jpeg(size), size))
}

// requestsPerSecond sends requests over persistent connections with a minimal client,
// because client and server share the processors.
func requestsPerSecond(ctx context.Context, p *process, path string) sample {
	return func() float64 {
		addr := strings.TrimPrefix(p.url, "http://")
		request := []byte("GET " + path + " HTTP/1.1\r\nHost: " + addr + "\r\n\r\n")
		var answers atomic.Int64
		began := time.Now()
		end := began.Add(500 * time.Millisecond)
		check(atOnce(connections, func(int) error { return ask(ctx, addr, request, end, &answers) }))
		return float64(answers.Load()) / time.Since(began).Seconds()
	}
}

func ask(ctx context.Context, addr string, request []byte, end time.Time, answers *atomic.Int64) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for time.Now().Before(end) {
		if _, err := conn.Write(request); err != nil {
			return err
		}
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s answers %s", addr, resp.Status)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		answers.Add(1)
	}
	return nil
}
