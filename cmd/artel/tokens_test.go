// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel/pipeline/token"
)

func TestTokens(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a.txt")
	if err := os.WriteFile(path, []byte("hello world\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		args string
		want string
	}{
		{"", "3  o200k_base\n"},
		{"--vocabulary characters", "12  characters\n"},
		{"--model gpt-4", "3  cl100k_base\n"},
		{"--model claude-sonnet-4-5", "4  claude\n"},
		{"--json", "{\n  \"tokens\": 3\n}\n"},
	} {
		if got := string(printed(t, append([]string{"tokens", path}, strings.Fields(tt.args)...)...)); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.args, got, tt.want)
		}
	}
	list := string(printed(t, "tokens", "--list"))
	for _, v := range token.Vocabularies() {
		if !strings.Contains(list, v+" ") {
			t.Errorf("%s is not listed", v)
		}
	}
	root := newRoot()
	root.SetArgs([]string{"tokens", "--vocabulary", "p50k", path})
	if err := root.Execute(); err == nil || !strings.Contains(err.Error(), "cl100k_base") {
		t.Errorf("an unknown vocabulary: %v", err)
	}
	root = newRoot()
	root.SetArgs([]string{"tokens"})
	root.SetIn(strings.NewReader("a b"))
	var out strings.Builder
	root.SetOut(&out)
	if err := root.Execute(); err != nil || !strings.HasPrefix(out.String(), "2") {
		t.Errorf("what is piped in: %q, %v", out.String(), err)
	}
}

// TestCatalogVocabularies: tokens can be counted in all that the table of
// models names.
func TestCatalogVocabularies(t *testing.T) {
	src, err := os.ReadFile(filepath.Join("..", "..", "model", "catalog", "families.txt"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for line := range strings.Lines(string(src)) {
		if _, v, ok := strings.Cut(line, "\ttokenizer="); ok && !strings.HasPrefix(line, "#") {
			n++
			if v, _, _ = strings.Cut(strings.TrimSpace(v), "\t"); !slices.Contains(token.Vocabularies(), v) {
				t.Errorf("%q: no such vocabulary", line)
			}
		}
	}
	if n < 20 {
		t.Errorf("only %d lines", n)
	}
}
