// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"
)

const clientsAbout = "A workflow with 100 calls of a tool whose results have 5 KB each, as in temporalio/sdk-python#1890, leaves its history to `artel serve`: it names the conversation in a header and sends the result " +
	"alone, in another dialect after every ten calls. The anchor is a client that sends everything each time through the same gateway. " +
	"Bytes are those of all bodies, beside the bytes that are new. The way to the service is the time from the first byte that the client sends, which it does as soon as the answer before has ended, to " +
	"the arrival of the request at the service; the row with 10,000 messages has a window of 100,000 tokens, into which all of them fit."

// A workflowModel calls a tool again and again, and says when a request has arrived.
type workflowModel struct {
	calls   atomic.Int64
	arrived chan time.Time
}

// ServeHTTP implements [http.Handler].
func (m *workflowModel) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	at := time.Now()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	if bytes.Contains(body, []byte(`"tools"`)) { // otherwise it is about the title of the conversation
		m.arrived <- at
	}
	id := m.calls.Add(1)
	if !bytes.Contains(body, []byte(`"stream":true`)) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[{"id":"call_%d","type":"function","function":{"name":"look","arguments":"{}"}}]}}]}`, id)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprintf(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"tool_calls\":[{\"index\":0,\"id\":\"call_%d\",\"type\":\"function\",\"function\":{\"name\":\"look\",\"arguments\":\"{}\"}}]}}]}\n\n", id)
	fmt.Fprint(w, "data: {\"id\":\"c\",\"object\":\"chat.completion.chunk\",\"created\":1,\"model\":\"m\",\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"tool_calls\"}]}\n\ndata: [DONE]\n\n")
}

// workflowRequest is a request with one text, or with the result of a call, in a dialect.
func workflowRequest(dialect, text, call string) (path, body string) {
	quoted := string(must(json.Marshal(text)))
	switch dialect {
	case "messages":
		content := quoted
		if call != "" {
			content = `[{"type":"tool_result","tool_use_id":"` + call + `","content":` + quoted + `}]`
		}
		return "/v1/messages", `{"model":"bench","max_tokens":900,"messages":[{"role":"user","content":` + content + `}],"tools":[{"name":"look","input_schema":{"type":"object"}}]}`
	case "responses":
		item := `{"role":"user","content":` + quoted + `}`
		if call != "" {
			item = `{"type":"function_call_output","call_id":"` + call + `","output":` + quoted + `}`
		}
		return "/v1/responses", `{"model":"bench","input":[` + item + `],"tools":[{"type":"function","name":"look","parameters":{"type":"object"}}]}`
	case "gemini":
		part := `{"text":` + quoted + `}`
		if call != "" {
			part = `{"functionResponse":{"name":"look","id":"` + call + `","response":{"output":` + quoted + `}}}`
		}
		return "/v1beta/models/bench:generateContent", `{"contents":[{"role":"user","parts":[` + part + `]}],"tools":[{"functionDeclarations":[{"name":"look","parameters":{"type":"OBJECT"}}]}]}`
	}
	message := `{"role":"user","content":` + quoted + `}`
	if call != "" {
		message = `{"role":"tool","tool_call_id":"` + call + `","content":` + quoted + `}`
	}
	return "/v1/chat/completions", `{"model":"bench","messages":[` + message + `],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]}`
}

// A workflow is a client of a conversation.
type workflow struct {
	url, conversation string
	model             *workflowModel
	sent, largest     int
}

// ask makes a request and returns the time until it arrived at the service.
func (f *workflow) ask(ctx context.Context, path, body string, header ...string) time.Duration {
	req := must(http.NewRequestWithContext(ctx, http.MethodPost, f.url+path, strings.NewReader(body)))
	if f.conversation != "" {
		req.Header.Set("X-Artel-Conversation", f.conversation)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	f.sent, f.largest = f.sent+len(body), max(f.largest, len(body))
	began := time.Now()
	resp := must(http.DefaultClient.Do(req))
	defer resp.Body.Close()
	answer := must(io.ReadAll(resp.Body))
	if resp.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte("look")) {
		fail("%s: %s %s", path, resp.Status, answer)
	}
	if id := resp.Header.Get("X-Artel-Conversation"); id != "" {
		f.conversation = id
	}
	return (<-f.model.arrived).Sub(began)
}

const (
	workflowCalls = 100
	resultBytes   = 5 << 10
)

func measureClients(ctx context.Context, l *lab) (results []result) {
	model := &workflowModel{arrived: make(chan time.Time, 1000)}
	up := httptest.NewServer(model)
	defer up.Close()
	var running processes
	defer running.stop()
	dir := l.folder()
	config := filepath.Join(dir, "artel.yaml")
	entry := "services: [{id: bench, baseURL: '" + up.URL + "/v1', model: bench-model, capabilities: {input: [text]}, context_window: 1000000}]\nlog: {level: error}\n"
	check(os.WriteFile(config, []byte(entry), 0o600))
	artel := running.start(ctx, l.program, "serve", "--data", filepath.Join(dir, "data"), "--config", config)

	text := strings.Repeat("A line of a result of a tool. ", resultBytes/30)
	last := func() string { return fmt.Sprintf("call_%d", model.calls.Load()) }
	lean := workflow{url: artel.url, conversation: "new", model: model}
	path, body := workflowRequest("chat", "Begin.", "")
	lean.ask(ctx, path, body)
	fresh := 0
	var ways []float64
	for i := range workflowCalls {
		path, body := workflowRequest([]string{"chat", "messages", "responses", "gemini"}[i/10%4], text, last())
		fresh += len(text)
		ways = append(ways, lean.ask(ctx, path, body).Seconds())
	}
	all := workflow{url: artel.url, model: model}
	var history strings.Builder
	history.WriteString(`{"role":"user","content":"Begin."}`)
	var whole []float64
	for range workflowCalls {
		call := last()
		quoted := string(must(json.Marshal(text)))
		fmt.Fprintf(&history, `,{"role":"assistant","tool_calls":[{"id":%q,"type":"function","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":%q,"content":%s}`, call, call, quoted)
		whole = append(whole, all.ask(ctx, "/v1/chat/completions", `{"model":"bench","messages":[`+history.String()+`],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]}`).Seconds())
	}
	results = append(results,
		result{work: "bytes from the client, to those that are new", size: "100 calls", unit: unit{"times", 1, false}, artel: float64(lean.sent) / float64(fresh), anchor: float64(all.sent) / float64(fresh), target: target{limit: 1.2}},
		result{work: "largest request", size: "100 calls", unit: kilobytes(), artel: float64(lean.largest), anchor: float64(all.largest), target: target{limit: 64e3}},
		result{work: "way to the service", size: "calls 81 to 100", unit: millis(), artel: median(ways[80:]), anchor: median(whole[80:]), target: target{limit: 0.005}},
	)
	for _, messages := range []int{100, 10_000} {
		results = append(results, longConversation(ctx, artel.url, model, messages))
	}
	first, long := results[len(results)-2], results[len(results)-1]
	return append(results, result{work: "way to the service, later with 10,000 messages than with 100 by", size: "–", unit: millis(), artel: long.artel - first.artel, anchor: long.anchor - first.anchor, target: target{limit: 0.010}})
}

// longConversation measures the way to the service in a conversation with so many messages.
func longConversation(ctx context.Context, url string, model *workflowModel, messages int) result {
	var history strings.Builder
	for i := range messages / 2 {
		fmt.Fprintf(&history, `{"role":"user","content":"Question %d."},{"role":"assistant","content":"Answer %d."},`, i, i)
	}
	body := func(more string) string {
		return `{"model":"bench","messages":[` + more + `{"role":"user","content":"Go on."}],"tools":[{"type":"function","function":{"name":"look","parameters":{"type":"object"}}}]}`
	}
	lean, all := workflow{url: url, conversation: "new", model: model}, workflow{url: url, model: model}
	lean.ask(ctx, "/v1/chat/completions", body(history.String()))
	m := interleave(9,
		func() float64 { return lean.ask(ctx, "/v1/chat/completions", body("")).Seconds() },
		func() float64 { return all.ask(ctx, "/v1/chat/completions", body(history.String())).Seconds() })
	return result{work: "way to the service", size: count(messages, "messages"), unit: millis(), artel: m[0], anchor: m[1]}
}
