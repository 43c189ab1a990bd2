// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/model"
)

// definedTools are the tools that the API defines and the client runs, by their types
// without the version. Source: the pages "Bash tool", "Text editor tool", "Memory
// tool" and "Computer use tool" of Anthropic's documentation.
var definedTools = map[string]model.ToolSpec{
	"bash": {
		Description: "Runs a command in a bash session that keeps its state, and returns its output.",
		Schema:      json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","description":"Required unless restart is true."},"restart":{"type":"boolean","description":"Starts the session again."}}}`),
	},
	"text_editor": {
		Description: "Views, creates and edits text files. view shows a file with line numbers, or a directory; create writes a file with file_text; str_replace replaces old_str, which must occur exactly once, by new_str; insert puts insert_text after the line insert_line.",
		Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert"]},"path":{"type":"string"},"file_text":{"type":"string"},` +
			`"old_str":{"type":"string"},"new_str":{"type":"string"},"insert_line":{"type":"integer","description":"0: at the beginning."},"insert_text":{"type":"string"},` +
			`"view_range":{"type":"array","items":{"type":"integer"},"description":"The first and the last line; -1: the end."}},"required":["command","path"]}`),
	},
	"memory": {
		Description: "Keeps files below /memories from one conversation to the next. View the directory before a task, and write down what later conversations need.",
		Schema: json.RawMessage(`{"type":"object","properties":{"command":{"type":"string","enum":["view","create","str_replace","insert","delete","rename"]},"path":{"type":"string"},` +
			`"view_range":{"type":"array","items":{"type":"integer"}},"file_text":{"type":"string"},"old_str":{"type":"string"},"new_str":{"type":"string"},"insert_line":{"type":"integer"},` +
			`"insert_text":{"type":"string"},"old_path":{"type":"string","description":"For rename."},"new_path":{"type":"string","description":"For rename."}},"required":["command"]}`),
	},
	"computer": {
		Description: "Uses the mouse and the keyboard of a computer and looks at its screen. Coordinates are pixels [x, y] from the upper left corner. Take a screenshot to see the effect of an action.",
		Schema: json.RawMessage(`{"type":"object","properties":{"action":{"type":"string","enum":["screenshot","left_click","right_click","middle_click","double_click","triple_click","left_click_drag",` +
			`"left_mouse_down","left_mouse_up","mouse_move","cursor_position","key","hold_key","type","scroll","wait","zoom"]},"coordinate":{"type":"array","items":{"type":"integer"}},` +
			`"start_coordinate":{"type":"array","items":{"type":"integer"}},"text":{"type":"string","description":"To type, or the keys to press, such as ctrl+s."},"duration":{"type":"number","description":"Seconds."},` +
			`"scroll_direction":{"type":"string","enum":["up","down","left","right"]},"scroll_amount":{"type":"integer"},"region":{"type":"array","items":{"type":"integer"},"description":"For zoom: x0, y0, x1, y1."}},"required":["action"]}`),
	},
}

var versionOfTool = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([a-z_]+)_20\d{6}$`) })

// tools puts the tools of r that the client runs, and the choice among them, into
// out. Those that the service runs are dropped, and so is a choice of one.
func (r *Request) tools(out *model.Request) {
	before := len(out.Dropped)
	for _, t := range r.Tools {
		defined := model.ToolSpec{}
		if m := versionOfTool().FindStringSubmatch(t.Type); m != nil {
			defined = definedTools[m[1]]
		}
		switch {
		case t.Type == "" || t.Type == "custom":
			out.Tools = append(out.Tools, model.ToolSpec{Name: t.Name, Description: t.Description, Schema: t.InputSchema, Strict: t.Strict != nil && *t.Strict})
		case defined.Schema != nil:
			defined.Name = t.Name
			if t.Width > 0 && t.Height > 0 {
				defined.Description += fmt.Sprintf(" The screen has %d × %d pixels.", t.Width, t.Height)
			}
			out.Tools = append(out.Tools, defined)
		default:
			out.Dropped = append(out.Dropped, model.Drop{Field: "tools." + artel.Shorten(t.Type, 100), Reason: model.NotTranslated})
		}
	}
	out.Choice = r.ToolChoice.neutral()
	mode := out.Choice.Mode
	named := slices.ContainsFunc(out.Tools, func(t model.ToolSpec) bool { return t.Name == out.Choice.Name })
	if len(out.Dropped) > before && (mode == model.ChooseNamed && !named || mode == model.ChooseAny && len(out.Tools) == 0) {
		out.Choice.Mode, out.Choice.Name = model.ChooseAuto, ""
		out.Dropped = append(out.Dropped, model.Drop{Field: "tool_choice", Reason: model.NotTranslated})
	}
}
