// SPDX-License-Identifier: Apache-2.0

package entries_test

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/demo"
)

// summary has a line for each step: its name and state, and what explains it.
func summary(r entries.CheckReport) (out []string) {
	for _, s := range r.Items {
		line := fmt.Sprintf("%s %s", s.Name, s.State)
		for _, more := range []string{string(s.Cause), s.Try} {
			if more != "" {
				line += " " + more
			}
		}
		out = append(out, line)
	}
	return out
}

func (b *bench) check(fields map[string]any, want ...string) entries.CheckReport {
	b.t.Helper()
	var seen []entries.CheckStep
	r, err := b.Check(b.ctx, fields, func(s entries.CheckStep) { seen = append(seen, s) })
	if err != nil {
		b.t.Fatalf("%v: %v", fields, err)
	}
	if d := cmp.Diff(want, summary(r)); d != "" {
		b.t.Errorf("%v: %s\n%+v", fields, d, r.Items)
	}
	if d := cmp.Diff(r.Items, seen); d != "" {
		b.t.Errorf("steps as they were reported: %s", d)
	}
	if strings.Contains(fmt.Sprint(r), key) {
		b.t.Errorf("the report holds the key: %+v", r)
	}
	return r
}

var fine = []string{"reach ok", "key ok", "models ok", "word ok", "picture ok"}

// TestCheck: each dialect is reached, lists its models, answers, and sees a picture.
func TestCheck(t *testing.T) {
	b := newBench(t)
	blobs := blob.NewMemory()
	o := fake.Options{Key: key, Models: []string{"alpha", "beta", "gamma"}, Blobs: blobs, Responder: fake.Sees(blobs, demo.New(blobs, demo.Options{}).Generate)}
	for dialect, base := range map[string]string{
		"openai": serve(t, fake.OpenAI(o)) + "/v1", "anthropic": serve(t, fake.Anthropic(o)), "gemini": serve(t, fake.Gemini(o)),
	} {
		r := b.check(map[string]any{"dialect": dialect, "baseURL": base, "apiKey": key}, fine...)
		if !r.OK || !slices.Equal(r.Models, o.Models) || r.Items[3].Model != "alpha" {
			t.Errorf("%s: %+v", dialect, r)
		}
		// All of them become services.
		made, err := b.Create(b.ctx, map[string]any{"id": dialect, "dialect": dialect, "baseURL": base, "apiKey": key, "models": "all"})
		if err != nil || len(made.Services) != 3 {
			t.Errorf("%s: %v, %v", dialect, made.Services, err)
		}
		if s := b.service(artel.ServiceID(dialect)); !s.Capabilities.Has(artel.CanVision) {
			t.Errorf("%s: what the check has seen is not known of the service", dialect)
		}
	}
}

// TestTroubles: each cause has a name, and where there is one, the way out.
func TestTroubles(t *testing.T) {
	b := newBench(t)
	base := openAI(t, key, "gpt-alpha", "gpt-beta")
	skipped := []string{"key skipped", "models skipped", "word skipped", "picture skipped"}
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	secure.Config.ErrorLog = log.New(io.Discard, "", 0) // failed handshakes
	secure.StartTLS()
	t.Cleanup(secure.Close)
	with := func(base string, more ...any) map[string]any {
		out := map[string]any{"baseURL": base, "apiKey": key}
		for i := 0; i+1 < len(more); i += 2 {
			out[more[i].(string)] = more[i+1]
		}
		return out
	}
	b.check(with("http://127.0.0.1:1"), append([]string{"reach failed nothing_listens"}, skipped...)...)
	b.check(with("http://169.254.169.254/v1"), append([]string{"reach failed address_forbidden"}, skipped...)...)
	b.check(with(secure.URL), append([]string{"reach failed tls_failed"}, skipped...)...)
	b.check(with(strings.Replace(base, "http:", "https:", 1)+"/v1"), append([]string{"reach failed tls_failed " + base + "/v1"}, skipped...)...)
	b.check(with(base+"/v1", "apiKey", "sk-of-another-server"), "reach ok", "key failed key_refused", "models skipped", "word skipped", "picture skipped")
	b.check(with(base+"/v1", "apiKey", ""), "reach ok", "key failed key_missing", "models skipped", "word skipped", "picture skipped")
	b.check(with(base+"/v1/chat/completions"), append([]string{"reach failed wrong_path " + base + "/v1"}, skipped...)...)
	b.check(with(base+"/api/v1/"), append([]string{"reach failed wrong_path " + base + "/v1"}, skipped...)...)
	b.check(with(base+"/v1", "model", "alpha"), "reach ok", "key ok", "models unsure model_unknown gpt-alpha", "word failed model_unknown gpt-alpha", "picture skipped")
	b.check(with(base+"/v1", "model", "gpt-beta"), fine...)
}

// TestWithoutAList: a server without a list of models is tried with the model that is
// named; without one, it cannot be.
func TestWithoutAList(t *testing.T) {
	b := newBench(t)
	api := fake.OpenAI(fake.Options{Key: key, Models: []string{"m"}, Behavior: fake.Behavior{DropsMedia: true}})
	base := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/models") {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		api.ServeHTTP(w, r)
	})) + "/v1"
	b.check(map[string]any{"baseURL": base, "apiKey": key, "model": "m"}, "reach ok", "key unsure", "models unsure server_failed", "word ok", "picture failed")
	b.check(map[string]any{"baseURL": base, "apiKey": key}, "reach ok", "key unsure", "models failed server_failed", "word skipped", "picture skipped")
	empty := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":[]}`)) }))
	b.check(map[string]any{"baseURL": empty + "/v1"}, "reach ok", "key ok", "models failed no_models", "word skipped", "picture skipped")
	if _, err := b.Check(b.ctx, map[string]any{"model": "m"}, nil); artel.KindOf(err) != artel.Invalid {
		t.Errorf("without an address: %v", err)
	}
	if cause, _ := model.TroubleOf(model.Service{}, nil); cause != model.NoTrouble {
		t.Error(cause)
	}
}
