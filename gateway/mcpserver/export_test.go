// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Connect serves one client over a transport without HTTP, as the actor in ctx.
func (h *Handler) Connect(ctx context.Context, t mcp.Transport) (*mcp.ServerSession, error) {
	return h.newServer("").mcp.Connect(ctx, t, nil)
}
