// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/fetch"
)

// protocols are versions with either way of asking.
func protocols() []string { return []string{"2026-07-28", "2025-11-25"} }

// A person is the host of calls who answers.
type person struct {
	answer func(tool.Elicitation) tool.ElicitResult

	mu    sync.Mutex
	asked []tool.Elicitation
	kept  json.RawMessage
	said  []string
}

func (p *person) Elicit(ctx context.Context, _ artel.CallID, asked []tool.Elicitation) ([]tool.ElicitResult, error) {
	p.mu.Lock()
	p.asked = append(p.asked, asked...)
	p.mu.Unlock()
	out := make([]tool.ElicitResult, len(asked))
	for i, q := range asked {
		out[i] = p.answer(q)
	}
	return out, ctx.Err()
}

func (p *person) Keep(_ context.Context, _ artel.CallID, state json.RawMessage) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kept = state
	return nil
}

func (p *person) Kept(artel.CallID) json.RawMessage {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.kept
}

func (p *person) Ends(context.Context) bool { return true }

func (p *person) Report(_ artel.CallID, at tool.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, at.Message)
}

const orderSchema = `{"type":"object","properties":{"size":{"type":"string","oneOf":[{"const":"s","title":"Small"},{"const":"l","title":"Large"}]},` +
	`"count":{"type":"integer","minimum":1},"anonymous":{"type":"boolean"}},"required":["count","size"]}`

// ask asks people in the way of the version of the protocol.
func ask(ctx context.Context, r *sdk.CallToolRequest, key string, p *sdk.ElicitParams) (*sdk.ElicitResult, *sdk.CallToolResult, error) {
	if v := r.Session.InitializeParams(); v != nil && v.ProtocolVersion < "2026-07-28" {
		a, err := r.Session.Elicit(ctx, p)
		return a, nil, err
	}
	if a, ok := r.Params.InputResponses[key].(*sdk.ElicitResult); ok {
		return a, nil, nil
	}
	return nil, &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{key: p}, RequestState: r.Params.RequestState + "-" + key}, nil
}

// newAskingServer asks in two ways, one question after the other.
func newAskingServer(version string) *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "asker", Version: "1"}, &sdk.ServerOptions{SupportedProtocolVersions: []string{version}})
	s.AddTool(&sdk.Tool{Name: "order", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		a, more, err := ask(ctx, r, "order", &sdk.ElicitParams{Mode: "form", Message: "What do you want?", RequestedSchema: json.RawMessage(orderSchema)})
		if a == nil {
			return more, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(a.Action, " ", a.Content["count"], " ", a.Content["size"], " ", r.Params.RequestState)}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "page", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		a, more, err := ask(ctx, r, "page", &sdk.ElicitParams{Mode: "url", Message: "Pay.", URL: "https://pay.example/1", ElicitationID: "1"})
		if a == nil {
			return more, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: a.Action}}}, nil
	})
	opened := false
	s.AddTool(&sdk.Tool{Name: "locked", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if !opened {
			opened = true
			return nil, sdk.URLElicitationRequiredError([]*sdk.ElicitParams{{Mode: "url", Message: "Log in.", URL: "https://login.example/", ElicitationID: "2"}})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "unlocked"}}}, nil
	})
	s.AddTool(&sdk.Tool{Name: "nested", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, more, err := ask(ctx, r, "nested", &sdk.ElicitParams{Mode: "url", Message: "Look.", URL: "javascript:alert(1)"})
		return more, err
	})
	return s
}

// handlerOf serves a version of the protocol, of which the newest has no sessions.
func handlerOf(s *sdk.Server, version string) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, &sdk.StreamableHTTPOptions{Stateless: version >= "2026-07-28"})
}

// TestAsks: what a server asks a person reaches the host of the call with its schema as it
// was written, and the answer reaches the server, over either way of asking.
func TestAsks(t *testing.T) {
	for _, version := range protocols() {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			server := newAskingServer(version)
			web := httptest.NewServer(handlerOf(server, version))
			t.Cleanup(web.Close)
			b := newBench(t, mcp.Server{Name: "shop", Remote: &mcp.Remote{URL: web.URL, Client: fetch.NewClient(fetch.Options{AllowPrivate: true})}})
			who := &person{answer: func(q tool.Elicitation) tool.ElicitResult {
				if q.Mode == artel.ElicitURL {
					return tool.ElicitResult{Action: artel.ElicitAccept}
				}
				return tool.ElicitResult{Action: artel.ElicitAccept, Content: map[string]any{"count": 3.0, "size": "l"}}
			}}
			b.env.Host, b.env.Call = who, "call_1"
			b.wants("shop_order", `{}`, "accept 3 l", false)
			if q := who.asked[0]; q.Server != "shop" || q.Name != "shop_order" || q.Mode != artel.ElicitForm || string(q.Schema) != orderSchema {
				t.Errorf("asked %+v", q)
			}
			b.wants("shop_page", `{}`, "accept", false)
			if q := who.asked[1]; q.Mode != artel.ElicitURL || q.URL != "https://pay.example/1" {
				t.Errorf("asked %+v", q)
			}
			b.wants("shop_locked", `{}`, "unlocked", false)
			if q := who.asked[2]; q.Mode != artel.ElicitURL || q.URL != "https://login.example/" {
				t.Errorf("asked %+v", q)
			}
			r, err := b.call(t.Context(), "shop_nested", `{}`)
			if err != nil || !r.IsError || !strings.Contains(r.Content, "not shown to a person") || len(who.asked) != 3 {
				t.Errorf("an address that no browser may open: %+v, %v", r, err)
			}
			if who.kept != nil {
				t.Errorf("after the calls, %s is kept", who.kept)
			}
			b.env.Host = nil // nobody can be asked
			b.wants("shop_order", `{}`, "cancel", false)
		})
	}
}

// TestGoesOnAfterRestart: of a call that waits for an answer by the stateless protocol, the
// next process sends the answer with the server's state, whatever the first call did.
func TestGoesOnAfterRestart(t *testing.T) {
	server := newAskingServer("2026-07-28")
	web := httptest.NewServer(handlerOf(server, "2026-07-28"))
	t.Cleanup(web.Close)
	b := newBench(t, mcp.Server{Name: "shop", Remote: &mcp.Remote{URL: web.URL, Client: fetch.NewClient(fetch.Options{AllowPrivate: true})}})
	ctx, stop := context.WithCancel(t.Context())
	who := &person{answer: func(tool.Elicitation) tool.ElicitResult { stop(); return tool.ElicitResult{} }}
	b.env.Host, b.env.Call = who, "call_1"
	if r, err := b.call(ctx, "shop_order", `{}`); artel.KindOf(err) != artel.Canceled {
		t.Fatalf("the call ended with %+v, %v", r, err)
	}
	if who.kept == nil {
		t.Fatal("nothing is kept while a person is asked")
	}
	who.answer = func(tool.Elicitation) tool.ElicitResult {
		return tool.ElicitResult{Action: artel.ElicitAccept, Content: map[string]any{"count": 2.0, "size": "s"}}
	}
	b.wants("shop_order", `{}`, "accept 2 s -order", false)
	if len(who.asked) != 2 || who.asked[0].Key != who.asked[1].Key {
		t.Errorf("asked %+v", who.asked)
	}
}

// TestAsksWhoCalled: of two conversations that call a server at once, each is asked what
// its own call needs. A program does not say which call a question belongs to: if it may be
// another's, nobody is asked.
func TestAsksWhoCalled(t *testing.T) {
	server := newAskingServer("2025-11-25")
	web := httptest.NewServer(handlerOf(server, "2025-11-25"))
	t.Cleanup(web.Close)
	b := newBench(t, mcp.Server{Name: "shop", Remote: &mcp.Remote{URL: web.URL, Client: fetch.NewClient(fetch.Options{AllowPrivate: true})}})
	var both sync.WaitGroup
	var meet sync.WaitGroup
	meet.Add(2)
	for i := range 2 {
		env := b.env
		env.Host, env.Call = &person{answer: func(tool.Elicitation) tool.ElicitResult {
			meet.Done()
			meet.Wait() // both are asked at the same time
			return tool.ElicitResult{Action: artel.ElicitAccept, Content: map[string]any{"count": float64(i + 1), "size": "l"}}
		}}, artel.CallID(fmt.Sprint("call_", i))
		set, err := tool.NewSet(b.pool.Tools("local")...)
		if err != nil {
			t.Fatal(err)
		}
		both.Go(func() {
			r, err := set.Call(t.Context(), &env, "shop_order", json.RawMessage(`{}`))
			if want := fmt.Sprint("accept ", i+1); err != nil || !strings.Contains(r.Content, want) {
				t.Errorf("conversation %d got %+v, %v", i, r, err)
			}
		})
	}
	both.Wait()
}
