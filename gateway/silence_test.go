// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"iter"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway/backend"
	"github.com/artelhq/artel/internal/fetch/fetchtest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// bubbled is a bench in a synctest bubble whose gateway has a URL, so that its
// deadlines pass in no time.
func bubbled(t *testing.T, s setup) *bench {
	s.bubble = true
	b := newBench(t, s)
	server, client := fetchtest.Serve(t, b.handler)
	b.url, b.client = server.URL, client
	return b
}

// The kinds of streams that a client may ask for.
var streamKinds = []string{"chat", "messages", "responses", "gemini", "gemini list"}

// streamRequest is request for one of streamKinds.
func streamRequest(kind, service string) (path, body string) {
	path, body = request(strings.TrimSuffix(kind, " list"), service, true)
	if strings.HasSuffix(kind, " list") {
		path = strings.TrimSuffix(path, "?alt=sse")
	}
	return path, body
}

// native are streams of services in their own dialects: what comes before the
// answer, its first piece, and the rest.
var native = map[string][]string{
	"chat": {
		": PROCESSING\n\ndata: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"finish_reason\":null}]}\n\n",
		"data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"said\"},\"finish_reason\":null}]}\n\n",
		"data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n",
	},
	"messages": {
		"event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"type\":\"message\",\"role\":\"assistant\",\"content\":[],\"usage\":{\"input_tokens\":3,\"output_tokens\":1}}}\n\n" +
			"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n",
		"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\"said\"}}\n\n",
		"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":0}\n\nevent: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{\"stop_reason\":\"end_turn\"},\"usage\":{\"output_tokens\":2}}\n\n" +
			"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
	},
	"responses": {
		"event: response.created\ndata: {\"type\":\"response.created\",\"sequence_number\":0,\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}\n\n" +
			"event: response.in_progress\ndata: {\"type\":\"response.in_progress\",\"sequence_number\":1,\"response\":{\"id\":\"r\",\"status\":\"in_progress\"}}\n\n",
		"event: response.output_text.delta\ndata: {\"type\":\"response.output_text.delta\",\"sequence_number\":2,\"item_id\":\"m\",\"output_index\":0,\"content_index\":0,\"delta\":\"said\"}\n\n",
		"event: response.completed\ndata: {\"type\":\"response.completed\",\"sequence_number\":3,\"response\":{\"id\":\"r\",\"status\":\"completed\",\"output\":[{\"type\":\"message\",\"id\":\"m\",\"role\":\"assistant\",\"content\":[{\"type\":\"output_text\",\"text\":\"said\"}]}]}}\n\n",
	},
	"gemini": {
		"data: {\"usageMetadata\":{\"promptTokenCount\":3}}\r\n\r\n",
		"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"said\"}]}}],\"x\":1}\r\n\r\n",
		"data: {\"candidates\":[{\"content\":{\"role\":\"model\",\"parts\":[{\"text\":\"\"}]},\"finishReason\":\"STOP\"}]}\r\n\r\n",
	},
}

// failing are the events with which services report in a stream that they are busy.
var failing = map[string]string{
	"chat":      "data: {\"error\":{\"message\":\"busy today\",\"code\":503}}\n\n",
	"messages":  "event: error\ndata: {\"type\":\"error\",\"error\":{\"type\":\"overloaded_error\",\"message\":\"busy today\"}}\n\n",
	"responses": "event: error\ndata: {\"type\":\"error\",\"sequence_number\":2,\"code\":\"server_error\",\"message\":\"busy today\"}\n\n",
	"gemini":    "data: {\"error\":{\"code\":503,\"message\":\"busy today\",\"status\":\"UNAVAILABLE\"}}\r\n\r\n",
}

// play writes pieces of a stream, each after the wait.
func play(w http.ResponseWriter, r *http.Request, wait time.Duration, pieces ...string) {
	for _, piece := range pieces {
		select {
		case <-time.After(wait):
		case <-r.Context().Done():
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, piece)
		_ = http.NewResponseController(w).Flush()
	}
}

// TestKeepAlive: a client is never without a byte for more than 15 seconds,
// before the answer and inside of it, and what it reads is a stream of its dialect.
func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bubbled(t, setup{})
		const thinks = 50 * time.Second
		b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
			return func(yield func(model.Delta, error) bool) {
				<-time.After(thinks)
				if yield(model.TextDelta("said"), nil) {
					<-time.After(thinks)
					_ = yield(model.Finish{Reason: model.StopEnd}, nil)
				}
			}
		}
		for _, kind := range streamKinds {
			dialect := strings.TrimSuffix(kind, " list")
			b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				play(w, r, thinks, native[dialect][0]+native[dialect][1], native[dialect][2])
			})
			for _, service := range []string{dialect, "other"} {
				path, body := streamRequest(kind, service)
				begun := time.Now()
				resp := b.send(apptest.Context(t), path, body)
				var all strings.Builder
				longest, before := time.Duration(0), begun
				buf := make([]byte, 4096)
				for {
					n, err := resp.Body.Read(buf)
					longest, before = max(longest, time.Since(before)), time.Now()
					all.Write(buf[:n])
					if err == io.EOF {
						break
					}
					if err != nil {
						t.Fatal(kind, service, err)
					}
				}
				_ = resp.Body.Close()
				<-b.finished
				got := all.String()
				if resp.StatusCode != 200 || longest > 15*time.Second || time.Since(begun) != 2*thinks || !strings.Contains(got, "said") {
					t.Errorf("%s to %s: %d, %v without a byte, %v in all: %q", kind, service, resp.StatusCode, longest, time.Since(begun), got)
				}
				alive := map[string]string{
					"chat": ": keep-alive\n\n", "messages": "event: ping\ndata: {\"type\": \"ping\"}\n\n", "responses": ": keep-alive\n\n",
					"gemini": `{"candidates":[{"content":{"role":"model","parts":[{"text":"","thought":true}]},"index":0}]}` + "\r\n\r\n", "gemini list": "\r\n",
				}[kind]
				if strings.Count(got, alive) < 6 {
					t.Errorf("%s to %s: not 6 of %q in %q", kind, service, alive, got)
				}
				if kind == "gemini list" && !json.Valid([]byte(got)) {
					t.Errorf("to %s: no list: %q", service, got)
				}
				if e := b.entry(); e.Status != 200 || e.Tries > 1 || e.BytesOut != int64(len(got)) {
					t.Errorf("%s to %s: entry %+v", kind, service, e)
				}
			}
		}
	})
}

// TestErrorAfterKeepAlive: if a service refuses after a long silence, its error
// arrives in the stream that has begun; a fallback can still answer in it.
func TestErrorAfterKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bubbled(t, setup{services: func(s []model.Service) []model.Service {
			s[2].Fallbacks = []artel.ServiceID{"other"}
			return s
		}})
		status := 400
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			<-time.After(20 * time.Second)
			w.WriteHeader(status)
			_, _ = io.WriteString(w, `{"error":{"message":"busy today","code":`+map[int]string{400: `null`, 501: `"x"`}[status]+`}}`)
		})
		for _, kind := range streamKinds {
			dialect := strings.TrimSuffix(kind, " list")
			for _, service := range []string{dialect, "text"} {
				path, body := streamRequest(kind, service)
				code, got := b.post(path, body)
				fails := map[string]string{
					"chat": `data: {"error":{`, "messages": "event: error\ndata: {", "responses": "event: error\ndata: {", "gemini": `data: {"error":{`, "gemini list": `[{"error":{`,
				}[kind]
				if code != 200 || !strings.Contains(got, fails) || !strings.Contains(got, "busy today") || b.entry().Status != 400 {
					t.Errorf("%s to %s: %d %q, entry %+v", kind, service, code, got, b.entry())
				}
				if kind == "gemini list" && !json.Valid([]byte(got)) {
					t.Errorf("to %s: no list: %q", service, got)
				}
			}
		}
		status = 503
		for _, kind := range streamKinds {
			path, body := streamRequest(kind, "text")
			code, got := b.post(path, body)
			if code != 200 || !strings.Contains(got, "user: text: hi") || strings.Contains(got, "busy") || b.entry().Service != "other" {
				t.Errorf("fallback for %s: %d %q", kind, code, got)
			}
		}
	})
}

// TestPreludeIsHeldBack: what a service sends before its answer does not prevent
// another attempt, and of the attempt that failed, nothing reaches the client.
func TestPreludeIsHeldBack(t *testing.T) {
	b := newBench(t)
	for dialect, stream := range native {
		for name, end := range map[string]string{"an error": failing[dialect], "a break": "", "garbage": "data: <html>\n\n"} {
			before := b.calls()
			b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if b.calls()-before == 1 {
					play(w, r, 0, stream[0]+strings.ReplaceAll(stream[0], `"a"`, `"b"`), end)
					return
				}
				play(w, r, 0, stream...)
			})
			path, body := request(dialect, dialect, true)
			status, got := b.post(path, body)
			if status != 200 || got != stream[0]+stream[1]+stream[2] || b.calls()-before != 2 {
				t.Errorf("%s, %s: %d calls, %d %q", dialect, name, b.calls()-before, status, got)
			}
		}
	}
}

// TestGarbageInAStream: an event that is not JSON ends a stream with an error of the
// dialect; what came before it is passed on.
func TestGarbageInAStream(t *testing.T) {
	b := newBench(t)
	for _, kind := range streamKinds {
		dialect := strings.TrimSuffix(kind, " list")
		stream := native[dialect]
		for _, joined := range []bool{true, false} {
			b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				pieces := []string{stream[0] + stream[1], "data: {\"half\n\n", stream[2]}
				if joined {
					pieces = []string{strings.Join(pieces, "")}
				}
				play(w, r, 0, pieces...)
			})
			path, body := streamRequest(kind, dialect)
			status, got := b.post(path, body)
			if status != 200 || !strings.Contains(got, "said") || !strings.Contains(got, "not valid JSON") || strings.Contains(got, "half") || strings.Contains(got, stream[2]) {
				t.Errorf("%s: %d %q", kind, status, got)
			}
			if e := b.entry(); e.Status != 502 || e.Error == "" {
				t.Errorf("%s: entry %+v", kind, e)
			}
			if kind == "gemini list" && !json.Valid([]byte(got)) {
				t.Errorf("no list: %q", got)
			}
		}
	}
}

// TestErrorBesideChoices: an error that OpenRouter reports beside the last choice
// reaches the client as it is, and the log as a failure.
func TestErrorBesideChoices(t *testing.T) {
	b := newBench(t)
	for _, last := range []string{
		`data: {"id":"a","error":{"code":502,"message":"lost upstream"},"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n",
		`data: {"id":"a","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}]}` + "\n\n",
	} {
		stream := native["chat"][0] + native["chat"][1] + last + "data: [DONE]\n\n"
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { play(w, r, 0, stream) })
		path, body := request("chat", "chat", true)
		status, got := b.post(path, body)
		if e := b.entry(); status != 200 || got != stream || e.Status != 502 || e.Error == "" {
			t.Errorf("%d %q, entry %+v", status, got, e)
		}
	}
}

// TestGeminiListIsForwarded: a stream of Gemini without alt=sse keeps what only
// Gemini has, in the request and in the answer.
func TestGeminiListIsForwarded(t *testing.T) {
	b := newBench(t)
	asked := ""
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = r.URL.String()
		play(w, r, 0, native["gemini"]...)
	})
	more := `,"tools":[{"googleSearch":{}}],"safetySettings":[{"category":"HARM_CATEGORY_HARASSMENT","threshold":"OFF"}],"cachedContent":"cachedContents/x"}`
	path, body := streamRequest("gemini list", "gemini")
	body = strings.TrimSuffix(body, "}") + more
	status, got := b.post(path, body)
	var chunks []struct {
		X          int
		Candidates []any
	}
	if err := json.Unmarshal([]byte(got), &chunks); err != nil || status != 200 || len(chunks) != 3 || chunks[1].X != 1 {
		t.Errorf("%v: %d %q", err, status, got)
	}
	if b.last() != body || !strings.HasSuffix(asked, ":streamGenerateContent?alt=sse") {
		t.Errorf("asked %s with %s", asked, b.last())
	}
}

// TestClientDoesNotRead: a client that does not read its answer is disconnected
// after a minute, and others can use the service.
func TestClientDoesNotRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bubbled(t, setup{key: make([]byte, 32), services: func(s []model.Service) []model.Service {
			s[0].MaxConcurrent = 1
			return s
		}})
		large := strings.Replace(completion, "ok", strings.Repeat("x", 3<<20), 1)
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if b.calls()%2 == 0 {
				says(completion).ServeHTTP(w, r)
				return
			}
			says(large).ServeHTTP(w, r)
		})
		for _, service := range []string{"chat", "other"} {
			b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
				return func(yield func(model.Delta, error) bool) {
					_ = yield(model.TextDelta(large), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
				}
			}
			path, body := request("chat", service, false)
			resp := b.send(apptest.Context(t), path, body)
			begun := time.Now()
			other, answer := request("chat", "chat", false)
			if status, _ := b.post(other, answer); status != 200 { // of either, the first to finish
				t.Errorf("the next request: %d", status)
			}
			<-b.finished
			if waited := time.Since(begun); waited > 2*time.Minute {
				t.Errorf("%s: the service was free after %v", service, waited)
			}
			_ = resp.Body.Close()
			b.upstream = says(completion)
		}
	})
}

// TestClientDoesNotReadFiles: the same for an uploaded file, and for an answer that
// is passed on unchanged.
func TestClientDoesNotReadFiles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bubbled(t, setup{key: make([]byte, 32), options: backend.Options{Keys: []backend.Key{{Name: "k", Secret: "sk-k", Limits: store.KeyLimits{Concurrent: 1}}}}})
		b.upstream = says(strings.Repeat(" ", 3<<20) + "{}")
		auth := []string{"Authorization", "Bearer sk-k", "Content-Type", "multipart/form-data; boundary=b"}
		status, got := b.post("/v1/files", "--b\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n"+
			strings.Repeat("x", 3<<20)+"\r\n--b--\r\n", auth...)
		id := gjson.Get(got, "id").String()
		if status != 200 || id == "" {
			t.Fatalf("%d %s", status, got)
		}
		ask := func(method, path, body string) *http.Response {
			req, err := http.NewRequestWithContext(apptest.Context(t), method, b.url+path, strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer sk-k")
			resp, err := b.client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			return resp
		}
		for path, body := range map[string]string{"/v1/files/" + id + "/content": "", "/v1/embeddings": `{"model":"chat","input":"x"}`} {
			method := http.MethodGet
			if body != "" {
				method = http.MethodPost
			}
			begun := time.Now()
			resp := ask(method, path, body)
			<-b.finished
			if waited := time.Since(begun); resp.StatusCode != 200 || waited > 2*time.Minute {
				t.Errorf("%s: %d, the place of the key was free after %v", path, resp.StatusCode, waited)
			}
			_ = resp.Body.Close()
			other := ask(http.MethodGet, "/v1/models", "")
			if <-b.finished; other.StatusCode != 200 {
				t.Errorf("%s: the next request: %d", path, other.StatusCode)
			}
			_ = other.Body.Close()
		}
	})
}

// TestClientDoesNotSend: a client that stops in the middle of a request, or sends
// next to nothing, gets an error after a minute, and its slot is free.
func TestClientDoesNotSend(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := bubbled(t, setup{})
		for path, head := range map[string]string{
			"/v1/chat/completions": "", "/v1/messages": "", "/v1/responses": "", "/v1beta/models/gemini:generateContent": "", "/v1/messages/count_tokens": "",
			"/v1/embeddings": "", "/v1/files": "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\n",
			"/v1/audio/transcriptions": "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\n",
		} {
			near, far := net.Pipe()
			server := &http.Server{Handler: b.handler, ReadHeaderTimeout: time.Second}
			go func() { _ = server.Serve(&oneConn{conn: far, closed: make(chan struct{})}) }()
			begun := time.Now()
			sent := make(chan struct{})
			go func() {
				defer close(sent)
				_, _ = io.WriteString(near, "POST "+path+" HTTP/1.1\r\nHost: x\r\nContent-Type: multipart/form-data; boundary=b\r\nContent-Length: 1000000\r\n\r\n"+cmp.Or(head, "{"))
				for { // a byte now and then does not help
					<-time.After(10 * time.Second)
					if _, err := io.WriteString(near, " "); err != nil {
						return
					}
				}
			}()
			resp, err := http.ReadResponse(bufio.NewReader(near), httptest.NewRequest(http.MethodPost, path, nil))
			if err != nil {
				t.Fatal(err)
			}
			got, _ := io.ReadAll(resp.Body)
			<-b.finished
			if resp.StatusCode != 408 || !strings.Contains(string(got), "did not arrive") || time.Since(begun) > 61*time.Second || b.entry().Status != 408 {
				t.Errorf("%s: %d %s after %v, entry %+v", path, resp.StatusCode, got, time.Since(begun), b.entry())
			}
			_ = near.Close()
			_ = server.Close()
			<-sent
			<-time.After(time.Second) // for the server to close the connection
		}
	})
}

// oneConn is a listener of one connection.
type oneConn struct {
	conn   net.Conn
	closed chan struct{}
}

// Accept implements [net.Listener].
func (l *oneConn) Accept() (net.Conn, error) {
	if c := l.conn; c != nil {
		l.conn = nil
		return c, nil
	}
	<-l.closed
	return nil, net.ErrClosed
}

// Close implements [net.Listener].
func (l *oneConn) Close() error { close(l.closed); return nil }

// Addr implements [net.Listener].
func (*oneConn) Addr() net.Addr { return &net.TCPAddr{} }
