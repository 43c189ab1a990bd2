// SPDX-License-Identifier: Apache-2.0

package mcpserver

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/model"
)

// A server is a server of the SDK. Each session has its own, and so has each stream of
// notifications, because the SDK notifies all clients of a server.
type server struct {
	h   *Handler
	mcp *mcp.Server

	mu         sync.Mutex
	tools      map[string]model.ToolSpec // registered
	subscribed map[string]bool           // addresses of resources
	stream     *stream                   // the open one; nil: none
}

// instructions are for the models of clients.
const instructions = `Artel keeps documents and files as artifacts with versions. Results name artifacts by id and by artel:// address; long ones are shown in part: read_artifact reads them page by page, grep_artifacts searches them, get_artifact shows pictures. Nothing that was written is lost: list_versions, diff_artifact and restore_artifact work on earlier versions. When you write a document that others may write too, give if_version, the version that you have read.`

func (h *Handler) newServer(session string) *server {
	s := &server{h: h, tools: map[string]model.ToolSpec{}, subscribed: map[string]bool{}}
	s.mcp = mcp.NewServer(&mcp.Implementation{Name: "artel", Title: "Artel", Version: h.options.Version}, &mcp.ServerOptions{
		Instructions: instructions,
		Logger:       slog.New(slog.DiscardHandler),
		PageSize:     pageSize,
		Capabilities: &mcp.ServerCapabilities{
			Tools: &mcp.ToolCapabilities{ListChanged: true}, Resources: &mcp.ResourceCapabilities{ListChanged: true, Subscribe: true},
			Prompts: &mcp.PromptCapabilities{}, Completions: &mcp.CompletionCapabilities{},
		},
		CompletionHandler:  h.complete,
		SubscribeHandler:   s.subscribe,
		UnsubscribeHandler: s.unsubscribe,
		GetSessionID:       func() string { return session },
		SetCacheable:       cached,
	})
	s.mcp.AddReceivingMiddleware(h.acting, h.recording, s.listing)
	s.addResources()
	s.addPrompts()
	s.addApps()
	s.refresh(context.Background())
	return s
}

// refresh registers the tools that are available now.
func (s *server) refresh(ctx context.Context) {
	specs := s.h.app.Tools.List(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range s.tools {
		if !slices.ContainsFunc(specs, func(t model.ToolSpec) bool { return t.Name == name }) {
			s.mcp.RemoveTools(name)
			delete(s.tools, name)
		}
	}
	for _, t := range specs {
		if old, ok := s.tools[t.Name]; ok && old.Description == t.Description && string(old.Schema) == string(t.Schema) {
			continue
		}
		s.mcp.AddTool(s.h.describe(t), s.h.callTool)
		s.tools[t.Name] = t
	}
}

// listing answers the lists that depend on who asks, and brings that of the tools up to
// date.
func (s *server) listing(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, r mcp.Request) (mcp.Result, error) {
		switch method {
		case "resources/list":
			return s.h.listResources(ctx, r.(*mcp.ListResourcesRequest))
		case "tools/list", "tools/call":
			s.refresh(ctx)
		}
		result, err := next(ctx, method, r)
		if list, ok := result.(*mcp.ListToolsResult); ok && list != nil && err == nil {
			result = forHost(r.(*mcp.ListToolsRequest).ClientCapabilities(), list)
		}
		return result, err
	}
}

// How long clients may keep what they read.
const (
	ttlVersion = 24 * 60 * 60 * 1000 // milliseconds; a version never changes
	ttlLists   = 60 * 1000           // of tools and prompts
)

// cached says how long a client may keep a result. Everything belongs to its user.
func cached(_ context.Context, r mcp.Request, c *mcp.Cacheable) {
	c.CacheScope = "private"
	switch r := r.(type) {
	case *mcp.ListToolsRequest, *mcp.ListPromptsRequest, *mcp.ListResourceTemplatesRequest:
		c.TTLMs = ttlLists
	case *mcp.ReadResourceRequest:
		if ref, err := refOf(r.Params.URI); err == nil && ref.Immutable() {
			c.TTLMs = ttlVersion
		}
	}
}
