// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var (
	update = flag.Bool("update", false, "write docs/compatibility.md anew")
	only   = flag.String("client", "", "try this client alone")
)

// What every client does with every service, in the order of the table.
var cases = []string{
	"text", "stream", "tools", "parallel", "names", "arguments", "image", "picture", "pdf", "audio", "file", "json", "schema", "reasoning", "count", "cancel", "retries",
}

// A file that clients send, and what of it a model can be told.
type file struct {
	base64, digest string
	words          string // of its text
}

func load(t *testing.T, name, words string) file {
	t.Helper()
	data, err := os.ReadFile("../testdata/files/" + name)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	return file{base64.StdEncoding.EncodeToString(data), "sha256-" + hex.EncodeToString(sum[:]), words}
}

// An outcome is what a client said of one case with one service.
type outcome struct {
	Client  string          `json:"client"`
	Service string          `json:"service"`
	Case    string          `json:"case"`
	Absent  bool            `json:"absent"` // the client has no such thing
	Text    string          `json:"text"`
	Thought string          `json:"thought"`
	Calls   int             `json:"calls"`
	Chunks  int             `json:"chunks"`
	Finish  string          `json:"finish"`
	Usage   json.RawMessage `json:"usage"`
	Same    *bool           `json:"same"`
	Left    bool            `json:"left"`
	Millis  int             `json:"ms"`
	Error   *failure        `json:"error"`
}

// A failure is an SDK's error.
type failure struct {
	Name    string `json:"name"`
	Status  int    `json:"status"`
	Message string `json:"message"`
}

// work is what is done with one service.
type work struct {
	Service string   `json:"service"`
	Cases   []string `json:"cases"`
}

// markOf names what a client does with a service to the model behind it.
func markOf(client, service string) string { return strings.ReplaceAll(client+" "+service, " ", "-") }

// TestMatrix lets every client do everything with every service.
func TestMatrix(t *testing.T) {
	w := newWorld(t)
	files := map[string]file{
		"png": load(t, "alpha.png", ""),
		"pdf": load(t, "report.pdf", "Quarterly"),
		"wav": load(t, "tone.wav", ""),
	}
	if *only == "" {
		w.lines(t)
	}
	all := run(t, w, files)
	got := map[string]map[string]map[string]string{} // by client, case and service
	for _, o := range all {
		word := w.judge(o, files)
		if _, fault := faultOf(o.Service); fault {
			if word != "" {
				t.Errorf("%s with %s: %s", o.Client, o.Service, word)
			}
			continue
		}
		if strings.HasPrefix(word, "!") {
			t.Errorf("%s, %s with %s: %s", o.Client, o.Case, o.Service, word)
		}
		if got[o.Client] == nil {
			got[o.Client] = map[string]map[string]string{}
		}
		if got[o.Client][o.Case] == nil {
			got[o.Client][o.Case] = map[string]string{}
		}
		got[o.Client][o.Case][o.Service] = word
	}
	table := draw(got)
	t.Logf("\n%s", table)
	if *only != "" || t.Failed() {
		return
	}
	const doc = "../docs/compatibility.md"
	before, err := os.ReadFile(doc)
	if err != nil && !*update {
		t.Fatal(err)
	}
	_, agents, _ := strings.Cut(string(before), programs)
	after := head + table + foot + programs + agents
	if *update {
		if err := os.WriteFile(doc, []byte(after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if d := cmp.Diff(string(before), after); d != "" {
		t.Errorf("docs/compatibility.md is not what came out (go test -update writes it):\n%s", d)
	}
}

// run lets the clients of both languages do their cases, one after the other
// language.
func run(t *testing.T, w *world, files map[string]file) []outcome {
	t.Helper()
	var todo []work
	for _, u := range upstreams {
		todo = append(todo, work{u.id, cases})
	}
	for _, u := range upstreams[:4] {
		for _, f := range faults {
			if f.status == 0 {
				todo = append(todo, work{u.id + f.suffix, []string{"broken"}})
			} else {
				todo = append(todo, work{u.id + f.suffix, []string{"error"}})
			}
		}
	}
	all := runGo(w, todo, files)
	if _, written := makers[*only]; written {
		return all
	}
	job := map[string]any{"url": w.url, "bases": w.bases, "key": "sk-anything", "services": todo}
	contents := map[string]string{}
	for name, f := range files {
		contents[name] = f.base64
	}
	job["files"] = contents
	if *only != "" {
		job["clients"] = []string{*only}
	}
	in, err := json.Marshal(job)
	if err != nil {
		t.Fatal(err)
	}
	out, err := node(bytes.NewReader(in), "run.mjs")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(out) {
		var o outcome
		if err := json.Unmarshal(line, &o); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		all = append(all, o)
	}
	return all
}

// nodeProgram is Node.js: of the tools here, where the system's is too old.
func nodeProgram() string {
	if own, err := filepath.Abs("../bin/node"); err == nil {
		if _, err := os.Stat(own); err == nil {
			return own
		}
	}
	return "node"
}

// judge says in a word how an outcome is. A word that begins with "!" is a
// failure; of the services that fail, any word is.
func (w *world) judge(o outcome, files map[string]file) string {
	if status, fault := faultOf(o.Service); fault {
		switch {
		case o.Error == nil:
			return "no error, but " + o.Text
		case status != 0 && o.Error.Status != status:
			return fmt.Sprintf("status %d (%s: %s), want %d", o.Error.Status, o.Error.Name, o.Error.Message, status)
		}
		return ""
	}
	switch {
	case o.Absent, o.Error != nil && o.Error.Name == "UnsupportedFunctionalityError": // it says so itself
		return "–"
	case o.Error != nil && strings.Contains(o.Error.Message, "stores no items"), o.Error != nil && o.Service == "responses" && strings.Contains(o.Error.Message, "not persisted"):
		return "stateful"
	case o.Case == "retries" && o.Error != nil && o.Error.Status >= 500:
		return "not retried"
	case o.Case == "schema" && o.Error != nil && o.Error.Status == 400:
		return "refused"
	case o.Error != nil:
		return fmt.Sprintf("! %s %d: %s", o.Error.Name, o.Error.Status, o.Error.Message)
	}
	switch o.Case {
	case "text":
		return expect(o, has(o.Text, "user: text: do: tell") && has(string(o.Usage), "7", "11") || has(o.Text, "user: text: do: tell") && o.Usage != nil)
	case "stream":
		return expect(o, has(o.Text, "user: text: do: tell") && o.Chunks >= 2 && o.Finish != "" && len(o.Usage) > 2)
	case "tools":
		return expect(o, o.Calls == 1 && has(o.Text, "the meaning of one is 42"))
	case "parallel":
		return expect(o, o.Calls == 2 && has(o.Text, "the meaning of one is 42", "the meaning of two is 42") &&
			strings.Index(o.Text, "of one is") < strings.Index(o.Text, "of two is"))
	case "image":
		if o.Calls != 1 || !has(o.Text, "the meaning of one is 42") {
			return expect(o, false)
		}
		return path(o, files["png"])
	case "picture":
		return path(o, files["png"])
	case "pdf":
		return path(o, files["pdf"])
	case "audio":
		return path(o, files["wav"])
	case "file":
		if o.Same != nil && !*o.Same {
			return "! the file does not come back as it was"
		}
		return path(o, files["pdf"])
	case "json":
		return expect(o, o.Text == "yes")
	case "schema":
		return expect(o, o.Text == "Ada 36")
	case "names":
		return expect(o, o.Calls == 1 && has(o.Text, "the meaning of one is 42"))
	case "arguments":
		if want := strings.Repeat("word ", 40); o.Text != want || o.Chunks == 0 {
			return expect(o, false)
		} else if o.Chunks == 1 {
			return "whole"
		}
		return "✓"
	case "reasoning":
		switch {
		case !has(o.Text, "effort") || has(o.Text, `effort ""`, "budget 0"):
			return expect(o, false)
		case o.Thought == "A thought.":
			return "✓, shown"
		}
		return expect(o, o.Thought == "")
	case "retries":
		return expect(o, has(o.Text, "user: text: do: flaky"))
	case "count":
		return expect(o, o.Text == "counted")
	case "cancel":
		for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if _, left := w.left.Load(markOf(o.Client, o.Service)); left {
				return expect(o, o.Left)
			}
		}
		return "! the call of the service went on"
	}
	return "! no such case"
}

func has(s string, all ...string) bool {
	return !slices.ContainsFunc(all, func(part string) bool { return !strings.Contains(s, part) })
}

func expect(o outcome, ok bool) string {
	if ok {
		return "✓"
	}
	b, _ := json.Marshal(o)
	return "! " + string(b)
}

// path says in which form a file reached the model.
func path(o outcome, f file) string {
	if strings.Contains(o.Text, f.base64[:min(len(f.base64), 48)]) {
		return "! base64 reached the model as text"
	}
	for line := range strings.Lines(o.Text) {
		if !strings.Contains(line, " bytes, "+f.digest) {
			continue
		}
		switch _, who, _ := strings.Cut(line, " "); {
		case strings.HasPrefix(who, "tool:"):
			return "✓"
		case o.Case == "image":
			return "carried"
		}
		return "✓"
	}
	switch {
	case f.words != "" && strings.Contains(o.Text, f.words):
		return "extracted"
	case strings.Contains(o.Text, "[cannot read]"):
		return "described"
	}
	return expect(o, false)
}

// draw writes the table: one for each client.
func draw(got map[string]map[string]map[string]string) string {
	var b strings.Builder
	for _, client := range slices.Sorted(maps.Keys(got)) {
		fmt.Fprintf(&b, "\n## %s\n\n| |", names[client])
		for _, u := range upstreams {
			fmt.Fprintf(&b, " %s |", u.title)
		}
		b.WriteString("\n|---|" + strings.Repeat("---|", len(upstreams)) + "\n")
		for _, c := range cases {
			row := got[client][c]
			if row == nil || row[upstreams[0].id] == "–" {
				continue // the client has no such thing
			}
			fmt.Fprintf(&b, "| %s |", titles[c])
			for _, u := range upstreams {
				fmt.Fprintf(&b, " %s |", row[u.id])
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}
