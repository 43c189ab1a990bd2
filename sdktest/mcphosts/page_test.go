// SPDX-License-Identifier: Apache-2.0

package mcphosts

import (
	"os"
	"strings"
	"testing"

	"github.com/artelhq/artel/model/fake"
)

// The hosts, in the order of the table.
var hosts = []struct {
	title string
	run   func(*bench) run
	model bool // a model makes the calls
	heavy bool // it is installed by make clients only, which sets ARTEL_CLIENTS=all; otherwise its column stays
}{
	{title: "go-sdk", run: goSDK},
	{title: "TypeScript SDK", run: typeScript},
	{title: "Inspector", run: inspector},
	{title: "Codex CLI", run: program{"codex", fake.OpenAI, codex}.run, model: true},
	{title: "Gemini CLI", run: program{"gemini", fake.Gemini, gemini}.run, model: true},
	{title: "Qwen Code", run: program{"qwen", fake.OpenAI, qwen}.run, model: true, heavy: true},
}

// The rows of the table.
var rows = []struct{ id, title string }{
	{"json", "JSON, which becomes a preview"},
	{"log", "a log, which becomes a preview"},
	{"pictures", "20 pictures at once"},
	{"audio", "a recording"},
	{"blob", "an embedded resource of bytes"},
	{"link", "20 links to resources"},
	{"tools", "300 tools"},
	{"task", "a long call with 200 reports of progress"},
	{"markdown", "base64 in Markdown"},
	{"artifacts", "`artel mcp`: create, get, rewrite, compare, restore"},
}

// The page, and the heading at which the part of this package begins. It is the one before
// that of the package mcpconformance.
const (
	page  = "../../docs/compatibility.md"
	begin = "## MCP hosts\n"
	next  = "## MCP conformance\n"
)

const head = begin + `
Each host starts ` + "`artel mcp proxy`" + ` before a server with large results, and ` + "`artel mcp`" + `, in its default settings. For Codex, Gemini
CLI and Qwen Code (whose column ` + "`make clients`" + ` checks) a scripted model makes the calls, and what the program sends to its service is
looked at; the others are clients without a model. Qwen Code lists no tools of MCP servers to the model; it has a tool that finds them.

**✓** means: at most 4 KB of text for a result, plus up to 600 bytes that the host writes around it, and at most 2,000 tokens of schemas;
pictures arrive as pictures, byte for byte; what was kept back is named by its ref and can be read through the host; and another session
with another data directory gets the same bytes, apart from the time that Codex writes above each result. The results are small, because
the proxy is the same for all hosts: ` + "`TestLarge`" + ` has the go-sdk's client get 50 MB of JSON and a million lines of a log, once, compares
the digests of what is kept, and reads the JSON back to the last byte.

`

// cellOf returns the word for a host that did not run, from the section as it is.
func cellOf(section, row, host string) string {
	_, table, _ := strings.Cut(section, "\n| |")
	lines := strings.Split(table, "\n")
	column := -1
	for i, title := range strings.Split(lines[0], "|") {
		if strings.TrimSpace(title) == host {
			column = i
		}
	}
	for _, line := range lines {
		if cells := strings.Split(line, "|"); column >= 0 && len(cells) > column+2 && strings.TrimSpace(cells[1]) == row {
			return strings.TrimSpace(cells[column+2])
		}
	}
	return "–"
}

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
	before, section, _ := strings.Cut(before, begin)
	var b strings.Builder
	b.WriteString(before + head + "| |")
	for _, h := range hosts {
		b.WriteString(" " + h.title + " |")
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(hosts)) + "\n")
	for _, row := range rows {
		b.WriteString("| " + row.title + " |")
		for _, h := range hosts {
			cell, ran := got[h.title][row.id]
			if !ran {
				cell = cellOf(section, row.title, h.title)
			}
			b.WriteString(" " + cell + " |")
		}
		b.WriteString("\n")
	}
	b.WriteString("\n" + next + after)
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != string(data) {
		t.Error("docs/compatibility.md is not what came out (go test ./mcphosts -update writes it)")
	}
}
