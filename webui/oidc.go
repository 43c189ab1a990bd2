// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/url"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/oidc"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
)

// Paths of logins at a provider.
const (
	oidcPath     = "/auth/oidc"
	oidcCallback = oidcPath + "/callback"
	oidcCookie   = "artel_oidc" // has the sealed state
)

// refusals are the phrases of failed logins at a provider, by the code of the error.
var refusals = map[string]phrase.Key{
	oidc.CodeUnreachable:  phrase.PageOidcUnreachable,
	oidc.CodeExpired:      phrase.PageOidcExpired,
	oidc.CodeRefused:      phrase.PageOidcRefused,
	oidc.CodeInvalid:      phrase.PageOidcInvalid,
	access.CodeUnverified: phrase.PageOidcUnverified,
	access.CodeUninvited:  phrase.PageOidcUninvited,
	access.CodeDisabled:   phrase.PageOidcDisabled,
	access.CodeLinked:     phrase.PageOidcLinked,
	access.CodeNotSetUp:   phrase.PageOidcNotSetUp,
}

// stateCookie keeps the sealed state while the browser is at the provider. It comes
// back with the link of the provider, so it is SameSite=Lax.
func stateCookie(r *http.Request, sealed string) *http.Cookie {
	p := peer.Of(r)
	c := &http.Cookie{
		Name: oidcCookie, Value: sealed, Path: p.Prefix + oidcPath, HttpOnly: true, SameSite: http.SameSiteLaxMode,
		Secure: p.Scheme == "https", MaxAge: int(oidc.StateLife.Seconds()),
	}
	if sealed == "" {
		c.MaxAge = -1
	}
	return c
}

// startOIDC sends the browser to the provider.
func (ui *handler) startOIDC(w http.ResponseWriter, r *http.Request) {
	location, sealed, err := ui.place.OIDC.Start(r.Context(), peer.Of(r).URL()+oidcCallback, localPath(r.URL.Query().Get("next")))
	if err != nil {
		ui.refuseOIDC(w, r, "", err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.SetCookie(w, stateCookie(r, sealed))
	http.Redirect(w, r, location, http.StatusSeeOther)
}

// finishOIDC logs in the person that the provider names.
func (ui *handler) finishOIDC(w http.ResponseWriter, r *http.Request) {
	var sealed string
	if c, err := r.Cookie(oidcCookie); err == nil {
		sealed = c.Value
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has the code
	http.SetCookie(w, stateCookie(r, ""))
	claim, next, err := ui.place.OIDC.Finish(r.Context(), sealed, r.URL.Query())
	if err != nil {
		ui.refuseOIDC(w, r, next, err)
		return
	}
	secret, s, err := ui.app.Access.Sessions.LoginBy(r.Context(), claim, access.LoginOf(r, "", ""))
	if err != nil {
		ui.refuseOIDC(w, r, next, err)
		return
	}
	http.SetCookie(w, access.Cookie(r, secret, s.ExpiresAt))
	http.Redirect(w, r, localPath(next), http.StatusSeeOther)
}

// refuseOIDC leads to the login page, which says what is wrong; the log has the
// details.
func (ui *handler) refuseOIDC(w http.ResponseWriter, r *http.Request, next string, err error) {
	code := artel.CodeOf(err)
	if _, ok := refusals[code]; !ok {
		code = oidc.CodeInvalid
	}
	ui.o.Log.WarnContext(r.Context(), "a login at the provider failed", "code", code, "err", err)
	v := url.Values{"failed": {code}}
	if next = localPath(next); next != "/" {
		v.Set("next", next)
	}
	http.Redirect(w, r, "/login?"+v.Encode(), http.StatusSeeOther)
}
