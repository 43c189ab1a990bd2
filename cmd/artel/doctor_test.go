// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoctor: each ill is found, with the way out, and without keys.
func TestDoctor(t *testing.T) {
	t.Parallel()
	ctx, stop := context.WithTimeout(t.Context(), patience)
	defer stop()
	dir := t.TempDir()
	p := serving(t, dir, bareEnvironment(dir), "--data", "data")
	addr := strings.TrimPrefix(p.url, "http://")
	examine := func(env []string, args ...string) (checks map[string]diagnosis, out string, code int) {
		t.Helper()
		out, code, err := verb(ctx, dir, env, append([]string{"doctor", "--json"}, args...)...)
		if code > 1 || code == 0 && err != nil {
			t.Fatal(err)
		}
		var answer struct{ Checks []diagnosis }
		if err := json.Unmarshal([]byte(out), &answer); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		checks = map[string]diagnosis{}
		for _, c := range answer.Checks {
			checks[c.Check] = c
		}
		return checks, out, code
	}
	bare := bareEnvironment(dir)
	checks, out, code := examine(bare, "--data", "data", "--addr", addr)
	if code != 0 || !checks["server"].OK || !strings.Contains(checks["database"].Says, "no damage") || len(checks) != 10 {
		t.Errorf("a sound server: code %d, %s", code, out)
	}
	ill := func(check, says string, env []string, args ...string) {
		t.Helper()
		checks, out, code := examine(env, args...)
		if c := checks[check]; code != 1 || c.OK || c.Fix == "" || !strings.Contains(c.Says, says) {
			t.Errorf("%s: code %d, %s", check, code, out)
		}
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if c := checks["storage of users"]; !c.OK || !strings.Contains(c.Says, "those of the rows") {
		t.Errorf("storage: %s", out)
	}
	db, err := sql.Open("sqlite", filepath.Join(dir, "data", databaseFile))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(ctx, "INSERT INTO stored (owner, bytes) VALUES ('usr_wrong', 2048)"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	ill("storage of users", "usr_wrong: 2.0 KB, in truth 0 B", bare, "--data", "data", "--addr", addr)
	if checks, out, code := examine(bare, "--data", "data", "--addr", addr, "--recount"); code != 0 || !strings.Contains(checks["storage of users"].Says, "corrected: usr_wrong") {
		t.Errorf("recounted: code %d, %s", code, out)
	}
	if _, out, code := examine(bare, "--data", "data", "--addr", addr); code != 0 {
		t.Errorf("after the recount: code %d, %s", code, out)
	}
	ill("address", "in use", bare, "--data", "other", "--addr", l.Addr().String())
	writeFiles(t, dir, map[string]string{"open/x": "", "file": "x"})
	if err := os.Chmod(filepath.Join(dir, "open"), 0o755); err != nil { //nolint:gosec // it is what is looked for
		t.Fatal(err)
	}
	ill("data directory", "other accounts", bare, "--data", "open", "--addr", "127.0.0.1:0")
	ill("data directory", "cannot be used", bare, "--data", "file", "--addr", "127.0.0.1:0")
	writeFiles(t, dir, map[string]string{"damaged/artel.db": string(bytes.Repeat([]byte("no database "), 1000))})
	ill("database", "", bare, "--data", "damaged", "--addr", "127.0.0.1:0")
	writeFiles(t, dir, map[string]string{"wrong.yaml": "no_such_key: 1\n"})
	ill("configuration", "no_such_key", bare, "--config", "wrong.yaml", "--data", "other", "--addr", "127.0.0.1:0")
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = w.Write([]byte(`{"error": {"message": "Incorrect API key provided: ` + strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ") + `", "type": "invalid_request_error", "code": "invalid_api_key"}}`))
	}))
	defer refusing.Close()
	writeFiles(t, dir, map[string]string{"services.yaml": "services:\n  - id: mine\n    dialect: openai\n    baseURL: " + refusing.URL + "/v1\n    model: m\n    apiKey: ${SECRET_OF_MINE}\n"})
	writeFiles(t, dir, map[string]string{"keys.yaml": "services:\n  - id: mine\n    modell: m\n"})
	ill("services", "modell", bare, "--config", "keys.yaml", "--data", "other", "--addr", "127.0.0.1:0")
	env := with(bare, "SECRET_OF_MINE=sk-very-secret-4711")
	ill("service mine", "Incorrect API key", env, "--services", "--config", "services.yaml", "--data", "other", "--addr", "127.0.0.1:0")
	if _, out, _ := examine(env, "--services", "--config", "services.yaml", "--data", "other", "--addr", "127.0.0.1:0"); strings.Contains(out, "very-secret") {
		t.Errorf("a key is shown: %s", out)
	}
}
