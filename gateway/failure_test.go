// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// TestClassOfErrorsInStreams: a client of any dialect reads the class of an error
// that a service reports in the middle of a translated answer.
func TestClassOfErrorsInStreams(t *testing.T) {
	b := newBench(t)
	for status, want := range map[int]map[string][]string{
		429: {"chat": {`"type":"rate_limit_error"`}, "messages": {`"type":"rate_limit_error"`}, "responses": {`"code":"rate_limit_exceeded"`}, "gemini": {`"code":429`, "RESOURCE_EXHAUSTED"}},
		529: {"chat": {`"type":"server_error"`}, "messages": {`"type":"overloaded_error"`}, "responses": {`"code":"server_error"`}, "gemini": {`"code":529`}},
	} {
		b.answer = func(context.Context, *model.Request) iter.Seq2[model.Delta, error] {
			return func(yield func(model.Delta, error) bool) {
				_ = yield(model.TextDelta("half"), nil) &&
					yield(nil, &artel.Error{Op: "test", Kind: artel.Unavailable, Err: &model.CallError{Service: "other", Status: status, Message: "too much at once"}})
			}
		}
		for dialect, words := range want {
			path, body := request(dialect, "other", true)
			code, got := b.post(path, body)
			if code != 200 || !strings.Contains(got, "too much at once") {
				t.Errorf("%s, %d: %d %s", dialect, status, code, got)
			}
			for _, w := range words {
				if !strings.Contains(got, w) {
					t.Errorf("%s, %d: no %s in %s", dialect, status, w, got)
				}
			}
		}
	}
}

// request returns a request for an answer in a dialect, and its path.
func request(dialect, service string, stream bool) (path, body string) {
	flag := ""
	if stream {
		flag = `"stream":true,`
	}
	switch dialect {
	case "messages":
		return "/v1/messages", `{` + flag + `"model":"` + service + `","max_tokens":100,"messages":[{"role":"user","content":"hi"}]}`
	case "responses":
		return "/v1/responses", `{` + flag + `"model":"` + service + `","input":"hi"}`
	case "gemini":
		method := ":generateContent"
		if stream {
			method = ":streamGenerateContent?alt=sse"
		}
		return "/v1beta/models/" + service + method, `{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}`
	}
	return "/v1/chat/completions", `{` + flag + `"model":"` + service + `","messages":[{"role":"user","content":"hi"}]}`
}

// TestStreamWithoutDone: an answer of Chat Completions with a finish reason is whole,
// also if the server sends no [DONE].
func TestStreamWithoutDone(t *testing.T) {
	b := newBench(t)
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write([]byte("data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"all of it\"},\"finish_reason\":null}]}\n\n" +
			"data: {\"id\":\"a\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n"))
	})
	for _, dialect := range []string{"chat", "messages", "responses", "gemini"} {
		for _, stream := range []bool{true, false} {
			if dialect == "chat" && !stream {
				continue // a whole answer has no events
			}
			path, body := request(dialect, "chat", stream)
			status, got := b.post(path, body)
			if status != 200 || !strings.Contains(got, "all of it") || strings.Contains(got, "broke off") || strings.Contains(got, `"error":{`) {
				t.Errorf("%s, stream %v: %d %s", dialect, stream, status, got)
			}
			if e := b.entry(); e.Status != 200 || e.Error != "" || e.Tries != 1 {
				t.Errorf("%s, stream %v: %+v", dialect, stream, e)
			}
		}
	}
}

// TestFirstCause: a fallback that refuses the request does not replace the reason why
// the first service did not answer, which tells the client to try again.
func TestFirstCause(t *testing.T) {
	b := newBench(t, setup{caller: model.CallerOptions{Attempts: 1}, services: func(s []model.Service) []model.Service {
		s[0].Fallbacks = []artel.ServiceID{"text"}
		return s
	}})
	b.upstream = http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if b.calls() == 1 {
			w.WriteHeader(http.StatusServiceUnavailable)
			_, _ = w.Write([]byte(`{"error":{"message":"busy today","type":"server_error"}}`))
			return
		}
		w.WriteHeader(http.StatusNotFound)
		_, _ = w.Write([]byte(`{"error":{"message":"no such model","type":"invalid_request_error","code":"model_not_found"}}`))
	})
	path, body := request("chat", "chat", false)
	status, got := b.post(path, body)
	if status != 503 || !strings.Contains(got, "busy today") || b.calls() != 2 {
		t.Errorf("%d %s after %d calls", status, got, b.calls())
	}
}
