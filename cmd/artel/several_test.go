// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel/httpapi"
)

// TestSeveralModels: each model of one server can be chosen, by the environment
// with an address without /v1 and by the configuration, and programs ask for each
// by its name.
func TestSeveralModels(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fake, err := launch(dir, bareEnvironment(dir), "fake", "openai", "--addr", "127.0.0.1:0", "--models", "alpha,beta,gamma")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(fake.kill)
	target, err := url.Parse(fake.url)
	if err != nil {
		t.Fatal(err)
	}
	target.Path = ""
	strict := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { // knows /v1 alone
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			http.NotFound(w, r)
			return
		}
		r.Host = target.Host
		httputil.NewSingleHostReverseProxy(target).ServeHTTP(w, r)
	}))
	t.Cleanup(strict.Close)
	config := "services:\n  - {id: team, base_url: \"" + strict.URL + "\", api_key: k, models: [gamma, alpha]}\n"
	if err := os.WriteFile(filepath.Join(dir, "artel.yaml"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	p := serving(t, dir, with(bareEnvironment(dir), "OPENAI_BASE_URL="+strict.URL, "OPENAI_API_KEY=k"))
	host := strings.TrimPrefix(strict.URL, "http://")
	want := []string{
		"team gamma gamma (team)", "team-alpha alpha alpha (team)",
		"openai alpha alpha (" + host + ")", "openai-beta beta beta (" + host + ")", "openai-gamma gamma gamma (" + host + ")", "demo demo Demo (scripted, no model)",
	}
	client := httpapi.NewClient(p.url, nil)
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		list, err := client.Services(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, s := range list.Items {
			got = append(got, string(s.ID)+" "+s.Model+" "+s.Name)
		}
		if slices.Equal(got, want) {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the services are %q, want %q\n%s", got, want, p.errs.String())
		}
	}
	var models struct {
		Data []struct {
			ID string `json:"id"`
		} `json:"data"`
	}
	fetchJSON(t, p.url+"/v1/models", &models)
	var ids []string
	for _, m := range models.Data {
		ids = append(ids, m.ID)
	}
	for _, name := range []string{"team", "openai", "openai-beta", "openai-gamma", "team-alpha"} {
		if !slices.Contains(ids, name) {
			t.Errorf("/v1/models lacks %s: %q", name, ids)
		}
	}
	for _, name := range []string{"beta", "openai-beta", "gamma"} {
		body, _ := json.Marshal(map[string]any{"model": name, "messages": []any{map[string]any{"role": "user", "content": "hello"}}})
		resp, err := http.Post(p.url+"/v1/chat/completions", "application/json", strings.NewReader(string(body)))
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", name, resp.Status)
		}
	}
}
