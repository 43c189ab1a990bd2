// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"bytes"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/artelhq/artel/sdktest/program"
)

var baseIn = regexp.MustCompile(`(?:base_url"?[=:] ?|"?base(?:URL|Url)"?: ?|WithBaseURL\(|base_url = )"([^"]+)"|(?:[A-Z]+_BASE_URL=|-b |curl )(\S+?)(?:/chat/completions)?(?:\s|$)`)

// readPanel reads the snippets of the page of a running server. They are what all
// clients here are pointed with: a line that is wrong fails the matrix.
func readPanel(t *testing.T, url string) (map[program.Snippet]string, map[string]string) {
	t.Helper()
	panel, bases := program.Snippets(t, url), map[string]string{}
	for k, code := range panel {
		base := baseIn.FindStringSubmatch(code)
		if base == nil {
			t.Fatalf("%v names no address:\n%s", k, code)
		}
		at := base[1] + base[2]
		if before, ok := bases[k.Name]; ok && before != at {
			t.Errorf("%s is at %s and at %s", k.Name, before, at)
		}
		bases[k.Name] = at
	}
	want := []string{"AI SDK", "Anthropic", "Claude Code", "Cline", "Codex", "Gemini CLI", "Google Gemini", "LangChain", "OpenAI", "Qwen Code", "curl", "opencode"}
	if got := slices.Sorted(maps.Keys(bases)); !slices.Equal(got, want) {
		t.Fatalf("the page has lines for %q, want %q", got, want)
	}
	for name, sdk := range map[string]string{
		"Claude Code": "Anthropic", "Cline": "OpenAI", "Codex": "OpenAI", "Gemini CLI": "Google Gemini", "Qwen Code": "OpenAI", "curl": "OpenAI", "opencode": "AI SDK",
	} {
		if bases[name] != bases[sdk] {
			t.Errorf("%s is told another address than the SDK that it uses, %s: %v", name, sdk, bases)
		}
	}
	return panel, bases
}

// lines runs what the page shows for JavaScript and Go, unchanged.
func (w *world) lines(t *testing.T) {
	for _, k := range []program.Snippet{{Name: "OpenAI", Where: "JavaScript"}, {Name: "Anthropic", Where: "TypeScript"}, {Name: "Google Gemini", Where: "JavaScript"}, {Name: "AI SDK", Where: "TypeScript"}} {
		code := w.panel[k]
		if !strings.Contains(code, "console.log") {
			code += "\nconsole.log(text);"
		}
		out, err := node(strings.NewReader("globalThis.AI_SDK_LOG_WARNINGS = false;\n"+code), "--input-type=module", "-")
		if err != nil || !bytes.Contains(out, []byte("received 1 messages")) {
			t.Errorf("%s, %s says %q, %v, for\n%s", k.Name, k.Where, out, err, w.panel[k])
		}
	}
	for k, code := range w.panel {
		if k.Where != "Go" {
			continue
		}
		if out, err := goLines(t.TempDir(), code); err != nil || !bytes.Contains(out, []byte("received 1 messages")) {
			t.Errorf("%s, %s says %q, %v, for\n%s", k.Name, k.Where, out, err, code)
		}
	}
}

// goLines runs lines of Go that stand in a function, which leave an answer of the
// OpenAI SDK and an error, with the modules of this package.
func goLines(dir, code string) ([]byte, error) {
	file := filepath.Join(dir, "main.go")
	program := `package main

import (
	"context"
	"fmt"
	"os"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

func main() {
	ctx := context.Background()
	` + code + `
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(answer.Choices[0].Message.Content)
}
`
	if err := os.WriteFile(file, []byte(program), 0o600); err != nil {
		return nil, err
	}
	return output(exec.Command("go", "run", file))
}

// node runs a program in the folder of the SDKs.
func node(in io.Reader, args ...string) ([]byte, error) {
	run := exec.Command(nodeProgram(), args...)
	run.Dir, run.Stdin = "js", in
	return output(run)
}

// output is what a program says, with its complaints in the error.
func output(run *exec.Cmd) ([]byte, error) {
	var complaints bytes.Buffer
	run.Stderr = &complaints
	out, err := run.Output()
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, complaints.String())
	}
	return out, err
}
