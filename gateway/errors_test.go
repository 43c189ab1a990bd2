// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
)

// refusals are errors as the services of each dialect report them.
var refusals = map[string]string{
	"chat": `{"error": {"message": "LONG Unsupported value: 'temperature' (key sk-upstream-key)", "type": "invalid_request_error", "param": "temperature", "code": "unsupported_value"}}`,
	"messages": `{"type":"error","error":{"type":"invalid_request_error","message":"LONG sk-upstream-key","details":{"error_visibility":"user_facing"}},` +
		`"request_id":"req_011"}`,
	"responses": `{"error":{"message":"LONG sk-upstream-key","type":"insufficient_quota","param":null,"code":null}}`,
	"gemini": `{"error":{"code":400,"message":"LONG sk-upstream-key","status":"INVALID_ARGUMENT","details":[` +
		`{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"x"}]}]}}`,
}

// TestErrorsPassThrough: a client of the service's dialect gets its error with
// status, body and the fields of the header that libraries act on, without keys.
func TestErrorsPassThrough(t *testing.T) {
	b := newBench(t, setup{caller: model.CallerOptions{Attempts: 1}})
	header := map[string]string{
		"X-Request-Id": "req_1", "Request-Id": "req_2", "X-Should-Retry": "false", "Retry-After-Ms": "1500", "X-Ratelimit-Remaining-Requests": "0",
		"Anthropic-Ratelimit-Requests-Remaining": "0", "Openai-Processing-Ms": "7 sk-upstream-key",
	}
	for dialect, said := range refusals {
		said = strings.Replace(said, "LONG", strings.Repeat("long ", 300), 1)
		for _, status := range []int{400, 429, 529} {
			b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				for name, value := range header {
					w.Header().Set(name, value)
				}
				w.Header().Set("Set-Cookie", "secret=1")
				w.WriteHeader(status)
				_, _ = io.WriteString(w, said)
			})
			for _, stream := range []bool{true, false} {
				path, body := request(dialect, dialect, stream)
				resp := b.send(apptest.Context(t), path, body)
				got, _ := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				<-b.finished
				if want := strings.ReplaceAll(said, "sk-upstream-key", "(secret)"); resp.StatusCode != status || string(got) != want {
					t.Errorf("%s %d: %d, not what the service said: %.80s", dialect, status, resp.StatusCode, got)
				}
				for name, value := range header {
					if v := resp.Header.Get(name); v != strings.ReplaceAll(value, "sk-upstream-key", "(secret)") {
						t.Errorf("%s %d: %s is %q", dialect, status, name, v)
					}
				}
				if resp.Header.Get("Retry-After") != "2" || resp.Header.Get("Set-Cookie") != "" {
					t.Errorf("%s: header %v", dialect, resp.Header)
				}
				if e := b.entry(); e.Status != status || len(e.Error) > 510 || strings.Contains(e.Error, "sk-upstream-key") {
					t.Errorf("%s: entry %+v", dialect, e)
				}
			}
		}
	}
}

// TestErrorsInEvents: the error in an event that begins a stream is the body of the error
// response, without the other members of the event.
func TestErrorsInEvents(t *testing.T) {
	b := newBench(t, setup{caller: model.CallerOptions{Attempts: 1}})
	for _, c := range []struct{ dialect, event, want string }{
		{
			"chat", `{"id":"x","choices":[{"index":0,"delta":{"content":""},"finish_reason":"error"}],"error":{"code":429,"message":"slow down","type":"rate_limit_error"}}`,
			`{"error":{"code":429,"message":"slow down","type":"rate_limit_error"}}`,
		},
		{"chat", `{"id":"x","error":{"code":429,"message":"sk-upstream-key"}}`, `{"error":{"code":429,"message":"(secret)"}}`},
		{
			"responses", `{"type":"error","sequence_number":1,"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"slow down"}}`,
			`{"error":{"type":"rate_limit_error","code":"rate_limit_exceeded","message":"slow down"}}`,
		},
		{
			"gemini", `{"responseId":"x","error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`,
			`{"error":{"code":429,"message":"slow down","status":"RESOURCE_EXHAUSTED"}}`,
		},
		{
			"messages", `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"},"request_id":"r"}`,
			`{"type":"error","error":{"type":"rate_limit_error","message":"slow down"},"request_id":"r"}`,
		},
	} {
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, "event: "+gjson.Get(c.event, "type").String()+"\ndata: "+c.event+"\n\n")
		})
		path, body := request(c.dialect, c.dialect, true)
		if status, got := b.post(path, body); status != 429 || got != c.want {
			t.Errorf("%s: %d %s, want %s", c.dialect, status, got, c.want)
		}
	}
}

// TestErrorsOfOtherDialects: across dialects, an error keeps its class and loses the
// words that the client's dialect does not have.
func TestErrorsOfOtherDialects(t *testing.T) {
	b := newBench(t, setup{caller: model.CallerOptions{Attempts: 1}})
	for _, c := range []struct {
		client, service, said string
		status                int
		path, want            string
	}{
		{"chat", "messages", `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, 400, "error.code", ""},
		{"chat", "messages", `{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, 400, "error.type", "invalid_request_error"},
		{"responses", "gemini", `{"error":{"code":400,"message":"no","status":"INVALID_ARGUMENT"}}`, 400, "error.code", ""},
		{"chat", "messages", `{"type":"error","error":{"type":"rate_limit_error","message":"no"}}`, 429, "error.code", "rate_limit_exceeded"},
		{"chat", "messages", `{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 9 tokens > 8 maximum"}}`, 400, "error.code", "context_length_exceeded"},
		{"chat", "responses", `{"error":{"message":"no","type":"invalid_request_error","param":null,"code":"model_not_found"}}`, 404, "error.code", "model_not_found"},
		{"chat", "responses", `{"error":{"message":"no","type":"invalid_request_error","param":null,"code":null}}`, 400, "error.code", ""},
		{"messages", "chat", `{"error":{"message":"This model's maximum context length is 8 tokens.","type":"invalid_request_error","code":"context_length_exceeded"}}`, 400, "error.message", "prompt is too long: This model's maximum context length is 8 tokens."},
		{"messages", "chat", `{"error":{"message":"no","type":"server_error"}}`, 503, "error.type", "overloaded_error"},
		{"gemini", "chat", `{"error":{"message":"no","type":"rate_limit_error"}}`, 429, "error.status", "RESOURCE_EXHAUSTED"},
	} {
		b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-Id", "foreign")
			w.WriteHeader(c.status)
			_, _ = io.WriteString(w, c.said)
		})
		for _, stream := range []bool{true, false} {
			path, body := request(c.client, c.service, stream)
			status, got := b.post(path, body)
			if v := gjson.Get(got, c.path).String(); status != c.status || v != c.want || strings.Contains(got, "details") {
				t.Errorf("%s to %s: %d %s is %q, want %q: %s", c.client, c.service, status, c.path, v, c.want, got)
			}
		}
	}
}
