// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel/httpapi"
)

const doorsAbout = "What it costs that a server is for several users. The rows of the gateway go through servers with users, by a key with limits and a budget " +
	"for a service with a price, while the metrics are read every second, and traces go to a collector; the anchor is the same program without users, keys, prices and traces. " +
	"A request with a token is one of the API or the gateway to a server with users; its anchor is the same request to one without, each sent in turn over one connection. " +
	"What is added is the difference of the two medians."

func measureDoors(ctx context.Context, l *lab) (results []result) {
	var running processes
	defer running.stop()
	up := running.startRole(ctx, "instant")
	collector := running.startRole(ctx, "collector")
	serve := func(config string, env ...string) *process {
		dir := l.folder()
		file := filepath.Join(dir, "artel.yaml")
		check(os.WriteFile(file, []byte("services: [{id: bench, baseURL: '"+up.url+"/v1', model: bench-model, capabilities: {input: [text]}, context_window: 100000"+config+"}]\nlog: {level: error}\n"), 0o600))
		p := startIn(ctx, env, "/healthz", l.program, "serve", "--data", filepath.Join(dir, "data"), "--config", file)
		running = append(running, p)
		return p
	}
	const price = ", price: {input: 1, output: 2}"
	const traces = "OTEL_EXPORTER_OTLP_ENDPOINT="
	const limited = `{"name":"bench","requests_per_minute":1000000,"tokens_per_minute":1000000000000,"concurrent":10000,"budget":{"usd":1000000,"period":"month"}}`
	plain, users := serve(""), serve("")
	token := setUp(ctx, users).make(ctx, "/tokens", `{"name":"bench","scopes":["write","gateway"]}`).Token
	variants := []struct {
		name string
		env  []string
	}{
		{"a key, a budget and metrics", nil},
		{"and traces of every request", []string{traces + collector.url}},
		{"and traces of one request in ten", []string{traces + collector.url, "OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_TRACES_SAMPLER_ARG=0.1"}},
	}
	servers, through := []*process{plain}, []endpoint{{name: "plain", url: plain.url}}
	for _, v := range variants {
		p := serve(price, v.env...)
		servers, through = append(servers, p), append(through, endpoint{name: v.name, url: p.url, key: setUp(ctx, p).make(ctx, "/gateway/keys", limited).Key})
		defer scrape(ctx, p.url)()
	}
	for _, w := range []struct {
		work   string
		stream bool
		unit   unit
	}{
		{"2 KB requests", false, times("requests")},
		{"streams of 100 pieces", true, times("streams")},
	} {
		spent := make([][]float64, len(through))
		var samples []sample
		for i, t := range through {
			samples = append(samples, func() float64 {
				before := servers[i].busy()
				n, perSecond := requestLoad(ctx, t, 64, w.stream, 2*time.Second)
				spent[i] = append(spent[i], (servers[i].busy()-before).Seconds()/float64(n))
				return perSecond
			})
		}
		m := interleave(l.rounds(5), samples...)
		for i, v := range variants {
			results = append(results,
				result{work: w.work + ", " + v.name, size: "64 connections", unit: w.unit, artel: m[i+1], anchor: m[0], target: target{ratio: 0.95}},
				result{work: w.work + ", " + v.name + ", processor time of one", size: "64 connections", unit: millis(), artel: median(spent[i+1]), anchor: median(spent[0])})
		}
	}

	for _, w := range []struct {
		work    string
		request func(endpoint) []byte
	}{
		{"GET /api/v1/conversations", listRequest},
		{"a 2 KB request of the gateway", func(t endpoint) []byte { return chatRequest(t, false) }},
	} {
		var m [2]float64
		var rounds [2][]float64
		for range l.rounds(5) {
			a, b := inTurn(ctx, w.request, endpoint{name: "token", url: users.url, key: token}, endpoint{name: "no token", url: plain.url}, 1500)
			rounds[0], rounds[1] = append(rounds[0], a), append(rounds[1], b)
		}
		for i, list := range rounds {
			m[i] = median(list)
		}
		results = append(results,
			result{work: w.work + ", with a token", size: "1 connection", unit: millis(), artel: m[0], anchor: m[1]},
			result{work: "added by the token to " + w.work, size: "1 connection", unit: millis(), artel: m[0] - m[1], target: target{limit: 0.0001}})
	}
	return results
}

// An administrator is one who has just set a server up.
type administrator struct {
	server *process
	cookie *http.Cookie
}

func setUp(ctx context.Context, p *process) administrator {
	resp := post(ctx, p.url, "/setup", `{"name":"Bench","email":"bench@example.org","password":"a long password"}`, nil)
	defer resp.Body.Close()
	for _, c := range resp.Cookies() {
		return administrator{p, c}
	}
	fail("the set-up answers %s without a cookie", resp.Status)
	return administrator{}
}

// made is what was made: a token or a key.
type made struct{ Token, Key string }

func (a administrator) make(ctx context.Context, path, body string) (m made) {
	resp := post(ctx, a.server.url, path, body, a.cookie)
	defer resp.Body.Close()
	check(json.NewDecoder(resp.Body).Decode(&m))
	return m
}

// post sends a request of the API, which has to be answered with a success.
func post(ctx context.Context, to, path, body string, session *http.Cookie) *http.Response {
	r := must(http.NewRequestWithContext(ctx, http.MethodPost, to+httpapi.Base+path, strings.NewReader(body)))
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Origin", to)
	if session != nil {
		r.AddCookie(session)
	}
	resp := must(http.DefaultClient.Do(r))
	if resp.StatusCode >= http.StatusMultipleChoices {
		text, _ := io.ReadAll(resp.Body)
		fail("POST %s: %s %s", path, resp.Status, text)
	}
	return resp
}

// scrape reads the metrics every second, as Prometheus does, until the result is called.
func scrape(ctx context.Context, url string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		every := time.NewTicker(time.Second)
		defer every.Stop()
		for ctx.Err() == nil {
			r := must(http.NewRequestWithContext(ctx, http.MethodGet, url+"/metrics", http.NoBody))
			if resp, err := http.DefaultClient.Do(r); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
			select {
			case <-ctx.Done():
			case <-every.C:
			}
		}
	})
	return func() { cancel(); wg.Wait() }
}

// listRequest lists the conversations.
func listRequest(t endpoint) []byte {
	text := "GET " + httpapi.Base + "/conversations HTTP/1.1\r\nHost: " + strings.TrimPrefix(t.url, "http://") + "\r\n"
	if t.key != "" {
		text += "Authorization: Bearer " + t.key + "\r\n"
	}
	return []byte(text + "\r\n")
}

// inTurn sends n requests to each of two servers, one to the first and one to the second,
// and returns the median duration of each in seconds.
func inTurn(ctx context.Context, request func(endpoint) []byte, first, second endpoint, n int) (a, b float64) {
	var open [2]*connection
	var took [2][]float64
	for i, t := range []endpoint{first, second} {
		open[i] = must(dialConnection(ctx, t, false))
		open[i].request = request(t)
		defer open[i].conn.Close()
	}
	for range n {
		for i, c := range open {
			began := time.Now()
			during([]string{first.name, second.name}[i], func() { check(c.ask()) })
			took[i] = append(took[i], time.Since(began).Seconds())
		}
	}
	return median(took[0]), median(took[1])
}

// serveCollector takes what OpenTelemetry sends, and keeps nothing.
func serveCollector(_ context.Context, mux *http.ServeMux, _ string) io.Closer {
	mux.HandleFunc("POST /v1/", func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/x-protobuf")
	})
	return closers{}
}
