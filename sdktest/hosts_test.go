// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/sdktest/program"
)

var addressIn = regexp.MustCompile(`https?://[^\s"]+`)

// TestHosts: what the page shows for MCP hosts leads to the tools for artifacts. Gemini CLI
// connects by its lines as they stand there; the addresses of all others are called by the
// official client.
func TestHosts(t *testing.T) {
	url := program.Start(t, "..", "services: []\n")
	hosts := program.Hosts(t, url)
	var names []string
	for k := range maps.Keys(hosts) {
		names = append(names, k.Name)
	}
	slices.Sort(names)
	if want := []string{"Claude Code", "Codex", "Cursor", "Gemini CLI", "Qwen Code", "VS Code", "goose", "opencode"}; !slices.Equal(names, want) {
		t.Fatalf("the page has lines for %q, want %q", names, want)
	}
	for k, text := range hosts {
		at := addressIn.FindString(text)
		client := mcp.NewClient(&mcp.Implementation{Name: k.Name, Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: at}, nil)
		if err != nil {
			t.Fatalf("%s, %s: %v", k.Name, at, err)
		}
		list, err := session.ListTools(t.Context(), nil)
		_ = session.Close()
		if err != nil || !slices.ContainsFunc(list.Tools, func(tool *mcp.Tool) bool { return tool.Name == "update_artifact" }) {
			t.Errorf("%s, %s: %v, %+v", k.Name, at, err, list)
		}
		if k.Name == "Gemini CLI" {
			geminiLists(t, k.Where, text)
		}
	}
}

// geminiLists lets Gemini CLI connect to the servers in its settings.
func geminiLists(t *testing.T, where, settings string) {
	t.Helper()
	home := t.TempDir()
	file := filepath.Join(home, strings.TrimPrefix(where, "~/"))
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	bin, err := filepath.Abs("agents/install/gemini/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	own, err := filepath.Abs("../bin")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), filepath.Join(bin, "gemini"), "mcp", "list")
	list.Dir = home
	list.Env = []string{"HOME=" + home, "TMPDIR=" + home, "PATH=" + own + ":/usr/local/bin:/usr/bin:/bin", "GEMINI_API_KEY=any", "GEMINI_CLI_TRUST_WORKSPACE=true", "NO_COLOR=1"}
	out, err := list.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "artel") || !strings.Contains(string(out), "Connected") {
		t.Errorf("gemini mcp list says %v\n%s", err, out)
	}
}
