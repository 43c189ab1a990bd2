// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"context"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/media"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/route"
)

func Example() {
	png := []byte("\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR")
	info := media.Detect(png, media.Hint{DeclaredType: "text/plain", Filename: "notes.txt"})
	decision := route.Decide(info, route.Target{Capabilities: model.TextOnly()})
	fmt.Println(info.MediaType, decision.Step, decision.Reason, decision.Need)

	plan := "- [ ] Read the report\n- [ ] Write it up\n"
	result, err := edit.Apply(context.Background(), plan, []edit.Edit{{Old: "[ ] Write it up", New: "[x] Write it up"}}, edit.Options{})
	fmt.Println(result.Text, result.Hits[0].Layer, err)
	// Output:
	// image/png described capability_missing vision
	// - [ ] Read the report
	// - [x] Write it up
	//  exact <nil>
}

// TestReadme holds the Go of the README to the example, which is run, and its
// links to files that are there.
func TestReadme(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	source, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(readme), "```go\n")
	code, _, found := strings.Cut(code, "```")
	if !found {
		t.Fatal("the README has no Go in it")
	}
	for line := range strings.Lines(code) {
		statement, _, _ := strings.Cut(line, " // ")
		if statement = strings.TrimSpace(statement); !strings.Contains(string(source), statement) {
			t.Errorf("the README says what the example does not: %s", statement)
		}
	}
}

// TestLinks follows the relative links of every document.
func TestLinks(t *testing.T) {
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, name := range textFiles(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		folder := name[:strings.LastIndexAny(name, `/\`)+1]
		for _, m := range link.FindAllStringSubmatch(string(src), -1) {
			to, _, _ := strings.Cut(m[1], "#")
			if to == "" || strings.Contains(to, ":") {
				continue
			}
			if _, err := os.Stat(folder + to); err != nil {
				t.Errorf("%s links to %s, which is not there", name, to)
			}
		}
	}
}

// TestDependencies holds docs/dependencies.md to the modules that are imported.
func TestDependencies(t *testing.T) {
	doc, err := os.ReadFile("docs/dependencies.md")
	if err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile("go.mod")
	if err != nil {
		t.Fatal(err)
	}
	required := regexp.MustCompile(`(?m)^(?:require)?\s+([a-z0-9.]+\.[a-z]+/\S+) v`).FindAllStringSubmatch(string(mod), -1)
	imported := map[string]bool{}
	for _, f := range readModule(t).files {
		for _, spec := range f.Imports {
			name := strings.Trim(spec.Path.Value, `"`)
			longest := ""
			for _, m := range required {
				if (name == m[1] || strings.HasPrefix(name, m[1]+"/")) && len(m[1]) > len(longest) {
					longest = m[1]
				}
			}
			imported[longest] = true
		}
	}
	delete(imported, "")
	major := regexp.MustCompile(`/v\d+$`)
	for _, row := range regexp.MustCompile(`(?m)^\| ([a-zA-Z0-9.-]+/[a-zA-Z0-9._/-]+) \|`).FindAllStringSubmatch(string(doc), -1) {
		found := false
		for name := range imported {
			if plain := major.ReplaceAllString(name, ""); plain == row[1] || plain == "github.com/"+row[1] {
				delete(imported, name)
				found = true
			}
		}
		if !found {
			t.Errorf("docs/dependencies.md lists %s, which nothing imports", row[1])
		}
	}
	for name := range imported {
		t.Errorf("%s is imported and not in docs/dependencies.md", name)
	}
}
