// SPDX-License-Identifier: Apache-2.0

package main

import (
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
)

// TestToolsInYAML has the demo call an API that the configuration describes: the
// picture it answers with becomes an artifact, and its key shows nowhere.
func TestToolsInYAML(t *testing.T) {
	t.Parallel()
	photo := sampleBytes(t, "photo.jpg")
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer open-sesame" || r.URL.Path != "/photos/x y" {
			http.Error(w, "you are not "+r.Header.Get("Authorization")+" for "+r.URL.Path, http.StatusForbidden)
			return
		}
		_, _ = w.Write(photo)
	}))
	defer api.Close()
	dir := t.TempDir()
	writeFiles(t, dir, map[string]string{
		"artel.yaml": `
tools_dir: tools
tools:
  - {name: photo, description: Takes a picture., url: "` + api.URL + `/photos/{id}", headers: {Authorization: "Bearer ${PHOTO_KEY}"}, allow_private: true, agents: [lead_agent],
     parameters: {type: object, properties: {id: {type: string}}, required: [id]}}
`,
		"tools/ping.yaml": "name: ping\ndescription: Pings.\nurl: https://ping.example/\n",
		"s.txtar":         "-- turn 1 --\n@call photo {\"id\": \"x y\"}\n@call photo {\"id\": \"else\"}\n-- turn 2 --\nDone.\n",
	})
	env := with(bareEnvironment(dir), "PHOTO_KEY=open-sesame")
	out, _, err := verb(t.Context(), dir, env, "tools", "list")
	if err != nil || !strings.Contains(out, "photo ") || !strings.Contains(out, "ping ") || !strings.Contains(out, "update_artifact") {
		t.Errorf("got %s, %v", out, err)
	}
	if out, _, err := verb(t.Context(), dir, env, "tools", "check"); err != nil || !strings.Contains(out, "2 tools") {
		t.Errorf("got %s, %v", out, err)
	}
	if _, code, err := verb(t.Context(), dir, bareEnvironment(dir), "tools", "check"); err == nil || code != 1 || !strings.Contains(err.Error(), "PHOTO_KEY") {
		t.Errorf("without the key: got %d, %v", code, err)
	}

	p := serving(t, dir, env, "--scenario", filepath.Join(dir, "s.txtar"))
	all := p.played(t)
	for _, want := range []string{"image/jpeg", "kept as artifact:", "403 Forbidden: you are not Bearer [PHOTO_KEY]"} {
		if !strings.Contains(all, want) {
			t.Errorf("the log lacks %q", want)
		}
	}
	if err := p.stop(); err != nil {
		t.Error(err)
	}
	if strings.Contains(all+p.errs.String(), "open-sesame") {
		t.Error("the key shows")
	}
}

func TestToolsThatAreWrong(t *testing.T) {
	for text, want := range map[string]string{
		"{name: a, url: \"https://a.example/\"}":                                           "description is missing",
		"{name: \"a b\", description: x, url: \"https://a.example/\"}":                     "not a name for a tool",
		"{name: read_artifact, description: x, url: \"https://a.example/\"}":               "two tools",
		"{name: a, description: x, url: \"https://a.example/${KEY}\"}":                     "not expanded",
		"{name: a, description: x, url: \"https://a.example/\", timeout: 1h}":              "up to 10m",
		"{name: a, description: x, url: \"https://a.example/\", agents: [nobody]}":         "no agent",
		"{name: a, description: x, url: \"https://a.example/\", parameters: {type: list}}": `want "object"`,
		"{name: a, description: x, url: \"https://a.example/\", max_answer: -1}":           "max_answer",
	} {
		var c config
		err := c.parse("artel.yaml", []byte("tools:\n  - "+text+"\n"))
		if err == nil {
			agents, agentsErr := c.agents()
			if agentsErr != nil {
				t.Fatal(agentsErr)
			}
			_, _, err = c.tools(agents, func(string) string { return "" })
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}
