// SPDX-License-Identifier: Apache-2.0

package mcphosts

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/gateway/mcpproxy/mcpproxytest"
)

// A client calls tools of one server.
type client struct {
	list func() (json.RawMessage, error) // of tools
	call func(tool string, args map[string]any) (r *sdk.CallToolResult, err error)
	end  func()
}

// resultOf returns what a client got.
func resultOf(r *sdk.CallToolResult) result {
	out := result{text: mcpproxytest.Text(r)}
	for _, c := range r.Content {
		if p, ok := c.(*sdk.ImageContent); ok {
			out.pictures = append(out.pictures, digest(p.Data))
		}
	}
	return out
}

// play makes all calls with clients of the proxy and of the artifact tools.
func play(b *bench, open func(command []string) (client, error)) (out run) {
	data := b.TempDir()
	proxied, err := open(b.proxy(data, 300))
	if err != nil {
		return run{err: err}
	}
	defer proxied.end()
	own, err := open(b.artifacts(data))
	if err != nil {
		return run{err: err}
	}
	defer own.end()
	list, err := proxied.list()
	if err != nil {
		return run{err: err}
	}
	out.tokens = b.count(string(list))
	for _, s := range steps() {
		to, name, args := proxied, s.tool, s.args(out.results)
		switch {
		case s.row == "artifacts":
			to = own
		case !strings.HasPrefix(name, "artel_"):
			name, args = "artel_call", map[string]any{"tool": s.tool, "arguments": args}
		}
		r, err := to.call(name, args)
		if err != nil {
			out.err = fmt.Errorf("%s: %w", s.tool, err)
			return out
		}
		out.results = append(out.results, resultOf(r))
	}
	return out
}

// goSDK is a client of the official SDK for Go.
func goSDK(b *bench) run {
	return play(b, func(command []string) (client, error) {
		cmd := exec.Command(command[0], command[1:]...)
		cmd.Env = environment(b.TempDir())
		s, err := sdk.NewClient(&sdk.Implementation{Name: "go", Version: "1"}, nil).Connect(b.Context(), &sdk.CommandTransport{Command: cmd}, nil)
		if err != nil {
			return client{}, err
		}
		return client{
			list: func() (json.RawMessage, error) {
				list, err := s.ListTools(b.Context(), nil)
				if err != nil {
					return nil, err
				}
				return json.Marshal(list.Tools)
			},
			call: func(tool string, args map[string]any) (*sdk.CallToolResult, error) {
				return s.CallTool(b.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
			},
			end: func() { _ = s.Close() },
		}, nil
	})
}

// node is Node.js as scripts/setup installs it, if the system's is older.
func node() string {
	own, err := filepath.Abs("../../bin/nodejs/node_modules")
	if err == nil {
		if found, _ := filepath.Glob(filepath.Join(own, "node-*", "bin", "node")); len(found) > 0 { // the pattern is valid
			return found[0]
		}
	}
	return "node"
}

// tools are what a list of tools has beside them.
type tools struct {
	Tools  json.RawMessage `json:"tools"`
	Failed string          `json:"failed"`
}

// typeScript is a client of the official SDK for TypeScript.
func typeScript(b *bench) run {
	return play(b, func(command []string) (client, error) {
		cmd := exec.Command(node(), append([]string{"host.mjs"}, command...)...)
		cmd.Env, cmd.Stderr = environment(b.TempDir()), b.Output()
		in, err := cmd.StdinPipe()
		if err != nil {
			return client{}, err
		}
		pipe, err := cmd.StdoutPipe()
		if err != nil {
			return client{}, err
		}
		if err := cmd.Start(); err != nil {
			return client{}, err
		}
		out := bufio.NewReader(pipe)
		ask := func(v any) ([]byte, error) {
			line, err := json.Marshal(v)
			if err == nil {
				_, err = in.Write(append(line, '\n'))
			}
			if err != nil {
				return nil, err
			}
			return out.ReadBytes('\n')
		}
		return client{
			list: func() (json.RawMessage, error) {
				line, err := ask(struct{}{})
				return listed(line, err)
			},
			call: func(tool string, args map[string]any) (*sdk.CallToolResult, error) {
				line, err := ask(map[string]any{"tool": tool, "arguments": args})
				return called(line, err)
			},
			end: func() {
				_ = in.Close()
				_, _ = io.Copy(io.Discard, out)
				_ = cmd.Wait()
			},
		}, nil
	})
}

func listed(text []byte, err error) (json.RawMessage, error) {
	var list tools
	if err == nil {
		err = json.Unmarshal(text, &list)
	}
	if err == nil && list.Failed != "" {
		err = errors.New(list.Failed)
	}
	return list.Tools, err
}

func called(text []byte, err error) (*sdk.CallToolResult, error) {
	var r struct {
		sdk.CallToolResult
	}
	var failed tools
	if err == nil {
		err = errors.Join(json.Unmarshal(text, &r.CallToolResult), json.Unmarshal(text, &failed))
	}
	if err == nil && failed.Failed != "" {
		err = errors.New(failed.Failed)
	}
	return &r.CallToolResult, err
}

// inspector is the command line of the MCP Inspector, which starts the server for each call.
func inspector(b *bench) run {
	return play(b, func(command []string) (client, error) {
		home := b.TempDir()
		config, err := json.Marshal(map[string]any{"mcpServers": map[string]any{"it": map[string]any{"command": command[0], "args": command[1:]}}})
		file := filepath.Join(home, "servers.json")
		if err == nil {
			err = os.WriteFile(file, config, 0o600)
		}
		ask := func(args ...string) ([]byte, error) {
			cmd := exec.Command(node(), slices.Concat([]string{"node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js", "--cli", "--config", file, "--server", "it"}, args)...)
			cmd.Env = environment(home)
			var said strings.Builder
			cmd.Stderr = &said
			out, err := cmd.Output()
			if err != nil {
				err = fmt.Errorf("%w: %s %s", err, said.String(), out)
			}
			return out, err
		}
		return client{
			list: func() (json.RawMessage, error) {
				text, err := ask("--method", "tools/list")
				return listed(text, err)
			},
			call: func(tool string, args map[string]any) (*sdk.CallToolResult, error) {
				words := []string{"--method", "tools/call", "--tool-name", tool}
				for name, value := range args {
					text, ok := value.(string)
					if !ok {
						b, err := json.Marshal(value)
						if err != nil {
							return nil, err
						}
						text = string(b)
					}
					words = append(words, "--tool-arg", name+"="+text)
				}
				text, err := ask(words...)
				return called(text, err)
			},
			end: func() {},
		}, err
	})
}

// TestLarge: 50 MB of JSON and a million lines of a log stay out of the context, and are kept
// whole; a later session, with larger pages, reads the JSON to the last byte.
func TestLarge(t *testing.T) {
	b := newBench(t)
	data := t.TempDir()
	open := func(more ...string) *sdk.ClientSession {
		cmd := b.proxy(data, 0)
		cmd = slices.Insert(cmd, 3, more...)
		c := exec.Command(cmd[0], cmd[1:]...)
		c.Env = environment(t.TempDir())
		s, err := sdk.NewClient(&sdk.Implementation{Name: "go", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: c}, nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		return s
	}
	call := func(s *sdk.ClientSession, tool string, args any) string {
		t.Helper()
		r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
		if err != nil {
			t.Fatal(err)
		}
		return mcpproxytest.Text(r)
	}
	first, later := open(), open("--limit", "32768")
	for _, x := range []struct {
		tool string
		size int
		want string
	}{{"json", 50 << 20, mcpproxytest.JSON(50 << 20)}, {"log", 1_000_000, mcpproxytest.Log(1_000_000)}} {
		text := call(first, x.tool, mcpproxytest.Arguments{Size: x.size})
		ref := refPattern.FindString(text)
		if len(text) > mostText || ref != "blob:"+digest([]byte(x.want)) {
			t.Fatalf("%s: %d bytes: %s", x.tool, len(text), short(text))
		}
		at := 0
		if x.tool == "log" { // the digest is that of all bytes
			at = len(x.want) - 1000
		}
		for at < len(x.want) {
			_, page, _ := strings.Cut(call(later, "artel_read", map[string]any{"ref": ref, "offset": at, "limit": 512 << 10}), "]\n")
			if page == "" || !strings.HasPrefix(x.want[at:], page) {
				t.Fatalf("%s: other bytes at %d: %s", x.tool, at, short(page))
			}
			at += len(page)
		}
	}
}
