// SPDX-License-Identifier: Apache-2.0

package main

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// TestNativeKeysWorkAtOnce takes the path of somebody who has nothing but the
// key of a vendor whose own API is spoken: it answers at once, and gets what
// it takes as it is.
func TestNativeKeysWorkAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upstream, err := launch(dir, bareEnvironment(dir), "fake", "anthropic", "--addr", "127.0.0.1:0", "--key", "sk-vendor-secret", "--models", "mine-1,mine-2")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(upstream.kill)
	env := with(bareEnvironment(dir), "ANTHROPIC_BASE_URL="+upstream.url, "ANTHROPIC_API_KEY=sk-vendor-secret", "ANTHROPIC_MODEL=mine-1")
	p := serving(t, dir, env)

	var services httpapi.List[httpapi.ServiceView]
	for end := time.Now().Add(5 * time.Minute); ; { // until the vendor has been asked
		fetchJSON(t, p.url+"/api/v1/services", &services)
		if services.Items[0].Sources["input"] != "" || time.Now().After(end) {
			break
		}
	}
	s := services.Items[0]
	if s.ID != "anthropic" || s.Model != "mine-1" || !s.Default || !s.Callable || s.Dialect != "anthropic" || s.Sources["input"] != model.FromEndpoint {
		t.Errorf("the first service is %+v", s)
	}
	if diff := cmp.Diff([]artel.Capability{artel.CanText, artel.CanVision, artel.CanFile}, s.Input); diff != "" {
		t.Error(diff)
	}

	args := []string{"chat", "--server", p.url}
	for _, sample := range []string{"photo.jpg", "report.pdf", "tone.wav"} {
		path, err := filepath.Abs(samplePath(sample))
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "-f", path)
	}
	out, _, err := verb(t.Context(), dir, env, append(args, "Look at these files and report.")...)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"`photo.jpg`: JPEG picture, 64 × 48 pixels", "`report.pdf`: PDF", "`tone.wav`: I cannot read it."} {
		if !strings.Contains(out, want) {
			t.Errorf("the answer lacks %q:\n%s", want, out)
		}
	}
	var asked []fake.Request
	fetchJSON(t, upstream.url+"/_fake/requests", &asked)
	if len(asked) < 3 {
		t.Fatalf("%d requests", len(asked))
	}
	for i, r := range asked {
		body := string(r.Body)
		if r.Status != 200 || r.Path != "/v1/messages" || len(r.Media) != 2 || !strings.Contains(body, `"type":"image"`) || !strings.Contains(body, `"type":"document"`) ||
			!strings.Contains(body, "[cannot read] tone.wav") || !strings.Contains(body, `"cache_control":{"type":"ephemeral"}`) {
			t.Errorf("request %d: %d %s, %d media: %.600s", i, r.Status, r.Error, len(r.Media), body)
		}
	}
	if got := body(t, p.url+"/api/v1/findings"); strings.Contains(got, "secret") || !strings.Contains(got, "ANTHROPIC_API_KEY") {
		t.Errorf("findings: %s", got)
	}
}
