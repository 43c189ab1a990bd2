// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const gatewayAbout = "Requests of 2 KB for Chat Completions, and streams of 100 pieces, go through `artel serve` to a server that answers at once; everything is on. " +
	"The anchor is `httputil.ReverseProxy` with the body read first, without which it cuts streams short; beside it Portkey (npm, pinned), where npm is there. " +
	"Client, gateway and server share this machine's processors, and every answer is looked at to its end. " +
	"Processor time is what the process between them takes for one answer, user and system. " +
	"What is added to one request at a time is the median with a gateway between less that without. " +
	"The first piece of a tool call is late by the time from its writing at the server to its reading at the client, as a median; translated are calls of Chat Completions for a client of Messages."

func measureGateway(ctx context.Context, l *lab) (results []result) {
	var running processes
	defer running.stop()
	up := running.startRole(ctx, "instant")
	proxy := running.startRole(ctx, "proxy", "--data", up.url)
	dir := l.folder()
	config := filepath.Join(dir, "artel.yaml")
	entry := "services: [{id: bench, baseURL: '" + up.url + "/v1', model: bench-model, capabilities: {input: [text]}, context_window: 100000}]\nlog: {level: error}\n"
	check(os.WriteFile(config, []byte(entry), 0o600))
	artel := running.start(ctx, l.program, "serve", "--data", filepath.Join(dir, "data"), "--config", config)

	through := []endpoint{{name: "artel", url: artel.url}, {name: "proxy", url: proxy.url}}
	if problem := catch(func() { running = append(running, startPortkey(ctx, l)) }); problem == nil {
		portkey := running[len(running)-1]
		through = append(through, endpoint{name: "portkey", url: portkey.url, header: "x-portkey-provider: openai\r\nx-portkey-custom-host: " + up.url + "/v1\r\n"})
	} else {
		fmt.Fprintln(os.Stderr, "Portkey is NOT MEASURED:", problem)
	}
	direct := endpoint{name: "direct", url: up.url}

	for _, w := range []struct {
		work   string
		stream bool
		unit   unit
		while  time.Duration
	}{
		{"2 KB requests", false, times("requests"), 2 * time.Second},
		{"streams of 100 pieces", true, times("streams"), 2 * time.Second},
	} {
		var samples []sample
		spent := make([][]float64, 2) // of artel and the proxy, for one answer
		for i, t := range through {
			samples = append(samples, func() float64 {
				if i >= len(spent) {
					_, perSecond := requestLoad(ctx, t, 64, w.stream, w.while)
					return perSecond
				}
				p := []*process{artel, proxy}[i]
				before := p.busy()
				n, perSecond := requestLoad(ctx, t, 64, w.stream, w.while)
				spent[i] = append(spent[i], (p.busy()-before).Seconds()/float64(n))
				return perSecond
			})
		}
		m := interleave(l.rounds(5), samples...)
		results = append(results, result{work: w.work, size: "64 connections", unit: w.unit, artel: m[0], anchor: m[1], target: target{ratio: 0.75}})
		if len(m) > 2 {
			results = append(results, result{work: w.work + ", beside Portkey", size: "64 connections", unit: w.unit, artel: m[0], anchor: m[2], target: target{ratio: 12}})
		}
		results = append(results, result{work: w.work + ", processor time of one", size: "64 connections", unit: millis(), artel: median(spent[0]), anchor: median(spent[1])})
	}

	var samples []sample
	for _, t := range append([]endpoint{direct}, through[:2]...) {
		samples = append(samples, func() float64 { return medianLatency(ctx, t, 2000) })
	}
	m := interleave(l.rounds(5), samples...)
	results = append(results, result{work: "added to a 2 KB request", size: "1 connection", unit: millis(), artel: m[1] - m[0], anchor: m[2] - m[0], target: target{limit: 0.0004, reference: 0.00025}})

	results = append(results, firstPieces(ctx, l, through[0], through[1])...)

	var memory []float64
	for _, p := range []*process{artel, proxy} {
		p.resetPeak()
		during("1,000 streams at once", func() { check(concurrentStreams(ctx, p.url, 1000)) })
		memory = append(memory, float64(p.peak()))
	}
	return append(results, result{work: "resident memory", size: "1,000 streams at once", unit: megabytes(), artel: memory[0], anchor: memory[1], target: target{limit: 400e6}})
}

// An endpoint is the target of requests.
type endpoint struct {
	name, url, header string
	key               string // "": any
}

// chatRequest is a request of 2 KB.
func chatRequest(t endpoint, stream bool) []byte {
	body := `{"model":"bench","messages":[{"role":"system","content":"Answer shortly."},{"role":"user","content":"` + strings.Repeat("What is said here does not matter. ", 52) + `"}],"temperature":0.5`
	path := "/v1/chat/completions"
	if stream {
		body += `,"stream":true`
		path += "" // the server looks at the body
	}
	body += "}"
	addr := strings.TrimPrefix(t.url, "http://")
	return []byte("POST " + path + " HTTP/1.1\r\nHost: " + addr + "\r\nAuthorization: Bearer " + cmp.Or(t.key, "sk-bench") + "\r\nContent-Type: application/json\r\n" + t.header +
		"Content-Length: " + strconv.Itoa(len(body)) + "\r\n\r\n" + body)
}

// connection sends requests one after the other.
type connection struct {
	conn    net.Conn
	in      *bufio.Reader
	request []byte
	stream  bool
	buf     []byte
}

func dialConnection(ctx context.Context, t endpoint, stream bool) (*connection, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", strings.TrimPrefix(t.url, "http://"))
	if err != nil {
		return nil, err
	}
	return &connection{conn: conn, in: bufio.NewReaderSize(conn, 32<<10), request: chatRequest(t, stream), stream: stream, buf: make([]byte, 64<<10)}, nil
}

// ask makes one request and checks the end of the answer.
func (a *connection) ask() error {
	if _, err := a.conn.Write(a.request); err != nil {
		return err
	}
	resp, err := http.ReadResponse(a.in, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var tail [16]byte
	n, kept := 0, 0
	for {
		k, err := resp.Body.Read(a.buf)
		n += k
		if k >= len(tail) {
			kept = copy(tail[:], a.buf[k-len(tail):k])
		} else if k > 0 {
			joined := append(slices.Clone(tail[:kept]), a.buf[:k]...)
			kept = copy(tail[:], joined[max(0, len(joined)-len(tail)):])
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
	}
	end := "}"
	if a.stream {
		end = "data: [DONE]\n\n"
	}
	if resp.StatusCode != http.StatusOK || !bytes.HasSuffix(bytes.TrimRight(tail[:kept], "\n"), []byte(strings.TrimRight(end, "\n"))) {
		return fmt.Errorf("an answer of status %d and %d bytes ends with %q", resp.StatusCode, n, tail[:kept])
	}
	return nil
}

// requestLoad sends requests over many connections for a while and returns their
// number and rate.
func requestLoad(ctx context.Context, t endpoint, connections int, stream bool, while time.Duration) (n int, perSecond float64) {
	var answers atomic.Int64
	began := time.Now()
	err := atOnce(connections, func(int) error {
		a, err := dialConnection(ctx, t, stream)
		if err != nil {
			return err
		}
		defer a.conn.Close()
		for time.Since(began) < while && ctx.Err() == nil {
			if err := a.ask(); err != nil {
				return err
			}
			answers.Add(1)
		}
		return nil
	})
	took := time.Since(began).Seconds()
	if err != nil {
		fail("%s: %w", t.name, err)
	}
	n = int(answers.Load())
	return n, float64(n) / took
}

// medianLatency returns the median duration of a request in seconds.
func medianLatency(ctx context.Context, t endpoint, n int) float64 {
	a := must(dialConnection(ctx, t, false))
	defer a.conn.Close()
	times := make([]float64, 0, n)
	for range n {
		began := time.Now()
		if err := a.ask(); err != nil {
			fail("%s: %w", t.name, err)
		}
		times = append(times, time.Since(began).Seconds())
	}
	return median(times)
}

// concurrentStreams opens n streams at once, each of which takes two seconds.
func concurrentStreams(ctx context.Context, url string, n int) error {
	return atOnce(n, func(int) error {
		a, err := dialConnection(ctx, endpoint{url: url, header: "OpenAI-Beta: slow\r\n"}, true)
		if err != nil {
			return err
		}
		defer a.conn.Close()
		return a.ask()
	})
}

// serveInstant is a model that answers immediately; a request header makes a stream
// take two seconds.
func serveInstant(_ context.Context, mux *http.ServeMux, _ string) io.Closer {
	answer := []byte(`{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"bench-model","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("A short answer. ", 12) + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":400,"completion_tokens":40,"total_tokens":440}}`)
	piece := func(delta, finish string) []byte {
		return []byte(`data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"bench-model","choices":[{"index":0,"delta":` + delta + `,"finish_reason":` + finish + `}]}` + "\n\n")
	}
	word, last := piece(`{"content":" word"}`, "null"), piece("{}", `"stop"`)
	mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		if !bytes.Contains(body, []byte(`"stream":true`)) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(answer)
			return
		}
		slow := r.Header.Get("OpenAI-Beta") == "slow"
		w.Header().Set("Content-Type", "text/event-stream")
		if bytes.Contains(body, []byte(`"clock"`)) {
			writeCall(w, piece)
			return
		}
		flush := http.NewResponseController(w).Flush
		for i := range 100 {
			if _, err := w.Write(word); err != nil {
				return
			}
			if slow && i%10 == 0 {
				_ = flush()
				time.Sleep(200 * time.Millisecond)
			}
		}
		_, _ = w.Write(last)
		_, _ = io.WriteString(w, "data: [DONE]\n\n")
	})
	return closers{}
}

// serveProxy is the anchor: a reverse proxy that reads the body first.
func serveProxy(_ context.Context, mux *http.ServeMux, to string) io.Closer {
	u := must(url.Parse(to))
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost, transport.MaxIdleConns, transport.DisableCompression = 2000, 2000, true
	proxy := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(u) },
		Transport:     transport,
		FlushInterval: -1,
	}
	mux.HandleFunc("POST /v1/", func(w http.ResponseWriter, r *http.Request) {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		proxy.ServeHTTP(w, r)
	})
	return closers{}
}

// startPortkey installs the version of Portkey's gateway pinned in bench/portkey and
// starts it.
func startPortkey(ctx context.Context, l *lab) *process {
	for _, program := range []string{"npm", "node"} {
		must(exec.LookPath(program))
	}
	dir := l.folder()
	check(os.CopyFS(dir, os.DirFS(filepath.Join(l.root, "bench", "portkey"))))
	install := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
	install.Dir = dir
	if out, err := install.CombinedOutput(); err != nil {
		fail("npm ci: %w: %s", err, out)
	}
	return start(ctx, "/", filepath.Join(dir, "run"))
}
