// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway"
	"github.com/artelhq/artel/model"
)

// get asks the bench with GET and returns the answer's status and body.
func (b *bench) get(path string, header ...string) (int, string) {
	b.t.Helper()
	return b.ask(http.MethodGet, path, "", header...)
}

func (b *bench) ask(method, path, body string, header ...string) (int, string) {
	b.t.Helper()
	req, err := http.NewRequestWithContext(apptest.Context(b.t), method, b.url+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		b.t.Fatal(err)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		b.t.Fatal(err)
	}
	return resp.StatusCode, string(got)
}

// TestUnknownPaths: a program with a wrong base URL reads what is wrong with it, in
// the words of its API; a browser gets the page.
func TestUnknownPaths(t *testing.T) {
	b := newBench(t)
	for _, c := range []struct{ method, path, shape, says string }{
		{"POST", "/chat/completions", `{"error":{"message":`, "ends with /v1"},
		{"POST", "/responses", `{"error":{"message":`, "for the path /v1/responses"},
		{"POST", "/messages", `"type":"not_found_error"`, "ends with /v1"},
		{"GET", "/models", `{"error":{"message":`, "for the path /v1/models"},
		{"POST", "/v1/v1/messages", `"type":"not_found_error"`, "/v1 twice"},
		{"GET", "/v1/responses/resp_1", `{"error":{"message":`, "Response with id 'resp_1' not found"},
		{"GET", "/v1/conversations/conv_1/items", `{"error":{"message":`, "Conversation with id 'conv_1' not found"},
		{"GET", "/v1", `{"error":{"message":`, "Invalid URL (GET /v1)"},
		{"POST", "/api/chat", `{"error":"`, "OpenAI-compatible server with the base URL " + b.url + "/v1"},
		{"GET", "/api/tags", `{"error":"`, "no API of Ollama"},
		{"POST", "/upload/v1beta/files", `"status":"NOT_FOUND"`, "inlineData"},
		{"POST", "/v1beta/cachedContents", `"status":"NOT_FOUND"`, "Invalid URL"},
		{"POST", "/v1beta1/projects/p/locations/l/x", `"status":"NOT_FOUND"`, "Invalid URL"},
		{"POST", "/openai/deployments/d/chat/completions", `{"error":{"message":`, "Azure's addresses"},
	} {
		status, body := b.ask(c.method, c.path, "{}")
		if status != 404 || !strings.Contains(body, c.shape) || !strings.Contains(body, c.says) || !json.Valid([]byte(body)) {
			t.Errorf("%s %s: %d %s", c.method, c.path, status, body)
		}
	}
	for path, want := range map[string]bool{"/chat/completions": false, "/v1/x": true, "/": false, "/c/1": false, "/api/v1/services": false} {
		r := httptest.NewRequest(http.MethodGet, path, http.NoBody)
		r.Header.Set("Accept", "text/html,application/xhtml+xml,*/*;q=0.8")
		if got := gateway.Serves(r); got != want {
			t.Errorf("a browser at %s: %v, want %v", path, got, want)
		}
	}
	if r := httptest.NewRequest(http.MethodGet, "/models", http.NoBody); !gateway.Serves(r) {
		t.Error("/models is left to the page")
	}
}

// TestOtherAddresses: the addresses that Google's SDKs ask for with another version of
// the API, and those of Google's OpenAI-compatible endpoints, are served.
func TestOtherAddresses(t *testing.T) {
	b := newBench(t)
	_, contents := request("gemini", "chat", false)
	for _, path := range []string{"/v1/models/chat:generateContent", "/v1alpha/models/chat:generateContent", "/v1/publishers/google/models/chat:generateContent", "/v1beta1/projects/p/locations/l/publishers/google/models/chat:generateContent"} {
		if status, body := b.post(path, contents); status != 200 || !strings.Contains(body, `"candidates"`) {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, chat := request("chat", "chat", false)
	if status, body := b.post("/v1beta/openai/chat/completions", chat); status != 200 || !strings.Contains(body, `"choices"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := b.get("/v1beta/openai/models"); status != 200 || !strings.Contains(body, `"object":"list"`) {
		t.Errorf("%d %s", status, body)
	}
	if status, body := b.get("/v1/models/a:b"); status != 404 || !strings.Contains(body, "model_not_found") {
		t.Errorf("the name of a model with a colon: %d %s", status, body)
	}
}

// TestModelsForCodex: Codex gets its own form of the list, without the models whose
// instructions it has.
func TestModelsForCodex(t *testing.T) {
	b := newBench(t, setup{services: func(s []model.Service) []model.Service {
		s[0].Capabilities.ContextWindow = model.Fact[int]{Value: 64_000, Source: model.FromOperator}
		s[4].ID = "gpt-5.5"
		return s
	}})
	status, body := b.get("/v1/models?client_version=0.169.0")
	var list struct {
		Models []struct {
			Slug    artel.ServiceID
			Prompt  string   `json:"base_instructions"`
			Window  int      `json:"context_window"`
			Inputs  []string `json:"input_modalities"`
			Shell   string   `json:"shell_type"`
			Visible string   `json:"visibility"`
		}
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil || status != 200 || len(list.Models) == 0 {
		t.Fatalf("%v: %d %s", err, status, body)
	}
	first := list.Models[0]
	if first.Slug != "chat" || first.Prompt == "" || first.Window != 64_000 || len(first.Inputs) != 2 || first.Shell == "" || first.Visible != "list" {
		t.Errorf("%+v", first)
	}
	if strings.Contains(body, "gpt-5.5") {
		t.Error("a model that Codex knows is listed")
	}
}
