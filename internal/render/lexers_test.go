// SPDX-License-Identifier: Apache-2.0

package render_test

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"flag"
	"io"
	"io/fs"
	"maps"
	"os"
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
// go test -run TestLexersAreChromas ./internal/render -update
func TestLexersAreChromas(t *testing.T) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	want := map[string][]byte{}
	for _, name := range chosen() {
		file := strings.NewReplacer(" ", "_", "#", "sharp", "+", "p").Replace(strings.ToLower(name)) + ".xml"
		want[file] = describe(t, name)
		w, err := z.Create(file)
		if err == nil {
			_, err = w.Write(want[file])
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("lexers.zip", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	packed, err := zip.OpenReader("lexers.zip")
	if err != nil {
		t.Fatal(err)
	}
	defer packed.Close()
	for _, f := range packed.File {
		got, err := fs.ReadFile(packed, f.Name)
		if err != nil || !bytes.Equal(got, want[f.Name]) {
			t.Errorf("%s is not what the module says (%v)", f.Name, err)
		}
		delete(want, f.Name)
	}
	if len(want) > 0 {
		t.Errorf("missing: %q", slices.Sorted(maps.Keys(want)))
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
