// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/artelhq/artel"
)

// Me says who the client is for the server.
func (c *Client) Me(ctx context.Context) (out MeView, err error) {
	return out, c.json(ctx, http.MethodGet, "/me", nil, &out)
}

// LogIn begins a session, whose cookie the client's jar keeps.
func (c *Client) LogIn(ctx context.Context, with Credentials) error {
	return c.json(ctx, http.MethodPost, loginPath, with, nil)
}

// LogOut ends the session.
func (c *Client) LogOut(ctx context.Context) error {
	return c.json(ctx, http.MethodPost, logoutPath, nil, nil)
}

// ChangeMe changes the name of the user.
func (c *Client) ChangeMe(ctx context.Context, change MeChange) (out MeView, err error) {
	return out, c.json(ctx, http.MethodPatch, "/me", change, &out)
}

// ChangePassword changes the password of the user. The client needs the cookie of a
// session, which the answer replaces.
func (c *Client) ChangePassword(ctx context.Context, change NewPassword) error {
	return c.json(ctx, http.MethodPost, "/me/password", change, nil)
}

// Users lists the users.
func (c *Client) Users(ctx context.Context) (out List[UserView], err error) {
	return out, c.json(ctx, http.MethodGet, "/users", nil, &out)
}

// Invite makes a user.
func (c *Client) Invite(ctx context.Context, n NewUser) (out Invited, err error) {
	return out, c.json(ctx, http.MethodPost, "/users", n, &out)
}

// InviteAgain makes a new address at which a user sets a password.
func (c *Client) InviteAgain(ctx context.Context, id artel.Owner) (out Invited, err error) {
	return out, c.json(ctx, http.MethodPost, userPath(id)+acceptPath, nil, &out)
}

// ChangeUser changes a user.
func (c *Client) ChangeUser(ctx context.Context, id artel.Owner, change UserChange) (out UserView, err error) {
	return out, c.json(ctx, http.MethodPatch, userPath(id), change, &out)
}

// DeleteUser deletes a user.
func (c *Client) DeleteUser(ctx context.Context, id artel.Owner) error {
	return c.json(ctx, http.MethodDelete, userPath(id), nil, nil)
}

func userPath(id artel.Owner) string { return "/users/" + url.PathEscape(string(id)) }

// MakeToken makes a token of the user.
func (c *Client) MakeToken(ctx context.Context, n NewToken) (out MadeToken, err error) {
	return out, c.json(ctx, http.MethodPost, "/tokens", n, &out)
}

// Tokens lists the tokens of the user.
func (c *Client) Tokens(ctx context.Context) (out List[TokenView], err error) {
	return out, c.json(ctx, http.MethodGet, "/tokens", nil, &out)
}

// RevokeToken revokes a token of the user.
func (c *Client) RevokeToken(ctx context.Context, id string) error {
	return c.json(ctx, http.MethodDelete, "/tokens/"+url.PathEscape(id), nil, nil)
}
