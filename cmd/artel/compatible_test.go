// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/openai"
)

// TestVendorsKeysWorkAtOnce takes the path of somebody who has nothing but the
// key of a vendor whose compatible endpoint is used, since its own API is not
// spoken or the address says so: it answers at once, is sent pictures, and told
// of the rest in words.
func TestVendorsKeysWorkAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upstream := faking(t, dir, "openai", "sk-vendor-secret")
	root := strings.TrimSuffix(upstream.url, "/v1")
	p := serving(t, dir, with(bareEnvironment(dir), "GEMINI_BASE_URL="+root+"/v1beta/openai", "GEMINI_API_KEY=sk-vendor-secret"))

	var services httpapi.List[httpapi.ServiceView]
	fetchJSON(t, p.url+"/api/v1/services", &services)
	s := services.Items[0]
	if s.ID != "gemini" || s.Model != "fake-1" || !s.Default || !s.Callable || s.Dialect != "openai" || s.Sources["input"] != model.FromDialect {
		t.Errorf("the first service is %+v", s)
	}
	if diff := cmp.Diff([]artel.Capability{artel.CanText, artel.CanVision}, s.Input); diff != "" {
		t.Error(diff)
	}
	_, asked := p.reported(t, root, []string{"photo.jpg", "report.pdf", "tone.wav"}, "`photo.jpg`: JPEG picture, 64 × 48 pixels", "`tone.wav`: I cannot read it.")
	for i, r := range asked {
		checkPicturesOnly(t, i, r)
	}
	if got := body(t, p.url+"/api/v1/findings"); strings.Contains(got, "secret") || !strings.Contains(got, "GEMINI_API_KEY") {
		t.Errorf("findings: %s", got)
	}
}

// checkPicturesOnly wants the picture as one, of the PDF its text, and the sound
// described.
func checkPicturesOnly(t *testing.T, i int, r fake.Request) {
	t.Helper()
	if r.Status != http.StatusOK || len(r.Media) != 1 {
		t.Errorf("request %d: %d %s, with %d media", i, r.Status, r.Error, len(r.Media))
	}
	var sent openai.Request
	if err := json.Unmarshal(r.Body, &sent); err != nil {
		t.Fatalf("request %d: %v", i, err)
	}
	kinds := map[string]int{}
	for _, m := range sent.Messages {
		for _, p := range m.Content.Parts {
			kinds[p.Type]++
		}
	}
	if kinds["image_url"] != 1 || kinds["file"]+kinds["input_audio"] != 0 {
		t.Errorf("request %d has parts %v", i, kinds)
	}
	for _, want := range []string{"Revenue grew by 7 percent", "[cannot read] tone.wav"} {
		if !strings.Contains(string(r.Body), want) {
			t.Errorf("request %d lacks %q", i, want)
		}
	}
}

func body(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s, %v", url, resp.StatusCode, b, err)
	}
	return string(b)
}

// TestFindings asks a server where it looked for models, and what came of it.
func TestFindings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	refusing := faking(t, dir, "openai", "sk-right")
	config := fmt.Sprintf(`# models
services:
  - id: mine
    baseURL: %s
    model: fake-1
    apiKey: ${MY_KEY}

  - {id: claude, baseURL: "http://127.0.0.1:1", model: claude-sonnet-5, dialect: anthropic}
  - name: nobody
services_file: more.json
`, refusing.url)
	writeFiles(t, dir, map[string]string{"artel.yaml": config, "more.json": "{\"services\": [\n{\"id\": \"eyes\", \"modle\": \"x\"}\n]}"})
	p := serving(t, dir, with(bareEnvironment(dir), "MY_KEY=sk-wrong-key", "GEMINI_API_KEY=sk-other", "GEMINI_BASE_URL=https://generativelanguage.googleapis.com/v1beta/openai"))
	want := []string{
		`configuration artel.yaml:3 mine ready not_allowed [mine]`,
		`configuration artel.yaml:8 claude ready not_listening [claude]`,
		`configuration artel.yaml:9  nothing no_id []`,
		`configuration more.json:2 eyes routing_only no_base_url [eyes]`,
		`environment OPENAI_API_KEY:0 OpenAI nothing not_set []`,
		`environment ANTHROPIC_API_KEY:0 Anthropic nothing not_set []`,
		`environment GEMINI_API_KEY:0 Google Gemini ready  [gemini]`,
		`environment OPENROUTER_API_KEY:0 OpenRouter nothing not_set []`,
		`machine http://127.0.0.1:1:0 Ollama nothing not_listening []`,
		`machine http://127.0.0.1:1:0 llama.cpp nothing not_listening []`,
		`machine http://127.0.0.1:1:0 LM Studio nothing not_listening []`,
		`machine http://127.0.0.1:1:0 vLLM nothing not_listening []`,
		`built_in :0  ready  [demo]`,
	}
	var got []string
	for end := time.Now().Add(5 * time.Minute); !cmp.Equal(got, want) && time.Now().Before(end); {
		var list httpapi.List[model.Finding]
		fetchJSON(t, p.url+"/api/v1/findings", &list)
		got = nil
		for _, f := range list.Items {
			got = append(got, fmt.Sprintf("%s %s:%d %s %s %s %v", f.Source, f.Place, f.Line, f.Name, f.Found, f.Problem, f.Services))
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if all := body(t, p.url+"/api/v1/findings"); strings.Contains(all, "sk-") || !strings.Contains(all, `"flaws":[{"code":"unknown_key","key":"modle","value":"model"}]`) {
		t.Errorf("findings: %s", all)
	}
	var services httpapi.List[httpapi.ServiceView]
	fetchJSON(t, p.url+"/api/v1/services", &services)
	for _, s := range services.Items {
		if routing := s.ID == "eyes"; s.Problem != "" || s.Callable == routing {
			t.Errorf("%s: callable %t, problem %q", s.ID, s.Callable, s.Problem)
		}
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	for _, warning := range []string{`more.json: line 2: service \"eyes\" has the unknown key \"modle\"; the nearest known one is \"model\"`, "has no id and is left out"} {
		if log := p.errs.String(); !strings.Contains(log, warning) || strings.Contains(log, "sk-wrong") {
			t.Errorf("the log lacks %q, or tells a key:\n%s", warning, log)
		}
	}
}

func TestLinesOfEntries(t *testing.T) {
	t.Parallel()
	for src, want := range map[string][]int{
		"services:\n- id: a\n- id: b\n":                {2, 3},
		"locale: en\nservices: [{id: a},\n {id: b}]\n": {2, 3},
		"services:\n\n  # a\n  -\n    id: a\n  - 5\n":  {5, 6},
		"services: []\n": nil,
		"locale: zh\n":   nil,
		"":               nil,
	} {
		var c config
		if err := c.parse("artel.yaml", []byte(src)); err != nil {
			t.Errorf("%q: %v", src, err)
		}
		if !cmp.Equal(c.lines, want) {
			t.Errorf("%q: lines %v, want %v", src, c.lines, want)
		}
	}
}
