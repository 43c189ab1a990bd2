// SPDX-License-Identifier: Apache-2.0

package entries

import (
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"reflect"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A toolKind is a kind of entries with tools.
type toolKind struct {
	kind  store.EntryKind
	noun  string
	known []string // keys of an entry
	acts  struct{ added, changed, deleted audit.Action }
	parse func(fields []byte) (parsedTool, error)
}

func serverKind() toolKind {
	k := toolKind{kind: store.MCPServerEntry, noun: "MCP server", known: []string{"name", "url", "headers", "tools", "timeout", "agents", "auth", "client_id", "client_secret", "scopes", "disabled"}, parse: parseServer}
	k.acts.added, k.acts.changed, k.acts.deleted = audit.MCPServerAdded, audit.MCPServerChanged, audit.MCPServerDeleted
	return k
}

func httpKind() toolKind {
	k := toolKind{kind: store.HTTPToolEntry, noun: "HTTP tool", parse: parseEndpoint, known: []string{
		"name", "description", "parameters", "method", "url", "headers", "body", "idempotent", "timeout", "max_answer", "allow_private", "agents", "disabled",
	}}
	k.acts.added, k.acts.changed, k.acts.deleted = audit.HTTPToolAdded, audit.HTTPToolChanged, audit.HTTPToolDeleted
	return k
}

// A parsedTool is what an entry describes.
type parsedTool struct {
	name, url string
	agents    []artel.AgentName
	keyed     bool // it has headers
	server    mcp.Server
	tool      tool.Tool // of an HTTP tool
	again     func(*http.Client) (tool.Tool, error)
	client    *http.Client
}

// parseServer reads the entry of an MCP server.
func parseServer(fields []byte) (parsedTool, error) {
	var c mcp.Config
	if err := decode(fields, &c); err != nil {
		return parsedTool{}, err
	}
	values := hidden(c.Headers)
	if c.ClientSecret != "" {
		values["client_secret"] = c.ClientSecret
	}
	s, err := c.Server(values)
	if err != nil {
		return parsedTool{}, artel.Errorf(artel.Invalid, "entries", artel.Shorten(c.Name, 60), "%w", err)
	}
	return parsedTool{name: c.Name, url: c.URL, agents: c.Agents, keyed: len(c.Headers) > 0, server: s, client: s.Remote.Client}, nil
}

// parseEndpoint reads the entry of an HTTP tool.
func parseEndpoint(fields []byte) (parsedTool, error) {
	var c tool.EndpointConfig
	if err := decode(fields, &c); err != nil {
		return parsedTool{}, err
	}
	again := func(client *http.Client) (tool.Tool, error) { return c.Tool(hidden(c.Headers), client) }
	client := c.Client()
	t, err := again(client)
	if err != nil {
		return parsedTool{}, artel.Errorf(artel.Invalid, "entries", artel.Shorten(c.Name, 60), "%w", err)
	}
	return parsedTool{name: c.Name, url: c.URL, agents: c.Agents, keyed: len(c.Headers) > 0, tool: t, again: again, client: client}, nil
}

// decode reads fields into the struct at into. It refuses a value of another type.
func decode(fields []byte, into any) error {
	err := json.Unmarshal(fields, into)
	if e, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		want := map[reflect.Kind]string{reflect.String: "text", reflect.Slice: "texts", reflect.Map: "object", reflect.Bool: "flag", reflect.Int64: "number"}[e.Type.Kind()]
		return refused(model.Flaw{Code: model.WrongType, Key: artel.Shorten(e.Field, 60), Value: want})
	}
	if err != nil {
		return artel.Errorf(artel.Invalid, "entries", "", "the entry cannot be read: %w", err)
	}
	return nil
}

// hidden returns the secrets in headers: the values, and what follows a scheme such as
// Bearer in them.
func hidden(headers map[string]string) tool.Secrets {
	out := tool.Secrets{}
	for name, value := range headers {
		out[name] = value
		if _, credentials, ok := strings.Cut(value, " "); ok {
			out[name] = strings.TrimSpace(credentials)
		}
	}
	return out
}

var variable = regexp.MustCompile(`\$\{([A-Za-z_][A-Za-z0-9_]*)\}`)

// check refuses the keys that an entry cannot have, and what belongs to the machine of
// the server. fields have their secrets.
func (k toolKind) check(fields map[string]any) error {
	var flaws model.Flaws
	for _, key := range slices.Sorted(maps.Keys(fields)) {
		shown := artel.Shorten(key, 60)
		switch {
		case slices.Contains(k.known, key):
		case namesProgram(key, fields[key]):
			flaws = append(flaws, model.Flaw{Code: model.Program, Key: shown})
		default:
			flaws = append(flaws, model.Flaw{Code: model.UnknownKey, Key: shown, Value: model.Nearest(key, k.known)})
		}
	}
	address, _ := fields["url"].(string)
	switch scheme, _, _ := strings.Cut(strings.ToLower(address), "://"); {
	case address == "":
		flaws = append(flaws, model.Flaw{Code: model.WrongType, Key: "url", Value: "text"})
	case scheme != "http" && scheme != "https":
		flaws = append(flaws, model.Flaw{Code: model.Program, Key: "url"})
	}
	if m := variable.FindStringSubmatch(address); m != nil {
		flaws = append(flaws, model.Flaw{Code: model.OnlyInFiles, Key: "url", Value: m[1]})
	}
	for _, key := range []string{"client_id", "client_secret"} {
		text, _ := fields[key].(string)
		if m := variable.FindStringSubmatch(text); m != nil {
			flaws = append(flaws, model.Flaw{Code: model.OnlyInFiles, Key: key, Value: m[1]})
		}
	}
	headers, _ := fields["headers"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		value, _ := headers[name].(string)
		at := "headers." + artel.Shorten(name, 60)
		if m := variable.FindStringSubmatch(value); m != nil {
			flaws = append(flaws, model.Flaw{Code: model.OnlyInFiles, Key: at, Value: m[1]})
		}
		if !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			flaws = append(flaws, model.Flaw{Code: model.WrongType, Key: at, Value: "header"})
		}
	}
	if len(flaws) > 0 {
		return &artel.Error{Op: "entries", Kind: artel.Invalid, Err: flaws}
	}
	return nil
}

// namesProgram reports whether a key or one inside its value names a program, or what
// belongs to one, as the configurations of other programs do.
func namesProgram(key string, value any) bool {
	word := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' {
			return r
		}
		return -1
	}, strings.ToLower(key))
	if slices.Contains([]string{
		"command", "commands", "commandline", "cmd", "cmds", "exec", "execute", "executable", "program", "programs", "process", "binary", "bin", "script", "shell", "run",
		"stdio", "args", "argv", "arguments", "env", "environment", "envvars", "cwd", "workdir", "workingdirectory", "dir", "npx", "uvx", "package", "docker", "image",
	}, word) {
		return true
	}
	switch v := value.(type) {
	case string:
		return strings.EqualFold(strings.TrimSpace(v), "stdio")
	case map[string]any:
		for inner, x := range v {
			if namesProgram(inner, x) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(v, func(x any) bool { return namesProgram("", x) })
	}
	return false
}

// read returns a draft of fields and what it describes.
func (k toolKind) read(fields map[string]any, before secrets) (draft, parsedTool, error) {
	d, err := newDraft(fields, before)
	if err == nil {
		err = k.check(d.fields)
	}
	if err != nil {
		return d, parsedTool{}, err
	}
	src, err := json.Marshal(d.fields)
	if err != nil {
		return d, parsedTool{}, artel.Errorf(artel.Invalid, "entries", "", "it cannot be written as JSON: %w", err)
	}
	p, err := k.parse(src)
	return d, p, err
}
