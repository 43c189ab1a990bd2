// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/agent/toolindex"
	"github.com/artelhq/artel/model"
)

// The specifications of tools that come from servers are left out of requests if they
// have more than [toolindex.Budget] tokens. Two tools are in their place. A call of a
// deferred tool through them is stored, shown and permitted as one of the tool itself.

// The tools in the place of deferred ones.
const (
	FindTool = "find_tools"
	CallTool = "call_tool"
)

// A toolset is the tools that an agent may call, with the specifications for its model.
type toolset struct {
	*tool.Set
	all      *tool.Set // without those in the place of deferred ones
	specs    []model.ToolSpec
	deferral *toolindex.Deferral // nil: all specifications are in specs
}

// toolset defers tools of all if they are too many.
func (r *run) toolset(all *tool.Set) toolset {
	t := toolset{Set: all, all: all, specs: all.Specs()}
	var direct []model.ToolSpec
	var deferred []toolindex.Tool
	for _, s := range t.specs {
		if all.Of(s.Name).Deferrable {
			deferred = append(deferred, toolindex.Tool{Name: s.Name, Description: s.Description, Schema: s.Schema})
		} else {
			direct = append(direct, s)
		}
	}
	if len(deferred) == 0 || all.Has(FindTool) || all.Has(CallTool) {
		return t
	}
	d := r.deferrals.Defer(string(r.in.Service.ID)+" "+r.in.Service.Model, deferred, FindTool, CallTool, r.tokens)
	if d == nil {
		return t
	}
	own := []tool.Tool{resultOf(d, d.Find), resultOf(d, d.Call)}
	return toolset{Set: all.With(own...), all: all, specs: append(direct, specOf(d.Find), specOf(d.Call)), deferral: d}
}

// followTools gives the next model call the tools that have come since the last one, after
// those that the model knows. Deferred tools are found from then on; the list of their
// names stays as it is, for the cache of the model service.
func (r *run) followTools() {
	if r.in.Current == nil || !r.calledModel {
		return
	}
	r.in.Tools = r.in.Current()
	r.addTools()
}

// addTools gives the next model call the tools that the agent has now, after those that
// the model knows.
func (r *run) addTools() {
	next := r.toolset(tool.Follow(r.tools.all, r.toolsOf(len(r.thread.Split()))))
	if next.deferral != nil && r.tools.deferral != nil {
		next.specs = append(slices.Clone(r.tools.specs), next.beyond(r.tools.specs)...)
	}
	r.tools = next
}

// beyond returns the specifications that a request with known does not have.
func (t toolset) beyond(known []model.ToolSpec) (more []model.ToolSpec) {
	for _, s := range t.specs {
		if !slices.ContainsFunc(known, func(k model.ToolSpec) bool { return k.Name == s.Name }) {
			more = append(more, s)
		}
	}
	return more
}

// resultOf makes a tool of one of a deferral.
func resultOf(d *toolindex.Deferral, t toolindex.Tool) tool.Tool {
	return tool.Tool{
		Name: t.Name, Doc: t.Description, Schema: t.Schema, Parallel: true, Repeat: tool.RepeatAlways,
		Call: func(_ context.Context, _ *tool.Env, args json.RawMessage) (tool.Result, error) {
			text, ok := d.Result(t.Name, args)
			if !ok {
				return tool.Failed("%s", text), nil
			}
			return tool.Result{Content: text}, nil
		},
	}
}

func specOf(t toolindex.Tool) model.ToolSpec {
	return model.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.Schema}
}

// direct returns a call of [CallTool] as a call of the tool that it names. If the agent
// has no such tool, the call stays, and its result says so.
func (r *run) direct(c artel.ToolCall) artel.ToolCall {
	if r.tools.deferral == nil || c.Name != CallTool {
		return c
	}
	t, arguments, ok := r.tools.deferral.Direct(c.Arguments)
	if !ok {
		return c
	}
	// The state of a service is only valid for the call that its model has made.
	return artel.ToolCall{ID: c.ID, Name: t.Name, Arguments: arguments}
}

// tokens counts specifications in the vocabulary of the service; if it cannot be read, a
// token counts as four bytes.
func (r *run) tokens(tools []toolindex.Tool) int {
	specs := make([]model.ToolSpec, len(tools))
	size := 0
	for i, t := range tools {
		specs[i] = specOf(t)
		size += len(t.Name) + len(t.Description) + len(t.Schema)
	}
	if n, err := r.pipeline.Count(&model.Request{Service: r.in.Service, Tools: specs}); err == nil {
		return n
	}
	return size / 4
}
