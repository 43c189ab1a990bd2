// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"

	"github.com/artelhq/artel/app/entries"
)

// ToolsClient are the operations on MCP servers or on HTTP tools.
type ToolsClient struct {
	client *Client
	path   string
}

// MCPServers returns the operations on MCP servers.
func MCPServers(c *Client) ToolsClient { return ToolsClient{c, "/mcp-servers"} }

// HTTPTools returns the operations on HTTP tools.
func HTTPTools(c *Client) ToolsClient { return ToolsClient{c, "/http-tools"} }

// List lists all of them.
func (t ToolsClient) List(ctx context.Context) (out List[ToolEntryView], err error) {
	return out, t.client.json(ctx, http.MethodGet, t.path, nil, &out)
}

// Get reads one.
func (t ToolsClient) Get(ctx context.Context, id string) (out ToolEntryView, err error) {
	return out, t.client.json(ctx, http.MethodGet, t.path+"/"+url.PathEscape(id), nil, &out)
}

// Add adds one.
func (t ToolsClient) Add(ctx context.Context, e ToolEntry) (out ToolEntryView, err error) {
	return out, t.client.json(ctx, http.MethodPost, t.path, e, &out)
}

// Change replaces the fields of one.
func (t ToolsClient) Change(ctx context.Context, id string, e ToolEntry) (out ToolEntryView, err error) {
	return out, t.client.json(ctx, http.MethodPut, t.path+"/"+url.PathEscape(id), e, &out)
}

// Delete deletes one.
func (t ToolsClient) Delete(ctx context.Context, id string) error {
	return t.client.json(ctx, http.MethodDelete, t.path+"/"+url.PathEscape(id), nil, nil)
}

// CheckMCPServer tries an MCP server that need not be added.
func CheckMCPServer(ctx context.Context, c *Client, e ToolEntry) (out entries.ServerReport, err error) {
	return out, c.json(ctx, http.MethodPost, "/mcp-servers/check", e, &out)
}

// CheckHTTPTool checks an HTTP tool that need not be added, with a call if there are
// arguments.
func CheckHTTPTool(ctx context.Context, c *Client, e ToolEntry, arguments json.RawMessage) (out entries.ToolReport, err error) {
	send := maps.Clone(e)
	if arguments != nil {
		send["arguments"] = arguments
	}
	return out, c.json(ctx, http.MethodPost, "/http-tools/check", send, &out)
}
