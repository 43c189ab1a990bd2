// SPDX-License-Identifier: Apache-2.0

package agents

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/sdktest/program"
)

// An agent is a coding agent, as its users start it: in the default settings, but
// without questions before it acts.
type agent struct {
	name    string // of its folder in install, and in ARTEL_CLIENTS
	title   string // in the page
	light   bool   // quick to install and to start: it runs in every test
	server  bool   // has an MCP server
	blind   bool   // sends no pictures of tool results
	service func(id string) string
	start   func(s start) invocation
	keeps   func(u artel.Usage) string // how its records in its home have the usage of an answer
}

// A start is what a program is started with; its prompt comes last in the command.
type start struct {
	model    string
	modules  string   // the folder node_modules of its npm package
	server   []string // the command of an MCP server
	snippets map[program.Snippet]string
}

// An invocation is a shell command with the files of its home.
type invocation struct {
	command string
	files   map[string]string // text by path below home
}

// snippet is the text that the page of the gateway shows for a program, with
// another model.
func (s start) snippet(name, where string, model *regexp.Regexp, as string) string {
	return model.ReplaceAllLiteralString(s.snippets[program.Snippet{Name: name, Where: where}], as)
}

func quoted(words []string) string {
	b, _ := json.Marshal(words) // strings can be encoded
	return string(b)
}

// The model in a snippet.
var (
	inShell = regexp.MustCompile(`'[^']*'`)
	inTOML  = regexp.MustCompile(`^model = .*`)
	inJSON  = regexp.MustCompile(`"models": \{ "[^"]*"`)
)

func codex(s start) invocation {
	return invocation{
		command: "codex exec --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox",
		files: map[string]string{".codex/config.toml": s.snippet("Codex", "~/.codex/config.toml", inTOML, "model = "+strconv.Quote(s.model)) +
			fmt.Sprintf("\n\n[mcp_servers.screen]\ncommand = %q\nargs = %s\n", s.server[0], quoted(s.server[1:]))},
	}
}

func codexKeeps(u artel.Usage) string {
	return fmt.Sprintf(`"last_token_usage":{"input_tokens":%d,"cached_input_tokens":%d,"cache_write_input_tokens":0,"output_tokens":%d,"reasoning_output_tokens":%d,`,
		u.InputTokens, u.CachedTokens, u.OutputTokens, u.ThoughtTokens)
}

func geminiKeeps(u artel.Usage) string {
	return fmt.Sprintf(`"tokens":{"input":%d,"output":%d,"cached":%d,"thoughts":%d,`, u.InputTokens, u.OutputTokens-u.ThoughtTokens, u.CachedTokens, u.ThoughtTokens)
}

// Gemini CLI asks for the way of signing in when it is started first, and does not
// act in folders that its user has not trusted.
func gemini(s start) invocation {
	return invocation{
		command: s.snippet("Gemini CLI", "", inShell, s.model) + " --skip-trust --yolo -p",
		files:   map[string]string{".gemini/settings.json": `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "privacy": {"usageStatisticsEnabled": false}}`},
	}
}

func qwenKeeps(u artel.Usage) string {
	return fmt.Sprintf(`"inputTokens":%d,"outputTokens":%d,"cachedTokens":%d,"thoughtsTokens":%d,`, u.InputTokens, u.OutputTokens, u.CachedTokens, u.ThoughtTokens)
}

// opencode keeps apart what others have within the input and the output.
func opencodeKeeps(u artel.Usage) string {
	return fmt.Sprintf(`"input":%d,"output":%d,"reasoning":%d,"cache":{"read":%d,`, u.InputTokens-u.CachedTokens, u.OutputTokens-u.ThoughtTokens, u.ThoughtTokens, u.CachedTokens)
}

// Cline keeps no thoughts apart.
func clineKeeps(u artel.Usage) string {
	return fmt.Sprintf(`"metrics":{"inputTokens":%d,"outputTokens":%d,"cacheReadTokens":%d,`, u.InputTokens, u.OutputTokens, u.CachedTokens)
}

func qwen(s start) invocation {
	return invocation{command: s.snippet("Qwen Code", "", inShell, s.model) + " --yolo -p"}
}

// opencode speaks the dialect of the SDK that its configuration names.
func opencode(npm, version string) func(s start) invocation {
	return func(s start) invocation {
		config := s.snippet("opencode", "opencode.json", inJSON, `"models": { `+strconv.Quote(s.model))
		config = strings.NewReplacer("@ai-sdk/openai-compatible", npm, `/v1"`, version+`"`).Replace(config)
		return invocation{
			command: filepath.Join(s.modules, "opencode-"+platform(), "bin", "opencode") + " run -m artel/" + s.model,
			files:   map[string]string{".config/opencode/opencode.json": config},
		}
	}
}

func cline(s start) invocation {
	return invocation{command: s.snippet("Cline", "", inShell, s.model) + " && CLINE_SESSION_BACKEND_MODE=local cline --auto-approve true"}
}

// platform is how npm packages with a binary name this machine.
func platform() string {
	return runtime.GOOS + "-" + strings.NewReplacer("amd64", "x64").Replace(runtime.GOARCH)
}

// like makes names of services that begin with the name of a model: programs know a
// model by the beginning of its name.
func like(name string) func(id string) string {
	return func(id string) string { return name + "-" + id }
}

var agents = []agent{
	{name: "codex", title: "Codex CLI, with a model that it does not know", light: true, server: true, start: codex, keeps: codexKeeps},
	{name: "codex", title: "Codex CLI, with gpt-6-sol and the like", light: true, server: true, start: codex, keeps: codexKeeps, service: like("gpt-6-sol")},
	{name: "codex", title: "Codex CLI, with gpt-5.5", light: true, server: true, start: codex, keeps: codexKeeps, service: like("gpt-5.5")},
	{name: "gemini", title: "Gemini CLI, with a model that it does not know", light: true, start: gemini, keeps: geminiKeeps},
	{name: "gemini", title: "Gemini CLI, with gemini-3 and the like", blind: true, start: gemini, keeps: geminiKeeps, service: like("gemini-3")},
	{name: "qwen", title: "Qwen Code, with qwen3-vl and the like", start: qwen, keeps: qwenKeeps, service: like("qwen3-vl")},
	{name: "opencode", title: "opencode, @ai-sdk/openai-compatible", start: opencode("@ai-sdk/openai-compatible", "/v1"), keeps: opencodeKeeps},
	{name: "opencode", title: "opencode, @ai-sdk/openai", start: opencode("@ai-sdk/openai", "/v1"), keeps: opencodeKeeps},
	{name: "opencode", title: "opencode, @ai-sdk/anthropic", start: opencode("@ai-sdk/anthropic", "/v1"), keeps: opencodeKeeps},
	{name: "opencode", title: "opencode, @ai-sdk/google", start: opencode("@ai-sdk/google", "/v1beta"), keeps: opencodeKeeps},
	{name: "cline", title: "Cline", start: cline, keeps: clineKeeps},
}
