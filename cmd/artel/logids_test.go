// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/httpapi"
)

// TestLogHasIDs: a line about a run has its id, its conversation and the request
// that started it, in both formats.
func TestLogHasIDs(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	busy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `{"error": {"message": "busy"}}`, http.StatusServiceUnavailable)
	}))
	defer busy.Close()
	for format, want := range map[string]string{
		"json": `"request":"[A-Z0-9]{12}"`,
		"text": ` request=[A-Z0-9]{12}\b`,
	} {
		dir := t.TempDir()
		writeFiles(t, dir, map[string]string{"services.yaml": "services:\n  - id: mine\n    dialect: openai\n    baseURL: " + busy.URL + "/v1\n    model: m\n"})
		p := serving(t, dir, bareEnvironment(dir), "--config", "services.yaml", "--log", format)
		client := httpapi.NewClient(p.url, nil)
		c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
		if err != nil {
			t.Fatal(err)
		}
		sent, err := client.Send(ctx, c.ID, httpapi.NewMessage{Text: "Hello", Service: "mine"})
		if err != nil {
			t.Fatal(err)
		}
		if state := waitForEnd(ctx, t, client, c.ID, sent.RunID); state != artel.RunFailed {
			t.Fatalf("the run is %s", state)
		}
		if err := p.stop(); err != nil {
			t.Fatal(err)
		}
		line := ""
		for l := range strings.Lines(p.errs.String()) {
			if strings.Contains(l, "model call failed") {
				line = l
			}
		}
		if !regexp.MustCompile(want).MatchString(line) || !strings.Contains(line, string(sent.RunID)) || !strings.Contains(line, string(c.ID)) {
			t.Errorf("%s: got %q", format, line)
		}
	}
}
