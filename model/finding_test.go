// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/fetch/fetchtest"
	"github.com/artelhq/artel/model"
)

// told writes findings in short.
func told(findings []model.Finding) []string {
	var out []string
	for _, f := range findings {
		s := fmt.Sprintf("%s %s:%d %s %s %s %q %v", f.Source, f.Place, f.Line, f.Name, f.Found, f.Problem, f.Detail, f.Services)
		for _, v := range f.Variables {
			s += fmt.Sprintf(" %s=%t", v.Name, v.Set)
		}
		for _, flaw := range f.Flaws {
			s += fmt.Sprintf(" %s(%s,%s)", flaw.Code, flaw.Key, flaw.Value)
		}
		out = append(out, s)
	}
	return out
}

func TestEnvironmentIsTold(t *testing.T) {
	env := map[string]string{
		"OPENAI_BASE_URL": "http://user:sk-secret-1@10.0.0.7/v1", "ANTHROPIC_API_KEY": "sk-secret-2", "ANTHROPIC_MODEL": "claude-sonnet-5",
		"OPENROUTER_BASE_URL": "https://openrouter.ai/api/v1", // changes nothing without a key
	}
	services, found := model.Discover(func(k string) string { return env[k] }, model.OpenAI, model.Demo)
	r := model.NewRegistry(nil, "")
	r.Replace(services, found, "")
	want := []string{
		`environment OPENAI_BASE_URL:0 OpenAI routing_only no_model "" [openai] OPENAI_API_KEY=false OPENAI_BASE_URL=true OPENAI_MODEL=false`,
		`environment ANTHROPIC_API_KEY:0 Anthropic ready  "" [anthropic] ANTHROPIC_API_KEY=true ANTHROPIC_BASE_URL=false ANTHROPIC_MODEL=true`,
		`environment GEMINI_API_KEY:0 Google Gemini nothing not_set "" [] GEMINI_API_KEY=false GEMINI_BASE_URL=false GEMINI_MODEL=false`,
		`environment OPENROUTER_API_KEY:0 OpenRouter nothing not_set "" [] OPENROUTER_API_KEY=false OPENROUTER_BASE_URL=true OPENROUTER_MODEL=false`,
		`built_in :0  ready  "" [demo]`,
	}
	if diff := cmp.Diff(want, told(r.Findings())); diff != "" {
		t.Error(diff)
	}
	wire, err := json.Marshal(r.Findings())
	if err != nil || strings.Contains(string(wire), "secret") || strings.Contains(string(wire), "null") {
		t.Errorf("%s, %v", wire, err)
	}
}

func TestConfigurationIsTold(t *testing.T) {
	const file = "\ufeff{ \"version\": {\"services\": [1]},\n\"services\": [\n" +
		"  {\"id\":\"ready\",\"baseURL\":\"https://a.example/v1\",\"model\":\"m\"},\n\n" +
		"  {\"id\":\"routing\",\n   \"model\":\"gpt-4o\",\"apiKey\":\"${NOPE}\"}, {\"id\":\"bare\",\"baseURL\":\"https://a.example\",\"accepts\":[\"png\"]},\n" +
		"  5,\n  {\"name\":\"x\",\"limits\":{\"item_byte\":2,\"zzzzzzzzzz\":1}},\n  {\"id\":\"ready\"},\n" +
		"  {\"id\":\"foreign\",\"baseURL\":\"https://a.example\",\"model\":\"m\",\"dialect\":\"anthropic\"},\n" +
		"  {\"id\":\"odd\",\"baseURL\":\"https://a.example\",\"model\":\"m\",\"dialect\":\"opnai\",\"capabilities\":{\"input\":[\"smell\"]},\"timeout\":\"long\"}\n]}"
	services, found, err := model.ParseServicesFile("llm.json", []byte(file), noEnv)
	if err != nil {
		t.Fatal(err)
	}
	model.Reach(services, found, model.OpenAI, model.Demo)
	r := model.NewRegistry(nil, "")
	r.Replace(services, found, "")
	want := []string{
		`configuration llm.json:3 ready ready  "" [ready]`,
		`configuration llm.json:5 routing routing_only no_base_url "" [routing] empty_variable(apiKey,NOPE)`,
		`configuration llm.json:6 bare routing_only no_model "" [bare] no_media_type(accepts,png)`,
		`configuration llm.json:7  nothing no_object "" []`,
		`configuration llm.json:8  nothing no_id "" [] unknown_key(limits.item_byte,limits.item_bytes) unknown_key(limits.zzzzzzzzzz,)`,
		`configuration llm.json:9 ready nothing id_taken "ready" []`,
		`configuration llm.json:10 foreign routing_only dialect_not_spoken "anthropic" [foreign]`,
		`configuration llm.json:11 odd routing_only dialect_unknown "opnai" [odd] wrong_type(timeout,number) unknown_word(capabilities.input,smell)`,
		`built_in :0  ready  "" [demo]`,
	}
	if diff := cmp.Diff(want, told(r.Findings())); diff != "" {
		t.Error(diff)
	}
	if got := r.Default().ID; got != "ready" {
		t.Errorf("the default is %q", got)
	}
	if got := found[4].Warnings(); len(got) != 3 || got[1] != `llm.json: line 8: an entry has the unknown key "limits.item_byte"; the nearest known one is "limits.item_bytes"` {
		t.Errorf("warnings: %q", got)
	}
	if s, _ := r.Lookup("foreign"); s.Problem == "" || s.Callable() {
		t.Errorf("a service that nobody can call: %+v", s)
	}
}

// TestFindingsOfTakenIDs: a service belongs to who was there first.
func TestFindingsOfTakenIDs(t *testing.T) {
	r := model.NewRegistry(nil, "")
	mine := []model.Finding{
		{Source: model.InConfiguration, Place: "artel.yaml", Services: []artel.ServiceID{"openai"}},
		{Source: model.InConfiguration, Place: "artel.yaml", Services: []artel.ServiceID{"demo"}},
		{Source: model.InEnvironment, Place: "OPENAI_API_KEY", Services: []artel.ServiceID{"openai"}},
		{Source: model.OnMachine, Place: "http://127.0.0.1:11434", Services: []artel.ServiceID{"openai", "ollama-m"}},
	}
	r.Replace([]model.Service{service("openai"), routingOnly(service("demo")), service("openai"), service("ollama-m")}, mine, "")
	want := []string{
		`configuration artel.yaml:0  ready  "" [openai]`,
		`configuration artel.yaml:0  routing_only no_base_url "" [demo]`,
		`environment OPENAI_API_KEY:0  nothing id_taken "openai" []`,
		`machine http://127.0.0.1:11434:0  ready  "" [ollama-m]`,
		`built_in :0  nothing id_taken "demo" []`,
	}
	got := r.Findings()
	if diff := cmp.Diff(want, told(got)); diff != "" {
		t.Error(diff)
	}
	got[0].Services[0], mine[3].Services[1] = "changed", "changed"
	if diff := cmp.Diff(want, told(r.Findings())); diff != "" {
		t.Errorf("the registry shares memory: %s", diff)
	}
}

func TestMachineIsTold(t *testing.T) {
	ollama := answers(t, map[string]string{
		"GET /api/tags":         `{"models":[{"name":"gemma3:4b"},{"name":"broken"}]}`,
		"POST /api/show broken": `{"capabilities":["completion"]}`,
	})
	denied := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	t.Cleanup(denied.Close)
	something := answers(t, map[string]string{"GET /": "a web page"})
	empty := answers(t, map[string]string{"GET /api/tags": `{"models":[]}`})
	noJSON := answers(t, map[string]string{"GET /api/tags": `<html>`})
	absent := nobody()
	for _, tt := range []struct {
		name  string
		at    model.LocalServers
		want  []string
		fails bool
	}{
		{"nobody", model.LocalServers{Ollama: absent, LlamaCPP: absent + "/"}, []string{
			`machine ` + absent + `:0 Ollama nothing not_listening "" [] OLLAMA_BASE_URL=true`,
			`machine ` + absent + `:0 llama.cpp nothing not_listening "" [] LLAMACPP_BASE_URL=true`,
		}, false},
		{"half", model.LocalServers{Ollama: ollama, LlamaCPP: something}, []string{
			`machine ` + ollama + `:0 Ollama nothing bad_answer "404 Not Found" [ollama-gemma3-4b ollama-broken] OLLAMA_BASE_URL=true`,
			`machine ` + something + `:0 llama.cpp nothing other_server "" [] LLAMACPP_BASE_URL=true`,
		}, true},
		{"not let in, no models", model.LocalServers{Ollama: denied.URL, LlamaCPP: absent}, []string{
			`machine ` + denied.URL + `:0 Ollama nothing not_allowed "403 Forbidden" [] OLLAMA_BASE_URL=true`,
			`machine ` + absent + `:0 llama.cpp nothing not_listening "" [] LLAMACPP_BASE_URL=true`,
		}, true},
		{"empty", model.LocalServers{Ollama: empty, LlamaCPP: absent}, []string{
			`machine ` + empty + `:0 Ollama nothing no_model "" [] OLLAMA_BASE_URL=true`,
			`machine ` + absent + `:0 llama.cpp nothing not_listening "" [] LLAMACPP_BASE_URL=true`,
		}, false},
		{"no JSON", model.LocalServers{Ollama: noJSON, LlamaCPP: absent}, []string{
			`machine ` + noJSON + `:0 Ollama nothing bad_answer "" [] OLLAMA_BASE_URL=true`,
			`machine ` + absent + `:0 llama.cpp nothing not_listening "" [] LLAMACPP_BASE_URL=true`,
		}, true},
	} {
		services, found, err := model.DiscoverLocal(t.Context(), local(t), tt.at)
		if diff := cmp.Diff(tt.want, told(found)); diff != "" || tt.fails != (err != nil) {
			t.Errorf("%s: %v\n%s", tt.name, err, diff)
		}
		r := model.NewRegistry(nil, "")
		r.Replace(services, found, "")
		if f := r.Findings()[0]; len(services) > 0 != (f.Found == model.FoundReady) {
			t.Errorf("%s: with services %v it is %s", tt.name, f.Services, f.Found)
		}
	}
	hides := model.LocalServersIn(func(string) string { return "http://me:sk-secret@127.0.0.1:1/" }).Findings()
	if len(hides) != 4 || hides[0].Found != model.FoundLater || strings.Contains(fmt.Sprint(hides), "secret") {
		t.Errorf("before anybody is asked: %+v", hides)
	}
	if usual := (model.LocalServers{}).Findings(); usual[0].Place != "http://127.0.0.1:11434" || usual[0].Variables[0].Set {
		t.Errorf("the usual addresses: %+v", usual)
	}
}

func TestBlame(t *testing.T) {
	status := func(code int) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.WriteHeader(code)
			fmt.Fprint(w, "you said "+r.Header.Get("Authorization"))
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	cut := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	t.Cleanup(cut.Close)
	for name, tt := range map[string]struct {
		base    string
		problem model.Problem
		detail  string
	}{
		"wrong key": {status(401), model.NotAllowed, "401 Unauthorized"},
		"forbidden": {status(403), model.NotAllowed, "403 Forbidden"},
		"broken":    {status(500), model.BadAnswer, "500 Internal Server Error"},
		"no JSON":   {answers(t, map[string]string{"GET /models": "hello"}), model.BadAnswer, ""},
		"no models": {answers(t, map[string]string{"GET /models": `{"data":[]}`}), model.NoModel, ""},
		"nobody":    {nobody(), model.NotListening, ""},
		"cut":       {cut.URL, model.NoAnswer, "EOF"},
	} {
		_, err := model.Complete(t.Context(), local(t), model.Service{ID: "s", Dialect: model.OpenAI, BaseURL: tt.base, APIKey: "sk-987"})
		f := model.Finding{Detail: "older"}
		f.SetProblem(err)
		if f.Problem != tt.problem || f.Detail != tt.detail {
			t.Errorf("%s: %q %q, want %q %q", name, f.Problem, f.Detail, tt.problem, tt.detail)
		}
	}
}

func TestSetProblemOfSilence(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silent, client := fetchtest.Serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		_, err := model.Complete(ctx, client, model.Service{ID: "s", Dialect: model.OpenAI, BaseURL: silent.URL})
		f := model.Finding{Detail: "older"}
		f.SetProblem(err)
		if f.Problem != model.NoAnswer || f.Detail != "" {
			t.Errorf("got %q %q", f.Problem, f.Detail)
		}
	})
}
