// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/accounts"
	"github.com/artelhq/artel/internal/oauth"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// accountRefusals are the phrases of accounts that could not be connected, by the code of
// the error. They are followed by its text.
var accountRefusals = map[string]phrase.Key{
	oauth.CodeUnreachable: phrase.PageAccountsUnreachable,
	oauth.CodeUnknown:     phrase.PageAccountsUnknown,
	oauth.CodeUnsafe:      phrase.PageAccountsUnsafe,
	oauth.CodeClient:      phrase.PageAccountsClient,
	oauth.CodeExpired:     phrase.PageAccountsLate,
	oauth.CodeRefused:     phrase.PageAccountsRefused,
}

// An AccountCard is an MCP server that the user connects with an account.
type AccountCard struct {
	Name       string
	Address    string
	Badge      string
	BadgeClass string
	Facts      []string
	Again      bool // it was connected before
	Stored     bool // there is something to disconnect
	May        bool // who asks may connect it
}

func accountCard(a accounts.Account, may bool, l phrase.Locale) AccountCard {
	c := AccountCard{Name: a.Server, Address: a.URL, Again: a.State != accounts.NotConnected, Stored: a.State != accounts.NotConnected, May: may}
	c.Badge, c.BadgeClass = l.Say(phrase.PageAccountsNot, nil), "warn"
	switch a.State {
	case accounts.Connected:
		c.Badge, c.BadgeClass = l.Say(phrase.PageAccountsConnected, nil), "good"
		if a.Name != "" {
			c.Badge = l.Say(phrase.PageAccountsConnectedAs, map[string]any{"Name": a.Name})
		}
	case accounts.Expired:
		c.Badge, c.BadgeClass = l.Say(phrase.PageAccountsExpired, nil), "bad"
	case accounts.Insufficient:
		c.Badge = l.Say(phrase.PageAccountsMore, nil)
	case accounts.Unreadable:
		c.Badge, c.BadgeClass = l.Say(phrase.PageAccountsUnreadable, nil), "bad"
	}
	if a.Issuer != "" {
		c.Facts = append(c.Facts, l.Say(phrase.PageAccountsIssuer, map[string]any{"Issuer": a.Issuer}))
	}
	if !a.Connected.IsZero() {
		c.Facts = append(c.Facts, l.Say(phrase.PageAccountsSince, map[string]any{"Time": a.Connected.In(time.Local).Format("2006-01-02 15:04")}))
	}
	return c
}

// accountCards returns the servers that the user connects with accounts.
func (ui *handler) accountCards(r *http.Request) ([]AccountCard, error) {
	all, err := ui.app.Accounts.List(r.Context())
	may := access.Require(r.Context(), store.ScopeWrite) == nil
	out := make([]AccountCard, len(all))
	for i, a := range all {
		out[i] = accountCard(a, may, locale(r))
	}
	return out, err
}

// mcpAccount shows one server that the user connects with an account.
func (ui *handler) mcpAccount(w http.ResponseWriter, r *http.Request) {
	ui.showMCPAccount(w, r, http.StatusOK, r.PathValue("name"), "", "")
}

// showMCPAccount shows a server, with why it could not be connected and the text of the
// error.
func (ui *handler) showMCPAccount(w http.ResponseWriter, r *http.Request, status int, name, why, detail string) {
	f, err := ui.frame(r, "")
	var cards []AccountCard
	if err == nil {
		cards, err = ui.accountCards(r)
	}
	at := slices.IndexFunc(cards, func(c AccountCard) bool { return c.Name == name })
	if err == nil && at < 0 && why == "" {
		err = artel.Errorf(artel.NotFound, "webui", artel.Shorten(name, 60), "%s", locale(r).Say(phrase.PageNothingHere, nil))
	}
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	if cards = slices.Clone(cards); at >= 0 {
		cards = cards[at : at+1]
	}
	f.Title = locale(r).Say(phrase.PageAccountsOne, nil)
	ui.show(w, r, status, "account-mcp.html", struct {
		frame
		Accounts    []AccountCard
		Why, Detail string
	}{f, cards, why, detail})
}

// refuseMCPAccount shows why a server was not connected.
func (ui *handler) refuseMCPAccount(w http.ResponseWriter, r *http.Request, name string, err error) {
	key, ok := accountRefusals[artel.CodeOf(err)]
	if !ok {
		ui.fail(w, r, err)
		return
	}
	status, text := ui.explain(r, err)
	ui.showMCPAccount(w, r, status, name, locale(r).Say(key, nil), text)
}

// startAccount sends the browser to the authorization server of an MCP server. Only a link
// of this page begins it: what another site links to shows the page of the server.
func (ui *handler) startAccount(w http.ResponseWriter, r *http.Request) {
	name := r.URL.Query().Get("server")
	if s := r.Header.Get("Sec-Fetch-Site"); s == "cross-site" || s == "same-site" {
		http.Redirect(w, r, accounts.Page(url.PathEscape(name)), http.StatusSeeOther)
		return
	}
	location, err := ui.app.Accounts.Start(r.Context(), name, accounts.SiteAt(peer.Of(r).URL()))
	if err != nil {
		ui.refuseMCPAccount(w, r, name, err)
		return
	}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer")
	http.Redirect(w, r, location, http.StatusSeeOther)
}

// finishAccount takes what the authorization server sent back with the browser.
func (ui *handler) finishAccount(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Referrer-Policy", "no-referrer") // the address has the code
	a, err := ui.app.Accounts.Finish(r.Context(), r.URL.Query())
	if err != nil {
		ui.refuseMCPAccount(w, r, a.Server, err)
		return
	}
	http.Redirect(w, r, "/tools?connected="+url.QueryEscape(a.Server), http.StatusSeeOther)
}

// disconnectAccount ends the access of the user to a server.
func (ui *handler) disconnectAccount(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	revoked, err := ui.app.Accounts.Disconnect(r.Context(), name)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	end := "disconnected"
	if !revoked {
		end = "deleted"
	}
	http.Redirect(w, r, "/tools?"+url.Values{end: {name}}.Encode(), http.StatusSeeOther)
}

// accountToast says what has just happened to an account; nil: nothing.
func accountToast(r *http.Request) *Toast {
	for word, key := range map[string]phrase.Key{
		"connected": phrase.PageAccountsDone, "disconnected": phrase.PageAccountsEnded, "deleted": phrase.PageAccountsEndedHere,
	} {
		if name := r.URL.Query().Get(word); name != "" {
			return &Toast{ID: "toast-account", Text: locale(r).Say(key, map[string]any{"Name": artel.Shorten(name, 60)})}
		}
	}
	return nil
}

// clientDocument describes this program to authorization servers.
func (ui *handler) clientDocument(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "max-age=300")
	_ = json.NewEncoder(w).Encode(accounts.DocumentAt(peer.Of(r).URL())) // the client is gone
}
