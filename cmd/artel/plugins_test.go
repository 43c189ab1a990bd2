// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/pipeline"
	"github.com/artelhq/artel/pipeline/plugin"
	"github.com/artelhq/artel/pipeline/token"
)

// Plugins of the configuration are real programs, asked in a build.
func TestPlugins(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\ncat > draft.json\necho \"{\\\"version\\\":1,\\\"messages\\\":[{\\\"id\\\":\\\"n\\\",\\\"role\\\":\\\"system\\\",\\\"text\\\":\\\"$KEY $1\\\"},{\\\"id\\\":\\\"1\\\"}]}\"\n"
	if err := os.WriteFile(filepath.Join(dir, "plugin.sh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var d plugin.Draft
		if err := json.NewDecoder(r.Body).Decode(&d); err != nil || r.Header.Get("X-Key") != "k-7" {
			t.Errorf("asked with %v: %v", r.Header, err)
		}
		_, _ = w.Write([]byte(`{"version":1,"error":"tired"}`))
	}))
	defer server.Close()
	env := map[string]string{"MY_KEY": "k-7"}
	var c config
	err := c.parse(filepath.Join(dir, "artel.yaml"), []byte(`
pipeline:
  plugins:
    - {id: words, name: Words, command: [./plugin.sh, said], env: {KEY: "${MY_KEY}"}, after: injection-assembler, timeout: 20s, options: {a: [1]}}
    - {id: tired, url: "`+server.URL+`", headers: {X-Key: "${MY_KEY}"}, on_failure: fail}
`))
	if err != nil {
		t.Fatal(err)
	}
	plugins, err := c.plugins(func(k string) string { return env[k] })
	if err != nil {
		t.Fatal(err)
	}
	r, err := pipeline.NewRegistry(token.NewCounter(), append(pipeline.BuiltIn(), plugins...)...)
	if err != nil {
		t.Fatal(err)
	}
	in := pipeline.Input{
		Service: model.Service{ID: "s", Capabilities: model.TextOnly()},
		History: []artel.Message{{ID: "1", Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: "go"}}}},
	}
	_, err = r.Build(t.Context(), in)
	if err == nil || !strings.Contains(err.Error(), "tired: the program says: tired") {
		t.Errorf("got %v", err)
	}
	in.Settings.Disabled = []string{"tired"}
	out, err := r.Build(t.Context(), in)
	if err != nil || len(out.Messages) != 2 || artel.TextOf(out.Messages[0].Parts) != "k-7 said" {
		t.Errorf("got %+v, %v", out.Messages, err)
	}
	b, err := os.ReadFile(filepath.Join(dir, "draft.json"))
	if err != nil || !strings.Contains(string(b), `"options":{"a":[1]}`) {
		t.Errorf("it was given %s, %v", b, err)
	}

	for entry, says := range map[string]string{
		"{id: x}": "want either command or url",
		"{id: x, command: [sh], url: 'http://x'}":                    "want either command or url",
		"{id: x, command: [./none]}":                                 "cannot be found",
		"{id: x, command: [sh], headers: {a: b}}":                    "headers are for addresses",
		"{id: x, url: 'http://x', env: {a: b}}":                      "env is for commands",
		"{id: x, url: 'http://x', headers: {a: '${NOT_SET}'}}":       "NOT_SET is not set",
		"{id: x, command: [sh], on_failure: retry}":                  "want skip or fail",
		"{id: x, command: [sh], timeout: soon}":                      "want a time",
		"{id: x, command: [sh], timeout: 1h}":                        "want up to 5m",
		"{id: x, command: [sh], after: nothing}":                     "is not a processor",
		"{id: x, url: 'file:///etc/passwd'}":                         "want an address",
		"{id: x, url: 'http://x', headers: {a: '$5 and ${MY_KEY}'}}": "",
	} {
		var c config
		if err := c.parse("artel.yaml", []byte("pipeline: {plugins: ["+entry+"]}")); err != nil {
			t.Fatal(err)
		}
		_, err := c.plugins(func(k string) string { return env[k] })
		if says == "" && err != nil || says != "" && (err == nil || !strings.Contains(err.Error(), says) || artel.KindOf(err) != artel.Invalid) {
			t.Errorf("%s: %v", entry, err)
		}
	}
}
