// SPDX-License-Identifier: Apache-2.0

package diff

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	"pgregory.net/rapid"
)

var header = regexp.MustCompile(`^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@\n$`)

// patch reads a unified diff as patch does, without fuzz, and applies it.
func patch(unified, text string, back bool) (string, error) {
	if unified == "" {
		return text, nil
	}
	lines := strings.SplitAfter(text, "\n")
	var out strings.Builder
	diff := strings.SplitAfter(unified, "\n")
	if !strings.HasPrefix(diff[0], "--- ") || !strings.HasPrefix(diff[1], "+++ ") {
		return "", fmt.Errorf("no names in %q", diff[:2])
	}
	at := 0
	for diff = diff[2:]; len(diff) > 1; {
		m := header.FindStringSubmatch(diff[0])
		if m == nil {
			return "", fmt.Errorf("%q is no header", diff[0])
		}
		diff = diff[1:]
		count := func(s string) int {
			if s == "" {
				return 1
			}
			n, _ := strconv.Atoi(s)
			return n
		}
		start, gone, come := count(m[1]), count(m[2]), count(m[4])
		minus, plus := byte('-'), byte('+')
		if back {
			start, gone, come = count(m[3]), count(m[4]), count(m[2])
			minus, plus = plus, minus
		}
		if gone > 0 {
			start--
		}
		for ; at < start; at++ {
			out.WriteString(lines[at])
		}
		for gone > 0 || come > 0 || strings.HasPrefix(diff[0], `\`) {
			line := diff[0]
			diff = diff[1:]
			sign, body := line[0], line[1:]
			if strings.HasPrefix(diff[0], `\ No newline`) {
				body = strings.TrimSuffix(body, "\n")
				diff = diff[1:]
			}
			if sign == ' ' || sign == minus {
				if lines[at] != body {
					return "", fmt.Errorf("line %d is %q, not %q", at+1, lines[at], body)
				}
				at++
				gone--
			}
			if sign == ' ' || sign == plus {
				out.WriteString(body)
				come--
			}
		}
	}
	out.WriteString(strings.Join(lines[at:], ""))
	return out.String(), nil
}

func TestUnifiedProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old, new := drawTexts(t)
		d, err := Lines(context.Background(), old, new, Options{Context: rapid.IntRange(-1, 4).Draw(t, "context"), Plain: true})
		if err != nil {
			t.Fatal(err)
		}
		u := d.Unified("old", "new")
		if got, err := patch(u, old, false); err != nil || got != new {
			t.Fatalf("got %q, %v\n%s", got, err, u)
		}
		if got, err := patch(u, new, true); err != nil || got != old {
			t.Fatalf("back: got %q, %v\n%s", got, err, u)
		}
	})
}

// TestGolden compares with what GNU diff -u wrote for the same texts, which GNU
// patch applied forward and back.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			part := map[string]string{}
			for _, f := range txtar.Parse(data).Files {
				// An archive cannot say that a file does not end in a line end,
				// and carriage returns do not survive every editor.
				s := strings.TrimSuffix(string(f.Data), "<open>\n")
				part[f.Name] = strings.ReplaceAll(s, "<cr>", "\r")
			}
			got := mustLines(t, part["old"], part["new"], Options{}).Unified("old", "new")
			if diff := cmp.Diff(part["diff"], got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestFileName(t *testing.T) {
	for name, want := range map[string]string{
		"":           "/dev/null",
		"a/b.md":     "a/b.md",
		"报告.md":      "报告.md",
		"my file":    "my file\t",
		"a\nb":       `"a\nb"`,
		`say "hi" \`: `"say \"hi\" \\"`,
		"tab\there":  `"tab\there"`,
		"bell\a":     `"bell\007"`,
	} {
		if got := fileName(name); got != want {
			t.Errorf("%q: got %s, want %s", name, got, want)
		}
	}
}
