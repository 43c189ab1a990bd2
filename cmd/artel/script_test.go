// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/rogpeppe/go-internal/testscript"
)

// TestScripts plays testdata/script. Beside testscript's own commands there
// are:
//
//	start NAME ARG…       start artel ARG… (serve or fake), and put its address
//	                      into $NAME; serve's into $ARTEL_SERVER too
//	halt NAME             stop it well; its errors are in the file NAME.log
//	exits CODE ARG…       run artel ARG… and want this exit code
//	http METHOD URL [FILE [TYPE]]
//	                      print an answer of any status; FILE is the body
//	let NAME FILE PATH    put a value of a JSON file into $NAME; PATH is as in
//	                      items.0.id
//	samejson FILE FILE [KEY…]
//	                      want two JSON documents to be equal, apart from KEYs
//	sample NAME…          copy from testdata/files of the module
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		ContinueOnError:     true,
		Deadline:            time.Now().Add(3 * patience), // of all scripts together; it is there for one that hangs
		Setup: func(e *testscript.Env) error {
			for _, line := range bareEnvironment(e.WorkDir) {
				if name, value, _ := strings.Cut(line, "="); name != "PATH" && name != "TMPDIR" {
					e.Setenv(name, value)
				}
			}
			e.Values[running{}] = map[string]*process{}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"start": scriptStart, "halt": scriptHalt, "exits": scriptExits, "http": scriptHTTP,
			"let": scriptLet, "samejson": scriptSameJSON, "sample": scriptSample,
		},
	})
}

// running is the key of a script's processes.
type running struct{}

func want(ts *testscript.TestScript, neg bool, args []string, least int, usage string) {
	if neg || len(args) < least {
		ts.Fatalf("usage: %s", usage)
	}
}

func scriptEnvironment(ts *testscript.TestScript) []string {
	env := []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + ts.Getenv("TMPDIR")}
	for _, name := range []string{
		"HOME", "GORACE", "OLLAMA_BASE_URL", "LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "VLLM_BASE_URL", "ARTEL_SERVER", "ARTEL_CONFIG", "ARTEL_DATA",
		"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_MODEL", "ANTHROPIC_API_KEY", "SECRET_KEY",
	} {
		if v := ts.Getenv(name); v != "" {
			env = append(env, name+"="+v)
		}
	}
	return env
}

func scriptStart(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "start name arg...")
	p, err := launch(ts.MkAbs("."), scriptEnvironment(ts), args[1:]...)
	ts.Check(err)
	ts.Defer(p.kill)
	ts.Setenv(args[0], p.url)
	if args[1] == "serve" {
		ts.Setenv("ARTEL_SERVER", p.url)
	}
	ts.Value(running{}).(map[string]*process)[args[0]] = p
}

func scriptHalt(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "halt name")
	p := ts.Value(running{}).(map[string]*process)[args[0]]
	if p == nil {
		ts.Fatalf("nothing runs under the name %s", args[0])
	}
	ts.Check(p.stop())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]+".log"), []byte(p.errs.String()), 0o600))
}

func scriptExits(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "exits code arg...")
	code, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec("artel", args[1:]...)
	got := 0
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		got = exit.ExitCode()
	} else {
		ts.Check(err)
	}
	if got != code {
		ts.Fatalf("exit code %d, want %d", got, code)
	}
}

func scriptHTTP(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "http method url [file [type]]")
	var body io.Reader
	if len(args) > 2 {
		body = strings.NewReader(ts.ReadFile(args[2]))
	}
	req, err := http.NewRequest(args[0], args[1], body)
	ts.Check(err)
	if len(args) > 3 {
		req.Header.Set("Content-Type", args[3])
	}
	resp, err := http.DefaultClient.Do(req)
	ts.Check(err)
	defer resp.Body.Close()
	_, err = io.Copy(ts.Stdout(), resp.Body)
	ts.Check(err)
}

func scriptLet(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 3, "let name file path")
	var v any
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[1])), &v))
	for step := range strings.SplitSeq(args[2], ".") {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			i, err := strconv.Atoi(step)
			ts.Check(err)
			if i >= len(in) {
				ts.Fatalf("%s: there are %d at %q", args[2], len(in), step)
			}
			v = in[i]
		default:
			v = nil
		}
		if v == nil {
			ts.Fatalf("%s: there is nothing at %q", args[2], step)
		}
	}
	ts.Setenv(args[0], fmt.Sprint(v))
}

func scriptSameJSON(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, "samejson file file [key...]")
	var docs [2]any
	for i := range docs {
		dec := json.NewDecoder(bytes.NewReader([]byte(ts.ReadFile(args[i]))))
		dec.UseNumber()
		ts.Check(dec.Decode(&docs[i]))
	}
	apart := cmpopts.IgnoreMapEntries(func(key string, _ any) bool { return slices.Contains(args[2:], key) })
	if diff := cmp.Diff(docs[0], docs[1], apart); diff != "" {
		ts.Fatalf("-%s +%s\n%s", args[0], args[1], diff)
	}
}

func scriptSample(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, "sample name...")
	for _, name := range args {
		b, err := os.ReadFile(samplePath(name))
		ts.Check(err)
		ts.Check(os.WriteFile(ts.MkAbs(name), b, 0o600))
	}
}

// samplePath is where a test finds a file of the module's testdata/files.
func samplePath(name string) string { return filepath.Join("..", "..", "testdata", "files", name) }
