// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/gatewaylog"
)

// logged is the name of the server of this package in the log.
const logged = "artel"

// A record collects what the log says about one call, in the goroutine that answers it. All
// methods of nil do nothing.
type record struct{ entry gatewaylog.GatewayEntry }

type recordKey struct{}

func recordOf(ctx context.Context) *record {
	r, _ := ctx.Value(recordKey{}).(*record)
	return r
}

// recording is the middleware that logs calls of tools, and what is read of resources.
func (h *Handler) recording(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		e := gatewaylog.GatewayEntry{Time: time.Now(), Inbound: gatewaylog.MCP, Endpoint: method, Status: http.StatusOK, MCP: &gatewaylog.MCPCall{Server: logged}}
		var client *mcp.Implementation
		switch r := r.(type) {
		case *mcp.CallToolRequest:
			e.MCP.Tool, client = r.Params.Name, r.ClientInfo()
		case *mcp.ReadResourceRequest:
			e.MCP.Tool, client = r.Params.URI, r.ClientInfo()
			if ref, err := refOf(r.Params.URI); err == nil {
				e.MCP.Conversation = ref.Conversation
			}
		default:
			return next(ctx, method, r)
		}
		if client != nil {
			e.MCP.Host, e.MCP.HostVersion = client.Name, client.Version
		}
		rec := &record{e}
		res, err := next(context.WithValue(ctx, recordKey{}, rec), method, r)
		rec.entry.Millis = float64(time.Since(e.Time).Microseconds()) / 1000
		rec.ended(ctx, res, err)
		h.app.GatewayLog.Add(ctx, rec.entry)
		return res, err
	}
}

// ended notes what the client gets.
func (r *record) ended(ctx context.Context, res mcp.Result, err error) {
	e := &r.entry
	switch {
	case ctx.Err() != nil:
		e.Status, e.Error = gatewaylog.StatusLeft, "the client cancelled the call, or left"
	case err != nil:
		e.Status, e.Error = http.StatusUnprocessableEntity, err.Error()
		if wire, ok := errors.AsType[*jsonrpc.Error](err); ok && wire.Code == jsonrpc.CodeInternalError {
			e.Status = http.StatusBadGateway
		}
	}
	switch res := res.(type) {
	case *mcp.CallToolResult:
		if res == nil {
			break
		}
		for _, c := range res.Content {
			e.BytesOut += sizeOf(c)
		}
		if res.StructuredContent != nil {
			e.BytesOut += sizeOf(res.StructuredContent)
		}
		if res.IsError && len(res.Content) > 0 && e.Error == "" {
			text, _ := res.Content[0].(*mcp.TextContent)
			e.Status, e.Error = http.StatusUnprocessableEntity, "the tool reported an error"
			if text != nil {
				e.Error = text.Text
			}
		}
	case *mcp.ReadResourceResult:
		if res == nil {
			break
		}
		for _, c := range res.Contents {
			e.BytesOut += int64(len(c.Text)) + int64(base64.StdEncoding.EncodedLen(len(c.Blob)))
		}
	}
	e.BytesIn = max(e.BytesIn, e.BytesOut)
}

// sizeOf returns how many bytes a part of a result has.
func sizeOf(part any) int64 {
	switch c := part.(type) {
	case *mcp.TextContent:
		return int64(len(c.Text))
	case *mcp.ImageContent:
		return int64(base64.StdEncoding.EncodedLen(len(c.Data)))
	}
	b, _ := json.Marshal(part) // it is sent as well
	return int64(len(b))
}

// did notes what was done to a part of the result.
func (r *record) did(what string, ref artel.Ref, mediaType string, size int64) {
	if r != nil {
		r.entry.Changes = append(r.entry.Changes, gatewaylog.GatewayChange{Did: what, Ref: ref, MediaType: mediaType, Size: size})
	}
}

// returned notes what a tool has returned, and what of it stays out of the answer.
func (r *record) returned(c artel.ConversationID, name string, res tool.Result) {
	if r == nil {
		return
	}
	r.entry.MCP.Conversation = c
	r.entry.BytesIn = int64(len(res.Content))
	if s, ok := artifactOf(res); ok && !res.IsError {
		if s.Ref.Conversation == "" {
			s.Ref.Conversation = c
		}
		kept, _ := res.Metadata["saved_to_file"].(bool)
		part := (name == "read_artifact" || name == "get_artifact") && len(res.Parts) == 0 && s.Size > r.entry.BytesIn
		switch {
		case kept:
			r.did("offloaded", s.Ref, s.MediaType, s.Size)
		case part:
			r.did("excerpted", s.Ref, s.MediaType, s.Size)
		}
		if kept || part {
			r.entry.BytesIn = s.Size
		}
	}
	for _, p := range res.Parts {
		if m, ok := p.(artel.Media); ok && name != "get_artifact" {
			r.did("unshown", m.Ref, m.MediaType, m.Size)
		}
	}
}
