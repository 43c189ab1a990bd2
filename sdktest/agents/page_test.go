// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// The page, and the heading at which the part of this package begins.
const (
	page  = "../../docs/compatibility.md"
	begin = "## Coding agents\n"
)

// What the page says above the tables.
const head = begin + `
Each program comes from npm and runs in a new home with its default settings, allowed to act without asking. A scripted model behind
the gateway works through one task with the tools that the program offers. Every file is compared byte for byte afterwards.
` + "`make test`" + ` runs Codex and Gemini CLI again and compares this page with what comes out; ` + "`make clients`" + ` runs all.

For pictures, **✓** means in the result of the tool, **carried** in a user message, where the program itself or Artel puts them,
**re-encoded** a picture that the program makes of it, and **not sent** that the program only mentions a picture to models with such
a name.
`

// section is the table of an agent.
func section(p agent, results []map[string]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\n### %s\n\n| |", p.title)
	for _, u := range upstreams {
		fmt.Fprintf(&b, " %s |", u.title)
	}
	b.WriteString("\n|---|" + strings.Repeat("---|", len(upstreams)) + "\n")
	for _, row := range rows {
		if row.id == "shoot" && !p.server {
			continue
		}
		fmt.Fprintf(&b, "| %s |", row.title)
		for j := range upstreams {
			fmt.Fprintf(&b, " %s |", results[j][row.id])
		}
		b.WriteString("\n")
	}
	return b.String()
}

// compare holds the sections of the page against what came out: got has one for
// each agent that ran, by title.
func compare(t *testing.T, got map[string]string) {
	t.Helper()
	data, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	sdks, ours, _ := strings.Cut(string(data), begin)
	kept := map[string]string{}
	for part := range strings.SplitSeq(ours, "\n### ") {
		title, _, _ := strings.Cut(part, "\n")
		kept[title] = "\n### " + part
	}
	var b strings.Builder
	b.WriteString(sdks + head)
	for _, p := range agents {
		text, ran := got[p.title]
		if !ran {
			text = kept[p.title]
		}
		b.WriteString(strings.TrimRight(text, "\n") + "\n")
	}
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if b.String() != string(data) {
		t.Errorf("docs/compatibility.md is not what came out (go test ./agents -update writes it)")
	}
}
