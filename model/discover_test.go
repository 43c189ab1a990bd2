// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch"
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
			{"anthropic", "https://api.anthropic.com/v1", "claude-sonnet-5", true},
			{"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", true},
			{"openrouter", "https://openrouter.ai/api/v1", "openrouter/auto", true},
		}},
		{"vendors' other addresses", map[string]string{
			"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://claude.example/", "ANTHROPIC_MODEL": "claude-haiku-4-5",
			"GEMINI_API_KEY": "k", "GEMINI_BASE_URL": "https://gemini.example/v1beta/",
		}, []found{
			{"anthropic", "https://claude.example/v1", "claude-haiku-4-5", true},
			{"gemini", "https://gemini.example/v1beta/openai", "", false},
		}},
		{"the compatible path is there already", map[string]string{
			"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": "https://api.anthropic.com/v1",
			"GEMINI_API_KEY": "k", "GEMINI_BASE_URL": "https://generativelanguage.googleapis.com/v1beta/openai/",
		}, []found{
			{"anthropic", "https://api.anthropic.com/v1", "claude-sonnet-5", true},
			{"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", true},
		}},
		{"Gemini's bare host", map[string]string{"GEMINI_API_KEY": "k", "GEMINI_BASE_URL": "https://generativelanguage.googleapis.com"}, []found{
			{"gemini", "https://generativelanguage.googleapis.com/v1beta/openai", "gemini-2.5-flash", true},
		}},
		{"an address without a key", map[string]string{"ANTHROPIC_BASE_URL": "https://claude.example"}, nil},
	} {
		var got []found
		services, _ := model.Discover(func(k string) string { return tt.env[k] }, model.OpenAI, model.Demo)
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
	all, _ := model.Discover(func(string) string { return "x" }, model.Dialects()...)
	for _, s := range all {
		if !s.Callable() {
			t.Errorf("%s cannot be called although its dialect is spoken", s.ID)
		}
	}
}

func keyOnly(names ...string) func(string) string {
	return func(name string) string {
		if slices.Contains(names, name) {
			return "sk-8642"
		}
		return ""
	}
}

// TestCompatibleEndpoints: a vendor's second endpoint is offered with what it
// carries, and no more, whoever is asked; with the vendor's own dialect spoken
// it is not used.
func TestCompatibleEndpoints(t *testing.T) {
	getenv := keyOnly("ANTHROPIC_API_KEY", "GEMINI_API_KEY")
	services, _ := model.Discover(getenv, model.OpenAI)
	takes := map[artel.ServiceID]map[string]bool{
		"anthropic": {"image/png": true, "image/jpeg": true, "image/webp": true, "image/gif": true},
		"gemini":    {"image/png": true, "image/jpeg": true, "image/webp": true},
	}
	samples := []string{
		"image/png", "image/jpeg", "image/webp", "image/gif", "image/bmp", "image/heic", "application/pdf",
		"audio/wav", "audio/mpeg", "video/mp4", "application/zip",
	}
	for _, s := range services {
		asked, err := model.Complete(t.Context(), nil, s) // with no client: nobody is asked
		if err != nil || !cmp.Equal(asked, s) {
			t.Errorf("%s: completing gives %+v, %v", s.ID, asked, err)
		}
		c := s.Capabilities
		if s.Dialect != model.OpenAI || !strings.Contains(s.Origin, "OpenAI-compatible endpoint") || strings.Contains(s.Origin, "8642") {
			t.Errorf("%s speaks %s and comes from %q", s.ID, s.Dialect, s.Origin)
		}
		if !cmp.Equal(c.Input.Value, []artel.Capability{artel.CanText, artel.CanVision}) || c.Input.Source != model.FromDialect || c.Accepts.Source != model.FromDialect {
			t.Errorf("%s takes %+v, accepts %+v", s.ID, c.Input, c.Accepts)
		}
		if c.ContextWindow.Source != model.FromCatalog {
			t.Errorf("%s: the window is from %q", s.ID, c.ContextWindow.Source)
		}
		for _, sample := range samples {
			need := artel.CanFile
			switch major, _, _ := strings.Cut(sample, "/"); major {
			case "image":
				need = artel.CanVision
			case "audio":
				need = artel.CanAudio
			case "video":
				need = artel.CanVideo
			}
			for name, caps := range map[string]model.Capabilities{"told": c, "sent": s.OnWire().Capabilities} {
				if got := caps.Takes(need, sample); got != takes[s.ID][sample] {
					t.Errorf("%s takes %s (%s): %t", s.ID, sample, name, got)
				}
			}
		}
	}
	native, _ := model.Discover(getenv, model.Dialects()...)
	for i, want := range []model.Service{
		{ID: "anthropic", Dialect: model.Anthropic, BaseURL: "https://api.anthropic.com"},
		{ID: "gemini", Dialect: model.Gemini, BaseURL: "https://generativelanguage.googleapis.com/v1beta"},
	} {
		if s := native[i]; s.ID != want.ID || s.Dialect != want.Dialect || s.BaseURL != want.BaseURL || s.Carries != nil || !s.Capabilities.Has(artel.CanFile) {
			t.Errorf("with all dialects spoken: %+v", s)
		}
	}
	openai := func(name string) string {
		return map[string]string{"GEMINI_API_KEY": "k", "GEMINI_BASE_URL": "https://generativelanguage.googleapis.com/v1beta/openai/"}[name]
	}
	if asked, _ := model.Discover(openai, model.Dialects()...); asked[0].Dialect != model.OpenAI || asked[0].Carries == nil || asked[0].Model != "gemini-2.5-flash" {
		t.Errorf("with the compatible endpoint asked for: %+v", asked[0])
	}
	neither, found := model.Discover(getenv, model.Demo)
	for _, s := range neither {
		if s.Callable() || !strings.Contains(s.Origin, "not spoken") {
			t.Errorf("with nothing spoken: %+v", s)
		}
	}
	if f := found[1]; f.Problem != model.DialectNotSpoken || f.Detail != "anthropic" {
		t.Errorf("with nothing spoken: %+v", f)
	}
}

// TestCompatibleServerNamesItsModel: what is learnt of the model does not undo
// what its endpoint cannot carry.
func TestCompatibleServerNamesItsModel(t *testing.T) {
	base := answers(t, map[string]string{"GET /v1/models": `{"data":[{"id":"m","context_length":5000,"architecture":{"input_modalities":["text","image","file","audio"]}}]}`})
	env := map[string]string{"ANTHROPIC_API_KEY": "k", "ANTHROPIC_BASE_URL": base}
	services, _ := model.Discover(func(k string) string { return env[k] }, model.OpenAI)
	s, err := model.Complete(t.Context(), local(t), services[0])
	c := s.Capabilities
	if err != nil || s.Model != "m" || c.ContextWindow.Value != 5000 || !cmp.Equal(c.Input.Value, []artel.Capability{artel.CanText, artel.CanVision}) {
		t.Fatalf("%+v, %v", s, err)
	}
	if c.Takes(artel.CanFile, "application/pdf") || c.Takes(artel.CanAudio, "audio/wav") || !c.Takes(artel.CanVision, "image/gif") {
		t.Errorf("accepts %v", c.Accepts)
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

func nobody() string { return "http://127.0.0.1:1" } // a port that a test closed could be taken by another one

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

// TestCompleteSendsHeaders: every question to a service has the header fields of its
// configuration.
func TestCompleteSendsHeaders(t *testing.T) {
	asked := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked++
		if r.Header.Get("X-Tenant") != "secret-tenant" || r.Header.Get("Authorization") != "Bearer other" {
			t.Errorf("%s has %v", r.URL.Path, r.Header)
		}
		w.WriteHeader(http.StatusNotFound)
	}))
	defer s.Close()
	extra := model.ExtraFields{Header: map[string]model.Secret{"X-Tenant": "secret-tenant", "Authorization": "Bearer other"}}
	for _, svc := range []model.Service{
		{Dialect: model.OpenAI},
		{Dialect: model.OpenAI, Server: model.OllamaServer, Model: "m"},
		{Dialect: model.OpenAI, Server: model.LlamaCPPServer, Model: "m"},
		{Dialect: model.OpenAI, Server: model.LMStudioServer, Model: "m"},
		{Dialect: model.OpenAI, Server: model.LiteLLMServer, Model: "m"},
		{Dialect: model.Anthropic, Server: model.AnthropicServer, Model: "m"},
		{Dialect: model.Gemini},
	} {
		svc.ID, svc.BaseURL, svc.APIKey, svc.Extra = "s", s.URL, "sk-5", extra
		before := asked
		_, _ = model.Complete(t.Context(), local(t), svc) // it finds nothing
		if asked == before {
			t.Errorf("%+v: nothing was asked", svc)
		}
	}
}

func TestCompleteFails(t *testing.T) {
	garbage := answers(t, map[string]string{"GET /models": "<html>"})
	empty := answers(t, map[string]string{"GET /models": `{"data":[]}`})
	for name, base := range map[string]string{"garbage": garbage, "empty": empty, "nobody": nobody(), "no address": "http://[::1"} {
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
	got, _, err := model.DiscoverLocal(t.Context(), local(t), model.LocalServers{Ollama: ollama + "/", LlamaCPP: llama})
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
		"nobody listens":      {Ollama: nobody(), LlamaCPP: nobody()},
		"8080 is another one": {Ollama: nobody(), LlamaCPP: something},
		"other JSON":          {Ollama: nobody(), LlamaCPP: answers(t, map[string]string{"GET /props": "{}"})},
	} {
		if got, _, err := model.DiscoverLocal(t.Context(), local(t), at); len(got) > 0 || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
	if _, _, err := model.DiscoverLocal(t.Context(), local(t), model.LocalServers{Ollama: something, LlamaCPP: nobody()}); err == nil {
		t.Error("an Ollama that answers badly is no error")
	}
}
