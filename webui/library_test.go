// SPDX-License-Identifier: Apache-2.0

package webui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/fetch"
)

// notes is a pool with a server that has a resource and a prompt.
func notes(t *testing.T) *mcp.Pool {
	t.Helper()
	s := sdk.NewServer(&sdk.Implementation{Name: "notes", Version: "1"}, nil)
	s.AddResource(&sdk.Resource{URI: "memo://tide.md", Name: "tide", Title: "The <tide>", MIMEType: "text/markdown"}, func(context.Context, *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{{URI: "memo://tide.md", MIMEType: "text/markdown", Text: "# Tide\n\nHigh with TOPSECRET at noon."}}}, nil
	})
	s.AddPrompt(&sdk.Prompt{Name: "review", Title: "Review", Arguments: []*sdk.PromptArgument{{Name: "what", Required: true}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		return &sdk.GetPromptResult{Messages: []*sdk.PromptMessage{
			{Role: "user", Content: &sdk.TextContent{Text: "Review " + r.Params.Arguments["what"] + "."}},
			{Role: "assistant", Content: &sdk.TextContent{Text: "Gladly."}},
			{Role: "user", Content: &sdk.ImageContent{Data: []byte("x"), MIMEType: "image/png"}},
		}}, nil
	})
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(web.Close)
	pool, err := mcp.NewPool([]mcp.Server{{Name: "notes", Remote: &mcp.Remote{URL: web.URL, Client: fetch.NewClient(fetch.Options{AllowPrivate: true})}, Secrets: tool.Secrets{"KEY": "TOPSECRET"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); pool.Run(ctx) }()
	t.Cleanup(func() { stop(); <-done })
	pool.Await(t.Context(), "")
	return pool
}

// TestFromToolServers: a resource of a tool server is attached with its address, without the
// secrets of the connection, and a prompt becomes text of the composer.
func TestFromToolServers(t *testing.T) {
	t.Parallel()
	s, b := openSite(t, setup{servers: notes(t), demo: script(t, "-- turn 1 --\nSeen.\n")}, 1280, 800)
	b.Do(click("#from-server"), click("#server-contents > button"), see("#server-contents [data-resource]"))
	b.picture("server-contents")
	b.Says("#server-contents", "The <tide>", "memo://tide.md", "Review", "what")
	axe := newChecker(t, b)
	axe.check("#server-contents-picker", allRules, "server-contents")
	b.Do(click("#server-contents [data-resource]"), see("#picked input"))
	b.Do(click("#from-server"), click("#server-contents > button"), fill(`#server-contents [name="a.what"]`, "it"), click("#server-contents form button"))
	b.Until(`document.getElementById("text").value === "Review it.\n\nAssistant: Gladly."`)
	b.Says("#toasts", "1 parts of the prompt that are no text were left out.")
	b.Do(click(".send"))
	b.Until(`document.querySelectorAll(".message.user").length === 1`)
	b.rest()
	b.Until(`document.querySelector("#picked").children.length === 0`)
	id := s.all(t)[0].ID
	list, err := s.app.Artifacts.List(apptest.Context(t), id, "")
	if err != nil || len(list) != 1 || list[0].Title != "tide.md (memo://tide.md)" || list[0].Filename != "tide.md" || list[0].MediaType != "text/markdown" {
		t.Fatalf("the artifacts are %+v, %v", list, err)
	}
	_, text, err := s.app.Artifacts.Find(apptest.Context(t), id, list[0].ID, "")
	if err != nil || text == nil || strings.Contains(*text, "TOPSECRET") || !strings.Contains(*text, "# Tide") {
		t.Errorf("the text is %v, %v", text, err)
	}
	b.Do(chromedp.Reload(), see("#from-server"))
}
