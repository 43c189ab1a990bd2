// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	_ "embed"
	"encoding/json"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	client "github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/internal/phrase"
)

// Hosts that show MCP Apps get a page with the results of tools for artifacts: the viewer
// for content, and its view of changes. The page is one file without a network, and asks
// for what it shows by a tool that is for apps alone (show.go). Other hosts get nothing of
// it.
const (
	viewerURI  = "ui://artel/artifact"
	changesURI = "ui://artel/diff"
)

// The views of the page.
const (
	viewContent = "content"
	viewChanges = "changes"
)

//go:embed view/view.html
var viewPage string

//go:embed view/view.css
var viewStyle string

//go:embed view/view.js
var viewScript string

// pageOf returns the page of the results of a tool; "": none.
func pageOf(tool string) string {
	switch tool {
	case "create_artifact", "rewrite_artifact", "put_artifact", "restore_artifact", "read_artifact", "get_artifact":
		return viewerURI
	case "update_artifact", "diff_artifact":
		return changesURI
	}
	return ""
}

// addApps registers the page under both addresses. resources/list leaves them out: hosts
// find them in the metadata of tools.
func (s *server) addApps() {
	for uri, view := range map[string]string{viewerURI: viewContent, changesURI: viewChanges} {
		s.mcp.AddResource(&mcp.Resource{URI: uri, Name: view, Title: "Artel", MIMEType: client.AppMediaType}, func(context.Context, *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
			return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{{
				URI: uri, MIMEType: client.AppMediaType, Text: pageWith(view),
				Meta: mcp.Meta{"ui": map[string]any{"prefersBorder": true, "permissions": map[string]any{"clipboardWrite": map[string]any{}}}},
			}}}, nil
		})
	}
	s.mcp.AddTool(&mcp.Tool{
		Name: showTool, Title: "Show an artifact", Description: "Renders an artifact or its changes for the page that shows them.", InputSchema: json.RawMessage(showSchema),
		Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true, IdempotentHint: true},
		Meta:        mcp.Meta{"ui": map[string]any{"resourceUri": viewerURI, "visibility": []string{"app"}}},
	}, s.h.show)
}

// pageWith returns the page that begins with a view.
func pageWith(view string) string {
	words := map[string]map[string]string{}
	for _, l := range phrase.Locales() {
		all := map[string]string{}
		for name, key := range map[string]phrase.Key{
			"content": phrase.AppsContent, "changes": phrase.PageChanges, "version": phrase.PageVersionSlider, "from": phrase.PageComparedWith,
			"before": phrase.AppsBefore, "copy": phrase.PageCopy, "copied": phrase.PageCopied, "open": phrase.AppsOpen, "newest": phrase.PageNewest,
			"loading": phrase.AppsLoading, "failed": phrase.AppsFailed, "nothing": phrase.AppsNothing, "cancelled": phrase.AppsCancelled,
		} {
			all[name] = l.Say(key, nil)
		}
		words[string(l)] = all
	}
	held, _ := json.Marshal(words) // escapes < and >
	return strings.NewReplacer("{{style}}", viewStyle, "{{view}}", view, "{{words}}", string(held), "{{script}}", viewScript).Replace(viewPage)
}

// showsApps reports whether a client shows MCP Apps.
func showsApps(c *mcp.ClientCapabilities) bool {
	if c == nil {
		return false
	}
	settings, _ := c.Extensions[client.AppExtension].(map[string]any)
	types, _ := settings["mimeTypes"].([]any)
	return slices.Contains(types, any(client.AppMediaType))
}

// forHost returns a list of tools as the client should see it: with pages, or without
// everything that is for them.
func forHost(c *mcp.ClientCapabilities, list *mcp.ListToolsResult) *mcp.ListToolsResult {
	out := *list
	out.Tools = nil
	shows := showsApps(c)
	for _, t := range list.Tools {
		page := pageOf(t.Name)
		switch {
		case t.Name == showTool && !shows:
			continue
		case page != "" && shows:
			with := *t
			with.Meta = mcp.Meta{"ui": map[string]any{"resourceUri": page}}
			t = &with
		}
		out.Tools = append(out.Tools, t)
	}
	return &out
}
