// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/fetch"
)

// newAppBench is a bench with a server that has a tool for each page of pages, by its name,
// and tools for apps and for models alone.
func newAppBench(t *testing.T, pages map[string]*sdk.ResourceContents) *bench {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "tester", Version: "1"}, nil)
	add := func(name string, ui map[string]any) {
		s.AddTool(&sdk.Tool{Name: name, InputSchema: map[string]any{"type": "object"}, Meta: sdk.Meta{"ui": ui}}, func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			if r.Session.InitializeParams().Capabilities.Extensions[mcp.AppExtension] == nil {
				return nil, fmt.Errorf("the client does not announce apps")
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "the key is 0123456789"}}, StructuredContent: map[string]any{"deep": []string{"0123456789"}}}, nil
		})
	}
	for name, page := range pages {
		add(name, map[string]any{"resourceUri": "ui://" + name})
		s.AddResource(&sdk.Resource{URI: "ui://" + name, Name: name}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
			return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{page}}, nil
		})
	}
	add("hidden", map[string]any{"visibility": []string{"app"}})
	add("model", map[string]any{"visibility": []string{"model"}})
	add("outside", map[string]any{"resourceUri": "https://evil.example/page"})
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil))
	client := fetch.NewClient(fetch.Options{AllowPrivate: true, MaxRedirects: -1})
	t.Cleanup(func() { // after the pool has ended its session
		client.CloseIdleConnections()
		server.CloseClientConnections()
		server.Close()
	})
	return newBench(t, mcp.Server{Name: "tester", Remote: &mcp.Remote{URL: server.URL, Client: client}, Secrets: tool.Secrets{"KEY": "0123456789"}})
}

// TestApps: a result has the page of its tool and itself as they are, without secrets; a
// page that cannot be shown is explained beside the result; tools for apps are not those
// of models, and the other way round.
func TestApps(t *testing.T) {
	page := func(text string) *sdk.ResourceContents {
		return &sdk.ResourceContents{URI: "ui://x", MIMEType: "text/html; profile=mcp-app", Text: text}
	}
	well := page("<p>0123456789")
	well.Meta = sdk.Meta{"ui": map[string]any{"csp": map[string]any{"connectDomains": []string{"https://a.example"}, "resourceDomains": []string{"https://a.example", "https://b.example"}}}}
	b := newAppBench(t, map[string]*sdk.ResourceContents{
		"well": well, "long": page(strings.Repeat("x", 2<<20+1)), "empty": page(""), "plain": {URI: "ui://x", MIMEType: "text/html", Text: "<p>"},
	})
	for _, name := range []string{"well", "long", "empty", "plain", "outside", "model"} {
		r, err := b.call(t.Context(), "tester_"+name, "{}")
		if err != nil || r.IsError || !strings.Contains(r.Content, "the key is [KEY]") {
			t.Fatalf("%s: %+v %v", name, r, err)
		}
		a, ok := mcp.AppOf(r.Metadata)
		want := map[string]string{"long": "at most 2", "empty": "is empty", "plain": "no content of the type"}[name]
		switch name {
		case "outside", "model":
			if ok {
				t.Errorf("%s has the app %+v", name, a)
			}
		case "well":
			if a.Problem != "" || a.Page == "" || !slices.Equal(a.Wants, []string{"https://a.example", "https://b.example"}) {
				t.Errorf("got %+v", a)
			}
			if kept := b.blob(a.Page); kept != "<p>[KEY]" {
				t.Errorf("the page is %q", kept)
			}
			if kept := b.blob(a.Result); !strings.Contains(kept, `"structuredContent":{"deep":["[KEY]"]}`) || strings.Contains(kept, "0123456789") {
				t.Errorf("the result is %s", kept)
			}
		default:
			if a.Page != "" || !strings.Contains(a.Problem, want) {
				t.Errorf("%s: got %+v", name, a)
			}
		}
	}
	if b.has("tester_hidden") {
		t.Error("models get a tool for apps")
	}
	b.wants("tester_list_resources", "{}", "there are none", false)
	b.wants("tester_read_resource", `{"uri":"ui://well"}`, "is shown to the user", true)

	as := mcp.Apps{b.pool}
	for name, want := range map[string]bool{"hidden": true, "well": true, "model": false, "none": false} {
		full, err := as.Tool(t.Context(), "local", "tester", name)
		if (err == nil) != want || want && full != "tester_"+name {
			t.Errorf("%s: %q %v", name, full, err)
		}
	}
	if _, err := as.Tool(t.Context(), "local", "other", "hidden"); err == nil {
		t.Error("a server that is not there has tools")
	}
	out, err := as.Call(t.Context(), "local", "tester", "hidden", []byte("{}"))
	if err != nil || !strings.Contains(string(out), "[KEY]") || strings.Contains(string(out), "0123456789") {
		t.Errorf("%s %v", out, err)
	}
	if _, err := as.Read(t.Context(), "local", "tester", "ui://none"); err == nil || !strings.Contains(err.Error(), "ui://none") && !strings.Contains(err.Error(), "not found") {
		t.Errorf("%v", err)
	}
}
