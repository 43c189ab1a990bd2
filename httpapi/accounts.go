// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"time"

	"github.com/artelhq/artel/app/accounts"
	"github.com/artelhq/artel/internal/peer"
)

// An AccountView is an MCP server that each user connects with an account of their own,
// as it is for who asks.
type AccountView struct {
	Server      string         `json:"server"`
	URL         string         `json:"url"`
	State       accounts.State `json:"state" enum:"not_connected,connected,expired,insufficient,unreadable" doc:"insufficient: the server has asked for more than was allowed; connect it again"`
	Account     string         `json:"account,omitempty" doc:"its name at the authorization server, if that says it"`
	Issuer      string         `json:"issuer,omitempty" doc:"the authorization server"`
	Scopes      []string       `json:"scopes,omitempty"`
	ConnectedAt *time.Time     `json:"connected_at,omitempty"`
	EndsAt      *time.Time     `json:"ends_at,omitempty" doc:"if the access cannot be renewed"`
}

func accountView(a accounts.Account) AccountView {
	v := AccountView{Server: a.Server, URL: a.URL, State: a.State, Account: a.Name, Issuer: a.Issuer, Scopes: a.Scopes}
	if !a.Connected.IsZero() {
		v.ConnectedAt = &a.Connected
	}
	if !a.Ends.IsZero() {
		v.EndsAt = &a.Ends
	}
	return v
}

// An AccountRequest is the beginning of a connection.
type AccountRequest struct {
	Location string `json:"location" doc:"the address that the user opens in a browser in which they are logged in here; it is valid for 15 minutes"`
}

// An AccountEnd is the end of a connection.
type AccountEnd struct {
	Revoked bool `json:"revoked" doc:"false: the access is deleted here, but the authorization server could not revoke it; do it on its page"`
}

// AccountPath names a server.
type AccountPath struct {
	Server string `path:"server" maxLength:"256"`
}

// mcpAccounts registers the operations on accounts at MCP servers.
func (f *server) mcpAccounts() {
	all := f.app.Accounts
	register(f, f.op(http.MethodGet, "/mcp-accounts", "list-mcp-accounts", "List the MCP servers that users connect with accounts of their own, and how each is for you", http.StatusOK),
		func(ctx context.Context, _ *none) (*body[List[AccountView]], error) {
			found, err := all.List(ctx)
			views := make([]AccountView, len(found))
			for i, a := range found {
				views[i] = accountView(a)
			}
			return answer(listOf(views, ""), err)
		})
	register(f, f.op(http.MethodGet, "/mcp-accounts/{server}", "read-mcp-account", "Say how an MCP server is for you", http.StatusOK),
		func(ctx context.Context, in *AccountPath) (*body[AccountView], error) {
			a, err := all.Get(ctx, in.Server)
			return answer(accountView(a), err)
		})
	register(f, f.op(http.MethodPost, "/mcp-accounts/{server}/connect", "connect-mcp-account", "Begin to connect an MCP server with your account: you allow it in a browser", http.StatusOK),
		func(ctx context.Context, in *struct {
			AccountPath
			RequestHeader
		},
		) (*body[AccountRequest], error) {
			location, err := all.Start(ctx, in.Server, accounts.SiteAt(peer.Of(in.request).URL()))
			return answer(AccountRequest{location}, err)
		})
	register(f, f.op(http.MethodDelete, "/mcp-accounts/{server}", "disconnect-mcp-account", "Delete your access to an MCP server, and revoke it at its authorization server", http.StatusOK),
		func(ctx context.Context, in *AccountPath) (*body[AccountEnd], error) {
			revoked, err := all.Disconnect(ctx, in.Server)
			return answer(AccountEnd{revoked}, err)
		})
}

// MCPAccounts lists the MCP servers that users connect with accounts of their own.
func MCPAccounts(ctx context.Context, c *Client) (out List[AccountView], err error) {
	return out, c.json(ctx, http.MethodGet, "/mcp-accounts", nil, &out)
}

// MCPAccount says how an MCP server is for the user.
func MCPAccount(ctx context.Context, c *Client, server string) (out AccountView, err error) {
	return out, c.json(ctx, http.MethodGet, "/mcp-accounts/"+url.PathEscape(server), nil, &out)
}

// ConnectMCPAccount begins to connect an MCP server.
func ConnectMCPAccount(ctx context.Context, c *Client, server string) (out AccountRequest, err error) {
	return out, c.json(ctx, http.MethodPost, "/mcp-accounts/"+url.PathEscape(server)+"/connect", nil, &out)
}

// DisconnectMCPAccount ends the access of the user to an MCP server.
func DisconnectMCPAccount(ctx context.Context, c *Client, server string) (out AccountEnd, err error) {
	return out, c.json(ctx, http.MethodDelete, "/mcp-accounts/"+url.PathEscape(server), nil, &out)
}
