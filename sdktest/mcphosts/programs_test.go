// SPDX-License-Identifier: Apache-2.0

package mcphosts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/fake"
)

// patience is how long a program may take for a session, also under load.
const patience = 5 * time.Minute

// A script is the model of a program: it makes the calls of the matrix, one after the other,
// and looks at what the program sends of their results.
type script struct {
	b *bench

	mu      sync.Mutex
	out     run
	offered []string
	found   int // searches for hidden tools
}

// task is the prompt, by which the conversation is told from titles and the like.
const task = "Do all calls of the matrix."

// Tools of Qwen Code, which does not name those of MCP servers to models: one finds their
// schemas, the other calls them.
const (
	searchTool = "tool_search"
	callTool   = "tool_call"
	searchID   = "search_" // the beginning of the ids of such calls
)

// proxyTools are those that the proxy lists in the place of others.
func proxyTools() []string { return []string{"artel_find_tools", "artel_call", "artel_read"} }

// searches are the names of hidden tools to look for: those of the proxy, and those of artel mcp.
func searches() [][]string {
	var own, artifacts []string
	for _, name := range proxyTools() {
		own = append(own, "mcp__hostile__"+name)
	}
	for _, s := range steps() {
		if s.row == "artifacts" {
			artifacts = append(artifacts, "mcp__artel__"+s.tool)
		}
	}
	return [][]string{own, artifacts}
}

// answer implements [fake.Responder].
func (s *script) answer(_ context.Context, r *model.Request) iter.Seq2[model.Delta, error] {
	at := slices.IndexFunc(r.Messages, func(m model.Message) bool {
		return m.Role == artel.RoleUser && strings.Contains(artel.TextOf(m.Parts), task)
	})
	if at < 0 || len(r.Tools) == 0 {
		return say(model.TextDelta("Calls."))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.observe(r.Messages[at:])
	if s.out.tokens == 0 {
		for _, t := range r.Tools {
			s.offered = append(s.offered, t.Name)
			if slices.ContainsFunc(proxyTools(), func(own string) bool { return strings.HasSuffix(t.Name, own) }) {
				s.out.tokens += s.b.count(t.Name + t.Description + string(t.Schema))
			}
		}
	}
	all := steps()
	n := len(s.out.results)
	if n == len(all) {
		return say(model.TextDelta("All is done."))
	}
	name, args := all[n].tool, all[n].args(s.out.results)
	if all[n].row != "artifacts" && !strings.HasPrefix(name, "artel_") {
		name, args = "artel_call", map[string]any{"tool": name, "arguments": args}
	}
	if slices.ContainsFunc(r.Tools, func(t model.ToolSpec) bool { return t.Name == callTool }) {
		if hidden := searches(); s.found < len(hidden) {
			s.found++
			id := artel.CallID(searchID + strconv.Itoa(s.found))
			return say(model.CallDelta{ID: id, Name: searchTool, Arguments: json.RawMessage(`{"query":` + quoted("select:"+strings.Join(hidden[s.found-1], ",")) + `}`)})
		}
		server := "hostile"
		if all[n].row == "artifacts" {
			server = "artel"
		}
		name, args = callTool, map[string]any{"name": "mcp__" + server + "__" + name, "arguments": args}
	}
	i := slices.IndexFunc(r.Tools, func(t model.ToolSpec) bool { return strings.HasSuffix(t.Name, name) })
	if i < 0 {
		if s.out.err == nil {
			s.out.err = fmt.Errorf("%s is not among the tools %q", name, s.offered)
		}
		return say(model.TextDelta("I have no tool for that."))
	}
	text, err := json.Marshal(args)
	if err != nil {
		s.out.err = err
	}
	return say(model.CallDelta{ID: artel.CallID("call_" + strconv.Itoa(n)), Name: r.Tools[i].Name, Arguments: text})
}

// observe takes the results from the messages of a conversation. Pictures are in the result,
// or in a message after it. A result is kept as it was sent first, since Qwen Code leaves
// out older pictures, and shows some again with the newest result.
func (s *script) observe(messages []model.Message) {
	before := s.out.results
	defer func() { copy(s.out.results, before) }()
	s.out.results = nil
	for _, m := range messages {
		found := artel.ResultsOf(m.Parts)
		for _, r := range found {
			if strings.HasPrefix(string(r.CallID), searchID) {
				if r.CallID == searchID+"1" {
					s.out.tokens = s.b.count(r.Content) // the schemas of the proxy
				}
				continue
			}
			s.out.results = append(s.out.results, result{text: r.Content, pictures: picturesIn(r.Parts)})
		}
		if n := len(s.out.results); n > 0 {
			for _, p := range picturesIn(m.Parts) {
				if !slices.ContainsFunc(before[:min(n-1, len(before))], func(r result) bool { return slices.Contains(r.pictures, p) }) {
					s.out.results[n-1].pictures = append(s.out.results[n-1].pictures, p)
				}
			}
		}
	}
}

func picturesIn(parts artel.Parts) (out []string) {
	for _, p := range artel.MediaOf(parts) {
		if p.Kind == artel.KindImage {
			out = append(out, string(p.Ref.Digest))
		}
	}
	return out
}

func say(d model.Delta) iter.Seq2[model.Delta, error] {
	finish := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{Calls: 1, InputTokens: 1000, OutputTokens: 20}}
	if _, ok := d.(model.CallDelta); ok {
		finish.Reason = model.StopTools
	}
	return func(yield func(model.Delta, error) bool) {
		if yield(d, nil) {
			yield(finish, nil)
		}
	}
}

// A program is a coding agent with files of its home, which have the servers of MCP.
type program struct {
	name string // of its folder in ../agents/install
	open func(fake.Options) *fake.Server
	// start returns the shell command, which the prompt ends, and the files.
	start func(url string, servers map[string][]string) (command string, files map[string]string)
}

func quoted(v any) string {
	b, _ := json.Marshal(v) // strings can be encoded
	return string(b)
}

func codex(url string, servers map[string][]string) (string, map[string]string) {
	config := "model = \"matrix\"\nmodel_provider = \"it\"\n[model_providers.it]\nname = \"It\"\nbase_url = " + quoted(url+"/v1") + "\nenv_key = \"KEY\"\nwire_api = \"responses\"\n"
	for name, command := range servers {
		config += fmt.Sprintf("[mcp_servers.%s]\ncommand = %s\nargs = %s\n", name, quoted(command[0]), quoted(command[1:]))
	}
	return "KEY=any codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox", map[string]string{".codex/config.toml": config}
}

func gemini(url string, servers map[string][]string) (string, map[string]string) {
	all := map[string]any{}
	for name, command := range servers {
		all[name] = map[string]any{"command": command[0], "args": command[1:], "trust": true}
	}
	settings := map[string]any{
		"security": map[string]any{"auth": map[string]any{"selectedType": "gemini-api-key"}}, "privacy": map[string]any{"usageStatisticsEnabled": false}, "mcpServers": all,
	}
	return "GEMINI_API_KEY=any GOOGLE_GEMINI_BASE_URL=" + url + " gemini -m matrix --skip-trust --yolo -p", map[string]string{".gemini/settings.json": quoted(settings)}
}

// qwen passes pictures to models whose names it knows.
func qwen(url string, servers map[string][]string) (string, map[string]string) {
	all := map[string]any{}
	for name, command := range servers {
		all[name] = map[string]any{"command": command[0], "args": command[1:], "trust": true}
	}
	settings := map[string]any{"mcpServers": all, "privacy": map[string]any{"usageStatisticsEnabled": false}}
	return "OPENAI_API_KEY=any OPENAI_BASE_URL=" + url + "/v1 OPENAI_MODEL=qwen3-vl-matrix qwen --yolo -p", map[string]string{".qwen/settings.json": quoted(settings)}
}

// run starts the program for one session.
func (p program) run(b *bench) run {
	s := &script{b: b}
	service := httptest.NewServer(p.open(fake.Options{Responder: s.answer, Models: []string{"matrix", "qwen3-vl-matrix"}}))
	defer service.Close()
	home, dir, data := b.TempDir(), b.TempDir(), b.TempDir()
	command, files := p.start(service.URL, map[string][]string{"hostile": b.proxy(data, 300), "artel": b.artifacts(data)})
	for name, text := range files {
		file := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(text), 0o600)); err != nil {
			return run{err: err}
		}
	}
	modules, err := filepath.Abs(filepath.Join("../agents/install", p.name, "node_modules", ".bin"))
	if err != nil {
		return run{err: err}
	}
	output, err := os.Create(filepath.Join(home, "output.txt")) // no pipe, which a daemon could hold open
	if err != nil {
		return run{err: err}
	}
	defer output.Close()
	ctx, enough := context.WithTimeout(b.Context(), patience)
	defer enough()
	cmd := exec.CommandContext(ctx, "/bin/sh", "-c", command+` "$0"`, task)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = dir, environment(home, modules, filepath.Dir(node())), output, output
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	err = cmd.Run()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.out.err = errors.Join(s.out.err, err); s.out.err != nil || len(s.out.results) < len(steps()) {
		said, _ := os.ReadFile(output.Name())
		b.Logf("%s said: %s", p.name, said[max(0, len(said)-3000):])
	}
	return s.out
}
