// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// An upstream is a service behind the gateway: a stand-in of a model API, and
// what is configured about it.
type upstream struct {
	id       string
	title    string // in the table
	dialect  model.Dialect
	model    string
	input    string // capabilities
	behavior fake.Behavior
}

// The services that every client is tried with.
var upstreams = []upstream{
	{id: "chat", title: "Chat Completions", dialect: model.OpenAI, model: "gpt-like", input: "text, vision, file, audio"},
	{id: "responses", title: "Responses", dialect: model.OpenAIResponses, model: "gpt-like", input: "text, vision, file"},
	{id: "anthropic", title: "Messages", dialect: model.Anthropic, model: "claude-like", input: "text, vision, file"},
	{id: "gemini3", title: "Gemini 3", dialect: model.Gemini, model: "gemini-3-pro", input: "text, vision, file, audio, video"},
	{id: "gemini25", title: "Gemini 2.5", dialect: model.Gemini, model: "gemini-2.5-pro", input: "text, vision, file, audio, video"},
	{id: "mistral", title: "Mistral-like", dialect: model.OpenAI, model: "pixtral-like", input: "text, vision", behavior: fake.Behavior{Refuses: []fake.Refusal{fake.NoUserAfterTool}}},
	{id: "text", title: "text only", dialect: model.OpenAI, model: "text-like", input: "text"},
}

// The ways in which services fail, by the suffix of their ids, and the status
// that a client is to see.
var faults = []struct {
	suffix string
	status int
	mode   fake.Mode
}{
	{"-400", 400, fake.BadRequest},
	{"-429", 429, fake.RateLimit},
	{"-500", 500, fake.ServerError},
	{"-half", 0, fake.HalfStream},
}

func faultOf(id string) (status int, ok bool) {
	for _, f := range faults {
		if strings.HasSuffix(id, f.suffix) {
			return f.status, true
		}
	}
	return 0, false
}

// A world is a running program with its upstreams.
type world struct {
	url   string
	panel panel             // of its page
	bases map[string]string // where the page says that an SDK is to look
	left  sync.Map          // the marks of waits whose clients have gone
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	var config strings.Builder
	config.WriteString("services:\n")
	add := func(u upstream) {
		o := fake.Options{Responder: w.answer, Behavior: u.behavior, Models: []string{u.model}}
		var s *fake.Server
		suffix := ""
		switch u.dialect {
		case model.Anthropic:
			s = fake.Anthropic(o)
		case model.Gemini:
			s = fake.Gemini(o)
		default:
			s, suffix = fake.OpenAI(o), "/v1"
		}
		h := httptest.NewServer(s)
		t.Cleanup(h.Close)
		fmt.Fprintf(&config, "  - {id: %s, dialect: %s, baseURL: %q, model: %s, apiKey: sk-upstream, context_window: 100000, capabilities: {input: [%s]}}\n",
			u.id, u.dialect, h.URL+suffix, u.model, u.input)
	}
	for _, u := range upstreams {
		add(u)
	}
	for _, u := range upstreams[:4] {
		for _, f := range faults {
			add(upstream{id: u.id + f.suffix, dialect: u.dialect, model: u.model, input: u.input, behavior: fake.Behavior{Mode: f.mode}})
		}
	}
	w.start(t, config.String())
	w.panel, w.bases = readPanel(t, w.url)
	return w
}

// start builds the program and runs it.
func (w *world) start(t *testing.T, config string) {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "artel.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "artel")
	build := exec.Command("go", "build", "-o", binary, "./cmd/artel")
	build.Dir = ".."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	ctx, stop := context.WithCancel(context.Background())
	serve := exec.CommandContext(ctx, binary, "serve", "--addr", "127.0.0.1:0", "--data", filepath.Join(dir, "data"), "--config", file)
	serve.Env = append(os.Environ(), "OLLAMA_HOST=127.0.0.1:1", "OPENAI_API_KEY=", "ANTHROPIC_API_KEY=", "GEMINI_API_KEY=", "OPENROUTER_API_KEY=")
	serve.Cancel = func() error { return serve.Process.Signal(os.Interrupt) }
	var log strings.Builder
	serve.Stderr = &log
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stop()
		_ = serve.Wait()
		if t.Failed() {
			t.Logf("the server said:\n%s", artel.Shorten(log.String(), 2000))
		}
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		if _, url, ok := strings.Cut(lines.Text(), "listening on "); ok {
			w.url = url
			go func() { _, _ = io.Copy(io.Discard, out) }()
			return
		}
	}
	t.Fatal("the server does not start")
}

// answer is the model behind every service. It does what the newest text after
// "do:" says, and else tells what it got.
func (w *world) answer(ctx context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	command, results := "", 0
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case artel.Text:
				if _, c, ok := strings.Cut(p.Text, "do: "); ok && m.Role == artel.RoleUser {
					command, results = c, 0
				}
			case artel.ToolResult:
				results++
			}
		}
	}
	say := func(deltas ...model.Delta) iter.Seq2[model.Delta, error] {
		return func(yield func(model.Delta, error) bool) {
			for _, d := range deltas {
				if !yield(d, nil) {
					return
				}
			}
		}
	}
	usage := artel.Usage{Calls: 1, InputTokens: 11, OutputTokens: 7}
	made := func(id, q string) model.CallDelta {
		return model.CallDelta{ID: artel.CallID(id), Name: r.Tools[0].Name, Arguments: json.RawMessage(`{"q":"` + q + `"}`)}
	}
	tools := model.Finish{Reason: model.StopTools, Usage: usage}
	switch word, rest, _ := strings.Cut(strings.TrimSpace(command), " "); {
	case word == "call" && results == 0 && len(r.Tools) > 0:
		return say(made("call_one", "one"), tools)
	case word == "calls" && results == 0 && len(r.Tools) > 0:
		return say(model.TextDelta("Two at once."), made("call_one", "one"), made("call_two", "two"), tools)
	case word == "json" && r.Choice.Mode != model.ChooseAuto && len(r.Tools) == 1: // how some clients ask for JSON
		return say(model.CallDelta{ID: "call_json", Name: r.Tools[0].Name, Arguments: json.RawMessage(`{"answer":"yes"}`)}, tools)
	case word == "json" && r.Format.JSON:
		return say(model.TextDelta(`{"answer":"yes"}`), model.Finish{Reason: model.StopEnd, Usage: usage})
	case word == "wait":
		return func(yield func(model.Delta, error) bool) {
			if !yield(model.TextDelta("It begins."), nil) {
				return
			}
			<-ctx.Done()
			w.left.Store(strings.TrimSpace(rest), true)
		}
	}
	return fake.Echo(ctx, r)
}
