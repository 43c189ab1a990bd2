// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func service(id artel.ServiceID, can ...artel.Capability) model.Service {
	s := model.Service{ID: id, Dialect: model.OpenAI, BaseURL: "http://example.invalid/v1", Model: "m", Capabilities: model.TextOnly()}
	s.Capabilities.Input = model.Fact[[]artel.Capability]{Value: append([]artel.Capability{artel.CanText}, can...), Source: model.FromOperator}
	return s
}

func routingOnly(s model.Service) model.Service { s.BaseURL = ""; return s }

func TestDefault(t *testing.T) {
	a, b := service("a"), service("b")
	for _, tt := range []struct {
		name     string
		services []model.Service
		id, want artel.ServiceID
	}{
		{"nothing", nil, "", "demo"},
		{"unknown default", nil, "x", "demo"},
		{"first", []model.Service{a, b}, "", "a"},
		{"configured", []model.Service{a, b}, "b", "b"},
		{"demo by choice", []model.Service{a}, "demo", "demo"},
		{"configured cannot be called", []model.Service{a, routingOnly(b)}, "b", "a"},
		{"first cannot be called", []model.Service{routingOnly(a), b}, "", "b"},
		{"none can be called", []model.Service{routingOnly(a)}, "a", "demo"},
		{"demo entry comes last all the same", []model.Service{model.DemoService(), b}, "", "b"},
		{"taken name", []model.Service{routingOnly(service("demo"))}, "", "demo"},
	} {
		if got := model.NewRegistry(tt.services, tt.id).Default().ID; got != tt.want {
			t.Errorf("%s: default %q, want %q", tt.name, got, tt.want)
		}
	}
}

func TestLookup(t *testing.T) {
	second := service("a")
	second.Name = "second"
	r := model.NewRegistry([]model.Service{service("a"), second}, "")
	if s, ok := r.Lookup("a"); !ok || s.Name != "" {
		t.Errorf("Lookup(a) = %q, %v; want the first", s.Name, ok)
	}
	if _, ok := r.Lookup("nobody"); ok {
		t.Error("found a service that is not there")
	}
	if demo, ok := r.Lookup(model.DemoID); !ok || !demo.Callable() || !demo.Capabilities.Has(artel.CanFile) {
		t.Errorf("demo: %+v, %v", demo, ok)
	}
	var ids []artel.ServiceID
	for _, s := range r.All() {
		ids = append(ids, s.ID)
	}
	if diff := cmp.Diff([]artel.ServiceID{"a", "demo"}, ids); diff != "" {
		t.Error(diff)
	}
}

func TestCopies(t *testing.T) {
	in := service("a", artel.CanVision)
	in.Tags = []string{"fast"}
	r := model.NewRegistry([]model.Service{in}, "")
	in.Tags[0] = "changed"
	got, _ := r.Lookup("a")
	got.Capabilities.Input.Value[1] = artel.CanAudio
	again, _ := r.Lookup("a")
	if again.Tags[0] != "fast" || again.Capabilities.Input.Value[1] != artel.CanVision {
		t.Errorf("the registry shares memory: %v %v", again.Tags, again.Capabilities.Input.Value)
	}
}

func TestSuggest(t *testing.T) {
	picky := service("picky", artel.CanVision, artel.CanFile)
	picky.Capabilities.Accepts = model.Fact[[]string]{Value: []string{"image/*", "application/pdf"}, Source: model.FromOperator}
	r := model.NewRegistry([]model.Service{
		service("text"), service("eyes", artel.CanVision), routingOnly(service("files", artel.CanFile)), picky, service("ears", artel.CanAudio),
		service("screen", artel.CanVideo), // which Chat Completions cannot carry
	}, "")
	for _, tt := range []struct {
		need  artel.Capability
		media string
		want  []artel.ServiceID
	}{
		{artel.CanText, "text/plain", []artel.ServiceID{"text", "eyes", "files", "picky", "ears", "screen"}},
		{artel.CanVision, "image/png", []artel.ServiceID{"eyes", "picky"}},
		{artel.CanFile, "application/pdf", []artel.ServiceID{"files", "picky"}},
		{artel.CanFile, "application/zip", []artel.ServiceID{"files"}},
		{artel.CanAudio, "audio/wav", []artel.ServiceID{"files", "ears"}},
		{artel.CanAudio, "", []artel.ServiceID{"files", "picky", "ears"}},
		{artel.CanVideo, "video/mp4", []artel.ServiceID{"files"}},
	} {
		if diff := cmp.Diff(tt.want, r.Suggest(tt.need, tt.media)); diff != "" {
			t.Errorf("%s %s: %s", tt.need, tt.media, diff)
		}
	}
}

func TestReplaceWhileUsed(t *testing.T) {
	r := model.NewRegistry([]model.Service{service("s0")}, "")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 500 {
				all := r.All()
				if len(all) != 2 || all[1].ID != model.DemoID || r.Default().ID == model.DemoID {
					t.Errorf("a state that never was: %v", all)
					return
				}
			}
		})
	}
	for i := range 500 {
		id := artel.ServiceID(fmt.Sprint("s", i))
		r.Replace([]model.Service{service(id)}, nil, id)
	}
	wg.Wait()
	if got := r.Default().ID; got != "s499" {
		t.Errorf("default %q after the last replacement", got)
	}
}

func TestSecretStaysSecret(t *testing.T) {
	s := service("a")
	s.APIKey = "sk-123456"
	text, err := s.APIKey.MarshalText()
	if err != nil {
		t.Fatal(err)
	}
	for _, shown := range []string{fmt.Sprint(s), fmt.Sprintf("%+v", s), fmt.Sprintf("%#v", s), fmt.Sprintf("%s %q", s.APIKey, s.APIKey), string(text)} {
		if strings.Contains(shown, "123456") {
			t.Errorf("the key shows in %s", shown)
		}
	}
}

func TestMerge(t *testing.T) {
	operator, endpoint := model.TextOnly(), model.TextOnly()
	operator.ContextWindow = model.Fact[int]{Value: 1000, Source: model.FromOperator}
	endpoint.ContextWindow = model.Fact[int]{Value: 2000, Source: model.FromEndpoint}
	endpoint.Input = model.Fact[[]artel.Capability]{Value: []artel.Capability{artel.CanText, artel.CanVision}, Source: model.FromEndpoint}
	got := model.Merge(operator, endpoint, model.Catalog("gpt-4o"))
	if got.ContextWindow.Value != 1000 || got.Input.Source != model.FromEndpoint || got.MaxOutput.Source != model.FromCatalog {
		t.Errorf("%+v", got)
	}
	if diff := cmp.Diff(model.TextOnly(), model.Merge()); diff != "" {
		t.Error(diff)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"services", "services_file", "default_service", "locale"}
	for word, want := range map[string]string{
		"service": "services", "servces": "services", "service_file": "services_file", "local": "locale",
		"locale": "locale", "xyz": "", "": "", "defaultservice": "default_service",
	} {
		if got := model.Nearest(word, known); got != want {
			t.Errorf("Nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
