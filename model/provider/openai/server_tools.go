// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"slices"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// tools puts the tools of r, and the choice among them, into out. Custom tools
// become functions with their text as the only argument.
func (r *Request) tools(out *model.Request) {
	for _, t := range r.Tools {
		switch {
		case t.Type == "custom" && t.Custom != nil:
			custom := provider.CustomTool{Name: t.Custom.Name, Description: t.Custom.Description}
			if f := t.Custom.Format; f != nil && f.Grammar != nil {
				custom.Syntax, custom.Definition = f.Grammar.Syntax, f.Grammar.Definition
			}
			out.Tools = append(out.Tools, custom.Spec())
		case t.Type == "" || t.Type == "function":
			out.Tools = append(out.Tools, t.Function.spec())
		default:
			out.Dropped = append(out.Dropped, model.Drop{Field: "tools." + artel.Shorten(t.Type, 100), Reason: model.NotTranslated})
		}
	}
	out.Choice, out.Tools = (*provider.OpenAIChoice)(r.ToolChoice).Neutral(r.ParallelToolCalls, out.Tools)
	c := r.ToolChoice
	other := c != nil && c.Word == "" && !slices.Contains([]string{"function", "custom", "allowed_tools"}, c.Type)
	if other || out.Choice.Mode == model.ChooseAny && len(out.Tools) == 0 && len(out.Dropped) > 0 {
		out.Choice.Mode = model.ChooseAuto
		out.Dropped = append(out.Dropped, model.Drop{Field: "tool_choice", Reason: model.NotTranslated})
	}
	for _, f := range r.Functions {
		out.Tools = append(out.Tools, f.spec())
	}
	if len(r.Functions) == 0 {
		return
	}
	out.Choice.OneByOne = true
	switch c := r.FunctionCall; {
	case c == nil:
	case c.Word == "none":
		out.Choice.Mode = model.ChooseNone
	case c.Name != "":
		out.Choice.Mode, out.Choice.Name = model.ChooseNamed, c.Name
	}
}

func (f Function) spec() model.ToolSpec {
	return model.ToolSpec{Name: f.Name, Description: f.Description, Schema: f.Parameters, Strict: f.Strict != nil && *f.Strict}
}

// custom reports whether a name is that of a custom tool.
func (r *Request) custom(name string) bool {
	for _, t := range r.Tools {
		if t.Type == "custom" && t.Custom != nil && t.Custom.Name == name {
			return true
		}
	}
	return false
}

// legacy reports whether the request has functions instead of tools.
func (r *Request) legacy() bool { return r != nil && len(r.Functions) > 0 && len(r.Tools) == 0 }

// MaxCalls implements [provider.CallLimiter].
func (r *Request) MaxCalls() (n int, field string) {
	if r.legacy() {
		return 1, "function_call"
	}
	return 0, ""
}

// functionIDs gives the calls of functions of the deprecated form the ids that they
// lack.
type functionIDs struct {
	used map[string]bool           // by the calls of tools
	made int                       // counts ids
	open map[string][]artel.CallID // calls without a result, by the name of the function
}

func newFunctionIDs(messages []Message) *functionIDs {
	ids := &functionIDs{used: map[string]bool{}, open: map[string][]artel.CallID{}}
	for _, m := range messages {
		for _, c := range m.ToolCalls {
			ids.used[c.ID] = true
		}
	}
	return ids
}

func (ids *functionIDs) next() artel.CallID {
	for {
		ids.made++
		if id := "call_" + strconv.Itoa(ids.made); !ids.used[id] {
			return artel.CallID(id)
		}
	}
}

// call returns the id of the next call of a function.
func (ids *functionIDs) call(name string) artel.CallID {
	id := ids.next()
	ids.open[name] = append(ids.open[name], id)
	return id
}

// result returns the id of the oldest call of a function without a result.
func (ids *functionIDs) result(name string) artel.CallID {
	if open := ids.open[name]; len(open) > 0 {
		ids.open[name] = open[1:]
		return open[0]
	}
	return ids.next()
}

// neutralCall returns a call of the history.
func neutralCall(c ToolCall) artel.ToolCall {
	out := artel.ToolCall{
		ID: artel.CallID(c.ID), Name: c.Function.Name, Arguments: provider.ReceivedArguments(string(c.Function.Arguments)), Opaque: c.ExtraContent,
	}
	if c.Custom != nil {
		out.Name, out.Arguments = c.Custom.Name, provider.CustomArguments(c.Custom.Input)
	}
	return out
}
