// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The page repeats the command that started the server.
func TestStartedAs(t *testing.T) {
	dir := t.TempDir()
	p := serving(t, dir, bareEnvironment(dir))
	if page := body(t, p.url+"/"); !strings.Contains(page, "serve --addr") || strings.Contains(page, "… artel serve<") {
		t.Errorf("the page does not repeat the command line of the server")
	}
	here := filepath.Join(dir, "artel")
	if err := os.WriteFile(here, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	other := filepath.Join(t.TempDir(), "artel")
	if err := os.WriteFile(other, nil, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	for _, x := range []struct {
		args []string
		want string
	}{
		{[]string{"artel", "serve"}, "artel serve"},
		{[]string{here, "serve", "--data", "my data"}, "artel serve --data 'my data'"},
		{[]string{other, "serve"}, other + " serve"},
		{[]string{"/tmp/go-build123/b001/exe/artel", "serve", "--addr", "127.0.0.1:0"}, "go run ./cmd/artel serve --addr 127.0.0.1:0"},
		{[]string{"artel", "serve", "--config", "it's"}, `artel serve --config 'it'\''s'`},
	} {
		if got := startedAs(x.args); got != x.want {
			t.Errorf("%q: %s, want %s", x.args, got, x.want)
		}
	}
}
