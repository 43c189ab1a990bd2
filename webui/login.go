// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
)

// maxLoginForm bounds the forms of clients without a login, in bytes.
const maxLoginForm = 64 << 10

// A LoginPage is the data of the pages /login, /setup and /invite, which need no login
// and have no sidebar.
type LoginPage struct {
	Title  string
	Lang   string
	Prefs  Prefs
	Action string // where the form goes
	Error  string // of the form that was sent; may be empty
	Code   string // of a set-up or an invitation
	Next   string // the page after the login
	Name   string
	Email  string
	Setup  bool // asks for the name and the address of the first administrator
	Login  bool // asks for the address of a user
	Button string
	Ended  bool   // the address of a set-up or an invitation is not valid any more: there is no form
	For    string // the address of the account that an invitation is for
	Plain  bool   // what is typed travels readable through the network
	OIDC   string // where a login at the provider begins; "": there is no provider
}

// showLogin shows one of the pages that need no login; err is of the form that was sent.
func (ui *handler) showLogin(w http.ResponseWriter, r *http.Request, e LoginPage, err error) {
	status := http.StatusOK
	if err != nil {
		status, e.Error = ui.explain(r, err)
		e.Ended = slices.Contains([]string{access.CodeInvitationEnded, access.CodeIsSetUp}, artel.CodeOf(err))
	}
	p := peer.Of(r)
	e.Plain = p.Scheme != "https" && !access.IsLoopback(p.Host)
	l := locale(r)
	e.Lang, e.Prefs, e.Action = string(l), prefsOf(r), r.URL.Path
	e.Login, e.Setup = r.URL.Path == "/login", r.URL.Path == "/setup"
	switch r.URL.Path {
	case "/setup":
		e.Title, e.Button = l.Say(phrase.PageSetupTitle, nil), l.Say(phrase.PageSetupDo, nil)
	case "/invite":
		e.Title, e.Button = l.Say(phrase.PageInviteTitle, nil), l.Say(phrase.PageInviteDo, nil)
	default:
		e.Title, e.Button = l.Say(phrase.PageLoginTitle, nil), l.Say(phrase.PageLoginDo, nil)
	}
	if e.Login && ui.place.OIDC != nil {
		e.OIDC = oidcPath + "/start?" + url.Values{"next": {localPath(e.Next)}}.Encode()
	}
	ui.show(w, r, status, "login.html", e)
}

// emptyLogin shows an empty form.
func (ui *handler) emptyLogin(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	e := LoginPage{Code: q.Get("code"), Next: q.Get("next")}
	if key, ok := refusals[q.Get("failed")]; ok && ui.place.OIDC != nil {
		e.Error = locale(r).Say(key, nil)
	}
	if e.Code == "" { // typed by hand: the form says what is missing when it is sent
		ui.showLogin(w, r, e, nil)
		return
	}
	var err error
	switch r.URL.Path {
	case "/setup":
		if ui.app.Access.HasUsers() {
			err = &artel.Error{Op: "webui.Login", Kind: artel.Conflict, Code: access.CodeIsSetUp}
		}
	case "/invite":
		e.For, err = ui.invitedAddress(r, e.Code)
	}
	ui.showLogin(w, r, e, err)
}

// invitedAddress is the address of the account that an invitation is for.
func (ui *handler) invitedAddress(r *http.Request, code string) (string, error) {
	u, err := ui.app.Access.Users.Invited(r.Context(), code)
	return u.Email, err
}

// localPath returns a path of this site, to which a login leads.
func localPath(next string) string {
	if !strings.HasPrefix(next, "/") || strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\r\n\t") {
		return "/"
	}
	return next
}

// logIn begins a session.
func (ui *handler) logIn(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	ui.enter(w, r, LoginPage{Next: r.PostFormValue("next"), Email: r.PostFormValue("email")}, r.PostFormValue("email"))
}

// enter logs in with the password of the form, and leads to the next page.
func (ui *handler) enter(w http.ResponseWriter, r *http.Request, e LoginPage, email string) {
	secret, s, err := ui.app.Access.Sessions.Login(r.Context(), access.LoginOf(r, email, r.PostFormValue("password")))
	if err != nil {
		ui.showLogin(w, r, e, err)
		return
	}
	http.SetCookie(w, access.Cookie(r, secret, s.ExpiresAt))
	http.Redirect(w, r, localPath(e.Next), http.StatusSeeOther)
}

// setUp makes the first administrator.
func (ui *handler) setUp(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	e := LoginPage{Code: r.PostFormValue("code"), Name: r.PostFormValue("name"), Email: r.PostFormValue("email")}
	u, err := ui.app.Access.Users.Setup(r.Context(), access.Setup{Code: e.Code, Name: e.Name, Email: e.Email, Password: r.PostFormValue("password")})
	if err != nil {
		ui.showLogin(w, r, e, err)
		return
	}
	ui.enter(w, r, e, u.Email)
}

// acceptInvitation sets the password of an invited user.
func (ui *handler) acceptInvitation(w http.ResponseWriter, r *http.Request) {
	r.Body = http.MaxBytesReader(w, r.Body, maxLoginForm)
	e := LoginPage{Code: r.PostFormValue("code")}
	u, err := ui.app.Access.Users.Accept(r.Context(), e.Code, r.PostFormValue("password"))
	if err != nil {
		e.For, _ = ui.invitedAddress(r, e.Code) // what is wrong is said already
		ui.showLogin(w, r, e, err)
		return
	}
	ui.enter(w, r, e, u.Email)
}

// logOut ends the session.
func (ui *handler) logOut(w http.ResponseWriter, r *http.Request) {
	if a, ok := access.Of(r.Context()); ok && a.Session != "" {
		if err := ui.app.Access.Sessions.End(r.Context(), a.Session); err != nil && artel.KindOf(err) != artel.NotFound {
			ui.fail(w, r, err)
			return
		}
	}
	http.SetCookie(w, access.Cookie(r, "", time.Time{}))
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
