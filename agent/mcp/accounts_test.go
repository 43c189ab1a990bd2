// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent/mcp"
	"github.com/artelhq/artel/agent/tool"
	"github.com/artelhq/artel/internal/fetch/fetchtest"
)

// everybody gives each user but one the token "of" and their name.
type everybody struct{}

func (everybody) Token(ctx context.Context, s mcp.Server, _ string) (string, error) {
	if who := artel.OwnerOf(ctx); who != "stranger" {
		return "of " + string(who), nil
	}
	return "", artel.Errorf(artel.Denied, "test", s.Name, "the stranger has no account")
}

func (everybody) Insufficient(context.Context, mcp.Server, []string) error { return nil }

// TestConnectionsOfUsers: each user has a connection with their own token. It is opened at
// the first call, kept while there are calls, closed when it is idle, and opened again; the
// tools stay known meanwhile.
func TestConnectionsOfUsers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		opened, closed, tokens := 0, 0, map[string]int{}
		s := newServer(nil)
		handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
		h, client := fetchtest.Serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			tokens[r.Header.Get("Authorization")]++
			if r.Method == http.MethodPost && r.Header.Get("Mcp-Session-Id") == "" {
				opened++
			}
			if r.Method == http.MethodDelete {
				closed++
			}
			mu.Unlock()
			handler.ServeHTTP(w, r)
		}))
		pool, err := mcp.NewPool([]mcp.Server{{Name: "tester", Login: &mcp.Login{}, Remote: &mcp.Remote{URL: h.URL, Client: client}}}, slog.New(slog.DiscardHandler))
		if err != nil {
			t.Fatal(err)
		}
		pool.Use(everybody{})
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); pool.Run(ctx) }()
		defer func() { stop(); <-done }()
		call := func(who artel.Owner) tool.Result {
			t.Helper()
			set, err := tool.NewSet(pool.Tools(who)...)
			if err != nil {
				t.Fatal(err)
			}
			name, args := "tester_say", `{"text":"x"}`
			if !set.Has(name) {
				name, args = "tester_connect", `{}`
			}
			r, err := set.Call(t.Context(), &tool.Env{Owner: who}, name, json.RawMessage(args))
			if err != nil {
				t.Fatal(err)
			}
			return r
		}
		count := func(what string, wantOpened, wantClosed int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if opened != wantOpened || closed != wantClosed {
				t.Errorf("%s: %d connections were opened and %d closed, want %d and %d", what, opened, closed, wantOpened, wantClosed)
			}
		}
		if len(pool.Tools("")) != 0 {
			t.Error("there are tools without a user")
		}
		if r := call("stranger"); !r.IsError || r.Metadata["connect"] != "tester" {
			t.Errorf("a stranger: %+v", r)
		}
		pool.Await(t.Context(), "ann")
		mu.Lock()
		first := opened
		mu.Unlock()
		for range 9 {
			time.Sleep(5 * time.Minute)
			if r := call("ann"); r.IsError || !strings.Contains(r.Content, "you said x") {
				t.Fatalf("ann: %+v", r)
			}
		}
		count("in use", first, 0)
		pool.Await(t.Context(), "bob")
		count("another user", 2*first, 0)
		time.Sleep(12 * time.Minute)
		count("idle", 2*first, 2)
		if len(pool.Tools("ann")) < 3 {
			t.Error("the tools of ann are forgotten")
		}
		if r := call("ann"); r.IsError {
			t.Errorf("ann again: %+v", r)
		}
		count("again", 3*first, 2)
		pool.Forget("tester", "ann")
		count("disconnected", 3*first, 3)
		mu.Lock()
		defer mu.Unlock()
		if len(tokens) != 2 || tokens["Bearer of ann"] == 0 || tokens["Bearer of bob"] == 0 {
			t.Errorf("tokens: %v", tokens)
		}
	})
}
