// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// replies serves recorded bodies, which are files, by "METHOD path".
func replies(t *testing.T, files map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, ok := files[r.Method+" "+r.URL.EscapedPath()]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			_, _ = io.WriteString(w, `{"error":"not found"}`)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/v1/models/claude-sonnet-5") && (r.Header.Get("X-Api-Key") != "sk-ant" || r.Header.Get("Anthropic-Version") == "") {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.HasPrefix(name, "gemini") && r.Header.Get("X-Goog-Api-Key") != "AIza" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		http.ServeFile(w, r, filepath.Join("testdata", "discovery", name))
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// TestServersSayWhatTheyTake asks every kind of server with the bodies that the
// real ones write.
func TestServersSayWhatTheyTake(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name    string
		files   map[string]string
		service model.Service
		input   string
		window  int
		output  int
	}{
		{
			"OpenRouter, less than the model could",
			map[string]string{"GET /v1/models": "openrouter-models.json"},
			model.Service{Model: "anthropic/claude-sonnet-4.5"},
			"text vision file", 200_000, 64_000,
		},
		{"OpenRouter, all inputs", map[string]string{"GET /v1/models": "openrouter-models.json"}, model.Service{Model: "google/gemini-2.5-flash"}, "text vision file audio video", 1_048_576, 65_535},
		{"OpenRouter, text", map[string]string{"GET /v1/models": "openrouter-models.json"}, model.Service{Model: "deepseek/deepseek-chat-v3.1"}, "text", 163_840, 147_456},
		{
			"Anthropic",
			map[string]string{"GET /v1/models/claude-sonnet-5": "anthropic-model.json"},
			model.Service{Dialect: model.Anthropic, Model: "claude-sonnet-5", APIKey: "sk-ant"},
			"text vision file", 1_000_000, 128_000,
		},
		{
			"Gemini",
			map[string]string{"GET /v1/models/gemini-2.5-pro": "gemini-model.json"},
			model.Service{Dialect: model.Gemini, Model: "models/gemini-2.5-pro", APIKey: "AIza"},
			"text vision file audio video", 1_048_575, 65_535,
		},
		{
			"Gemini, whichever generates",
			map[string]string{"GET /v1/models": "gemini-models.json"},
			model.Service{Dialect: model.Gemini, APIKey: "AIza"},
			"text vision file audio video", 1_000_001, 8191,
		},
		{
			"Ollama, named in the configuration",
			map[string]string{"GET /v1/models": "ollama-models.json", "POST /api/show": "ollama-show.json"},
			model.Service{Model: "gemma3:4b"},
			"text vision", 8192, 0,
		},
		{
			"llama.cpp",
			map[string]string{"GET /v1/models": "llamacpp-models.json", "GET /props": "llamacpp-props.json"},
			model.Service{},
			"text vision", 16384, 0,
		},
		{
			"LM Studio",
			map[string]string{"GET /v1/models": "lmstudio-models.json", "GET /api/v1/models": "lmstudio-v1.json", "GET /api/v0/models": "lmstudio-v0.json"},
			model.Service{Model: "qwen/qwen2.5-vl-7b"},
			"text vision", 8192, 0,
		},
		{
			"an older LM Studio",
			map[string]string{"GET /v1/models": "lmstudio-models.json", "GET /api/v0/models": "lmstudio-v0.json"},
			model.Service{Model: "qwen/qwen2.5-vl-7b"},
			"text vision", 4096, 0,
		},
		{
			"LiteLLM",
			map[string]string{"GET /v1/models": "litellm-models.json", "GET /model/info": "litellm-info.json"},
			model.Service{Model: "team-vision", Server: model.LiteLLMServer},
			"text vision file", 200_000, 64_000,
		},
		{
			"LiteLLM, which is not sure",
			map[string]string{"GET /v1/models": "litellm-models.json", "GET /model/info": "litellm-info.json"},
			model.Service{Model: "team-unsure", Server: model.LiteLLMServer},
			"text", 0, 0,
		},
		{
			"vLLM, which says the window alone",
			map[string]string{"GET /v1/models": "vllm-models.json"},
			model.Service{Model: "Qwen/Qwen2.5-VL-7B-Instruct"},
			"text vision", 32768, 0,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := tt.service
			if s.Dialect == "" {
				s.Dialect = model.OpenAI
			}
			s.ID, s.BaseURL, s.Capabilities = "s", replies(t, tt.files)+"/v1", model.TextOnly()
			got, err := model.Complete(t.Context(), local(t), s)
			if err != nil {
				t.Fatal(err)
			}
			var input []string
			for _, can := range got.Capabilities.Input.Value {
				input = append(input, string(can))
			}
			c := got.Capabilities
			if diff := cmp.Diff(tt.input, strings.Join(input, " ")); diff != "" || c.ContextWindow.Value != tt.window || c.MaxOutput.Value != tt.output {
				t.Errorf("%s window %d, output %d", diff, c.ContextWindow.Value, c.MaxOutput.Value)
			}
			if tt.window > 0 && c.ContextWindow.Source != model.FromEndpoint {
				t.Errorf("the window is from %q", c.ContextWindow.Source)
			}
			// What the operator stated stays.
			s.Capabilities.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText}, Source: model.FromOperator}
			if got, err := model.Complete(t.Context(), local(t), s); err != nil || len(got.Capabilities.Input.Value) != 1 {
				t.Errorf("%+v, %v", got.Capabilities.Input, err)
			}
		})
	}
}

// TestServersThatFail: a query that fails means that it is not known, and what
// the others said stays.
func TestServersThatFail(t *testing.T) {
	t.Parallel()
	for _, kind := range model.Servers() {
		files := map[string]string{"GET /v1/models": "vllm-models.json"}
		s := model.Service{ID: "s", Dialect: model.OpenAI, BaseURL: replies(t, files) + "/v1", Model: "Qwen/Qwen2.5-VL-7B-Instruct", Server: kind, Capabilities: model.TextOnly()}
		got, err := model.Complete(t.Context(), local(t), s)
		switch kind {
		case model.NoServer:
			if err != nil || got.Capabilities.ContextWindow.Value != 0 {
				t.Errorf("%s: %v, %+v", kind, err, got.Capabilities)
			}
		case model.OpenRouterAPI, model.VLLMServer:
			if err != nil || got.Capabilities.ContextWindow.Value != 32768 {
				t.Errorf("%s: %v, %+v", kind, err, got.Capabilities)
			}
		case model.AnthropicServer:
			if err == nil || got.Capabilities.Input.Source == model.FromEndpoint {
				t.Errorf("%s: %v, %+v", kind, err, got.Capabilities)
			}
		default:
			if err == nil || got.Capabilities.ContextWindow.Value != 32768 || got.Model != s.Model {
				t.Errorf("%s: %v, %+v", kind, err, got.Capabilities)
			}
		}
	}
}

// TestNeighborsByTheirAnswers: servers on popular ports are told by answers
// that nobody else gives, and nothing is said of others.
func TestNeighborsByTheirAnswers(t *testing.T) {
	t.Parallel()
	off := nobody()
	for _, tt := range []struct {
		name string
		at   model.LocalServers
		want string
	}{
		{"LM Studio", model.LocalServers{LMStudio: replies(t, map[string]string{"GET /api/v1/models": "lmstudio-v1.json"})}, "lmstudio-qwen-qwen2.5-vl-7b [text vision] 8192"},
		{"an older LM Studio", model.LocalServers{LMStudio: replies(t, map[string]string{"GET /api/v0/models": "lmstudio-v0.json"})}, "lmstudio-qwen-qwen2.5-vl-7b [text vision] 4096"},
		{"vLLM", model.LocalServers{VLLM: replies(t, map[string]string{"GET /v1/models": "vllm-models.json"})}, "vllm-Qwen-Qwen2.5-VL-7B-Instruct [text vision] 32768"},
		{"another list of models", model.LocalServers{VLLM: replies(t, map[string]string{"GET /v1/models": "litellm-models.json"})}, ""},
		{"another server", model.LocalServers{LMStudio: replies(t, nil), VLLM: replies(t, nil)}, ""},
	} {
		tt.at.Ollama, tt.at.LlamaCPP = off, off
		if tt.at.LMStudio == "" {
			tt.at.LMStudio = off
		}
		if tt.at.VLLM == "" {
			tt.at.VLLM = off
		}
		got, _, err := model.DiscoverLocal(t.Context(), local(t), tt.at)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		var lines []string
		for _, s := range got {
			var input []string
			for _, can := range s.Capabilities.Input.Value {
				input = append(input, string(can))
			}
			lines = append(lines, string(s.ID)+" ["+strings.Join(input, " ")+"] "+strconv.Itoa(s.Capabilities.ContextWindow.Value))
			if !s.Callable() {
				t.Errorf("%+v cannot be called", s)
			}
		}
		if diff := cmp.Diff(tt.want, strings.Join(lines, "\n")); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	for _, f := range (model.LocalServers{}).Findings() {
		if f.Name != "Ollama" && f.Name != "llama.cpp" {
			t.Errorf("%s is told of before anybody has it", f.Name)
		}
	}
}

// TestRecordedBodies holds the files to being what the test says.
func TestRecordedBodies(t *testing.T) {
	t.Parallel()
	files, err := os.ReadDir(filepath.Join("testdata", "discovery"))
	if err != nil || len(files) != 14 {
		t.Errorf("%d files, %v", len(files), err)
	}
}
