// SPDX-License-Identifier: Apache-2.0

package mcpconformance

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel/sdktest/program"
)

var update = flag.Bool("update", false, "write the section of the suite in docs/compatibility.md anew")

// needsOwn is why scenarios fail that call tools, read resources or get prompts by names
// that the suite's own servers have.
const needsOwn = "needs the suite's tools"

// known are the scenarios that do not pass, with the reason, by column. A scenario that
// passes has to leave the list.
var known = map[string]map[string]string{
	"server": {
		"tools-call-simple-text": needsOwn, "tools-call-image": needsOwn, "tools-call-audio": needsOwn, "tools-call-embedded-resource": needsOwn,
		"tools-call-mixed-content": needsOwn, "tools-call-with-logging": needsOwn, "tools-call-error": needsOwn, "tools-call-with-progress": needsOwn,
		"tools-call-sampling": needsOwn, "tools-call-elicitation": needsOwn, "json-schema-2020-12": needsOwn, "elicitation-sep1034-defaults": needsOwn,
		"elicitation-sep1330-enums": needsOwn, "resources-read-text": needsOwn, "resources-read-binary": needsOwn, "resources-templates-read": needsOwn,
		"resources-subscribe": needsOwn, "resources-unsubscribe": needsOwn, "prompts-get-simple": needsOwn, "prompts-get-with-args": needsOwn,
		"prompts-get-embedded-resource": needsOwn, "prompts-get-with-image": needsOwn, "server-sse-polling": noResuming,
	},
	"program": {"tools-call-audio": asRef, "server-sse-polling": noResuming},
	"remote":  {"tools-call-audio": asRef, "server-sse-polling": noResuming},
	"client": {
		"auth/2025-03-26-oauth-metadata-backcompat": noMetadata,
		"auth/2025-03-26-oauth-endpoint-fallback":   noMetadata,
		"auth/client-credentials-jwt":               noPerson,
		"auth/client-credentials-basic":             noPerson,
		"auth/cross-app-access-complete-flow":       noPerson,
	},
}

// The reasons.
const (
	asRef      = "audio becomes a ref"
	noResuming = "streams are not resumed; the suite only recommends it"
	noMetadata = "servers without metadata (RFC 9728) are not connected"
	noPerson   = "access without a person is not asked for"
)

// late is a check of the suite that measures time, which slow machines fail.
const late = "client-sse-retry-timing"

// node is Node.js as scripts/setup installs it, if the system's is older.
func node() string {
	own, err := filepath.Abs("../../bin/nodejs/node_modules")
	if err == nil {
		if found, _ := filepath.Glob(filepath.Join(own, "node-*", "bin", "node")); len(found) > 0 { // the pattern is valid
			return found[0]
		}
	}
	return "node"
}

// build builds a program.
func build(t *testing.T, path string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-o", out, path).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	return out
}

// everything starts the go-sdk's server for the suite with an address.
func everything(t *testing.T, file string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0") // it cannot choose a port itself
	if err != nil {
		t.Fatal(err)
	}
	at := free.Addr().String()
	_ = free.Close()
	cmd := exec.Command(file, "-http", at, "-stateless=false")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { defer close(ended); _ = cmd.Wait() }()
	t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
	for {
		c, err := net.Dial("tcp", at)
		if err == nil {
			_ = c.Close()
			return "http://" + at + "/"
		}
		select {
		case <-ended:
			t.Fatal("the server does not start")
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var dated = regexp.MustCompile(`-\d{4}-\d\d-\d\dT[\d-]+Z$`)

// suite runs all scenarios of a mode, and returns what came of each.
func suite(t *testing.T, mode string, args ...string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.CommandContext(t.Context(), node(), append([]string{"node_modules/@modelcontextprotocol/conformance/dist/index.js", mode, "--suite", "all", "-o", dir}, args...)...)
	text, err := cmd.CombinedOutput() // it fails if a scenario does
	files, _ := filepath.Glob(filepath.Join(dir, "*", "checks.json"))
	deeper, _ := filepath.Glob(filepath.Join(dir, "*", "*", "checks.json"))
	got := map[string]string{}
	for _, file := range append(files, deeper...) {
		name, err := filepath.Rel(dir, filepath.Dir(file))
		if err != nil {
			t.Fatal(err)
		}
		name = strings.TrimPrefix(dated.ReplaceAllString(name, ""), mode+"-")
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var checks []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(data, &checks); err != nil {
			t.Fatal(err)
		}
		word := "nothing was checked"
		for _, c := range checks {
			switch {
			case c.ID == late:
			case c.Status == "FAILURE" && (word == "" || word == "nothing was checked"):
				word = "fails: " + c.ID + " " + c.ErrorMessage
			case c.Status == "SUCCESS" && word == "nothing was checked":
				word = ""
			}
		}
		got[name] = word
	}
	if len(got) < 20 {
		t.Fatalf("%d scenarios ran: %v\n%s", len(got), err, text)
	}
	return got
}

// TestConformance runs every scenario of the suite.
func TestConformance(t *testing.T) {
	if _, err := os.Stat("node_modules"); err != nil {
		t.Fatal("the suite is not installed; run scripts/setup")
	}
	server := build(t, "github.com/modelcontextprotocol/go-sdk/conformance/everything-server")
	at := program.Start(t, "../..", fmt.Sprintf("mcp:\n  - {name: program, command: [%q]}\n  - {name: remote, url: %q}\n", server, everything(t, server)))
	got := map[string]map[string]string{
		"server":  suite(t, "server", "--url", at+"/mcp"),
		"program": suite(t, "server", "--url", at+"/mcp/proxy/program"),
		"remote":  suite(t, "server", "--url", at+"/mcp/proxy/remote"),
		"client":  suite(t, "client", "--timeout", "300000", "--command", build(t, "./client")),
	}
	for column, all := range got {
		for name, word := range all {
			why := known[column][name]
			switch {
			case word != "" && why == "":
				t.Errorf("%s: %s %s", column, name, word)
			case word == "" && why != "":
				t.Errorf("%s: %s passes; remove it from the list, where it has the reason: %s", column, name, why)
			}
		}
		for name := range known[column] {
			if _, ran := all[name]; !ran {
				t.Errorf("%s: %s is in the list and did not run", column, name)
			}
		}
	}
	if !t.Failed() {
		compare(t, got)
	}
}

// The page, and the heading at which the part of this package begins, before that of the
// coding agents.
const (
	page  = "../../docs/compatibility.md"
	begin = "## MCP conformance\n"
	next  = "## Coding agents\n"
)

const head = begin + `
Every scenario of the official suite, @modelcontextprotocol/conformance, which knows the protocol up to 2025-11-25. ` + "`/mcp`" + ` has no tools,
resources and prompts of the suite, so it is tried with the scenarios that need none; behind the proxy is the server that the go-sdk has for the
suite, as a program and at an address. As a client Artel connects with the packages that its agents use, and with accounts.

`

// compare holds the section of the page against what came out.
func compare(t *testing.T, got map[string]map[string]string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, after, found := strings.Cut(string(data), next)
	if !found {
		t.Fatalf("%s has no heading %s", page, next)
	}
	before, _, _ = strings.Cut(before, begin)
	var b strings.Builder
	b.WriteString(before + head)
	table := func(titles []string, columns ...string) {
		b.WriteString("| | " + strings.Join(titles, " | ") + " |\n|---|" + strings.Repeat("---|", len(titles)) + "\n")
		for _, name := range slices.Sorted(maps.Keys(got[columns[0]])) {
			fmt.Fprintf(&b, "| %s |", name)
			for _, column := range columns {
				word := "✓"
				if why := known[column][name]; why != "" {
					word = why
				}
				b.WriteString(" " + word + " |")
			}
			b.WriteString("\n")
		}
		b.WriteString("\n")
	}
	table([]string{"`/mcp`", "proxy of a program", "proxy of an address"}, "server", "program", "remote")
	table([]string{"client"}, "client")
	b.WriteString(next + after)
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != string(data) {
		t.Error("docs/compatibility.md is not what came out (go test ./mcpconformance -update writes it)")
	}
}
