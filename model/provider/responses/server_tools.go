// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/model/provider"
)

// A clientTool is a tool that the client runs. Its spec has a name that is unique
// among all tools of the request, whatever their namespaces.
type clientTool struct {
	spec      model.ToolSpec
	kind      string // function, custom, or a key of definedTools
	namespace string
	name      string // in the namespace
}

// definedTools are the tools that the API defines and the client runs, with the
// arguments that their calls have. Source: the guides "Shell", "Local shell", "Apply
// patch", "Computer use" and "Tool search" of the OpenAI documentation.
var definedTools = map[string]model.ToolSpec{
	"local_shell": {
		Description: "Runs a command on the user's machine and returns its output.",
		Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"array","items":{"type":"string"},"description":"The program and its arguments, such as [\"bash\",\"-lc\",\"ls\"]."},` +
			`"working_directory":{"type":"string"},"timeout_ms":{"type":"integer"},"env":{"type":"object","additionalProperties":{"type":"string"}},"user":{"type":"string"}},"required":["command"],"additionalProperties":false}`),
	},
	"shell": {
		Description: "Runs commands in a shell and returns the output and the exit code of each.",
		Schema: json.RawMessage(`{"type":"object","properties":{"commands":{"type":"array","items":{"type":"string"},"description":"Commands of the shell; they may run at the same time."},` +
			`"timeout_ms":{"type":"integer"},"max_output_length":{"type":"integer","description":"Characters of the output to return at most."}},"required":["commands"],"additionalProperties":false}`),
	},
	"apply_patch": {
		Description: "Creates, changes or deletes one file. The diff is in the V4A format: lines that begin with a space are context, with - removed and with + added; @@ begins a section.",
		Schema: json.RawMessage(`{"type":"object","properties":{"type":{"type":"string","enum":["create_file","update_file","delete_file"]},"path":{"type":"string"},` +
			`"diff":{"type":"string","description":"Not for delete_file. For create_file every line begins with +."}},"required":["type","path"],"additionalProperties":false}`),
	},
	"computer": {
		Description: aboutComputer,
		Schema:      json.RawMessage(`{"type":"object","properties":{"actions":{"type":"array","items":` + actionSchema + `,"description":"Done one after the other; the result is a screenshot."}},"required":["actions"]}`),
	},
	"computer_use_preview": {Description: aboutComputer, Schema: json.RawMessage(actionSchema)},
	"tool_search": {
		Description: "Finds tools by a query. The tools that it finds can be called afterwards.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"query":{"type":"string"}},"required":["query"]}`),
	},
}

const (
	aboutComputer = "Uses the mouse and the keyboard of a computer and looks at its screen. Coordinates are pixels from the upper left corner."
	actionSchema  = `{"type":"object","properties":{"type":{"type":"string","enum":["screenshot","click","double_click","scroll","type","wait","keypress","drag","move"]},` +
		`"x":{"type":"integer"},"y":{"type":"integer"},"button":{"type":"string","enum":["left","right","wheel","back","forward"]},"scroll_x":{"type":"integer"},"scroll_y":{"type":"integer"},` +
		`"text":{"type":"string"},"keys":{"type":"array","items":{"type":"string"}},"path":{"type":"array","items":{"type":"object","properties":{"x":{"type":"integer"},"y":{"type":"integer"}}}}},"required":["type"]}`
)

// defaultNamespace holds the tools that have no other; models know them by their
// names alone.
const defaultNamespace = "functions"

// A toolbox holds the tools of a request.
type toolbox struct {
	tools   []clientTool
	dropped []model.Drop
}

// toolbox returns the tools of the request, of its items of type additional_tools,
// and of the results of tool searches. A tool that is declared again replaces the
// earlier one.
func (r *Request) toolbox() *toolbox {
	b := &toolbox{}
	b.add(r.Tools, "")
	for i := range r.Input.Items {
		switch item := &r.Input.Items[i]; item.Kind() {
		case "additional_tools", "tool_search_output":
			b.add(item.Tools, "")
		}
	}
	return b
}

func (b *toolbox) add(tools []Tool, namespace string) {
	for _, t := range tools {
		at := clientTool{kind: t.Type, namespace: namespace, name: t.Name}
		defined, isDefined := definedTools[t.Type]
		switch {
		case t.Type == "namespace":
			b.add(describeNamespace(t), t.Name)
			continue
		case t.Type == "function":
			at.spec = model.ToolSpec{Description: t.Description, Schema: t.Parameters}
		case t.Type == "custom":
			custom := provider.CustomTool{Description: t.Description}
			if f := t.Format; f != nil {
				custom.Syntax, custom.Definition = f.Syntax, f.Definition
			}
			at.spec = custom.Spec()
		case isDefined && t.ofClient():
			at.name, at.spec = t.Type, defined
			if t.Description != "" {
				at.spec.Description = t.Description
			}
			if len(t.Parameters) > 0 {
				at.spec.Schema = t.Parameters
			}
			if t.Width > 0 && t.Height > 0 {
				at.spec.Description += fmt.Sprintf(" The screen has %d × %d pixels.", t.Width, t.Height)
			}
		default:
			b.dropped = append(b.dropped, model.Drop{Field: "tools." + artel.Shorten(t.Type, 100), Reason: model.NotTranslated})
			continue
		}
		b.put(at)
	}
}

// describeNamespace returns the tools of a namespace; the description of the first
// one also says what the namespace is for.
func describeNamespace(n Tool) []Tool {
	if n.Description == "" || len(n.Tools) == 0 {
		return n.Tools
	}
	out := slices.Clone(n.Tools)
	out[0].Description = strings.TrimSpace(out[0].Description + "\n\nAbout all tools whose names begin with " + n.Name + ": " + n.Description)
	return out
}

// ofClient reports whether the client runs a tool that the API defines: it says so,
// or where the commands run.
func (t *Tool) ofClient() bool {
	switch t.Type {
	case "tool_search":
		return t.Execution == "client"
	case "shell":
		return t.Environment == nil || t.Environment.Type == "local"
	}
	return true
}

func (b *toolbox) put(t clientTool) {
	if at := slices.IndexFunc(b.tools, t.same); at >= 0 {
		t.spec.Name = b.tools[at].spec.Name
		b.tools[at] = t
		return
	}
	name := flatName(t.namespace, t.name)
	t.spec.Name = name
	for n := 2; b.named(t.spec.Name) != nil; n++ {
		t.spec.Name = name + "_" + strconv.Itoa(n)
	}
	b.tools = append(b.tools, t)
}

// same reports whether o is declared under the same name.
func (t *clientTool) same(o clientTool) bool {
	return t.name == o.name && t.namespace == o.namespace && (t.kind == o.kind || !t.defined() && !o.defined())
}

// callType is the type of the items of calls of a defined tool.
func (t *clientTool) callType() string { return strings.TrimSuffix(t.kind, "_use_preview") + "_call" }

func (t *clientTool) defined() bool { return definedTools[t.kind].Schema != nil }

// flatName returns the name of a tool of a namespace for dialects without them.
func flatName(namespace, name string) string {
	if namespace == "" || namespace == defaultNamespace {
		return name
	}
	return namespace + "__" + name
}

// named returns the tool of a spec; nil: there is none.
func (b *toolbox) named(flat string) *clientTool {
	for i := range b.tools {
		if b.tools[i].spec.Name == flat {
			return &b.tools[i]
		}
	}
	return nil
}

// flat returns the name under which other dialects know a tool. kind is empty for
// functions and custom tools.
func (b *toolbox) flat(kind, namespace, name string) string {
	for i := range b.tools {
		t := &b.tools[i]
		switch {
		case kind != "":
			if t.kind == kind || t.defined() && t.callType() == kind+"_call" {
				return t.spec.Name
			}
		case t.name == name && t.namespace == namespace && !t.defined():
			return t.spec.Name
		}
	}
	if kind != "" {
		return kind
	}
	return flatName(namespace, name)
}

// specs returns the tools for a neutral request.
func (b *toolbox) specs() []model.ToolSpec {
	var out []model.ToolSpec
	for i := range b.tools {
		out = append(out, b.tools[i].spec)
	}
	return out
}

// choice returns the choice of tools with their flat names, and the tools that
// remain allowed. A choice of a tool that was dropped is dropped too.
func (b *toolbox) choice(r *Request) (model.ToolChoice, []model.ToolSpec) {
	if r.ToolChoice == nil {
		return (*provider.OpenAIChoice)(nil).Neutral(r.ParallelToolCalls, b.specs())
	}
	c := r.ToolChoice.OpenAIChoice
	c.Allowed = nil
	for _, t := range r.ToolChoice.Tools {
		c.Allowed = append(c.Allowed, b.allowed(t)...)
	}
	switch {
	case c.Word != "" || c.Type == "allowed_tools":
	case c.Type == "function" || c.Type == "custom":
		c.Name = b.flat("", r.ToolChoice.Namespace, c.Name)
	case definedTools[c.Type].Schema != nil && b.named(b.flat(c.Type, "", "")) != nil:
		c.Name, c.Type = b.flat(c.Type, "", ""), "function"
	}
	out, specs := c.Neutral(r.ParallelToolCalls, b.specs())
	unknown := c.Word == "" && c.Type != "allowed_tools" && out.Mode == model.ChooseAuto
	if unknown || out.Mode == model.ChooseAny && len(specs) == 0 && len(b.dropped) > 0 {
		out.Mode = model.ChooseAuto
		b.dropped = append(b.dropped, model.Drop{Field: "tool_choice", Reason: model.NotTranslated})
	}
	return out, specs
}

// allowed returns the flat names of the tools that an entry of allowed_tools means.
func (b *toolbox) allowed(t Tool) []string {
	var out []string
	for i := range b.tools {
		o := &b.tools[i]
		switch {
		case t.Type == "namespace" && o.namespace == t.Name,
			o.defined() && o.kind == t.Type,
			!o.defined() && o.name == t.Name && o.namespace == t.Namespace:
			out = append(out, o.spec.Name)
		}
	}
	return out
}

// found tells a model which tools a search has found.
func (b *toolbox) found(i *Item) string {
	var names []string
	var walk func(tools []Tool, namespace string)
	walk = func(tools []Tool, namespace string) {
		for _, t := range tools {
			if t.Type == "namespace" {
				walk(t.Tools, t.Name)
				continue
			}
			names = append(names, b.flat("", namespace, t.Name))
		}
	}
	walk(i.Tools, "")
	if len(names) == 0 {
		return "No tool was found."
	}
	return "These tools were found and can be called now: " + strings.Join(names, ", ") + "."
}

// call returns the item of a call of a tool without its arguments, and which of its
// fields has them as text; no field: [wholeCall] makes the item.
func (b *toolbox) call(flat string) (item object, prefix, field string, t *clientTool) {
	t = b.named(flat)
	if t == nil {
		t = &clientTool{kind: "function", name: flat}
	}
	item = object{"name": t.name}
	if t.namespace != "" {
		item["namespace"] = t.namespace
	}
	switch t.kind {
	case "function":
		item["type"] = "function_call"
		return item, "fc", "arguments", t
	case "custom":
		item["type"] = "custom_tool_call"
		return item, "ctc", "input", t
	}
	prefix = map[string]string{"local_shell": "lsh", "shell": "sh", "apply_patch": "apc", "tool_search": "tsc"}[t.kind]
	return object{"type": t.callType()}, cmp.Or(prefix, "cu"), "", t
}

// wholeCall adds the arguments of a call of a tool that the API defines.
func wholeCall(item object, kind string, arguments json.RawMessage) {
	arguments = json.RawMessage(provider.SentArguments(arguments))
	switch kind {
	case "local_shell":
		action := object{"env": object{}}
		_ = json.Unmarshal(arguments, &action) // it is an object
		action["type"] = "exec"
		item["action"] = action
	case "shell":
		item["action"] = arguments
	case "computer_use_preview":
		item["action"], item["pending_safety_checks"] = arguments, []any{}
	case "computer":
		var batch struct{ Actions json.RawMessage }
		_ = json.Unmarshal(arguments, &batch) // it is an object
		if batch.Actions == nil {
			batch.Actions = json.RawMessage("[" + string(arguments) + "]")
		}
		item["actions"], item["pending_safety_checks"] = batch.Actions, []any{}
	case "apply_patch":
		item["operation"] = arguments
	case "tool_search":
		item["execution"], item["arguments"] = "client", arguments
	}
}
