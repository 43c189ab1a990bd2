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
` + "`make test`" + ` runs Codex and Gemini CLI again, without the rows of 429, 500, 503, 401 and broken streams, in which programs wait, and
compares this page with what comes out; ` + "`make clients`" + ` runs all.

For pictures, **✓** means in the result of the tool, **carried** in a user message, where the program itself or Artel puts them,
**re-encoded** a picture that the program makes of it, and **not sent** that the program only mentions a picture to models with such
a name.

Artel itself repeats a request after a 429 with ` + "`Retry-After`" + ` and after a 500. In the rows of errors beyond that, **✓** means that the
program comes through, or for a 400 and a 401 that it shows the service's message and ends; **shown** means that it shows the error and
ends where others try again. Tokens (input, cached, output and reasoning, of each answer) are compared with the program's own records in
its home. A table without these rows is older than they are.
`

// section is the table of an agent. Cells that did not run are those of the table
// that is kept.
func section(p agent, results []map[string]string, kept string) string {
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
		head := fmt.Sprintf("| %s |", row.title)
		_, rest, _ := strings.Cut(kept, "\n"+head)
		rest, _, _ = strings.Cut(rest, "\n")
		old := strings.Split(rest, "|")
		b.WriteString(head)
		for j := range upstreams {
			word, ran := results[j][row.id]
			if !ran && row.slow && j < len(old) {
				word = strings.TrimSpace(old[j])
			}
			fmt.Fprintf(&b, " %s |", word)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// compare holds the sections of the page against what came out: got has the words
// of each agent that ran, by title.
func compare(t *testing.T, got map[string][]map[string]string) {
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
		text := kept[p.title]
		if results, ran := got[p.title]; ran {
			text = section(p, results, text)
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
