// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// An AccountPage shows the account of who asks: name, password, sessions and tokens.
type AccountPage struct {
	frame
	User     store.User
	Role     phrase.Key
	Open     bool // there are no users yet
	Session  bool // the password can be changed
	Stored   app.StorageUse
	Keys     int // of the gateway, which a new password ends unless they are kept
	Sessions []SessionRow
	Tokens   []TokenRow
	Scopes   []ScopeChoice
	Ends     []EndChoice // of a new token
	Name     string      // of a new token, in a form that was refused
	Secret   *Shown      // of the token that was just made; nil: none
	Problem  string
	Field    string // of the problem; "": none
}

// A SessionRow is one session.
type SessionRow struct {
	store.Session
	Current bool
	Name    string // of the browser and its system, or what the program calls itself; "": unknown
}

// A TokenRow is one token.
type TokenRow struct {
	store.Token
	Child bool // it was made with a token
}

// A ScopeChoice is a scope that a new token may have.
type ScopeChoice struct {
	Scope store.Scope
	About phrase.Key
	On    bool
}

// An EndChoice is when a new token ends.
type EndChoice struct {
	Days int // 0: never
	On   bool
}

// A Shown is a secret or address that is shown once.
type Shown struct{ About, Text string }

// account shows the account.
func (ui *handler) account(w http.ResponseWriter, r *http.Request) {
	ui.showAccount(w, r, http.StatusOK, AccountPage{})
}

// scopesAbout are the descriptions of scopes.
var scopesAbout = map[store.Scope]phrase.Key{
	store.ScopeRead: phrase.PageScopeRead, store.ScopeWrite: phrase.PageScopeWrite, store.ScopeGateway: phrase.PageScopeGateway, store.ScopeAdmin: phrase.PageScopeAdmin,
}

// rolesSaid are the names of roles.
var rolesSaid = map[store.Role]phrase.Key{store.Admin: phrase.PageRoleAdmin, store.Member: phrase.PageRoleMember, store.Viewer: phrase.PageRoleViewer}

// tokenDays are the ends that the form of a new token offers; the second one is chosen.
var tokenDays = []int{7, 90, 365, 0}

func (ui *handler) showAccount(w http.ResponseWriter, r *http.Request, status int, p AccountPage) {
	ctx := r.Context()
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageAccount, nil)
	if r.URL.Query().Has("saved") {
		f.Toast = &Toast{ID: "toast-saved", Text: locale(r).Say(phrase.PageSaved, nil)}
	}
	p.frame = f
	p.User, err = ui.app.Access.Users.Me(ctx)
	switch {
	case errors.Is(err, artel.NotFound):
		p.Open = true
		ui.show(w, r, status, "account.html", p)
		return
	case err != nil:
		ui.fail(w, r, err)
		return
	}
	a, _ := access.Of(ctx)
	p.Role, p.Session = rolesSaid[p.User.Role], a.Session != ""
	if p.Stored, err = ui.app.Storage.Mine(ctx); err != nil {
		ui.fail(w, r, err)
		return
	}
	sessions, err := ui.app.Access.Sessions.List(ctx)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, s := range sessions {
		p.Sessions = append(p.Sessions, SessionRow{s, s.ID == a.Session, clientName(locale(r), s.Client)})
	}
	tokens, err := ui.app.Access.Tokens.List(ctx)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, t := range tokens {
		p.Tokens = append(p.Tokens, TokenRow{t, t.Parent != ""})
	}
	keys, err := ui.app.Access.Keys.List(ctx)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, k := range keys { // an administrator sees those of all
		if k.User == a.Owner && k.Parent == "" {
			p.Keys++
		}
	}
	asked := r.PostForm["scope"]
	for _, s := range access.Scopes() {
		if a.May(s) {
			on := slices.Contains(asked, string(s)) || len(asked) == 0 && s == store.ScopeRead
			p.Scopes = append(p.Scopes, ScopeChoice{s, scopesAbout[s], on})
		}
	}
	for i, days := range tokenDays {
		p.Ends = append(p.Ends, EndChoice{days, i == 1})
	}
	ui.show(w, r, status, "account.html", p)
}

// refuseAccount shows the account with what was wrong with a form.
func (ui *handler) refuseAccount(w http.ResponseWriter, r *http.Request, field string, err error) {
	status, text := ui.explain(r, err)
	ui.showAccount(w, r, status, AccountPage{Problem: text, Field: field, Name: r.PostFormValue("token")})
}

// saveAccount changes the name.
func (ui *handler) saveAccount(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	if _, err := ui.app.Access.Users.Rename(r.Context(), strings.TrimSpace(r.PostFormValue("name"))); err != nil {
		ui.refuseAccount(w, r, "name", err)
		return
	}
	http.Redirect(w, r, "/account?saved", http.StatusSeeOther)
}

// changePassword changes the password, for which a new session begins.
func (ui *handler) changePassword(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	l := access.LoginOf(r, "", "")
	secret, s, err := ui.app.Access.Sessions.ChangePassword(r.Context(), access.PasswordChange{
		Old: r.PostFormValue("old"), New: r.PostFormValue("password"), Keep: r.PostFormValue("keep") != "", KeepKeys: r.PostFormValue("keep_keys") != "",
		Client: l.Client, Previous: l.Previous,
	})
	if err != nil {
		field := "password"
		if artel.CodeOf(err) == access.CodeWrongPassword {
			field = "old"
		}
		ui.refuseAccount(w, r, field, err)
		return
	}
	http.SetCookie(w, access.Cookie(r, secret, s.ExpiresAt))
	http.Redirect(w, r, "/account?saved", http.StatusSeeOther)
}

// endSessions ends one session, or all of them.
func (ui *handler) endSessions(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	err := ui.app.Access.Sessions.End(r.Context(), r.PostFormValue("id"))
	if err != nil && !errors.Is(err, artel.NotFound) { // one that has ended already
		ui.refuseAccount(w, r, "", err)
		return
	}
	http.Redirect(w, r, "/account?saved", http.StatusSeeOther) // which leads to the login if it was this one
}

// makeToken makes a token and shows its secret.
func (ui *handler) makeToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	asked := access.TokenRequest{Name: strings.TrimSpace(r.PostFormValue("token"))}
	for _, s := range r.PostForm["scope"] {
		asked.Scopes = append(asked.Scopes, store.Scope(s))
	}
	if days, err := strconv.Atoi(r.PostFormValue("days")); err == nil && days > 0 && slices.Contains(tokenDays, days) {
		asked.ExpiresAt = ui.o.Now().Add(time.Duration(days) * 24 * time.Hour)
	}
	secret, t, err := ui.app.Access.Tokens.Create(r.Context(), asked)
	if err != nil {
		ui.refuseAccount(w, r, "token", err)
		return
	}
	r.PostForm = nil // an empty form for the next one
	ui.showAccount(w, r, http.StatusOK, AccountPage{Secret: &Shown{t.Name, secret}})
}

// revokeToken revokes a token.
func (ui *handler) revokeToken(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	if err := ui.app.Access.Tokens.Revoke(r.Context(), r.PostFormValue("id")); err != nil && !errors.Is(err, artel.NotFound) {
		ui.refuseAccount(w, r, "", err)
		return
	}
	http.Redirect(w, r, "/account?saved", http.StatusSeeOther)
}
