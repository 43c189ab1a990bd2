// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/model"
)

// Each model of a server becomes a service, named by the model; the first keeps
// the id.
func TestCompleteAll(t *testing.T) {
	base := answers(t, map[string]string{"GET /v1/models": `{"data":[{"id":"alpha","max_model_len":5000},{"id":"text-embedding-3-small"},{"id":"org/Beta"},{"id":"org-Beta"},{"id":"whisper-1"}]}`})
	for _, tt := range []struct {
		name    string
		service model.Service
		want    []string
		problem string
	}{
		{"all", model.Service{ID: "team", Name: "Team", AllModels: true}, []string{"team alpha alpha (Team)", "team-org-Beta org/Beta org/Beta (Team)", "team-org-Beta-2 org-Beta org-Beta (Team)"}, ""},
		{"some", model.Service{ID: "team", Name: "Team", Models: []string{"org/Beta", "gamma", "gamma"}}, []string{"team org/Beta org/Beta (Team)", "team-gamma gamma gamma (Team)"}, ""},
		{"a first one", model.Service{ID: "team", Name: "Team", Model: "whisper-1", Models: []string{"alpha"}}, []string{"team whisper-1 whisper-1 (Team)", "team-alpha alpha alpha (Team)"}, ""},
		{"one", model.Service{ID: "team", Name: "Team", Model: "alpha"}, []string{"team alpha Team"}, ""},
		{"no answer", model.Service{ID: "team", Name: "Team", Models: []string{"alpha", "beta"}, BaseURL: nobody()}, []string{"team alpha alpha (Team)", "team-beta beta beta (Team)"}, "refused"},
		{"no answer, nothing named", model.Service{ID: "team", Name: "Team", AllModels: true, BaseURL: nobody()}, []string{"team  Team"}, "refused"},
		{"not asked", model.Service{ID: "team", Name: "Team", Models: []string{"a", "b"}, Server: model.NoServer}, []string{"team a a (Team)", "team-b b b (Team)"}, ""},
	} {
		s := tt.service
		s.Dialect = model.OpenAI
		if s.BaseURL == "" {
			s.BaseURL = base + "/v1"
		}
		all, more, err := model.CompleteAll(t.Context(), local(t), s)
		if (err != nil) != (tt.problem != "") || err != nil && !strings.Contains(err.Error(), tt.problem) || more != 0 {
			t.Errorf("%s: %v, %d more", tt.name, err, more)
		}
		var got []string
		for _, one := range all {
			got = append(got, fmt.Sprintf("%s %s %s", one.ID, one.Model, one.Name))
			if one.Model == "alpha" && tt.problem == "" && one.Capabilities.ContextWindow.Value != 5000 {
				t.Errorf("%s: the window of alpha is %v", tt.name, one.Capabilities.ContextWindow)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	var many []string
	for i := range 70 {
		many = append(many, fmt.Sprintf(`{"id":"m%d"}`, i))
	}
	base = answers(t, map[string]string{"GET /v1/models": `{"data":[` + strings.Join(many, ",") + `]}`})
	all, more, err := model.CompleteAll(t.Context(), local(t), model.Service{ID: "x", Dialect: model.OpenAI, BaseURL: base + "/v1", AllModels: true})
	if err != nil || len(all) != 64 || more != 6 {
		t.Errorf("%d services, %d more, %v", len(all), more, err)
	}
}

// A server of one's own stands for all that it has, also where its address has
// no version.
func TestDiscoverWithoutVersion(t *testing.T) {
	base := answers(t, map[string]string{"GET /v1/models": `{"data":[{"id":"alpha"},{"id":"beta"}]}`})
	env := map[string]string{"OPENAI_BASE_URL": base}
	found, _ := model.Discover(func(k string) string { return env[k] }, model.Dialects()...)
	all, _, err := model.CompleteAll(t.Context(), local(t), found[0])
	if err != nil || len(all) != 2 || all[1].ID != "openai-beta" || all[1].BaseURL != base+"/v1" || all[1].Name != "beta ("+strings.TrimPrefix(base, "http://")+")" {
		t.Fatalf("%+v, %v", all, err)
	}
	one, err := model.Complete(t.Context(), local(t), model.Service{ID: "x", Dialect: model.OpenAI, BaseURL: base, Model: "beta"})
	if err != nil || one.BaseURL != base+"/v1" {
		t.Errorf("%+v, %v", one, err)
	}
	for _, path := range []string{"/v1", "/api/v3", "/nowhere"} {
		if s, err := model.Complete(t.Context(), local(t), model.Service{ID: "x", Dialect: model.OpenAI, BaseURL: base + path, Model: "m"}); s.BaseURL != base+path || (err == nil) != (path == "/v1") {
			t.Errorf("%s: %s, %v", path, s.BaseURL, err)
		}
	}
}

// Keys are read in the spelling of SDKs, too, and an unknown one is answered
// with the nearest in any spelling.
func TestSpellings(t *testing.T) {
	services, findings := model.ParseServices([]any{
		map[string]any{"id": "a", "base_url": "http://x/v1/", "api_key": "${KEY}", "model": "m", "models": "all"},
		map[string]any{"id": "b", "baseURL": "http://x", "models": []any{"m", "n"}},
		map[string]any{"id": "c", "BASE_URL": "http://x", "max_concurrent_requests": 2, "models": "every"},
	}, "artel.yaml", func(string) string { return "secret" })
	if s := services[0]; s.BaseURL != "http://x/v1" || s.APIKey.Reveal() != "secret" || !s.AllModels || len(findings[0].Flaws) != 0 {
		t.Errorf("%+v, %v", s, findings[0].Flaws)
	}
	if s := services[1]; !slices.Equal(s.Models, []string{"m", "n"}) || s.AllModels || len(findings[1].Flaws) != 0 {
		t.Errorf("%+v, %v", s, findings[1].Flaws)
	}
	want := []model.Flaw{{model.UnknownWord, "models", "every"}, {model.UnknownKey, "BASE_URL", "baseURL"}, {model.UnknownKey, "max_concurrent_requests", "maxConcurrentRequests"}}
	if diff := cmp.Diff(want, findings[2].Flaws); diff != "" {
		t.Error(diff)
	}
}
