// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/fetch"
	"github.com/artelhq/artel/model"
)

func TestDiscover(t *testing.T) {
	type found struct {
		ID       artel.ServiceID
		Base     string
		Model    string
		Callable bool
	}
	for _, tt := range []struct {
		name string
		env  map[string]string
		want []found
	}{
		{"nothing", nil, nil},
		{"blank", map[string]string{"OPENAI_API_KEY": "  "}, nil},
		{"OpenAI", map[string]string{"OPENAI_API_KEY": "k"}, []found{{"openai", "https://api.openai.com/v1", "gpt-5-mini", true}}},
		{"OpenAI, model", map[string]string{"OPENAI_API_KEY": "k", "OPENAI_MODEL": "gpt-4o"}, []found{{"openai", "https://api.openai.com/v1", "gpt-4o", true}}},
		{"its own address", map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "https://API.openai.com/v1/"}, []found{{"openai", "https://API.openai.com/v1", "gpt-5-mini", true}}},
		{"its own address without a key", map[string]string{"OPENAI_BASE_URL": "https://api.openai.com/v1"}, nil},
		{"another server, to be asked", map[string]string{"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://10.0.0.7:8000/v1/"}, []found{{"openai", "http://10.0.0.7:8000/v1", "", false}}},
		{"another server, model", map[string]string{"OPENAI_BASE_URL": "http://10.0.0.7/v1", "OPENAI_MODEL": "m"}, []found{{"openai", "http://10.0.0.7/v1", "m", true}}},
		{"all", map[string]string{"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k", "GEMINI_API_KEY": "k", "OPENROUTER_API_KEY": "k"}, []found{
			{"openai", "https://api.openai.com/v1", "gpt-5-mini", true},
			{"anthropic", "", "claude-sonnet-5", false},
			{"gemini", "", "gemini-2.5-flash", false},
			{"openrouter", "https://openrouter.ai/api/v1", "openrouter/auto", true},
		}},
	} {
		var got []found
		services := model.Discover(func(k string) string { return tt.env[k] }, model.OpenAI, model.Demo)
		for _, s := range services {
			got = append(got, found{s.ID, s.BaseURL, s.Model, s.Callable()})
			if !s.Callable() && s.Model != "" && !strings.Contains(s.Origin, "not spoken") {
				t.Errorf("%s: %s does not say why it cannot be called: %q", tt.name, s.ID, s.Origin)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	all := model.Discover(func(string) string { return "x" }, model.Dialects()...)
	for _, s := range all {
		if !s.Callable() {
			t.Errorf("%s cannot be called although its dialect is spoken", s.ID)
		}
	}
}

func local(t *testing.T) *http.Client {
	c := fetch.NewClient(fetch.Options{AllowPrivate: true})
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// answers serves fixed documents by "METHOD path".
func answers(t *testing.T, docs map[string]string) string {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		key := r.Method + " " + r.URL.Path
		if len(body) > 0 {
			var q struct{ Model string }
			_ = json.Unmarshal(body, &q)
			key += " " + q.Model
		}
		doc, ok := docs[key]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = io.WriteString(w, doc)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func nobody(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestComplete(t *testing.T) {
	base := answers(t, map[string]string{"GET /v1/models": `{"data":[
		{"id":"local-model","max_model_len":32768},
		{"id":"maker/eyes","context_length":200000,"architecture":{"input_modalities":["text","image","file"]},"top_provider":{"max_completion_tokens":9000}}]}`})
	s := model.Service{ID: "s", Dialect: model.OpenAI, BaseURL: base + "/v1", Capabilities: model.TextOnly()}

	got, err := model.Complete(t.Context(), local(t), s)
	if err != nil || got.Model != "local-model" || got.Capabilities.ContextWindow.Value != 32768 || got.Capabilities.Has(artel.CanVision) {
		t.Errorf("%+v, %v", got, err)
	}

	s.Model = "maker/eyes"
	s.Capabilities.ContextWindow = model.Fact[int]{Value: 1000, Source: model.FromOperator}
	s.Capabilities.MaxOutput = model.Fact[int]{Value: 1, Source: model.FromCatalog}
	got, err = model.Complete(t.Context(), local(t), s)
	c := got.Capabilities
	if err != nil || c.ContextWindow.Value != 1000 || c.MaxOutput.Value != 9000 || c.MaxOutput.Source != model.FromEndpoint || !c.Has(artel.CanFile) || c.Has(artel.CanAudio) {
		t.Errorf("%+v, %v", got, err)
	}

	s.Model = "gpt-4o" // not in the list
	if got, err = model.Complete(t.Context(), local(t), s); err != nil || got.Capabilities.Input.Source != model.FromCatalog {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestCompleteSendsTheKeyAndKeepsIt(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-5" {
			w.WriteHeader(http.StatusUnauthorized)
			fmt.Fprintf(w, "no\nkey")
			return
		}
		_, _ = io.WriteString(w, `{"data":[{"id":"m"}]}`)
	}))
	defer s.Close()
	svc := model.Service{ID: "s", Dialect: model.OpenAI, BaseURL: s.URL, APIKey: "sk-5"}
	if got, err := model.Complete(t.Context(), local(t), svc); err != nil || got.Model != "m" {
		t.Errorf("%+v, %v", got, err)
	}
	svc.APIKey = "sk-wrong-6"
	_, err := model.Complete(t.Context(), local(t), svc)
	if err == nil || !strings.Contains(err.Error(), "401") || strings.Contains(err.Error(), "wrong-6") || strings.Contains(err.Error(), "\n") {
		t.Errorf("%v", err)
	}
}

func TestCompleteFails(t *testing.T) {
	garbage := answers(t, map[string]string{"GET /models": "<html>"})
	empty := answers(t, map[string]string{"GET /models": `{"data":[]}`})
	for name, base := range map[string]string{"garbage": garbage, "empty": empty, "nobody": nobody(t), "no address": "http://[::1"} {
		s := model.Service{ID: "s", Dialect: model.OpenAI, BaseURL: base}
		got, err := model.Complete(t.Context(), local(t), s)
		if _, isOurs := err.(*artel.Error); !isOurs || !cmp.Equal(got, s) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := model.Complete(ctx, local(t), model.Service{Dialect: model.OpenAI, BaseURL: empty}); artel.KindOf(err) != artel.Canceled {
		t.Errorf("canceled: %v", err)
	}
	if _, err := model.Complete(t.Context(), fetch.NewClient(fetch.Options{}), model.Service{Dialect: model.OpenAI, BaseURL: empty}); artel.KindOf(err) != artel.Denied {
		t.Errorf("guarded: %v", err)
	}
	if s, err := model.Complete(t.Context(), nil, model.DemoService()); err != nil || s.ID != model.DemoID {
		t.Errorf("demo: %v", err)
	}
}

func TestDiscoverLocal(t *testing.T) {
	ollama := answers(t, map[string]string{
		"GET /api/tags":                          `{"models":[{"name":"gemma3:4b"},{"name":"nomic-embed-text:latest"},{"name":"llama3.2:3b"},{"name":"hf.co/x/y:q4"}]}`,
		"POST /api/show gemma3:4b":               `{"capabilities":["completion","vision"],"parameters":"stop \"a b\"\nnum_ctx    8192\n"}`,
		"POST /api/show nomic-embed-text:latest": `{"capabilities":["embedding"]}`,
		"POST /api/show llama3.2:3b":             `{"capabilities":["completion","tools"]}`,
	})
	llama := answers(t, map[string]string{
		"GET /props":     `{"modalities":{"vision":true,"audio":false},"default_generation_settings":{"n_ctx":4096}}`,
		"GET /v1/models": `{"data":[{"id":"qwen.gguf"}]}`,
	})
	got, err := model.DiscoverLocal(t.Context(), local(t), model.LocalServers{Ollama: ollama + "/", LlamaCPP: llama})
	if err == nil || !strings.Contains(err.Error(), "404") {
		t.Errorf("error %v, want that of the model that could not be shown", err)
	}
	var lines []string
	for _, s := range got {
		if !s.Callable() || !strings.HasPrefix(s.BaseURL, "http://127.0.0.1:") || !strings.HasSuffix(s.BaseURL, "/v1") {
			t.Errorf("%+v cannot be called", s)
		}
		lines = append(lines, fmt.Sprint(s.ID, " ", s.Model, " ", s.Capabilities.Input.Value, " ", s.Capabilities.ContextWindow.Value))
	}
	want := []string{
		"ollama-gemma3-4b gemma3:4b [text vision] 8192",
		"ollama-llama3.2-3b llama3.2:3b [text] 0",
		"ollama-hf.co-x-y-q4 hf.co/x/y:q4 [text] 0",
		"llamacpp qwen.gguf [text vision] 4096",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Error(diff)
	}
}

func TestDiscoverLocalFindsNobody(t *testing.T) {
	something := answers(t, map[string]string{"GET /": "a web page"})
	for name, at := range map[string]model.LocalServers{
		"nobody listens":      {Ollama: nobody(t), LlamaCPP: nobody(t)},
		"8080 is another one": {Ollama: nobody(t), LlamaCPP: something},
		"other JSON":          {Ollama: nobody(t), LlamaCPP: answers(t, map[string]string{"GET /props": "{}"})},
	} {
		if got, err := model.DiscoverLocal(t.Context(), local(t), at); len(got) > 0 || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, err := model.DiscoverLocal(t.Context(), local(t), model.LocalServers{Ollama: something, LlamaCPP: nobody(t)}); err == nil {
		t.Error("an Ollama that answers badly is no error")
	}
}
