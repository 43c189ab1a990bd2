// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// TestGeminiKeyWorksAtOnce takes the path of somebody who has nothing but a key
// of Google's: the Gemini API is asked for a model, and is sent everything that
// it takes, natively and signed as it wants it.
func TestGeminiKeyWorksAtOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upstream := faking(t, dir, "gemini", "AIza-vendor-secret")
	p := serving(t, dir, with(bareEnvironment(dir), "GEMINI_BASE_URL="+upstream.url, "GEMINI_API_KEY=AIza-vendor-secret"))

	var services httpapi.List[httpapi.ServiceView]
	fetchJSON(t, p.url+"/api/v1/services", &services)
	s := services.Items[0]
	if s.ID != "gemini" || s.Model != "gemini-3-fake" || !s.Default || !s.Callable || s.Dialect != "gemini" || s.Sources["context_window"] != model.FromEndpoint {
		t.Errorf("the first service is %+v", s)
	}
	_, asked := p.reported(t, upstream.url, []string{"photo.jpg", "report.pdf", "tone.wav"}, "`photo.jpg`: JPEG picture, 64 × 48 pixels", "PDF", "`tone.wav`")
	signed := false
	for i, r := range asked {
		if r.Status != 200 || len(r.Media) != 3 || !strings.HasSuffix(r.Path, "/v1beta/models/gemini-3-fake:streamGenerateContent") {
			t.Errorf("request %d: %s %d %s, with %d media", i, r.Path, r.Status, r.Error, len(r.Media))
		}
		if strings.Contains(string(r.Body), "skip_thought") {
			t.Errorf("request %d says that a call is not the service's own: %s", i, r.Body)
		}
		signed = signed || strings.Contains(string(r.Body), `"thoughtSignature"`)
	}
	if !signed {
		t.Error("no call went back with its signature")
	}
}

// TestGeminiIsProbed: what either generation takes in the results of tools is
// found out, and told with its source.
func TestGeminiIsProbed(t *testing.T) {
	t.Parallel()
	blobs := blob.NewMemory()
	srv := httptest.NewServer(fake.Gemini(fake.Options{Blobs: blobs, Responder: fake.Sees(blobs, fake.Echo)}))
	t.Cleanup(srv.Close)
	dir := t.TempDir()
	env := with(bareEnvironment(dir), "KEY=AIza-vendor-secret")
	config := `services:
  - {id: new, baseURL: "` + srv.URL + `", model: gemini-3-fake, dialect: gemini, apiKey: "${KEY}", capabilities: {input: [vision, file]}}
  - {id: old, baseURL: "` + srv.URL + `/v1beta", model: gemini-2.5-fake, dialect: gemini, apiKey: "${KEY}", capabilities: {input: [vision, file]}}
`
	writeFiles(t, dir, map[string]string{"artel.yaml": config})
	p := serving(t, dir, env)
	for id, want := range map[string]string{"new": "seen", "old": "refused"} {
		out, _, err := verb(t.Context(), dir, env, "models", "probe", id, "--server", p.url)
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		found := false
		for line := range strings.Lines(out) {
			found = found || strings.Contains(line, "tool") && strings.Contains(line, "image/png") && strings.Contains(line, want)
		}
		if !found {
			t.Errorf("%s: no picture in a result is %s:\n%s", id, want, out)
		}
	}
}
