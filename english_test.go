// SPDX-License-Identifier: Apache-2.0

package artel_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// stiff are phrases that read as translated, and private metaphors; docs/words.md
// has what to write instead.
var stiff = regexp.MustCompile(`(?i)\b(whoever|whomever|whom|nobody|somebody|` +
	`that there (is|are|was|were)|(is|are|was|were|be|being|been) told|tells? of|` +
	`(go|goes|going|went|gone) on|as (it|they) (came|stands?|stood)|what it is at|` +
	`oven|loaf|loaves|weft|woven|errands?|toolbelts?|yardsticks?|schoolbooks?|shelf|shelves)\b`)

// TestPlainEnglish refuses stiff phrases in the comments of Go files and in the
// documents.
func TestPlainEnglish(t *testing.T) {
	for _, f := range readModule(t).files {
		if f.test() {
			continue
		}
		for _, group := range f.Comments {
			for _, c := range group.List {
				for i, line := range strings.Split(c.Text, "\n") {
					if m := stiff.FindString(line); m != "" {
						p := f.path
						t.Errorf("%s:%d: %q is stiff: %s", p, readModule(t).fset.Position(c.Pos()).Line+i, m, strings.TrimSpace(line))
					}
				}
			}
		}
	}
	for _, name := range textFiles(t) {
		if !strings.HasSuffix(name, ".md") || name == "CHANGELOG.md" || name == "docs/words.md" || !strings.HasPrefix(name, "docs/") && strings.Contains(name, "/") || strings.HasPrefix(name, "docs/decisions/") {
			continue
		}
		src, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		for i, line := range strings.Split(string(src), "\n") {
			if m := stiff.FindString(line); m != "" {
				t.Errorf("%s:%d: %q is stiff: %s", name, i+1, m, strings.TrimSpace(line))
			}
		}
	}
}
