// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"cmp"
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
)

// The specifications of tools that come from servers are left out of requests if they
// have more than [toolindex.Budget] tokens. Such tools are deferred: two tools stand for
// them, one with a list of their names that finds them by words, and one that calls them.
// A found specification is in the result of a call, so that the beginning of the next
// request stays the same. A call of a deferred tool is stored, shown and permitted as one
// of the tool itself.

// The tools that stand for deferred ones.
const (
	FindTool = "find_tools"
	CallTool = "call_tool"
)

//go:embed find_tools.md
var findDoc string

//go:embed call_tool.md
var callDoc string

const (
	maxFound      = 8      // tools of an answer
	maxFoundBytes = 12_000 // of their specifications
	minListTokens = 200    // what is left of the budget for the list, at least
)

type findArgs struct {
	Query string `json:"query" jsonschema:"words for what the tool should do, or names of tools"`
}

type callArgs struct {
	Tool      string          `json:"tool"`
	Arguments json.RawMessage `json:"arguments"`
}

// A toolset is the tools that an agent may call, with the specifications for its model.
type toolset struct {
	*tool.Set
	specs    []model.ToolSpec
	deferred *toolindex.Index // nil: none
}

// toolset defers tools of all if they are too many.
func (r *run) toolset(all *tool.Set) toolset {
	t := toolset{Set: all, specs: all.Specs()}
	var direct, deferred []model.ToolSpec
	size := 0
	for _, s := range t.specs {
		if all.Of(s.Name).Deferrable {
			deferred = append(deferred, s)
			size += len(s.Name) + len(s.Description) + len(s.Schema)
		} else {
			direct = append(direct, s)
		}
	}
	if size <= toolindex.Budget || all.Has(FindTool) || all.Has(CallTool) { // a token has at least one byte
		return t
	}
	sub := r.substitutes.of(r.in.Service, deferred, r.tokens)
	if sub.index == nil {
		return t
	}
	return toolset{Set: all.With(sub.tools...), specs: append(direct, specsOf(sub.tools)...), deferred: sub.index}
}

// substitutes remembers what stands for the deferred tools of the newest runs, because an
// index of hundreds of tools takes milliseconds to make.
type substitutes struct {
	mu     sync.Mutex
	newest [4]substitute
	next   int
}

// A substitute is what a request has in place of specs.
type substitute struct {
	service artel.ServiceID
	model   string
	specs   []model.ToolSpec
	index   *toolindex.Index // nil: specs are within the budget
	tools   []tool.Tool
}

func (c *substitutes) of(s model.Service, specs []model.ToolSpec, count func(...model.ToolSpec) int) substitute {
	c.mu.Lock()
	for _, x := range c.newest {
		if x.service == s.ID && x.model == s.Model && slices.EqualFunc(x.specs, specs, sameSpec) {
			c.mu.Unlock()
			return x
		}
	}
	c.mu.Unlock()
	x := substitute{service: s.ID, model: s.Model, specs: specs}
	if count(specs...) > toolindex.Budget {
		x.index = toolindex.New(indexed(specs))
		room := max(toolindex.Budget-count(specsOf(deferredTools(x.index, ""))...), minListTokens)
		x.tools = deferredTools(x.index, x.index.List(room, func(text string) int { return count(model.ToolSpec{Description: text}) }))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.newest[c.next] = x
	c.next = (c.next + 1) % len(c.newest)
	return x
}

func sameSpec(a, b model.ToolSpec) bool {
	return a.Name == b.Name && a.Description == b.Description && bytes.Equal(a.Schema, b.Schema)
}

// tokens counts specifications in the vocabulary of the service; if it cannot be read, a
// token counts as four bytes.
func (r *run) tokens(specs ...model.ToolSpec) int {
	n, err := r.pipeline.Count(&model.Request{Service: r.in.Service, Tools: specs})
	if err == nil {
		return n
	}
	n = 0
	for _, s := range specs {
		n += (len(s.Name) + len(s.Description) + len(s.Schema)) / 4
	}
	return n
}

func indexed(specs []model.ToolSpec) []toolindex.Tool {
	out := make([]toolindex.Tool, len(specs))
	for i, s := range specs {
		out[i] = toolindex.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema}
	}
	return out
}

func specsOf(tools []tool.Tool) []model.ToolSpec {
	out := make([]model.ToolSpec, len(tools))
	for i, t := range tools {
		out[i] = model.ToolSpec{Name: t.Name, Description: t.Doc, Schema: t.Schema}
	}
	return out
}

// deferredTools returns the tools that stand for those of an index.
func deferredTools(index *toolindex.Index, list string) []tool.Tool {
	find := tool.Func(FindTool, strings.TrimSpace(findDoc)+"\n"+list, func(_ context.Context, e *tool.Env, in findArgs) (tool.Result, error) {
		found := index.Find(in.Query, maxFound)
		if len(found) == 0 {
			return tool.Failed("%s", e.Locale.Say(phrase.ToolNoneFound, map[string]any{"Query": artel.Shorten(in.Query, 200)})), nil
		}
		names := make([]string, len(found))
		for i, t := range found {
			names[i] = t.Name
		}
		return tool.Result{Content: toolindex.Found(found, maxFoundBytes), Metadata: map[string]any{"tools": names}}, nil
	})
	find.Doc = strings.TrimSpace(find.Doc)
	find.Parallel, find.Repeat = true, tool.RepeatAlways
	call := tool.Tool{
		Name: CallTool, Doc: strings.TrimSpace(callDoc), Parallel: true, Repeat: tool.RepeatAlways, // it only says why nothing was called
		Schema: json.RawMessage(`{"type":"object","properties":{"tool":{"type":"string","description":"name of the tool"},"arguments":{"type":"object","description":"its arguments, by its schema"}},"required":["tool","arguments"]}`),
		Call: func(_ context.Context, e *tool.Env, args json.RawMessage) (tool.Result, error) {
			var in callArgs
			_ = json.Unmarshal(args, &in) // it matches the schema
			var near []string
			for _, t := range index.Find(in.Tool, 5) {
				near = append(near, t.Name)
			}
			return tool.Failed("%s", e.Locale.Say(phrase.ToolUnknownDeferred, map[string]any{"Name": artel.Shorten(in.Tool, tool.MaxName), "Near": strings.Join(near, ", ")})), nil
		},
	}
	return []tool.Tool{find, call}
}

// direct returns a call of [CallTool] as a call of the tool that it names. If the agent
// has no such tool, the call stays, and its result says so.
func (r *run) direct(c artel.ToolCall) artel.ToolCall {
	if r.tools.deferred == nil || c.Name != CallTool {
		return c
	}
	arguments := []byte(c.Arguments)
	var written string
	if json.Unmarshal(arguments, &written) == nil { // an object inside a string
		arguments = []byte(written)
	}
	var in callArgs
	if json.Unmarshal(arguments, &in) != nil || in.Tool == CallTool || !r.tools.Has(in.Tool) {
		return c
	}
	// The state of a service is only valid for the call that it has made.
	return artel.ToolCall{ID: c.ID, Name: in.Tool, Arguments: json.RawMessage(cmp.Or(string(in.Arguments), "{}"))}
}
