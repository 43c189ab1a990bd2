// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

// Limits that a request does not give are those of the configuration, not the
// built-in ones.
func TestPartialLimitsStartFromTheConfiguration(t *testing.T) {
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{"artel.yaml": "edit: {min_length: 4, margin: 0, min_distance: 2, max_ratio: 0.2}\n"})
	server := serving(t, dir, bareEnvironment(dir))
	// An edit in five characters: within the configured ratio and length only.
	const one = `"content":"<quick> <quack>","edits":[{"old":"quikk","new":"it"}]`
	// Three edits in ten characters: over the configured ratio.
	const three = `"content":"the quick brown fox","edits":[{"old":"thX quXck X","new":"it"}]`
	for _, tt := range []struct{ name, body, want string }{
		{"none given", one, "<it> <quack>"},
		{"another given", one + `,"limits":{"min_distance":1}`, "<it> <quack>"},
		{"the length given", one + `,"limits":{"min_length":6}`, "not_found"},
		{"the margin given", one + `,"limits":{"margin":2}`, "ambiguous"},
		{"the ratio configured", three, "not_found"},
		{"the ratio configured, another given", three + `,"limits":{"margin":1}`, "not_found"},
		{"the ratio given", three + `,"limits":{"max_ratio":0.3}`, "itrown fox"},
	} {
		resp, err := http.Post(server.url+"/api/v1/edit", "application/json", strings.NewReader("{"+tt.body+"}"))
		if err != nil {
			t.Fatal(err)
		}
		var out struct {
			OK      bool
			Content string
			Error   struct{ Kind string }
		}
		err = json.NewDecoder(resp.Body).Decode(&out)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: %s, %v", tt.name, resp.Status, err)
		}
		got := out.Error.Kind
		if out.OK {
			got = out.Content
		}
		if got != tt.want {
			t.Errorf("%s: got %q, want %q", tt.name, got, tt.want)
		}
	}
}
