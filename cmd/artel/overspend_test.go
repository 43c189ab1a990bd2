// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/store"
)

// newGenerous returns a model service that reads a request as leniently as servers do:
// of two members with one name the last counts, of two limits the larger, and numbers
// may be texts. It writes answers of 300 tokens if it may, as many as it is asked for,
// and bills 10 for the request.
func newGenerous(t *testing.T) *httptest.Server {
	number := func(v any) int {
		switch v := v.(type) {
		case float64:
			return int(v)
		case string:
			n, _ := strconv.Atoi(v)
			return n
		}
		return 0
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in map[string]any
		_ = json.NewDecoder(r.Body).Decode(&in)
		most, answers := 0, 1
		for _, object := range []any{in, in["generationConfig"], in["generation_config"]} {
			object, _ := object.(map[string]any)
			for _, name := range []string{"max_tokens", "max_completion_tokens", "max_output_tokens", "maxOutputTokens"} {
				most = max(most, number(object[name]))
			}
			for _, name := range []string{"n", "best_of", "candidateCount", "candidate_count"} {
				answers = max(answers, number(object[name]))
			}
		}
		if prompts, ok := in["prompt"].([]any); ok {
			answers *= len(prompts)
		}
		if most == 0 || most > 300 {
			most = 300
		}
		out := most * answers
		w.Header().Set("Content-Type", "application/json")
		switch p := r.URL.Path; {
		case strings.HasSuffix(p, ":generateContent"):
			fmt.Fprintf(w, `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":%d,"totalTokenCount":%d}}`, out, out+10)
		case strings.HasSuffix(p, "/responses"):
			fmt.Fprintf(w, `{"id":"r","object":"response","status":"completed","model":"m","output":[{"type":"message","id":"m","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}],"usage":{"input_tokens":10,"output_tokens":%d,"total_tokens":%d}}`, out, out+10)
		case strings.HasSuffix(p, "/batches"):
			_, _ = io.WriteString(w, `{"id":"batch_1","object":"batch","status":"validating"}`)
		default:
			fmt.Fprintf(w, `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"text":"hi","message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":10,"completion_tokens":%d,"total_tokens":%d}}`, out, out+10)
		}
	}))
	t.Cleanup(s.Close)
	return s
}

// TestBudgetIsNotTricked: however a request says how long and how many its answers may
// be, a call costs no more than its key has left.
func TestBudgetIsNotTricked(t *testing.T) {
	upstream := newGenerous(t)
	g := newGuarded(t, access.Options{}, func(c *config) {
		price := map[string]any{"input": 4, "output": 4}
		c.Services = []any{
			map[string]any{"id": "chat", "dialect": "openai", "baseURL": upstream.URL + "/v1", "model": "m", "price": price},
			map[string]any{"id": "gem", "dialect": "gemini", "baseURL": upstream.URL, "model": "m", "apiKey": "k", "price": price},
			map[string]any{"id": "resp", "dialect": "openai-responses", "baseURL": upstream.URL + "/v1", "model": "m", "apiKey": "k", "price": price},
		}
	})
	const (
		chat        = "/v1/chat/completions"
		completions = "/v1/completions"
		gem         = "/v1beta/models/gem:generateContent"
		hi          = `"messages":[{"role":"user","content":"hi"}]`
		contents    = `"contents":[{"parts":[{"text":"hi"}]}]`
	)
	for _, r := range []struct{ path, body string }{
		{chat, `{"model":"chat",` + hi + `}`},
		{chat, `{"model":"chat","max_tokens":16,"max_tokens":300,` + hi + `}`},
		{chat, `{"model":"chat","max_tokens":300,"max_tokens":16,` + hi + `}`},
		{chat, `{"model":"chat","max_tokens":null,` + hi + `}`},
		{chat, `{"model":"chat","max_tokens":"300",` + hi + `}`},
		{chat, `{"model":"chat","max_completion_tokens":16,"max_tokens":300,` + hi + `}`},
		{chat, `{"model":"chat","max_tokens":16,"max_tok\u0065ns":300,` + hi + `}`},
		{chat, `{"model":"chat","n":8,` + hi + `}`},
		{chat, `{"model":"chat","n":1,` + hi + `,"n":8}`},
		{chat, `{"model":"chat","max_tokens":20,"n":8,` + hi + `}`},
		{completions, `{"model":"chat","prompt":"hi"}`},
		{completions, `{"model":"chat","prompt":"hi","max_tokens":300}`},
		{completions, `{"model":"chat","prompt":["hi","hi","hi","hi","hi","hi","hi","hi"],"max_tokens":20}`},
		{completions, `{"model":"chat","prompt":"hi","best_of":8,"max_tokens":25}`},
		{gem, `{"generationConfig":{"maxOutputTokens":"300"},` + contents + `}`},
		{gem, `{"generationConfig":{"candidateCount":8},` + contents + `}`},
		{gem, `{"generationConfig":{"candidateCount":"8","maxOutputTokens":20},` + contents + `}`},
		{gem, `{"generationConfig":{"maxOutputTokens":16},"generation_config":{"max_output_tokens":300},` + contents + `}`},
		{gem, `{"generationConfig":{"maxOutputTokens":16},"generationConfig":{"maxOutputTokens":300},` + contents + `}`},
		{gem, `{"generationConfig":{},"generation_config":{},` + contents + `}`},
		{"/v1/responses", `{"model":"resp","max_output_tokens":16,"max_output_tokens":300,"input":"hi"}`},
	} {
		var made struct{ ID, Key string }
		g.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"little","budget":{"usd":0.001,"period":"day"}}`)
		before := g.spent(store.ByKey)
		resp, text, err := g.callModel(r.path, r.body, made.Key)
		if err != nil {
			t.Fatal(err)
		}
		cost := g.spent(store.ByKey).Cost - before.Cost
		if resp.StatusCode == http.StatusOK && cost == 0 || resp.StatusCode >= 500 || cost > 1_000_000 {
			t.Errorf("%s %s: %s, cost %d of 1000000 billionths of a dollar: %s", r.path, r.body, resp.Status, cost, text)
		}
	}

	// What a batch costs is not known when it begins.
	var limited, free struct{ ID, Key string }
	g.must(&limited, "POST", "/api/v1/gateway/keys", `{"name":"little","budget":{"usd":0.001,"period":"day"}}`)
	g.must(&free, "POST", "/api/v1/gateway/keys", `{"name":"free"}`)
	const batch = `{"input_file_id":"file-1","endpoint":"/v1/chat/completions","completion_window":"24h"}`
	for key, want := range map[string]int{limited.Key: http.StatusBadRequest, free.Key: http.StatusOK} {
		resp, text := g.ask("POST", "/v1/batches", batch, "Authorization", "Bearer "+key, "X-Artel-Service", "chat")
		if resp.StatusCode != want || want != http.StatusOK && !strings.Contains(text, "the budget of the key little") {
			t.Errorf("a batch: %s %s, want %d", resp.Status, text, want)
		}
	}
	if resp, text := g.ask("POST", "/v1/batches/batch_1/cancel", "{}", "Authorization", "Bearer "+limited.Key, "X-Artel-Service", "chat"); resp.StatusCode != http.StatusOK {
		t.Errorf("ending a batch: %s %s", resp.Status, text)
	}

	// A response in the background is a run, whose calls count for the key that began it.
	before := g.spent(store.ByKey)
	for _, key := range []string{limited.Key, free.Key} {
		resp, text, err := g.callModel("/v1/responses", `{"model":"chat","input":"hi","background":true}`, key)
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("a response in the background: %v %s, %v", resp, text, err)
		}
		id := gjson.Get(text, "id").String()
		for !slices.Contains([]string{"completed", "failed"}, gjson.Get(text, "status").String()) {
			_, text = g.ask("GET", "/v1/responses/"+id, "", "Authorization", "Bearer "+free.Key)
		}
		cost := g.spent(store.ByKey).Cost - before.Cost
		if status := gjson.Get(text, "status").String(); key == limited.Key && cost > 1_000_000 || key == free.Key && (status != "completed" || cost == 0) {
			t.Errorf("in the background: %s, cost %d billionths of a dollar: %s", status, cost, text)
		}
	}
}

// TestFilesAtServices: the files and batches that a service keeps are those of all users
// of its account, so users who are no administrators neither list nor change them.
func TestFilesAtServices(t *testing.T) {
	var reached atomic.Int64
	upstream := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Add(1)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"data":[{"id":"file-of-ann","filename":"salaries.pdf"}]}`)
	}))
	t.Cleanup(upstream.Close)
	g := newGuarded(t, access.Options{Mode: access.Required}, func(c *config) {
		c.Services = []any{map[string]any{"id": "chat", "dialect": "openai", "baseURL": upstream.URL + "/v1", "model": "m"}}
	})
	admin := g.setUp()
	keyOf := func(cookie string) string {
		var made struct{ Key string }
		g.must(&made, "POST", "/api/v1/gateway/keys", `{"name":"laptop"}`, "Cookie", cookie, "Origin", g.http.URL)
		return made.Key
	}
	bob, ann := keyOf(g.user(admin, "bob@example.org", "member")), keyOf(admin)
	for _, r := range []struct{ method, path string }{
		{"GET", "/v1/files"},
		{"GET", "/v1/files/file-of-ann/content"},
		{"DELETE", "/v1/files/file-of-ann"},
		{"GET", "/v1/batches"},
		{"GET", "/v1/batches/b"},
		{"POST", "/v1/batches/b/cancel"},
		{"POST", "/v1/batches"},
	} {
		body := ""
		if r.method == "POST" {
			body = "{}"
		}
		before := reached.Load()
		if resp, text := g.ask(r.method, r.path, body, "Authorization", "Bearer "+bob, "X-Artel-Service", "chat"); resp.StatusCode != http.StatusForbidden || reached.Load() != before || !strings.Contains(text, "administrator") {
			t.Errorf("%s %s of a member: %s %s", r.method, r.path, resp.Status, text)
		}
		if resp, text := g.ask(r.method, r.path, body, "Authorization", "Bearer "+ann, "X-Artel-Service", "chat"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s %s of an administrator: %s %s", r.method, r.path, resp.Status, text)
		}
	}
}
