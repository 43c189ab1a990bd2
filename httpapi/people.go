// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/store"
)

// Paths of the requests by which clients become known.
const (
	loginPath  = "/login"
	logoutPath = "/logout"
	setupPath  = "/setup"
	acceptPath = "/invite"

	accountPath = "/account" // and below: what users see and change of their own account
)

// A UserView is a user.
type UserView struct {
	ID        artel.Owner     `json:"id" doc:"the owner of what the user makes"`
	Name      string          `json:"name"`
	Email     string          `json:"email"`
	Role      store.Role      `json:"role" enum:"admin,member,viewer"`
	Disabled  bool            `json:"disabled,omitempty"`
	Invited   bool            `json:"invited,omitempty" doc:"has not set a password yet"`
	CreatedAt time.Time       `json:"created_at"`
	Storage   *app.StorageUse `json:"storage,omitempty" doc:"what the user stores; in the list of users"`
}

func userView(u store.User) UserView {
	return UserView{ID: u.ID, Name: u.Name, Email: u.Email, Role: u.Role, Disabled: u.Disabled, Invited: u.Password == "", CreatedAt: u.CreatedAt}
}

// A MeView is who asks.
type MeView struct {
	ID     artel.Owner   `json:"id"`
	Name   string        `json:"name"`
	Email  string        `json:"email,omitempty"`
	Role   store.Role    `json:"role" enum:"admin,member,viewer"`
	Scopes []store.Scope `json:"scopes" doc:"what this session or token may do"`
	Token  string        `json:"token,omitempty" doc:"the name of the token"`

	TokenID string `json:"token_id,omitempty" doc:"the id of the token"`

	Login bool `json:"login" doc:"whether this deployment needs a login"`

	Storage *app.StorageUse `json:"storage,omitempty" doc:"what you store; absent for a token that cannot read"`
}

// A MeChange is the body of PATCH /me.
type MeChange struct {
	Name string `json:"name" minLength:"1" maxLength:"100"`
}

// A NewPassword is the body of POST /me/password.
type NewPassword struct {
	Old      string `json:"old" maxLength:"1024" doc:"the present password"`
	Password string `json:"password" minLength:"10" maxLength:"1024"`
	Keep     bool   `json:"keep,omitempty" doc:"whether your other sessions and tokens stay, with the keys of the gateway that tokens made"`
	KeepKeys bool   `json:"keep_keys,omitempty" doc:"whether your other keys of the gateway stay"`
}

// A NewUser is the body of POST /users.
type NewUser struct {
	Name  string     `json:"name" minLength:"1" maxLength:"100"`
	Email string     `json:"email" maxLength:"254"`
	Role  store.Role `json:"role,omitempty" enum:"admin,member,viewer" default:"member"`
}

// An Invited is the answer of POST /users.
type Invited struct {
	ID        artel.Owner `json:"id"`
	InviteURL string      `json:"invite_url" doc:"where the user sets a password; valid once, for 7 days"`
}

// A UserChange is the body of PATCH /users/{id}.
type UserChange struct {
	Name     *string     `json:"name,omitempty" maxLength:"100"`
	Email    *string     `json:"email,omitempty" maxLength:"254"`
	Role     *store.Role `json:"role,omitempty" enum:"admin,member,viewer"`
	Disabled *bool       `json:"disabled,omitempty" doc:"a disabled user cannot log in; sessions and tokens end at once"`
}

// A FirstUser is the body of POST /setup.
type FirstUser struct {
	Code     string `json:"code,omitempty" doc:"printed by the server at its start; not needed where no login is needed yet"`
	Name     string `json:"name" minLength:"1" maxLength:"100"`
	Email    string `json:"email" maxLength:"254"`
	Password string `json:"password" minLength:"10" maxLength:"1024"`
}

// An Acceptance is the body of POST /invite.
type Acceptance struct {
	Code     string `json:"code"`
	Password string `json:"password" minLength:"10" maxLength:"1024"`
}

// A Credentials is the body of POST /login.
type Credentials struct {
	Email    string `json:"email"`
	Password string `json:"password"`
}

// A SessionView is a session.
type SessionView struct {
	ID        string    `json:"id"`
	Client    string    `json:"client,omitempty" doc:"the program, as it names itself"`
	Address   string    `json:"address,omitempty" doc:"from which it logged in"`
	Current   bool      `json:"current,omitempty" doc:"the one that asks"`
	CreatedAt time.Time `json:"created_at"`
	UsedAt    time.Time `json:"used_at" doc:"exact to a minute"`
	ExpiresAt time.Time `json:"expires_at"`
}

// A NewToken is the body of POST /tokens.
type NewToken struct {
	Name      string        `json:"name" minLength:"1" maxLength:"100"`
	Scopes    []store.Scope `json:"scopes" minItems:"1" maxItems:"4" doc:"read; write, which includes read; gateway; admin, which includes write"`
	ExpiresAt *time.Time    `json:"expires_at,omitempty" doc:"absent: never, or as the token that asks"`
}

// A MadeToken is the answer of POST /tokens.
type MadeToken struct {
	ID    string `json:"id"`
	Token string `json:"token" doc:"it cannot be read again"`

	ExpiresAt *time.Time `json:"expires_at,omitempty" doc:"that of the token it was made with, if none was asked for; absent: never"`
}

// A TokenView is a token without its secret.
type TokenView struct {
	ID        string        `json:"id"`
	Name      string        `json:"name"`
	Parent    string        `json:"parent,omitempty" doc:"the token with which it was made, and with which it ends"`
	Scopes    []store.Scope `json:"scopes"`
	CreatedAt time.Time     `json:"created_at"`
	UsedAt    *time.Time    `json:"used_at,omitempty" doc:"exact to a minute; absent: never"`
	ExpiresAt *time.Time    `json:"expires_at,omitempty" doc:"absent: never"`
}

func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (f *server) people() {
	users := f.app.Access.Users
	register(f, f.op(http.MethodPost, setupPath, "set-up", "Make the first administrator, who owns what was there before, and log in", http.StatusCreated),
		func(ctx context.Context, in *struct {
			RequestHeader
			Body FirstUser
		},
		) (*loggedIn, error) {
			u, err := users.Setup(ctx, access.Setup{Code: in.Body.Code, Name: in.Body.Name, Email: in.Body.Email, Password: in.Body.Password})
			if err != nil {
				return nil, err
			}
			return f.logIn(ctx, in.request, Credentials{u.Email, in.Body.Password})
		})
	register(f, f.op(http.MethodPost, acceptPath, "accept-invitation", "Set the password of an invited user, and log in", http.StatusOK),
		func(ctx context.Context, in *struct {
			RequestHeader
			Body Acceptance
		},
		) (*loggedIn, error) {
			u, err := users.Accept(ctx, in.Body.Code, in.Body.Password)
			if err != nil {
				return nil, err
			}
			return f.logIn(ctx, in.request, Credentials{u.Email, in.Body.Password})
		})
	register(f, f.op(http.MethodPost, loginPath, "log-in", "Begin a session", http.StatusOK),
		func(ctx context.Context, in *struct {
			RequestHeader
			Body Credentials
		},
		) (*loggedIn, error) {
			return f.logIn(ctx, in.request, in.Body)
		})
	register(f, f.op(http.MethodPost, logoutPath, "log-out", "End the session that asks", http.StatusNoContent),
		func(ctx context.Context, in *struct{ RequestHeader }) (*loggedOut, error) {
			return &loggedOut{Cookie: *access.Cookie(in.request, "", time.Time{})}, f.logOut(ctx)
		})
	register(f, f.op(http.MethodGet, "/me", "read-me", "Say who asks, and what they may do", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[MeView], error) { return answer(f.me(ctx)) })
	register(f, f.op(http.MethodPatch, "/me", "change-me", "Change your name (with a login, or a token of the scope admin)", http.StatusOK),
		func(ctx context.Context, in *struct{ Body MeChange }) (*body[MeView], error) {
			if _, err := users.Rename(ctx, in.Body.Name); err != nil {
				return nil, err
			}
			return answer(f.me(ctx))
		})
	register(f, f.op(http.MethodPost, "/me/password", "change-password", "Change your password, which ends your other sessions, tokens and keys of the gateway (with a login)", http.StatusOK),
		func(ctx context.Context, in *struct {
			RequestHeader
			Body NewPassword
		},
		) (*loggedIn, error) {
			l := access.LoginOf(in.request, "", "")
			c := access.PasswordChange{Old: in.Body.Old, New: in.Body.Password, Keep: in.Body.Keep, KeepKeys: in.Body.KeepKeys, Client: l.Client, Previous: l.Previous}
			secret, s, err := f.app.Access.Sessions.ChangePassword(ctx, c)
			return begun(in.request, secret, s, err)
		})
	register(f, f.op(http.MethodGet, "/users", "list-users", "List the users (role admin)", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[UserView]], error) {
			all, err := users.List(ctx)
			if err != nil {
				return nil, err
			}
			stored, err := f.app.Storage.Everyone(ctx)
			return answer(listOf(views(all, func(u store.User) UserView {
				v, s := userView(u), f.app.Storage.Of(stored, u.ID)
				v.Storage = &s
				return v
			}), ""), err)
		})
	register(f, f.op(http.MethodPost, "/users", "invite-user", "Make a user, who sets a password at the address in the answer (role admin)", http.StatusCreated),
		func(ctx context.Context, in *struct {
			RequestHeader
			Body NewUser
		},
		) (*body[Invited], error) {
			u, code, err := users.Invite(ctx, access.NewUser{Name: in.Body.Name, Email: in.Body.Email, Role: in.Body.Role})
			return answer(Invited{u.ID, inviteURL(in.request, code)}, err)
		})
	register(f, f.op(http.MethodPost, "/users/{id}/invite", "invite-user-again", "Make a new address at which a user sets a password (role admin)", http.StatusOK),
		func(ctx context.Context, in *struct {
			RequestHeader
			ID string `path:"id" maxLength:"256"`
		},
		) (*body[Invited], error) {
			code, err := users.InviteAgain(ctx, artel.Owner(in.ID))
			return answer(Invited{artel.Owner(in.ID), inviteURL(in.request, code)}, err)
		})
	register(f, f.op(http.MethodPatch, "/users/{id}", "change-user", "Change a user (role admin)", http.StatusOK),
		func(ctx context.Context, in *struct {
			ID   string `path:"id" maxLength:"256"`
			Body UserChange
		},
		) (*body[UserView], error) {
			u, err := users.Update(ctx, artel.Owner(in.ID), access.UserPatch(in.Body))
			return answer(userView(u), err)
		})
	register(f, f.op(http.MethodDelete, "/users/{id}", "delete-user", "Delete a user with sessions and tokens; what the user made stays in the database (role admin)", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"256"`
		},
		) (*none, error) {
			return nil, users.Delete(ctx, artel.Owner(in.ID))
		})
	f.sessions()
	f.apiTokens()
}

func (f *server) sessions() {
	sessions := f.app.Access.Sessions
	register(f, f.op(http.MethodGet, "/sessions", "list-sessions", "List your sessions", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[SessionView]], error) {
			all, err := sessions.List(ctx)
			a, _ := access.Of(ctx)
			return answer(listOf(views(all, func(s store.Session) SessionView {
				return SessionView{s.ID, s.Client, s.Address, s.ID == a.Session, s.CreatedAt, s.UsedAt, s.ExpiresAt}
			}), ""), err)
		})
	register(f, f.op(http.MethodDelete, "/sessions/{id}", "end-session", "End one of your sessions", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"100"`
		},
		) (*none, error) {
			return nil, sessions.End(ctx, in.ID)
		})
	register(f, f.op(http.MethodDelete, "/sessions", "end-sessions", "End all your sessions", http.StatusNoContent),
		func(ctx context.Context, _ *struct{}) (*none, error) { return nil, sessions.End(ctx, "") })
}

func (f *server) apiTokens() {
	tokens := f.app.Access.Tokens
	register(f, f.op(http.MethodPost, "/tokens", "make-token", "Make a token for a program; it is shown once", http.StatusCreated),
		func(ctx context.Context, in *struct{ Body NewToken }) (*body[MadeToken], error) {
			r := access.TokenRequest{Name: in.Body.Name, Scopes: in.Body.Scopes}
			if in.Body.ExpiresAt != nil {
				r.ExpiresAt = *in.Body.ExpiresAt
			}
			secret, t, err := tokens.Create(ctx, r)
			return answer(MadeToken{t.ID, secret, optionalTime(t.ExpiresAt)}, err)
		})
	register(f, f.op(http.MethodGet, "/tokens", "list-tokens", "List your tokens", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[TokenView]], error) {
			all, err := tokens.List(ctx)
			return answer(listOf(views(all, func(t store.Token) TokenView {
				return TokenView{t.ID, t.Name, t.Parent, t.Scopes, t.CreatedAt, optionalTime(t.UsedAt), optionalTime(t.ExpiresAt)}
			}), ""), err)
		})
	register(f, f.op(http.MethodDelete, "/tokens/{id}", "revoke-token", "Revoke one of your tokens; what it is used for ends at once", http.StatusNoContent),
		func(ctx context.Context, in *struct {
			ID string `path:"id" maxLength:"100"`
		},
		) (*none, error) {
			return nil, tokens.Revoke(ctx, in.ID)
		})
}

func views[T, V any](all []T, view func(T) V) []V {
	out := make([]V, len(all))
	for i, v := range all {
		out[i] = view(v)
	}
	return out
}

// me describes who asks.
func (f *server) me(ctx context.Context) (MeView, error) {
	a, ok := access.Of(ctx)
	if !ok {
		return MeView{}, access.Unknown()
	}
	m := MeView{ID: a.Owner, Name: a.Name, Role: a.Role, Token: a.Token, TokenID: a.TokenID, Login: !f.app.Access.Open()}
	for _, s := range access.Scopes() {
		if a.May(s) {
			m.Scopes = append(m.Scopes, s)
		}
	}
	switch u, err := f.app.Access.Users.Me(ctx); {
	case err == nil:
		m.Name, m.Email = u.Name, u.Email
	case !errors.Is(err, artel.NotFound):
		return m, err
	}
	if !a.May(store.ScopeRead) {
		return m, nil
	}
	stored, err := f.app.Storage.Mine(ctx)
	m.Storage = &stored
	return m, err
}

// A RequestHeader gives a handler the request, whose body is read elsewhere.
type RequestHeader struct{ request *http.Request }

// Resolve implements huma.Resolver.
func (in *RequestHeader) Resolve(ctx huma.Context) []error {
	in.request, _ = humago.Unwrap(ctx)
	return nil
}

// A loggedIn answers with the cookie of a session.
type loggedIn struct {
	Cookie http.Cookie `header:"Set-Cookie"`
	Body   struct {
		ExpiresAt time.Time `json:"expires_at" doc:"of the session"`
	}
}

type loggedOut struct {
	Cookie http.Cookie `header:"Set-Cookie"`
}

func (f *server) logIn(ctx context.Context, r *http.Request, c Credentials) (*loggedIn, error) {
	secret, s, err := f.app.Access.Sessions.Login(ctx, access.LoginOf(r, c.Email, c.Password))
	return begun(r, secret, s, err)
}

// begun answers with the cookie of a session that has begun.
func begun(r *http.Request, secret string, s store.Session, err error) (*loggedIn, error) {
	if err != nil {
		return nil, err
	}
	out := &loggedIn{Cookie: *access.Cookie(r, secret, s.ExpiresAt)}
	out.Body.ExpiresAt = s.ExpiresAt
	return out, nil
}

// logOut ends the session that asks; a token stays.
func (f *server) logOut(ctx context.Context) error {
	if a, ok := access.Of(ctx); ok && a.Session != "" {
		return f.app.Access.Sessions.End(ctx, a.Session)
	}
	return nil
}

// inviteURL is the address at which a user sets a password.
func inviteURL(r *http.Request, code string) string {
	return peer.Of(r).URL() + InvitePath(code)
}

// InvitePath is the path of the page at which an invited user sets a password.
func InvitePath(code string) string { return acceptPath + "?" + url.Values{"code": {code}}.Encode() }
