// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"

	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/entries"
	"github.com/artelhq/artel/model"
)

// A ToolEntry has the fields of an entry of mcp or of tools in artel.yaml, and disabled.
// The values of headers are written as texts, and read as
// {"set": true, "ends_with"?: "4f2a"}.
type ToolEntry map[string]any

// A ToolEntryView is an MCP server or an HTTP tool.
type ToolEntryView struct {
	ID       string           `json:"id" doc:"its name"`
	Entry    ToolEntry        `json:"entry" doc:"its fields; values of headers are {set, ends_with}"`
	Disabled bool             `json:"disabled,omitempty"`
	ReadOnly bool             `json:"read_only" doc:"it is of artel.yaml and is changed there"`
	Origin   string           `json:"origin" doc:"where it comes from"`
	State    tool.ServerState `json:"state,omitempty" enum:"connecting,ready,failed,per_user" doc:"of an MCP server that is on; per_user: each user connects it"`
	Tools    []ToolName       `json:"tools" doc:"that agents can have now"`
	Problem  model.Problem    `json:"problem,omitempty" doc:"why it is off"`
	Detail   string           `json:"detail,omitempty" doc:"of the problem, or why the server is not connected"`
}

// A ToolName is a tool with its description for models.
type ToolName struct {
	Name        string `json:"name"`
	Description string `json:"description"`
}

func toolEntryView(e entries.ToolEntry) ToolEntryView {
	v := ToolEntryView{e.ID, e.Fields, e.Disabled, e.ReadOnly, e.Origin, e.State, []ToolName{}, e.Problem, e.Detail}
	for _, t := range e.Tools {
		v.Tools = append(v.Tools, ToolName{t.Name, t.Description})
	}
	return v
}

// A ToolEntryPath names an MCP server or an HTTP tool.
type ToolEntryPath struct {
	ID string `path:"id" maxLength:"256"`
}

// toolEntries registers the operations on MCP servers and HTTP tools.
func (f *server) toolEntries() {
	box := f.app.Toolbox
	f.entriesAt("/mcp-servers", "mcp-server", "MCP server", "mcp", box.MCP)
	f.entriesAt("/http-tools", "http-tool", "HTTP tool", "tools", box.HTTP)
	register(f, f.op(http.MethodPost, "/mcp-servers/check", "check-mcp-server",
		"Try an MCP server that need not be added: reach it, use its headers, speak the protocol, list its tools (role admin)", http.StatusOK),
		func(ctx context.Context, in *struct{ Body ToolEntry }) (*body[entries.ServerReport], error) {
			return answer(box.CheckServer(ctx, in.Body, nil))
		})
	register(f, f.op(http.MethodPost, "/http-tools/check", "check-http-tool",
		"Check the entry of an HTTP tool that need not be added; with arguments, which stand beside its fields, make one call with them (role admin)", http.StatusOK),
		func(ctx context.Context, in *struct{ Body ToolEntry }) (*body[entries.ToolReport], error) {
			fields := maps.Clone(in.Body)
			var arguments json.RawMessage
			if given, ok := fields["arguments"]; ok && given != nil {
				var err error
				if arguments, err = json.Marshal(given); err != nil {
					return nil, err
				}
			}
			delete(fields, "arguments")
			return answer(box.CheckTool(ctx, fields, arguments, nil))
		})
}

// entriesAt registers the operations on the entries of one kind. key is where they stand
// in artel.yaml.
func (f *server) entriesAt(path, id, noun, key string, all *entries.ToolEntries) {
	register(f, f.op(http.MethodGet, path, "list-"+id+"s", "List the "+noun+"s of artel.yaml and those that were added (role admin)", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[ToolEntryView]], error) {
			found, err := all.List(ctx)
			views := make([]ToolEntryView, len(found))
			for i, e := range found {
				views[i] = toolEntryView(e)
			}
			return answer(listOf(views, ""), err)
		})
	register(f, f.op(http.MethodPost, path, "add-"+id, "Add an "+noun+" with the fields of an entry of "+key+" in artel.yaml; agents can use it at once (role admin)", http.StatusCreated),
		func(ctx context.Context, in *struct{ Body ToolEntry }) (*body[ToolEntryView], error) {
			e, err := all.Create(ctx, in.Body)
			return answer(toolEntryView(e), err)
		})
	register(f, f.op(http.MethodGet, path+"/{id}", "read-"+id, "Read an "+noun+" (role admin)", http.StatusOK),
		func(ctx context.Context, in *ToolEntryPath) (*body[ToolEntryView], error) {
			e, err := all.Get(ctx, in.ID)
			return answer(toolEntryView(e), err)
		})
	register(f, f.op(http.MethodPut, path+"/{id}", "change-"+id, "Replace the fields of an "+noun+" that was added; values of headers stay if they are sent as they were read (role admin)", http.StatusOK),
		func(ctx context.Context, in *struct {
			ToolEntryPath
			Body ToolEntry
		},
		) (*body[ToolEntryView], error) {
			e, err := all.Update(ctx, in.ID, in.Body)
			return answer(toolEntryView(e), err)
		})
	register(f, f.op(http.MethodDelete, path+"/{id}", "delete-"+id, "Delete an "+noun+" that was added (role admin)", http.StatusNoContent),
		func(ctx context.Context, in *ToolEntryPath) (*none, error) { return nil, all.Delete(ctx, in.ID) })
}
