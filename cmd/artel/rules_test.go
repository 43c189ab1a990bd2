// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// piped runs a command on a piped text and returns what it prints, and what
// it tells beside it.
func piped(t *testing.T, in string, args ...string) (string, string) {
	t.Helper()
	var out, told bytes.Buffer
	root := newRoot()
	root.SetArgs(args)
	root.SetIn(strings.NewReader(in))
	root.SetOut(&out)
	root.SetErr(&told)
	if err := root.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return out.String(), told.String()
}

func written(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file.json")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestRegexCommand(t *testing.T) {
	rules := written(t, `{"rules":[{"id":"a","find":"x","replace":"{{user}}","depth":{"max":1}},{"id":"bad","find":"("},{"id":"d","find":"y","stages":["display"]}]}`)
	for _, tt := range []struct{ args, out, told string }{
		{"--user Ann", "Ann y", "1 rules found something: a"},
		{"--depth 2", "x y", "0 rules"},
		{"--stage display --user Bob", "Bob ", "2 rules found something: a, d"},
	} {
		out, told := piped(t, "x y", append([]string{"regex", "--rules", rules}, strings.Fields(tt.args)...)...)
		if out != tt.out || !strings.Contains(told, tt.told) || !strings.Contains(told, "bad is left out: the pattern is not valid") {
			t.Errorf("%s: %q, %q", tt.args, out, told)
		}
	}
	out, _ := piped(t, "xx", "regex", "--rules", written(t, `[{"find":"/x/","replace":"y"}]`), "--json")
	if want := `"text": "yx"`; !strings.Contains(out, want) {
		t.Errorf("a list, as JSON: %s", out)
	}
}

func TestMacrosCommand(t *testing.T) {
	out, told := piped(t, "{{user}} {{nope}} {{incvar::n}}{{getvar::n}} {{time24}}", "macros", "--set", "user=Ann", "--variable", "n=1", "--clock", "2026-01-02T15:04:05Z")
	if out != "Ann {{nope}} 2 15:04" || !strings.Contains(told, "{{nope}} is left as it is") || !strings.Contains(told, `n is "2"`) {
		t.Errorf("%q, %q", out, told)
	}
	out, _ = piped(t, "", "macros", "--list")
	if !strings.Contains(out, "datetime_locale\n") {
		t.Error("the list:", out)
	}
	root := newRoot()
	root.SetArgs([]string{"macros", "--set", "nobody=x"})
	if err := root.Execute(); err == nil || exitCode(err) != exitUsage {
		t.Error("a value that there is not:", err)
	}
}

func TestImportSillyTavern(t *testing.T) {
	script := written(t, `{"scriptName":"s","findRegex":"<(.)>","replaceString":"$1","placement":[1,3],"promptOnly":true}`)
	out, told := piped(t, "", "import", "sillytavern", script)
	if !strings.Contains(out, `"find": "/<(.)>/"`) || told != "s: placement: 3 (slash commands) has no rules here\n" {
		t.Errorf("%s, %q", out, told)
	}
	// What is printed is what the other command takes.
	if out, _ = piped(t, "<a>", "regex", "--rules", written(t, out)); out != "a" {
		t.Errorf("the rules make %q", out)
	}
}
