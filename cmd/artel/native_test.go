// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
)

// TestNativeKeysWorkAtOnce takes the path of somebody who has nothing but the
// key of a vendor whose own API is spoken: it answers at once, and gets what
// it takes as it is.
func TestNativeKeysWorkAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upstream := faking(t, dir, "anthropic", "sk-vendor-secret", "--models", "mine-1,mine-2")
	p := serving(t, dir, with(bareEnvironment(dir), "ANTHROPIC_BASE_URL="+upstream.url, "ANTHROPIC_API_KEY=sk-vendor-secret", "ANTHROPIC_MODEL=mine-1"))

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

	_, asked := p.reported(t, upstream.url, []string{"photo.jpg", "report.pdf", "tone.wav"},
		"`photo.jpg`: JPEG picture, 64 × 48 pixels", "`report.pdf`: PDF", "`tone.wav`: I cannot read it.")
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
