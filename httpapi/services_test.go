// SPDX-License-Identifier: Apache-2.0

package httpapi_test

import (
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider"
	"github.com/artelhq/artel/model/provider/openai"
)

const serviceKey = "sk-abcdefgh01234f2a"

// withStored lets a bench store services and call them.
func withStored(t *testing.T) func(*app.Config) {
	return func(c *app.Config) {
		box, err := secret.New("", filepath.Join(t.TempDir(), "key"))
		if err != nil {
			t.Fatal(err)
		}
		client := fetch.NewClient(fetch.Options{AllowPrivate: true})
		t.Cleanup(client.CloseIdleConnections)
		c.Stored = app.Stored{Secrets: box, HTTP: client}
		c.Providers = map[model.Dialect]model.Provider{model.Demo: c.Providers[model.Demo], model.OpenAI: openai.New(provider.Options{Client: client, Blobs: c.Blobs})}
	}
}

// TestServicesAtRunTime: a service is checked, added, used, changed and deleted, and no
// answer holds its key.
func TestServicesAtRunTime(t *testing.T) {
	b := newBench(t, writes, withStored(t))
	api := httptest.NewServer(fake.OpenAI(fake.Options{Key: serviceKey, Models: []string{"alpha", "beta", "gamma"}}))
	t.Cleanup(api.Close)
	read := func(a answered, status int) map[string]any {
		t.Helper()
		if strings.Contains(string(a.body), "abcdefgh") {
			t.Errorf("%s %s: the answer holds the key: %s", a.Request.Method, a.Request.URL, a.body)
		}
		return b.object(a, status)
	}
	entry := map[string]any{"id": "team", "baseURL": api.URL + "/v1", "apiKey": serviceKey, "models": "all"}
	report := read(b.do("POST", "/services/check", entry), 200)
	if d := cmp.Diff([]any{"alpha", "beta", "gamma"}, report["models"]); d != "" || report["ok"] != true || len(report["items"].([]any)) != 5 {
		t.Errorf("%v %s", report, d)
	}
	made := read(b.do("POST", "/services", entry), 201)
	if d := cmp.Diff([]any{"team", "team-beta", "team-gamma"}, made["services"]); d != "" {
		t.Error(d)
	}
	shown := map[string]any{"set": true, "ends_with": "4f2a"}
	if d := cmp.Diff(shown, made["entry"].(map[string]any)["apiKey"]); d != "" {
		t.Error(d)
	}
	b.problem(b.do("POST", "/services", entry), 409, "conflict")
	of := func(id string) map[string]any {
		t.Helper()
		for _, item := range read(b.do("GET", "/services", nil), 200)["items"].([]any) {
			if one := item.(map[string]any); one["id"] == id {
				return one
			}
		}
		return nil
	}
	for id, readOnly := range map[string]bool{"demo": true, "team": false, "team-gamma": false} {
		if one := of(id); one == nil || one["read_only"] != readOnly || readOnly == (one["entry"] == "team") {
			t.Errorf("%s: %v", id, one)
		}
	}
	if d := cmp.Diff(shown, of("team")["apiKey"]); d != "" {
		t.Error(d)
	}
	wrong := b.problem(b.do("POST", "/services", map[string]any{"id": "x", "provider": "openai", "limits": map[string]any{"item_byte": 1}}), 422, "invalid")
	var pointers []string
	for _, e := range wrong["errors"].([]any) {
		pointers = append(pointers, e.(map[string]any)["pointer"].(string))
	}
	if d := cmp.Diff([]string{"/limits/item_byte", "/provider"}, pointers); d != "" || !strings.Contains(wrong["detail"].(string), `"dialect"`) {
		t.Errorf("%v %s", wrong, d)
	}
	b.problem(b.do("PUT", "/services/demo", map[string]any{}), 403, "service_read_only")
	b.problem(b.do("DELETE", "/services/nothing", nil), 404, "not_found")

	stored, err := b.client.StoredService(t.Context(), "team")
	if err != nil {
		t.Fatal(err)
	}
	stored.Entry["disabled"] = true
	if off, err := b.client.ChangeService(t.Context(), "team", stored.Entry); err != nil || !off.Disabled || len(off.Services) > 0 {
		t.Errorf("%+v, %v", off, err)
	}
	if one := of("team"); one["disabled"] != true || one["callable"] != false {
		t.Errorf("a disabled service is listed as %v", one)
	}
	stored.Entry["disabled"] = false
	if on, err := b.client.ChangeService(t.Context(), "team", httpapi.ServiceEntry(stored.Entry)); err != nil || len(on.Services) != 3 {
		t.Errorf("%+v, %v", on, err)
	}
	if err := b.client.DeleteService(t.Context(), "team"); err != nil || of("team") != nil {
		t.Errorf("%v after %v", of("team"), err)
	}
}
