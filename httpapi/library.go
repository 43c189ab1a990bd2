// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
)

// A ServerPage names a page of what a tool server lists.
type ServerPage struct {
	Server string `path:"server" maxLength:"256" doc:"a tool server (MCP), by its name"`
	Cursor string `query:"cursor" maxLength:"4000" doc:"next_cursor of the page before"`
}

// A ResourceRequest is the body of POST /tool-servers/{server}/read.
type ResourceRequest struct {
	URI string `json:"uri" minLength:"1" maxLength:"4000" doc:"the address of a resource; of a template, with its variables filled in" example:"memo://1"`
}

// A PromptRequest is the body of POST /tool-servers/{server}/prompt.
type PromptRequest struct {
	Name      string            `json:"name" minLength:"1" maxLength:"500" example:"review"`
	Arguments map[string]string `json:"arguments,omitempty" maxProperties:"50" doc:"by the names of the prompt's arguments"`
}

// A ResourceAttachment is the body of POST /conversations/{cid}/resources.
type ResourceAttachment struct {
	Server string `json:"server" minLength:"1" maxLength:"256" example:"notes"`
	URI    string `json:"uri" minLength:"1" maxLength:"4000" example:"memo://1"`
}

// library registers the operations on resources and prompts of tool servers.
func (f *server) library() {
	l := f.app.Library
	register(f, f.op(http.MethodGet, "/tool-servers", "list-tool-server-offers", "List the tool servers (MCP) that have resources or prompts for you", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[mcp.ServerOffer]], error) {
			return answer(listOf(l.Offers(ctx), ""), nil)
		})
	register(f, f.op(http.MethodGet, "/tool-servers/{server}/resources", "list-server-resources", "List the resources of a tool server, a page at a time", http.StatusOK),
		func(ctx context.Context, in *ServerPage) (*body[List[mcp.Resource]], error) {
			found, next, err := l.Resources(ctx, in.Server, in.Cursor)
			return answer(listOf(found, next), err)
		})
	register(f, f.op(http.MethodGet, "/tool-servers/{server}/templates", "list-server-templates", "List the templates of addresses of a tool server's resources (RFC 6570)", http.StatusOK),
		func(ctx context.Context, in *ServerPage) (*body[List[mcp.Resource]], error) {
			found, next, err := l.Templates(ctx, in.Server, in.Cursor)
			return answer(listOf(found, next), err)
		})
	register(f, f.op(http.MethodGet, "/tool-servers/{server}/prompts", "list-server-prompts", "List the prompts of a tool server with their arguments", http.StatusOK),
		func(ctx context.Context, in *ServerPage) (*body[List[mcp.Prompt]], error) {
			found, next, err := l.Prompts(ctx, in.Server, in.Cursor)
			return answer(listOf(found, next), err)
		})
	register(f, f.op(http.MethodPost, "/tool-servers/{server}/read", "read-server-resource", "Read a resource of a tool server; bytes are in base64", http.StatusOK),
		func(ctx context.Context, in *struct {
			Server string `path:"server" maxLength:"256"`
			Body   ResourceRequest
		},
		) (*body[List[mcp.Content]], error) {
			found, err := l.Read(ctx, in.Server, in.Body.URI)
			return answer(listOf(found, ""), err)
		})
	register(f, f.op(http.MethodPost, "/tool-servers/{server}/prompt", "get-server-prompt", "Get the messages that a tool server makes of a prompt and arguments", http.StatusOK),
		func(ctx context.Context, in *struct {
			Server string `path:"server" maxLength:"256"`
			Body   PromptRequest
		},
		) (*body[List[mcp.Content]], error) {
			found, err := l.Prompt(ctx, in.Server, in.Body.Name, in.Body.Arguments)
			return answer(listOf(found, ""), err)
		})
	register(f, f.op(http.MethodPost, "/conversations/{cid}/resources", "attach-resource", "Read a resource of a tool server into artifacts, to attach to a message; their titles end with its address", http.StatusCreated),
		func(ctx context.Context, in *struct {
			ConversationPath
			Body ResourceAttachment
		},
		) (*body[List[artel.Artifact]], error) {
			c, err := in.id()
			if err == nil {
				_, err = f.app.Conversations.Find(ctx, c)
			}
			if err != nil {
				return nil, err
			}
			staged, err := l.Stage(ctx, in.Body.Server, in.Body.URI)
			if err != nil {
				return nil, err
			}
			all, err := f.app.Artifacts.Add(ctx, c, staged)
			return answer(listOf(all, ""), err)
		})
}

// ToolServers lists the tool servers that have resources or prompts.
func ToolServers(ctx context.Context, c *Client) (out List[mcp.ServerOffer], err error) {
	return out, c.json(ctx, http.MethodGet, "/tool-servers", nil, &out)
}

func serverPath(server, what, cursor string) string {
	path := "/tool-servers/" + url.PathEscape(server) + "/" + what
	if cursor != "" {
		path += "?cursor=" + url.QueryEscape(cursor)
	}
	return path
}

// ServerResources lists a page of the resources of a tool server, or of the templates.
func ServerResources(ctx context.Context, c *Client, server, cursor string, templates bool) (out List[mcp.Resource], err error) {
	what := "resources"
	if templates {
		what = "templates"
	}
	return out, c.json(ctx, http.MethodGet, serverPath(server, what, cursor), nil, &out)
}

// ServerPrompts lists a page of the prompts of a tool server.
func ServerPrompts(ctx context.Context, c *Client, server, cursor string) (out List[mcp.Prompt], err error) {
	return out, c.json(ctx, http.MethodGet, serverPath(server, "prompts", cursor), nil, &out)
}

// ReadServerResource reads a resource of a tool server.
func ReadServerResource(ctx context.Context, c *Client, server, uri string) (out List[mcp.Content], err error) {
	return out, c.json(ctx, http.MethodPost, serverPath(server, "read", ""), ResourceRequest{uri}, &out)
}

// ServerPrompt fills in the messages of a prompt of a tool server.
func ServerPrompt(ctx context.Context, c *Client, server string, p PromptRequest) (out List[mcp.Content], err error) {
	return out, c.json(ctx, http.MethodPost, serverPath(server, "prompt", ""), p, &out)
}

// AttachResource reads a resource of a tool server into artifacts of a conversation.
func AttachResource(ctx context.Context, c *Client, id artel.ConversationID, a ResourceAttachment) (out List[artel.Artifact], err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+string(id)+"/resources", a, &out)
}
