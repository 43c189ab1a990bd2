// SPDX-License-Identifier: Apache-2.0

package sdktest

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/op"

	"github.com/artelhq/artel/sdktest/program"
)

// mailServer is an MCP server by the official SDK that accepts the tokens of a provider,
// which it asks whose they are.
func mailServer(t *testing.T, issuer string) string {
	t.Helper()
	s := mcp.NewServer(&mcp.Implementation{Name: "mail", Version: "1"}, nil)
	mcp.AddTool(s, &mcp.Tool{Name: "whoami", Description: "Says whose mail this is."}, func(_ context.Context, r *mcp.CallToolRequest, _ struct{}) (*mcp.CallToolResult, any, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "the mail of " + r.Extra.TokenInfo.UserID}}}, nil, nil
	})
	verify := func(ctx context.Context, token string, _ *http.Request) (*auth.TokenInfo, error) {
		q, err := http.NewRequestWithContext(ctx, http.MethodGet, issuer+"/userinfo", nil)
		if err != nil {
			return nil, err
		}
		q.Header.Set("Authorization", "Bearer "+token)
		resp, err := http.DefaultClient.Do(q)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		var who struct{ Email string }
		if err := json.NewDecoder(resp.Body).Decode(&who); err != nil || resp.StatusCode != http.StatusOK || who.Email == "" {
			return nil, auth.ErrInvalidToken
		}
		return &auth.TokenInfo{UserID: who.Email, Expiration: time.Now().Add(time.Hour)}, nil
	}
	mux := http.NewServeMux()
	front := httptest.NewServer(mux)
	t.Cleanup(front.Close)
	t.Cleanup(front.CloseClientConnections)
	described := front.URL + "/.well-known/oauth-protected-resource/mcp"
	mux.Handle("/.well-known/oauth-protected-resource/mcp", auth.ProtectedResourceMetadataHandler(&oauthex.ProtectedResourceMetadata{Resource: front.URL + "/mcp", AuthorizationServers: []string{issuer}}))
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{Stateless: true})
	mux.Handle("/mcp", auth.RequireBearerToken(verify, &auth.RequireBearerTokenOptions{ResourceMetadataURL: described})(handler))
	return front.URL + "/mcp"
}

// TestAccountsAtZitadel: an MCP server by the official SDK is connected with an account at
// the example server of zitadel/oidc in its default settings, with a client that was
// registered there; a tool answers with that account's data, and the access is revoked.
func TestAccountsAtZitadel(t *testing.T) {
	z := newZitadel(t)
	mail := mailServer(t, z.issuer)
	site := program.Start(t, "..", fmt.Sprintf("mcp:\n  - {name: mail, url: %q, auth: oauth, client_id: artel-mcp, client_secret: a secret, scopes: [openid, email]}\n", mail))
	storage.RegisterClients(storage.WebClient("artel-mcp", "a secret", site+"/auth/mcp/callback"))
	z.front.Config.Handler = exampleop.SetupServer(z.issuer, storage.NewStorage(storage.NewUserStore(z.issuer)), nil, false, op.WithAllowInsecure())
	z.front.Start()
	p := newVisitor(t, site)
	var begun struct{ Location string }
	p.ask(&begun, "POST", "/api/v1/mcp-accounts/mail/connect", "")
	resp, err := p.http.Get(begun.Location)
	if err != nil {
		t.Fatal(err)
	}
	form := resp.Request.URL
	_ = resp.Body.Close()
	if !strings.HasPrefix(form.String(), z.issuer+"/login/username") {
		t.Fatalf("sent to %s", form)
	}
	resp, err = p.http.PostForm(z.issuer+"/login/username", url.Values{"id": {form.Query().Get("authRequestID")}, "username": {"test-user2"}, "password": {"verysecure"}})
	if err != nil {
		t.Fatal(err)
	}
	page, _ := io.ReadAll(resp.Body)
	_ = resp.Body.Close()
	if resp.Request.URL.Path != "/tools" {
		t.Fatalf("arrived at %s: %s %.800s", resp.Request.URL, resp.Status, page)
	}
	var account struct{ State, Account string }
	p.ask(&account, "GET", "/api/v1/mcp-accounts/mail", "")
	if account.State != "connected" || account.Account == "" {
		t.Errorf("got %+v", account)
	}
	var conversation struct{ ID string }
	p.ask(&conversation, "POST", "/api/v1/conversations", "{}")
	var result struct {
		OK      bool
		Content string
	}
	p.ask(&result, "POST", "/api/v1/conversations/"+conversation.ID+"/tools/mail_whoami", "{}")
	if !result.OK || result.Content != "the mail of test-user2@zitadel.ch" {
		t.Errorf("got %+v", result)
	}
	var end struct{ Revoked bool }
	p.ask(&end, "DELETE", "/api/v1/mcp-accounts/mail", "")
	if !end.Revoked {
		t.Error("the access was not revoked")
	}
	if status := p.status(nil, "POST", "/api/v1/conversations/"+conversation.ID+"/tools/mail_whoami", "{}"); status != http.StatusNotFound {
		t.Errorf("a tool without an account: %d", status)
	}
}
