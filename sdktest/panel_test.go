// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A panel is what the page of the gateway tells a reader to write, by the name of
// the program or SDK and the language.
type panel map[panelKey]string

type panelKey struct{ name, where string }

var (
	onPanel = regexp.MustCompile(`(?s)<summary>.*?<b>([^<]+)</b>(?:<span class="hint">([^<]*)</span>)?.*?<code translate="no">(.*?)</code>`)
	baseIn  = regexp.MustCompile(`(?:base_url"?[=:] ?|baseURL: ?|WithBaseURL\(|base_url = )"([^"]+)"|ANTHROPIC_BASE_URL=(\S+)`)
)

// readPanel reads the lines from the page of a running server. They are what all
// clients here are pointed with: a line that is wrong fails the matrix.
func readPanel(t *testing.T, url string) (panel, map[string]string) {
	t.Helper()
	resp, err := http.Get(url + "/gateway")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	page, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	_, page, found := bytes.Cut(page, []byte(`id="sdk"`))
	p, bases := panel{}, map[string]string{}
	for _, m := range onPanel.FindAllSubmatch(page, -1) {
		k := panelKey{html.UnescapeString(string(m[1])), html.UnescapeString(string(m[2]))}
		p[k] = html.UnescapeString(string(m[3]))
		base := baseIn.FindStringSubmatch(p[k])
		if base == nil {
			t.Fatalf("%v names no address:\n%s", k, p[k])
		}
		at := base[1] + base[2]
		if before, ok := bases[k.name]; ok && before != at {
			t.Errorf("%s is at %s and at %s", k.name, before, at)
		}
		bases[k.name] = at
	}
	want := []string{"AI SDK", "Anthropic", "Claude Code", "Codex", "Google Gemini", "LangChain", "OpenAI"}
	if got := slices.Sorted(maps.Keys(bases)); !found || !slices.Equal(got, want) {
		t.Fatalf("the page has lines for %q, want %q", got, want)
	}
	if bases["Claude Code"] != bases["Anthropic"] || bases["Codex"] != bases["OpenAI"] {
		t.Errorf("a program is told another address than the SDK that it uses: %v", bases)
	}
	return p, bases
}

// lines runs what the page shows for JavaScript and Go, as it stands there.
func (w *world) lines(t *testing.T) {
	for _, k := range []panelKey{{"OpenAI", "JavaScript"}, {"Anthropic", "TypeScript"}, {"AI SDK", "TypeScript"}} {
		code := w.panel[k]
		if !strings.Contains(code, "console.log") {
			code += "\nconsole.log(text);"
		}
		out, err := node(strings.NewReader("globalThis.AI_SDK_LOG_WARNINGS = false;\n"+code), "--input-type=module", "-")
		if err != nil || !bytes.Contains(out, []byte("received 1 messages")) {
			t.Errorf("%s, %s says %q, %v, for\n%s", k.name, k.where, out, err, w.panel[k])
		}
	}
	for k, code := range w.panel {
		if k.where != "Go" {
			continue
		}
		if out, err := goLines(t.TempDir(), code); err != nil || !bytes.Contains(out, []byte("received 1 messages")) {
			t.Errorf("%s, %s says %q, %v, for\n%s", k.name, k.where, out, err, code)
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
