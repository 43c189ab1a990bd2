// SPDX-License-Identifier: Apache-2.0

package main

import (
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
	if err := os.WriteFile(filepath.Join(dir, "artel.yaml"), []byte("services_file: llmservices.json\n"), 0o600); err != nil {
		t.Fatal(err)
	}
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
	reload := func(want int) string {
		t.Helper()
		resp, err := http.Post(p.url+"/api/v1/services/reload", "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b := make([]byte, 1<<16)
		n, _ := resp.Body.Read(b)
		if resp.StatusCode != want {
			t.Fatalf("%s: %s", resp.Status, b[:n])
		}
		return string(b[:n])
	}

	if got := routing(); got != "text" {
		t.Fatalf("routing is %q", got)
	}
	write("text,vision")
	if got := reload(http.StatusOK); !strings.Contains(got, `"vision"`) {
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
		if got := reload(http.StatusUnprocessableEntity); !strings.Contains(got, "llmservices.json") {
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
	reload(http.StatusOK)
	if got := body(t, p.url+"/api/v1/findings"); strings.Contains(got, "unreadable") {
		t.Errorf("findings: %s", got)
	}
}
