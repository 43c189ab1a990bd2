// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
)

// TestServicesAreReadAgain: what services take can change under a running
// server, by the API, by a signal, and because a file has changed. The same
// ref is routed anew without being uploaded again (R2.1), and a file that
// cannot be read changes nothing but the log and the findings (R8.4).
func TestServicesAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "llmservices.json")
	// Times of files are coarse on some systems; each state differs in size too.
	write := func(input string) {
		t.Helper()
		text := input
		if strings.HasPrefix(input, "text") {
			text = `{"services":[{"id":"v","capabilities":{"input":["` + strings.ReplaceAll(input, ",", `","`) + `"]}}]}`
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("text")
	writeFiles(t, dir, map[string]string{"artel.yaml": "services_file: llmservices.json\n"})
	p := serving(t, dir, bareEnvironment(dir))
	client := httpapi.NewClient(p.url, nil)
	c, err := client.CreateConversation(t.Context(), httpapi.NewConversation{})
	if err != nil {
		t.Fatal(err)
	}
	photo := sampleBytes(t, "photo.jpg")
	a, err := client.Upload(t.Context(), c.ID, "photo.jpg", "", strings.NewReader(string(photo)), int64(len(photo)))
	if err != nil {
		t.Fatal(err)
	}
	routing := func() string {
		t.Helper()
		var r struct {
			Routing string `json:"routing"`
		}
		fetchJSON(t, p.url+"/api/v1/conversations/"+string(c.ID)+"/artifacts/"+string(a.ID)+"/route?service=v", &r)
		return r.Routing
	}
	wait := func(want string) {
		t.Helper()
		for end := time.Now().Add(5 * time.Minute); routing() != want; time.Sleep(50 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("routing is %q, want %q", routing(), want)
			}
		}
	}

	if got := routing(); got != "text" {
		t.Fatalf("routing is %q", got)
	}
	write("text,vision")
	if got := p.reload(t, http.StatusOK); !strings.Contains(got, `"vision"`) {
		t.Errorf("reloaded: %s", got)
	}
	if got := routing(); got != "image_url" {
		t.Errorf("after a reload routing is %q", got)
	}

	// Nobody says anything: the change of the file is enough.
	write("text")
	wait("text")

	// A signal.
	write("text,vision,audio")
	if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	wait("image_url")

	for _, broken := range []string{"{", "", `{"services":5}`} {
		write(broken)
		if got := p.reload(t, http.StatusUnprocessableEntity); !strings.Contains(got, "llmservices.json") {
			t.Errorf("refused: %s", got)
		}
		if got := routing(); got != "image_url" {
			t.Errorf("with a broken file routing is %q", got)
		}
		var findings httpapi.List[model.Finding]
		fetchJSON(t, p.url+"/api/v1/findings", &findings)
		if f := findings.Items[0]; f.Problem != model.Unreadable || f.Place != "artel.yaml" || f.Detail == "" {
			t.Errorf("findings: %+v", findings.Items)
		}
	}
	if log := p.errs.String(); !strings.Contains(log, "the services stay unchanged") {
		t.Errorf("log: %s", log)
	}
	write("text,vision,video")
	p.reload(t, http.StatusOK)
	if got := body(t, p.url+"/api/v1/findings"); strings.Contains(got, "unreadable") {
		t.Errorf("findings: %s", got)
	}
}

// reload has the server read its configuration again, and returns its answer.
func (p *process) reload(t *testing.T, want int) string {
	t.Helper()
	resp, err := http.Post(p.url+"/api/v1/services/reload", "application/json", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != want {
		t.Fatalf("%s: %s, %v", resp.Status, b, err)
	}
	return string(b)
}

// TestPluginsAreReadAgain: plugins of artel.yaml come, change and go under a
// running server, and a wrong entry changes nothing.
func TestPluginsAreReadAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	script := "#!/bin/sh\necho '{\"version\":1,\"error\":\"asked\"}'\n"
	if err := os.WriteFile(filepath.Join(dir, "plugin.sh"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	write := func(yaml string) {
		t.Helper()
		writeFiles(t, dir, map[string]string{"artel.yaml": yaml})
	}
	write("titles: \"off\"\n")
	p := serving(t, dir, bareEnvironment(dir))
	processors := func() string { return body(t, p.url+"/api/v1/pipeline") }
	const one = `{id: one, name: %s, command: [./plugin.sh]}`
	entry := func(list string) string { return "pipeline: {plugins: [" + list + "]}\n" }
	write(entry(strings.Replace(one, "%s", "First", 1)))
	p.reload(t, http.StatusOK)
	if got := processors(); !strings.Contains(got, `"First"`) {
		t.Errorf("after it came: %s", got)
	}
	write(entry(strings.Replace(one, "%s", "Second", 1) + ", {id: two, command: [./plugin.sh]}"))
	p.reload(t, http.StatusOK)
	if got := processors(); !strings.Contains(got, `"Second"`) || strings.Contains(got, `"First"`) || !strings.Contains(got, `"two"`) {
		t.Errorf("after it changed: %s", got)
	}
	for broken, says := range map[string]string{
		"{id: one, command: [./none]}":                                         "cannot be found",
		"{id: two, command: [./plugin.sh]}, {id: two, command: [./plugin.sh]}": "a processor with this id is registered",
		"{id: session-loader, command: [./plugin.sh]}":                         "a processor with this id is registered",
	} {
		write(entry(broken))
		if got := p.reload(t, http.StatusUnprocessableEntity); !strings.Contains(got, says) {
			t.Errorf("%s: %s", broken, got)
		}
		if got := processors(); !strings.Contains(got, `"Second"`) {
			t.Errorf("after a mistake: %s", got)
		}
	}
	write("titles: \"off\"\n")
	p.reload(t, http.StatusOK)
	if got := processors(); strings.Contains(got, `"one"`) || strings.Contains(got, `"two"`) {
		t.Errorf("after they went: %s", got)
	}
}
