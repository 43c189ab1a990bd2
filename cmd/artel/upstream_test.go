// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/provider/openai"
)

// TestFindsAServerByItself takes a newcomer's second path: a server with
// OpenAI's API, two variables in the environment, and nothing else. What is
// attached must reach the model where OpenAI's API takes it.
func TestFindsAServerByItself(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	upstream := faking(t, dir, "openai", "sk-secret")
	p := serving(t, dir, with(bareEnvironment(dir), "OPENAI_BASE_URL="+upstream.url, "OPENAI_API_KEY=sk-secret"))

	var services httpapi.List[httpapi.ServiceView]
	fetchJSON(t, p.url+"/api/v1/services", &services)
	if s := services.Items[0]; s.ID != "openai" || s.Model != "fake-1" || !s.Default || !s.Callable {
		t.Errorf("the first service is %+v", s)
	}

	out, asked := p.reported(t, strings.TrimSuffix(upstream.url, "/v1"), []string{"photo.jpg", "report.pdf", "notes.md"},
		"`photo.jpg`: JPEG picture, 64 × 48 pixels", "`report.pdf`: PDF document, 2 pages", "`notes.md`: text, first heading")
	for i, r := range asked {
		checkRequest(t, i, r)
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if log := p.errs.String(); strings.Contains(log+out, "sk-secret") {
		t.Errorf("the key shows:\n%s", log)
	}
}

// checkRequest wants the picture and the PDF in parts of user messages, and no
// bytes in any text.
func checkRequest(t *testing.T, i int, r fake.Request) {
	t.Helper()
	if r.Status != http.StatusOK {
		t.Errorf("request %d: %d %s", i, r.Status, r.Error)
	}
	var body openai.Request
	if err := json.Unmarshal(r.Body, &body); err != nil {
		t.Fatalf("request %d: %v", i, err)
	}
	base64 := regexp.MustCompile(`[A-Za-z0-9+/]{60,}`)
	kinds := map[string]int{}
	for _, m := range body.Messages {
		var content any
		raw, err := json.Marshal(m.Content)
		if err == nil {
			err = json.Unmarshal(raw, &content)
		}
		if err != nil {
			t.Fatal(err)
		}
		parts, _ := content.([]any)
		if text, ok := content.(string); ok {
			parts = []any{map[string]any{"type": "text", "text": text}}
		}
		for _, p := range parts {
			part := p.(map[string]any)
			kind := part["type"].(string)
			if kinds[kind]++; kind != "text" && m.Role != "user" {
				t.Errorf("request %d: %s in a message of the %s", i, kind, m.Role)
			}
			if text, _ := part["text"].(string); base64.MatchString(text) {
				t.Errorf("request %d: bytes in text: %s", i, text)
			}
		}
	}
	if kinds["image_url"] == 0 || kinds["file"] == 0 {
		t.Errorf("request %d has parts %v", i, kinds)
	}
	if got, err := os.Stat(samplePath("photo.jpg")); err != nil || len(r.Media) < 2 || r.Media[0].Size != got.Size() {
		t.Errorf("request %d carries %v", i, r.Media)
	}
}
