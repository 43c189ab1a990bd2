// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/url"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/internal/appframe"
)

// An AppFrame is the app of a call: the page that its MCP server has for it, in a frame
// that reaches nothing. static/apps.js answers its messages.
type AppFrame struct {
	mcp.App
	URL     string // of the app in the API
	Frame   string // of its page; "": there is none, and Problem says why
	Sandbox string // attribute of the frame
}

// appFrame returns the app of a result in message m; nil: it has none.
func (v view) appFrame(m artel.MessageID, res artel.ToolResult) *AppFrame {
	a, ok := mcp.AppOf(res.Metadata)
	if !ok {
		return nil
	}
	f := &AppFrame{App: a, Sandbox: appframe.Sandbox}
	f.URL = "/api/v1/conversations/" + string(v.conversation) + "/messages/" + string(m) + "/apps/" + url.PathEscape(string(res.CallID))
	if a.Page != "" {
		f.Frame = f.URL + "/page"
	}
	return f
}
