// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/media"
)

// The extension MCP Apps: a tool names a page (ui://…), which shows the results of its
// calls, and talks to the page around it by messages.
const (
	// AppExtension is its name among the capabilities of clients.
	AppExtension = "io.modelcontextprotocol/ui"
	// AppMediaType is the type of the pages of apps.
	AppMediaType = "text/html;profile=mcp-app"
	// AppKey is the key of an [App] in the metadata of a result.
	AppKey = "app"

	appScheme = "ui://"
)

// Bounds of apps.
const (
	maxAppPage   = 2 << 20 // bytes of a page
	maxAppResult = 1 << 20 // bytes of a result that is kept for its page
	maxAppAnswer = 4 << 20 // bytes of an answer to a page
	maxAppWants  = 20      // addresses that a page asks for, as they are shown
)

// An App is the page of a call, as the metadata of its result have it. The digests keep
// the bytes of both.
type App struct {
	Server  string       `json:"server"`
	Tool    string       `json:"tool"` // by the server's name
	URI     string       `json:"uri"`
	Page    artel.Digest `json:"page,omitempty"`
	Result  artel.Digest `json:"result,omitempty"`  // the result as the server gave it, JSON; "": it is too long
	Wants   []string     `json:"wants,omitempty"`   // addresses that the page asks for, and does not reach
	Problem string       `json:"problem,omitempty"` // why there is no page; "": there is one
}

// AppOf returns the app in the metadata of a result.
func AppOf(metadata map[string]any) (a App, ok bool) {
	held, ok := metadata[AppKey]
	if !ok {
		return a, false
	}
	b, err := json.Marshal(held)
	return a, err == nil && json.Unmarshal(b, &a) == nil && a.Server != "" && a.Tool != ""
}

// An appTool is what a server says about a tool and apps.
type appTool struct {
	name  string // for models
	page  string // the address of its page; "": none
	app   bool   // apps may call it
	model bool   // models may call it
}

// appToolOf reads the metadata of a tool.
func appToolOf(t *sdk.Tool, name string) appTool {
	a := appTool{name: name, app: true, model: true}
	ui, _ := t.Meta["ui"].(map[string]any)
	a.page, _ = ui["resourceUri"].(string)
	if a.page == "" {
		a.page, _ = t.Meta["ui/resourceUri"].(string) // the older form
	}
	if !strings.HasPrefix(a.page, appScheme) || len(a.page) > 1000 {
		a.page = ""
	}
	if seen, ok := ui["visibility"].([]any); ok {
		a.app, a.model = slices.Contains(seen, any("app")), slices.Contains(seen, any("model"))
	}
	return a
}

// withApp adds the app of a call to its result. What keeps the page from being shown is
// said in it: the result itself is as good as without.
func (c *connection) withApp(ctx context.Context, k *inCall, t appTool, own string, raw *sdk.CallToolResult, r *tool.Result) {
	if t.page == "" || k.env.Artifacts == nil {
		return
	}
	a := App{Server: c.server.Name, Tool: own, URI: t.page}
	if err := c.loadApp(ctx, k, raw, &a); err != nil {
		a.Problem = c.hide(artel.Shorten(err.Error(), 300))
		c.log.WarnContext(ctx, "the app of a tool cannot be shown", "tool", own, "uri", artel.Shorten(t.page, 200), "err", a.Problem)
	}
	r.Metadata = maps.Clone(r.Metadata)
	if r.Metadata == nil {
		r.Metadata = map[string]any{}
	}
	r.Metadata[AppKey] = a
}

func (c *connection) loadApp(ctx context.Context, k *inCall, raw *sdk.CallToolResult, a *App) error {
	read, err := k.read(ctx, a.URI)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(read.Contents, func(r *sdk.ResourceContents) bool { return r != nil && isAppPage(r.MIMEType) })
	if at < 0 {
		return fmt.Errorf("%s has no content of the type %s", artel.Shorten(a.URI, 200), AppMediaType)
	}
	page := []byte(read.Contents[at].Text)
	if len(page) == 0 {
		page = read.Contents[at].Blob
	}
	switch {
	case len(page) == 0:
		return fmt.Errorf("%s is empty", artel.Shorten(a.URI, 200))
	case len(page) > maxAppPage:
		return fmt.Errorf("its page has %s, and at most %s are shown", phrase.Size(int64(len(page))), phrase.Size(maxAppPage))
	}
	a.Wants = wantsOf(read.Contents[at].Meta)
	staged, err := k.env.Artifacts.Uploads.Stage(ctx, strings.NewReader(c.hide(string(page))), media.Hint{DeclaredType: "text/html"})
	if err != nil {
		return err
	}
	a.Page = staged.Digest
	result, err := c.appJSON(raw)
	if err != nil || len(result) > maxAppResult {
		return err // the app gets the arguments, and no result
	}
	if staged, err = k.env.Artifacts.Uploads.Stage(ctx, bytes.NewReader(result), media.Hint{DeclaredType: "application/json"}); err == nil {
		a.Result = staged.Digest
	}
	return err
}

func isAppPage(mediaType string) bool {
	t, params, err := mime.ParseMediaType(mediaType)
	return err == nil && t == "text/html" && params["profile"] == "mcp-app"
}

// wantsOf returns the addresses that the metadata of a page ask for.
func wantsOf(meta sdk.Meta) (all []string) {
	ui, _ := meta["ui"].(map[string]any)
	csp, _ := ui["csp"].(map[string]any)
	for _, kind := range slices.Sorted(maps.Keys(csp)) {
		list, _ := csp[kind].([]any)
		for _, one := range list {
			address, ok := one.(string)
			if address = artel.Shorten(artel.Visible(address), 100); ok && !slices.Contains(all, address) && len(all) < maxAppWants {
				all = append(all, address)
			}
		}
	}
	return all
}

// appJSON encodes what an app gets, without the secrets of the server.
func (c *connection) appJSON(v any) (json.RawMessage, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var plain any
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&plain); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	err = enc.Encode(c.hidden(plain))
	return bytes.TrimSpace(out.Bytes()), err
}

// hidden hides secrets in every text of a JSON value.
func (c *connection) hidden(v any) any {
	switch v := v.(type) {
	case string:
		return c.hide(v)
	case []any:
		for i := range v {
			v[i] = c.hidden(v[i])
		}
	case map[string]any:
		for k, held := range v {
			v[k] = c.hidden(held)
		}
	}
	return v
}

// Apps answer the requests of the pages of apps: each reaches the server of its page
// alone, with the account of the user.
type Apps []*Pool

// connection returns the server with a name.
func (as Apps) connection(server string) (*connection, error) {
	for _, p := range as {
		for _, c := range p.all() {
			if c.server.Name == server {
				return c, nil
			}
		}
	}
	return nil, artel.Errorf(artel.NotFound, "mcp.Apps", artel.Shorten(server, 80), "the MCP server %s was removed; its app cannot ask it any more", artel.Shorten(server, 80))
}

// Tool returns the name for models, and so for permissions, of a tool that an app may
// call. It is of kind NotFound if the server has none of this name, or not for apps.
func (as Apps) Tool(ctx context.Context, owner artel.Owner, server, own string) (string, error) {
	c, err := as.connection(server)
	if err != nil {
		return "", err
	}
	if c.users != nil {
		if c, err = c.users.open(ctx, owner); err != nil {
			return "", err
		}
	}
	c.mu.Lock()
	t, ok := c.apps[own]
	c.mu.Unlock()
	if !ok || !t.app {
		return "", artel.Errorf(artel.NotFound, "mcp.Apps", artel.Shorten(own, 80), "the MCP server %s has no tool %s for apps", server, artel.Shorten(own, 80))
	}
	return t.name, nil
}

// Call calls a tool for an app, after [Apps.Tool] and what permissions say, and returns
// the server's result. Questions that the server asks meanwhile are cancelled.
func (as Apps) Call(ctx context.Context, owner artel.Owner, server, own string, args json.RawMessage) (json.RawMessage, error) {
	return as.ask(ctx, owner, server, own, func(ctx context.Context, k *inCall) (any, error) {
		return k.callTool(ctx, own, args, false)
	})
}

// Read reads a resource for an app.
func (as Apps) Read(ctx context.Context, owner artel.Owner, server, uri string) (json.RawMessage, error) {
	return as.ask(ctx, owner, server, "resources/read", func(ctx context.Context, k *inCall) (any, error) {
		return k.read(ctx, uri)
	})
}

// ask makes one request. A failure of the server is of kind Unavailable, with its words.
func (as Apps) ask(ctx context.Context, owner artel.Owner, server, what string, do func(context.Context, *inCall) (any, error)) (out json.RawMessage, err error) {
	const op = "mcp.Apps"
	c, err := as.connection(server)
	if err != nil {
		return nil, err
	}
	failed, err := c.call(ctx, &tool.Env{Owner: owner}, what, func(ctx context.Context, k *inCall) (tool.Result, error) {
		r, err := do(ctx, k)
		if err == nil {
			out, err = c.appJSON(r)
		}
		return tool.Result{}, err
	})
	switch {
	case err != nil:
		return nil, err
	case failed.IsError:
		return nil, artel.Errorf(artel.Unavailable, op, artel.Shorten(what, 80), "%w", errors.New(failed.Content))
	case len(out) > maxAppAnswer:
		return nil, artel.Errorf(artel.TooLarge, op, artel.Shorten(what, 80), "the answer has %s, and an app gets at most %s", phrase.Size(int64(len(out))), phrase.Size(maxAppAnswer))
	}
	return out, nil
}
