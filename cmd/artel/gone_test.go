// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestDataRemoved: a server whose database is taken away stops by itself and
// says why, instead of acknowledging what nobody will find again.
func TestDataRemoved(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serving(t, dir, bareEnvironment(dir))
	for end := time.Now().Add(patience); ; { // it may be writing a file
		err := os.RemoveAll(filepath.Join(dir, "data"))
		if err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
	select {
	case <-p.done:
	case <-time.After(patience):
		t.Fatal("it goes on without its data")
	}
	if p.cmd.ProcessState.ExitCode() != exitRefused || !strings.Contains(p.errs.String(), "moved or removed") {
		t.Errorf("%v: %s", p.err, p.errs.String())
	}
}

// TestTellsWhyNoModel: a model that was set up and cannot be called is named
// on the first page and by the API, with the reason.
func TestTellsWhyNoModel(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := serving(t, dir, with(bareEnvironment(dir), "OPENAI_BASE_URL=http://127.0.0.1:1/v1", "OPENAI_API_KEY=sk-secret-key"))
	for _, path := range []string{"/", "/api/v1/services"} {
		resp, err := http.Get(p.url + path)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		_, err = io.Copy(&b, resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(b.String(), "OPENAI_BASE_URL") || !strings.Contains(b.String(), "refused") || strings.Contains(b.String(), "sk-secret") {
			t.Errorf("%s: %v\n%s", path, err, b.String())
		}
	}
}
