// SPDX-License-Identifier: Apache-2.0

package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/toolindex"
)

// names are those of the tools of the proxy.
type names struct{ read, find, call string }

// orDefault returns names that no tool of the server has.
func (n names) orDefault(taken *toolindex.Index) names {
	free := func(name string) string {
		for taken != nil {
			if _, ok := taken.Get(name); !ok {
				break
			}
			name += "_2"
		}
		return name
	}
	return names{free("artel_read"), free("artel_find_tools"), free("artel_call")}
}

// named returns the names of the tools of the proxy.
func (p *Proxy) named() names {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.names
}

// A listing is the tools of the server.
type listing struct {
	tools    []json.RawMessage // in their order, unchanged
	first    []json.RawMessage // keys and values of the first page besides tools and nextCursor, in turn
	index    *toolindex.Index
	outputs  map[string]json.RawMessage // output schemas
	deferred bool
}

// bytesPerToken is how many bytes of a schema a token has at least.
const bytesPerToken = 2

// The bounds of a list of tools.
const (
	maxTools     = 10_000
	maxToolBytes = 16 << 20
)

// toolsList answers a request for the list of tools, in one page.
func (p *Proxy) toolsList(ctx context.Context, m *message) (*message, error) {
	l, refused, err := p.list(ctx, m)
	if refused != nil || err != nil || l == nil {
		return refused, err
	}
	n := p.named()
	var b bytes.Buffer
	b.WriteByte('{')
	for i := 0; i+1 < len(l.first); i += 2 {
		b.Write(l.first[i])
		b.WriteByte(':')
		b.Write(l.first[i+1])
		b.WriteByte(',')
	}
	b.WriteString(`"tools":[`)
	if l.deferred {
		b.Write(p.findTool(l, n))
		b.WriteByte(',')
		b.Write(callTool(n))
		b.WriteByte(',')
	} else {
		for _, t := range l.tools {
			b.Write(t)
			b.WriteByte(',')
		}
	}
	b.Write(p.readTool(n))
	b.WriteString("]}")
	return answer(m.id, b.Bytes()), nil
}

// list asks the server for all its tools. like is the request of the host, whose other
// parameters are used. refused is the server's refusal.
func (p *Proxy) list(ctx context.Context, like *message) (l *listing, refused *message, err error) {
	l = &listing{outputs: map[string]json.RawMessage{}}
	var known []toolindex.Tool
	cursor, size := "", 0
	for page := 0; ; page++ {
		params, err := like.paramsWith("cursor", cursor)
		if err != nil {
			return nil, nil, err
		}
		asked := request(p.up.newID(), "tools/list", params)
		got, err := p.up.ask(ctx, asked, asked.id)
		_ = asked.Close()
		if err != nil || got == nil {
			return nil, nil, err
		}
		if got.failed {
			code := got.member(got.member(got.all(), "error"), "code")
			if c, _ := got.bytes(code, 20); page == 0 && string(c) == fmt.Sprint(codeNoMethod) {
				_ = got.Close()
				break // it has no tools
			}
			refused, err := got.withID(like.id)
			return nil, refused, err
		}
		cursor = ""
		err = got.members(got.result, func(key string, v span) error {
			switch key {
			case "nextCursor":
				cursor = got.word(v)
				return nil
			case "tools":
				return got.elements(v, func(_ int, t span) error {
					raw, err := got.bytes(t, maxToolBytes)
					if size += len(raw); err != nil || size > maxToolBytes || len(l.tools) == maxTools {
						return artel.Errorf(artel.TooLarge, "mcpproxy", p.options.Name, "the server lists more than %d tools or %d MB of them", maxTools, maxToolBytes>>20)
					}
					var tool struct {
						Name         string          `json:"name"`
						Title        string          `json:"title"`
						Description  string          `json:"description"`
						InputSchema  json.RawMessage `json:"inputSchema"`
						OutputSchema json.RawMessage `json:"outputSchema"`
					}
					if err := json.Unmarshal(raw, &tool); err != nil {
						return fmt.Errorf("a tool of the server %s: %w", p.options.Name, err)
					}
					if !p.offers(tool.Name) {
						return nil
					}
					if tool.Description == "" {
						tool.Description = tool.Title
					}
					l.tools = append(l.tools, raw)
					l.outputs[tool.Name] = tool.OutputSchema
					known = append(known, toolindex.Tool{Name: tool.Name, Description: tool.Description, Schema: tool.InputSchema})
					return nil
				})
			case "_meta":
				return nil // of one answer
			}
			if page == 0 && v.size() < maxOther {
				value, err := got.bytes(v, maxOther)
				l.first = append(l.first, quoted(key), value)
				return err
			}
			return nil
		})
		_ = got.Close()
		if err != nil {
			return nil, nil, err
		}
		if cursor == "" {
			break
		}
	}
	l.index = toolindex.New(known)
	switch p.options.Defer {
	case DeferOn:
		l.deferred = true
	case DeferAuto:
		// Few bytes are not counted: no text has that many tokens in them, and counting loads
		// a vocabulary.
		l.deferred = size > bytesPerToken*toolindex.Budget && toolindex.Tokens(known, p.count) > toolindex.Budget
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.listed = l
	p.names = names{}.orDefault(l.index)
	return l, nil, nil
}

// known returns the tools, which it asks for if it has not.
func (p *Proxy) known(ctx context.Context, like *message) (*listing, error) {
	p.mu.Lock()
	l := p.listed
	p.mu.Unlock()
	if l != nil {
		return l, nil
	}
	meta := like.member(like.params, "_meta")
	params := []byte("{}")
	if !meta.empty() && meta.size() < maxOther {
		b, err := like.bytes(meta, maxOther)
		if err != nil {
			return nil, err
		}
		params = fmt.Appendf(nil, `{"_meta":%s}`, withoutProgress(b))
	}
	asked := request(`"artel"`, "tools/list", params)
	defer asked.Close() //nolint:errcheck // in memory
	l, refused, err := p.list(ctx, asked)
	if refused != nil {
		_ = refused.Close()
		err = fmt.Errorf("the server %s does not list its tools", p.options.Name)
	}
	return l, err
}

// withoutProgress removes the progress token, which belongs to another request.
func withoutProgress(meta []byte) []byte {
	var m map[string]json.RawMessage
	if json.Unmarshal(meta, &m) != nil {
		return []byte("{}")
	}
	delete(m, "progressToken")
	b, err := json.Marshal(m)
	if err != nil {
		return []byte("{}")
	}
	return b
}

// outputSchema returns that of a tool; nil: it has none, or is not known.
func (p *Proxy) outputSchema(tool string) json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.listed == nil {
		return nil
	}
	return p.listed.outputs[tool]
}

// paramsWith returns the parameters of a request with another value of one; "": without it.
func (m *message) paramsWith(name, value string) ([]byte, error) {
	var b bytes.Buffer
	b.WriteByte('{')
	if m.kind(m.params) == '{' {
		if err := m.members(m.params, func(key string, v span) error {
			if key == name {
				return nil
			}
			raw, err := m.bytes(v, maxHandshake)
			if b.Len() > 1 {
				b.WriteByte(',')
			}
			b.Write(quoted(key))
			b.WriteByte(':')
			b.Write(raw)
			return err
		}); err != nil {
			return nil, err
		}
	}
	if value != "" {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		b.Write(quoted(name))
		b.WriteByte(':')
		b.Write(quoted(value))
	}
	b.WriteByte('}')
	return b.Bytes(), nil
}

// withID returns an answer with another id, and closes m.
func (m *message) withID(id string) (*message, error) {
	defer m.Close() //nolint:errcheck // a temporary file
	out := &spool{}
	_, err := out.WriteString(`{"jsonrpc":"2.0","id":` + id)
	for _, key := range []string{"result", "error"} {
		at := m.member(m.all(), key)
		if at.empty() || err != nil {
			continue
		}
		if _, err = out.WriteString(`,"` + key + `":`); err == nil {
			_, err = io.Copy(out, m.reader(at))
		}
	}
	if err == nil {
		_, err = out.WriteString("}")
	}
	if err != nil {
		return nil, errors.Join(err, out.Close())
	}
	return parse(out)
}

// toolsCall answers a call.
func (p *Proxy) toolsCall(ctx context.Context, m *message, name string) (*message, error) {
	p.mu.Lock()
	n := p.names
	l := p.listed
	p.mu.Unlock()
	switch {
	case name == n.read && !l.has(name):
		return p.read(ctx, m)
	case name == n.find && !l.has(name):
		return p.find(ctx, m)
	case name == n.call && !l.has(name):
		return p.callFound(ctx, m)
	}
	return p.callTool(ctx, m, name)
}

func (l *listing) has(name string) bool {
	if l == nil {
		return false
	}
	_, ok := l.index.Get(name)
	return ok
}

// callTool passes a call on, with bytes in the place of refs, and shortens its result.
func (p *Proxy) callTool(ctx context.Context, m *message, name string) (*message, error) {
	recordOf(ctx).called(name)
	if refusal, err := p.permitted(ctx, m, name); refusal != nil || err != nil || ctx.Err() != nil {
		return refusal, err
	}
	call, err := m.withoutAgreement()
	if err != nil {
		return nil, err
	}
	if call != m {
		defer call.Close() //nolint:errcheck // a temporary file
		m = call
	}
	restored, problem, err := p.restored(ctx, m, name)
	if err != nil {
		return nil, err
	}
	if problem != "" {
		return answer(m.id, texts(true, problem)), nil
	}
	if restored != m {
		defer restored.Close() //nolint:errcheck // a temporary file
	}
	got, err := p.up.ask(p.withParamHeaders(ctx, restored, name), restored, m.id)
	if got == nil || err != nil {
		return got, err
	}
	p.goesOn(got)
	recordOf(ctx).returned(got.size)
	return p.rewritten(ctx, got, func() (*message, error) {
		if got.failed {
			return p.callError(ctx, got)
		}
		return p.callResult(ctx, got, name)
	})
}

// maxArguments is the most bytes of the arguments of the proxy's own tools.
const maxArguments = 1 << 20

// own reads the arguments of a tool of the proxy.
func (m *message) own(into any) error {
	at := m.member(m.params, "arguments")
	if at.empty() || m.kind(at) == 'n' {
		return nil
	}
	b, err := m.bytes(at, maxArguments)
	if err != nil {
		return err
	}
	return json.Unmarshal(b, into)
}

// mostFound is how many tools one search returns.
const mostFound = 8

func (p *Proxy) find(ctx context.Context, m *message) (*message, error) {
	var in struct{ Query string }
	if err := m.own(&in); err != nil || in.Query == "" {
		return answer(m.id, texts(true, `the arguments are {"query": words that say what is to be done}`)), nil
	}
	l, err := p.known(ctx, m)
	if l == nil || err != nil {
		return nil, err
	}
	found := l.index.Find(in.Query, mostFound)
	if len(found) == 0 {
		list := l.index.List(toolindex.Budget/2, p.count)
		return answer(m.id, texts(false, cut("No tool has any of these words. The tools are:\n"+list, p.options.Limit))), nil
	}
	intro := fmt.Sprintf("Call them with %s {\"tool\", \"arguments\"}.\n\n", p.named().call)
	return answer(m.id, texts(false, intro+toolindex.Found(found, p.options.Limit-len(intro)))), nil
}

func (p *Proxy) count(s string) int {
	if p.options.Count == nil {
		return len(s) / 3
	}
	return p.options.Count(s)
}

// callFound calls a tool that the host does not list.
func (p *Proxy) callFound(ctx context.Context, m *message) (*message, error) {
	l, err := p.known(ctx, m)
	if l == nil || err != nil {
		return nil, err
	}
	at := m.member(m.params, "arguments")
	name := m.word(m.member(at, "tool"))
	t, ok := l.index.Get(name)
	if !ok {
		text := fmt.Sprintf("there is no tool %q; %s finds them", cut(name, 100), p.named().find)
		if near := l.index.Find(name, 3); len(near) > 0 {
			text += ". Near are:\n" + toolindex.Found(near, p.options.Limit/2)
		}
		return answer(m.id, texts(true, text)), nil
	}
	inside := m.member(at, "arguments")
	raw := []byte("{}")
	if !inside.empty() && m.kind(inside) != 'n' {
		if m.kind(inside) == '"' { // an object in a string
			s, err := m.text(inner(inside), maxArguments)
			if err != nil {
				return nil, err
			}
			raw = []byte(s)
		} else if raw, err = m.bytes(inside, maxArguments); err != nil {
			return nil, err
		}
	}
	if problem := t.Check(raw); problem != "" {
		return answer(m.id, texts(true, cut(problem, p.options.Limit))), nil
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, `{"name":%s,"arguments":%s`, quoted(name), raw)
	if err := m.members(m.params, func(key string, v span) error {
		if key == "name" || key == "arguments" {
			return nil
		}
		value, err := m.bytes(v, maxHandshake)
		fmt.Fprintf(&b, ",%s:%s", quoted(key), value)
		return err
	}); err != nil {
		return nil, err
	}
	b.WriteByte('}')
	call := request(m.id, "tools/call", b.Bytes())
	defer call.Close() //nolint:errcheck // a temporary file
	return p.callTool(ctx, call, name)
}

// object makes the JSON of a tool of the proxy.
func object(name, about, properties, required string, readOnly bool) []byte {
	hints := ""
	if readOnly {
		hints = `,"annotations":{"readOnlyHint":true,"openWorldHint":false}`
	}
	return fmt.Appendf(nil, `{"name":%s,"description":%s,"inputSchema":{"type":"object","properties":{%s},"required":[%s]}%s}`,
		quoted(name), quoted(about), properties, required, hints)
}

func (p *Proxy) readTool(n names) []byte {
	return object(n.read, "Reads what is kept under a ref (blob:sha256-…) that stands in a result: exact bytes, page by page. Bytes that are no text come in base64; a picture is shown if neither offset nor limit is given. A ref may also be passed to any tool in the place of the content.",
		fmt.Sprintf(`"ref":{"type":"string"},"offset":{"type":"integer","minimum":0,"description":"first byte, from 0"},"limit":{"type":"integer","minimum":1,"description":"bytes, up to %d; default about %d"},"grep":{"type":"string","description":"shows the lines that match this regular expression (RE2), with their offsets"},"json_path":{"type":"string","description":"picks a part of JSON: $.items[0].name, $.items[*].id, $.items[10:20]"}`, p.mostRead(), p.options.Limit),
		`"ref"`, true)
}

func (p *Proxy) findTool(l *listing, n names) []byte {
	about := fmt.Sprintf("Finds tools of %s by words, and returns their descriptions and schemas for %s. The tools are:\n", cut(p.options.Name, 80), n.call)
	return object(n.find, about+l.index.List(toolindex.Budget-indexFrame, p.count), `"query":{"type":"string","description":"what is to be done, in a few words"}`, `"query"`, true)
}

// indexFrame is how many tokens of the budget the tools of the proxy have themselves.
const indexFrame = 500

func callTool(n names) []byte {
	return object(n.call, "Calls a tool that "+n.find+" found.",
		`"tool":{"type":"string"},"arguments":{"type":"object","description":"as its schema says"}`, `"tool","arguments"`, false)
}
