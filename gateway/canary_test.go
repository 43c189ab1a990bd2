// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"context"
	"encoding/base64"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	mcpsdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/gateway/mcpwrapped"
	"github.com/artelhq/artel/model/fake"
	"github.com/artelhq/artel/model/probe"
)

// TestPicturesOfTools takes a picture from the tool of an MCP server through Artel's proxy into a
// host, and with the host's next request through the gateway into a model, for hosts and models
// of each dialect. The models read the letters in it from the bytes that they get.
func TestPicturesOfTools(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.respond(fake.Sees(b.blobs, fake.Echo))
	letters := probe.Letters()
	drawn, err := probe.Picture(letters)
	if err != nil {
		t.Fatal(err)
	}
	host := b.hostOf(func() *mcpsdk.CallToolResult {
		return &mcpsdk.CallToolResult{Content: []mcpsdk.Content{&mcpsdk.ImageContent{MIMEType: "image/png", Data: drawn}}}
	})
	first, again := shot(t, host), shot(t, host)
	if first.picture == "" || again.picture != "" || first.ref == "" || first.ref != again.ref {
		t.Fatalf("the host got %.200s, then %.200s", first.text, again.text)
	}
	for dialect := range dialectNames() {
		for _, service := range []string{"chat", "responses", "messages", "gemini", "text"} {
			path, body := pictureRequest(dialect, service, first)
			status, got := b.post(path, body)
			if sees := strings.Contains(got, letters); status != http.StatusOK || sees == (service == "text") {
				t.Errorf("%s to %s: %d, want the letters %s: %.600s", dialect, service, status, letters, got)
			}
			if service == "text" && !strings.Contains(got, "cannot") {
				t.Errorf("%s to a model without vision does not say that it cannot see: %.600s", dialect, got)
			}
			path, body = refRequest(dialect, service, again.ref)
			status, got = b.post(path, body)
			if sees := strings.Contains(got, letters); status != http.StatusOK || sees == (service == "text") {
				t.Errorf("%s to %s, by the ref: %d, want the letters %s: %.600s", dialect, service, status, letters, got)
			}
		}
	}
}

// hostOf connects an MCP host to the proxied server of a tool "shot".
func (b *bench) hostOf(result func() *mcpsdk.CallToolResult) *mcpsdk.ClientSession {
	b.t.Helper()
	server := mcpsdk.NewServer(&mcpsdk.Implementation{Name: "browser", Version: "1"}, nil)
	server.AddTool(&mcpsdk.Tool{Name: "shot", InputSchema: map[string]any{"type": "object"}}, func(context.Context, *mcpsdk.CallToolRequest) (*mcpsdk.CallToolResult, error) {
		return result(), nil
	})
	remote := httptest.NewServer(mcpsdk.NewStreamableHTTPHandler(func(*http.Request) *mcpsdk.Server { return server }, nil))
	entry, err := mcp.Config{Name: "browser", URL: remote.URL}.Server(nil)
	if err != nil {
		b.t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	pool, err := mcp.NewPool([]mcp.Server{entry}, log)
	if err != nil {
		b.t.Fatal(err)
	}
	proxy := mcpwrapped.New(b.app, mcpwrapped.Options{Pools: []*mcp.Pool{pool}, Log: log})
	front := httptest.NewServer(apptest.As(proxy))
	session, err := mcpsdk.NewClient(&mcpsdk.Implementation{Name: "host", Version: "1"}, nil).Connect(b.t.Context(), &mcpsdk.StreamableClientTransport{Endpoint: front.URL + mcpwrapped.Path + "browser", MaxRetries: -1}, nil)
	if err != nil {
		b.t.Fatal(err)
	}
	b.t.Cleanup(func() {
		_ = session.Close()
		proxy.Close()
		for _, s := range []*httptest.Server{front, remote} {
			s.CloseClientConnections()
			s.Close()
		}
	})
	return session
}

// A shown result is what a host got of a call.
type shown struct{ text, ref, picture string }

func shot(t *testing.T, host *mcpsdk.ClientSession) (s shown) {
	t.Helper()
	r, err := host.CallTool(t.Context(), &mcpsdk.CallToolParams{Name: "shot"})
	if err != nil || r.IsError {
		t.Fatalf("%+v %v", r, err)
	}
	for _, c := range r.Content {
		switch c := c.(type) {
		case *mcpsdk.TextContent:
			s.text += c.Text
		case *mcpsdk.ImageContent:
			s.picture = base64.StdEncoding.EncodeToString(c.Data)
		}
	}
	if i := strings.Index(s.text, "blob:sha256-"); i >= 0 {
		s.ref = s.text[i:min(i+len("blob:sha256-")+64, len(s.text))]
	}
	return s
}

// pictureRequest is the request of a host after the call: the result has the text and the picture.
func pictureRequest(dialect, service string, s shown) (path, body string) {
	path, body = toolRequest(dialect, service, "shot", false)
	text := quoted(s.text)
	old, result := `"output":"rain"`, ""
	switch dialect {
	case "messages":
		old = `"content":"rain"`
		result = `"content":[{"type":"text","text":` + text + `},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"` + s.picture + `"}}]`
	case "responses":
		result = `"output":[{"type":"input_text","text":` + text + `},{"type":"input_image","image_url":"data:image/png;base64,` + s.picture + `"}]`
	case "gemini":
		body = strings.Replace(body, `{"functionCall":`, `{"thoughtSignature":"skip_thought_signature_validator","functionCall":`, 1) // as for calls of another model
		old = `"response":{"output":"rain"}`
		result = `"response":{"output":` + text + `},"parts":[{"inlineData":{"mimeType":"image/png","data":"` + s.picture + `"}}]`
	default:
		old = `"content":"rain"`
		result = `"content":[{"type":"text","text":` + text + `},{"type":"image_url","image_url":{"url":"data:image/png;base64,` + s.picture + `"}}]`
	}
	return path, strings.Replace(body, old, result, 1)
}

// refRequest is the request of a host that shows a picture by its ref.
func refRequest(dialect, service, ref string) (path, body string) {
	path, body = request(dialect, service, false)
	r := quoted(ref)
	old, content := `"content":"hi"`, ""
	switch dialect {
	case "messages":
		content = `"content":[{"type":"image","source":{"type":"url","url":` + r + `}},{"type":"text","text":"hi"}]`
	case "responses":
		old = `"input":"hi"`
		content = `"input":[{"role":"user","content":[{"type":"input_image","image_url":` + r + `},{"type":"input_text","text":"hi"}]}]`
	case "gemini":
		old = `[{"text":"hi"}]`
		content = `[{"fileData":{"mimeType":"image/png","fileUri":` + r + `}},{"text":"hi"}]`
	default:
		content = `"content":[{"type":"image_url","image_url":{"url":` + r + `}},{"type":"text","text":"hi"}]`
	}
	return path, strings.Replace(body, old, content, 1)
}
