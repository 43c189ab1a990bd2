// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	"github.com/alecthomas/chroma/v2/lexers"
)

var update = flag.Bool("update", false, "write the descriptions of languages anew")

// chosen are the languages that are embedded, by chroma's names.
func chosen() []string {
	return []string{
		"Awk", "Bash", "Bash Session", "Batchfile", "C", "C#", "C++", "Clojure", "CMake", "CSS", "CSV", "Dart", "Diff",
		"Docker", "Elixir", "Erlang", "fish", "Fortran", "FSharp", "GAS", "Go", "GraphQL", "Groovy", "Haskell", "HCL", "HTML", "INI",
		"Java", "JavaScript", "JSON", "Julia", "Kotlin", "Lua", "Makefile", "markdown", "Matlab", "NASM", "Nginx configuration file",
		"Nix", "Objective-C", "OCaml", "Perl", "PHP", "PowerShell", "properties", "Protocol Buffer", "Python", "R", "react", "Ruby",
		"Rust", "Sass", "Scala", "Scheme", "SCSS", "Solidity", "SQL", "Swift", "systemd", "Terraform", "TeX", "TOML", "TypeScript",
		"Typst", "VB.net", "VHDL", "VimL", "vue", "XML", "YAML", "Zig",
	}
}

// TestLexersAreChromas holds the embedded descriptions to those of the module,
// whose package of lexers only this test imports. After a new version:
// go test -run TestLexersAreChromas ./render -update
func TestLexersAreChromas(t *testing.T) {
	var files []string
	for _, name := range chosen() {
		want := describe(t, name)
		file := filepath.Join("lexers", strings.NewReplacer(" ", "_", "#", "sharp", "+", "p").Replace(strings.ToLower(name))+".xml")
		files = append(files, file)
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(file)
		if err != nil {
			t.Error(err)
			continue
		}
		if !bytes.Equal(got, want) {
			t.Errorf("%s is not what the module says", file)
		}
	}
	slices.Sort(files)
	there, err := filepath.Glob("lexers/*.xml")
	if err != nil || !slices.Equal(there, files) {
		t.Errorf("files %q, want %q (%v)", there, files, err)
	}
}

// describe writes a lexer of the module down. States come out of a map, so they
// are put in order.
func describe(t *testing.T, name string) []byte {
	t.Helper()
	found := lexers.Get(name)
	if found == nil {
		t.Fatalf("chroma has no %s", name)
	}
	lexer, ok := found.(*chroma.RegexLexer)
	if !ok { // a wrapper around one
		lexer, ok = reflect.Indirect(reflect.ValueOf(found)).FieldByName("Lexer").Interface().(*chroma.RegexLexer)
	}
	if !ok {
		t.Fatalf("%s is a %T", name, found)
	}
	if name == "Go" {
		lexer = rawStrings(t, lexer)
	}
	data, err := chroma.Marshal(lexer)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return order(data)
}

// rawStrings lets Go's raw strings be strings. In chroma they are templates as
// well, which a description cannot say.
func rawStrings(t *testing.T, lexer *chroma.RegexLexer) *chroma.RegexLexer {
	t.Helper()
	rules := lexer.MustRules().Clone()
	i := slices.IndexFunc(rules["root"], func(r chroma.Rule) bool { return strings.HasPrefix(r.Pattern, "(`)") })
	if i < 0 {
		t.Fatal("no rule for raw strings")
	}
	rules["root"][i] = chroma.Rule{Pattern: "`[^`]*`", Type: chroma.LiteralString}
	return chroma.MustNewLexer(lexer.Config(), func() chroma.Rules { return rules })
}

func order(data []byte) []byte {
	text := string(data)
	const open = "    <state "
	head, rest, _ := strings.Cut(text, open)
	body, tail, _ := strings.Cut(rest, "  </rules>")
	states := strings.Split(body, open)
	slices.Sort(states)
	return []byte(head + open + strings.Join(states, open) + "  </rules>" + tail + "\n")
}
