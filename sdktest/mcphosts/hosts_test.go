// SPDX-License-Identifier: Apache-2.0

package mcphosts

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
	"github.com/artelhq/artel/pipeline/token"
)

var update = flag.Bool("update", false, "write the section of the hosts in docs/compatibility.md anew")

// hostileTools is the variable with which this program is the server behind the proxy, with
// that many tools more.
const hostileTools = "ARTEL_TEST_HOSTILE_TOOLS"

func TestMain(m *testing.M) {
	if more, err := strconv.Atoi(os.Getenv(hostileTools)); err == nil {
		if err := mcpproxytest.Server(more).Run(context.Background(), &sdk.StdioTransport{}); err != nil {
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

// The bounds of what a model gets.
const (
	mostText   = 4096 // bytes of one result
	mostTokens = 2000 // of the schemas of the proxy
	ownFrame   = 600  // bytes that a host writes around a result
	pictures   = 20
	picture    = 64 // pixels
	kept       = 100_000
	lines      = 2000
)

// A step is a call that a model makes, and what must come of it.
type step struct {
	row  string // of the table
	tool string // of the server behind the proxy, or one of "artel mcp"
	args func(before []result) map[string]any
	ok   func(r result) string // what is wrong; ""
}

// A result is what reached the model, or the client.
type result struct {
	text     string
	pictures []string // digests
}

var refPattern = regexp.MustCompile(`blob:sha256-[0-9a-f]{64}`)

func digest(data []byte) string {
	sum := sha256.Sum256(data)
	return "sha256-" + hex.EncodeToString(sum[:])
}

func fixed(args map[string]any) func([]result) map[string]any {
	return func([]result) map[string]any { return args }
}

// refers checks that a result has the ref of bytes.
func refers(data []byte) func(result) string {
	want := "blob:" + digest(data)
	return func(r result) string {
		if !strings.Contains(r.text, want) {
			return "no " + want
		}
		return ""
	}
}

func says(words ...string) func(result) string {
	return func(r result) string {
		for _, w := range words {
			if !strings.Contains(r.text, w) {
				return "no " + strconv.Quote(w)
			}
		}
		return ""
	}
}

// read reads what the last result kept, from a byte on.
func read(row string, offset int, want func(r result) string) step {
	return step{row: row, tool: "artel_read", ok: want, args: func(before []result) map[string]any {
		ref := ""
		for _, r := range before {
			if found := refPattern.FindString(r.text); found != "" {
				ref = found
			}
		}
		return map[string]any{"ref": ref, "offset": offset}
	}}
}

// steps are the calls of the matrix: those of the eight kinds of results, and those of the
// artifact tools. A text is compared where it stands in what a host sends, so only words
// without escapes of JSON are looked for.
func steps() []step {
	blob := []byte(strings.Repeat("\x00\x01\x02\xff", 600))
	sound := mcpproxytest.Sound(2400)
	plan := strings.Repeat("a line of the plan\n", 1000)
	document := mcpproxytest.JSON(kept)
	log := mcpproxytest.Log(lines)
	var shown []string
	for i := range pictures {
		shown = append(shown, digest(mcpproxytest.Picture(picture, i)))
	}
	all := func(want []string) func(result) string {
		return func(r result) string {
			got := slices.Clone(r.pictures)
			slices.Sort(got)
			want := slices.Sorted(slices.Values(want))
			return cmp.Diff(want, slices.Compact(got))
		}
	}
	size := func(n int) func([]result) map[string]any { return fixed(map[string]any{"size": n}) }
	return []step{
		{row: "tools", tool: "artel_find_tools", args: fixed(map[string]any{"query": "does the thing number 77"}), ok: says("service5_do_77")},
		{row: "tools", tool: "service5_do_77", args: size(3), ok: says("did 77 with 3")},
		{row: "json", tool: "json", args: size(kept), ok: refers([]byte(document))},
		read("json", len(document)-2000, says("null}")),
		{row: "log", tool: "log", args: size(lines), ok: refers([]byte(log))},
		read("log", len(log)-200, says(fmt.Sprintf("request %d done", lines-1))),
		{row: "pictures", tool: "pictures", args: size(pictures), ok: all(shown)},
		{row: "audio", tool: "audio", args: size(len(sound)), ok: refers(sound)},
		read("audio", 0, says(base64.StdEncoding.EncodeToString(sound))),
		{row: "blob", tool: "blob", args: size(len(blob)), ok: refers(blob)},
		read("blob", 0, says(base64.StdEncoding.EncodeToString(blob))),
		{row: "link", tool: "link", args: size(20), ok: says("file:///x/0.txt", "file:///x/19.txt")},
		{row: "task", tool: "slow", args: size(200), ok: says("slow and done")},
		{row: "markdown", tool: "markdown", args: size(7), ok: func(r result) string {
			if bad := refers(mcpproxytest.Picture(40, 7))(r); bad != "" || strings.Contains(r.text, "iVBORw0KGgo") {
				return "base64 in the text, or " + bad
			}
			return all([]string{digest(mcpproxytest.Picture(40, 7))})(r)
		}},
		{row: "artifacts", tool: "create_artifact", args: fixed(map[string]any{"id": "plan", "title": "Plan", "content": plan}), ok: says("plan")},
		{row: "artifacts", tool: "get_artifact", args: fixed(map[string]any{"ref": "plan"}), ok: says("a line of the plan", "read_artifact")},
		{row: "artifacts", tool: "rewrite_artifact", args: fixed(map[string]any{"id": "plan", "content": "another plan\n" + plan}), ok: says("plan")},
		{row: "artifacts", tool: "diff_artifact", args: fixed(map[string]any{"id": "plan"}), ok: says("another plan")},
		{row: "artifacts", tool: "restore_artifact", args: fixed(map[string]any{"id": "plan", "version": 1}), ok: says("plan")},
	}
}

// A bench has the program, and starts servers of MCP as hosts do.
type bench struct {
	*testing.T
	artel, self string
	count       func(string) int
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{T: t, artel: filepath.Join(t.TempDir(), "artel")}
	build := exec.Command("go", "build", "-o", b.artel, "./cmd/artel")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var err error
	if b.self, err = os.Executable(); err != nil {
		t.Fatal(err)
	}
	counter := token.NewCounter()
	b.count = func(s string) int {
		n, err := counter.Count(token.O200k, s)
		if err != nil {
			t.Error(err)
		}
		return n
	}
	return b
}

// proxy is the command of a proxy of the hostile server, with that many tools more.
func (b *bench) proxy(data string, more int) []string {
	return []string{b.artel, "mcp", "proxy", "--name", "hostile", "--data", data, "--", "/usr/bin/env", fmt.Sprintf("%s=%d", hostileTools, more), b.self}
}

func (b *bench) artifacts(data string) []string { return []string{b.artel, "mcp", "--data", data} }

// environment is that of a host: a home of its own, and nothing of this machine's services.
func environment(home string, path ...string) []string {
	return []string{
		"HOME=" + home, "TMPDIR=" + home, "PATH=" + strings.Join(append(path, "/usr/local/bin", "/usr/bin", "/bin"), ":"), "TERM=xterm-256color", "LANG=C.UTF-8", "NO_COLOR=1",
		"OLLAMA_BASE_URL=http://127.0.0.1:1", "LLAMACPP_BASE_URL=http://127.0.0.1:1", "LMSTUDIO_BASE_URL=http://127.0.0.1:1", "VLLM_BASE_URL=http://127.0.0.1:1",
		"HTTPS_PROXY=http://127.0.0.1:9", "HTTP_PROXY=http://127.0.0.1:9", "NO_PROXY=127.0.0.1,localhost",
	}
}

// A run is what one session of a host came to.
type run struct {
	results []result // of the steps, in order
	tokens  int      // of the schemas of the proxy
	err     error
}

// words returns the words of the table for two sessions of a host, by row.
func (b *bench) words(title string, one, two run) map[string]string {
	out := map[string]string{}
	bad := func(row, format string, args ...any) {
		out[row] = "✗"
		b.Errorf("%s, %s: "+format, append([]any{title, row}, args...)...)
	}
	all := steps()
	for _, r := range []run{one, two} {
		if r.err != nil || len(r.results) != len(all) {
			bad("tools", "%d of %d calls: %v", len(r.results), len(all), r.err)
			return out
		}
		if r.tokens == 0 || r.tokens > mostTokens {
			bad("tools", "the schemas have %d tokens", r.tokens)
		}
	}
	for i, s := range all {
		r := one.results[i]
		if out[s.row] == "" {
			out[s.row] = "✓"
		}
		if wrong := s.ok(r); wrong != "" {
			bad(s.row, "%s returned %q and pictures %q: %s", s.tool, short(r.text), r.pictures, wrong)
		}
		if n := len(r.text); n > mostText+ownFrame {
			bad(s.row, "%s returned %d bytes", s.tool, n)
		}
		if again := two.results[i].text; withoutTimes(again) != withoutTimes(r.text) && s.row != "artifacts" { // those name their conversation
			bad(s.row, "%s returned %q, and then %q", s.tool, short(r.text), short(again))
		}
	}
	return out
}

// wallTime is what Codex says about each call.
var wallTime = regexp.MustCompile(`Wall time: [0-9.]+ seconds`)

func withoutTimes(s string) string { return wallTime.ReplaceAllString(s, "") }

func short(s string) string { return s[:min(len(s), 1500)] }

// TestHosts runs every host twice and compares the page with what came out. Clients without a
// model get the same bytes as the first one, so they run once.
func TestHosts(t *testing.T) {
	b := newBench(t)
	table := map[string]map[string]string{}
	first := hosts[0].run(b)
	for _, h := range hosts {
		if h.heavy && os.Getenv("ARTEL_CLIENTS") != "all" {
			continue
		}
		one, two := h.run(b), first
		if h.model {
			two = h.run(b)
		}
		table[h.title] = b.words(h.title, one, two)
	}
	if !t.Failed() {
		compare(t, table)
	}
}
