// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// AuditPage is the data of the page /audit.
type AuditPage struct {
	Query   url.Values // the filter
	Items   []AuditItem
	Actions []AuditAction
	People  []AuditPerson
	Newest  string // URL of the newest; "": these are
	Older   string // URL of older ones; "": none
	Export  string // URL of the entries as CSV
}

// AuditItem is an entry of the audit log.
type AuditItem struct {
	store.AuditEntry
	Text  string // of the action
	Who   string // the name of the actor, or the id of a former user; "": none
	Named string // the name of the user that the action changed; "": another target
}

// AuditAction is a choice of the filter.
type AuditAction struct{ ID, Text string }

// AuditPerson is a choice of the filter.
type AuditPerson struct {
	ID   artel.Owner
	Name string
}

// Selected reports whether a filter has a value.
func (p AuditPage) Selected(name, value string) bool { return p.Query.Get(name) == value }

// Value is the value of a filter.
func (p AuditPage) Value(name string) string { return p.Query.Get(name) }

// audit shows the audit log to administrators.
func (ui *handler) audit(w http.ResponseWriter, r *http.Request) {
	ctx, l := r.Context(), locale(r)
	if err := access.Require(ctx, store.ScopeAdmin); err != nil {
		ui.fail(w, r, err)
		return
	}
	p := AuditPage{Query: url.Values{}}
	in := r.URL.Query()
	for _, name := range []string{"actor", "action", "since", "until"} {
		if v := in.Get(name); v != "" {
			p.Query.Set(name, v)
		}
	}
	q, export, err := auditQuery(p.Query, l)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	q.Page = store.Page{Cursor: in.Get("cursor")}
	p.Export = "/api/v1/audit/export?" + export.Encode()
	for _, a := range audit.Actions() {
		p.Actions = append(p.Actions, AuditAction{string(a), actionText(l, string(a))})
	}
	users, err := ui.app.Access.Users.List(ctx)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	names := map[artel.Owner]string{}
	for _, u := range users {
		names[u.ID] = u.Name
		p.People = append(p.People, AuditPerson{u.ID, u.Name})
	}
	rows, next, err := ui.app.Audit.List(ctx, q)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, e := range rows {
		i := AuditItem{e, actionText(l, e.Action), names[e.Actor], names[artel.Owner(e.Target)]}
		if i.Who == "" {
			i.Who = string(e.Actor)
		}
		p.Items = append(p.Items, i)
	}
	if in.Get("cursor") != "" {
		p.Newest = "/audit?" + p.Query.Encode()
	}
	if next != "" {
		older := url.Values{"cursor": {next}}
		for name, values := range p.Query {
			older[name] = values
		}
		p.Older = "/audit?" + older.Encode()
	}
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = l.Say(phrase.PageAudit, nil)
	ui.show(w, r, http.StatusOK, "audit.html", struct {
		frame
		Audit AuditPage
	}{f, p})
}

// auditQuery reads a filter, whose days begin and end at midnight of the server, and
// returns it for the API, too. The last day is part of the result.
func auditQuery(v url.Values, l phrase.Locale) (q store.AuditQuery, export url.Values, err error) {
	export = url.Values{}
	q.Actor, q.Action = artel.Owner(v.Get("actor")), v.Get("action")
	if q.Action != "" && !slices.Contains(audit.Actions(), audit.Action(q.Action)) {
		return q, nil, artel.Errorf(artel.Invalid, "webui.Audit", "action", "%s", l.Say(phrase.PageAuditUnknown, nil))
	}
	for _, f := range []struct {
		name string
		to   *time.Time
		days int
	}{{"since", &q.Since, 0}, {"until", &q.Until, 1}} {
		if v.Get(f.name) == "" {
			continue
		}
		day, err := time.ParseInLocation(time.DateOnly, v.Get(f.name), time.Local)
		if err != nil {
			return q, nil, artel.Errorf(artel.Invalid, "webui.Audit", f.name, "%s", l.Say(phrase.PageAuditDate, nil))
		}
		*f.to = day.AddDate(0, 0, f.days)
		export.Set(f.name, f.to.UTC().Format(time.RFC3339))
	}
	for _, name := range []string{"actor", "action"} {
		if s := v.Get(name); s != "" {
			export.Set(name, s)
		}
	}
	return q, export, nil
}

// actionText says an action in words; one without a phrase is shown as it is stored.
func actionText(l phrase.Locale, action string) string {
	key := "page.audit_did_" + action
	if s := l.Say(phrase.Key(key), nil); s != key {
		return s
	}
	return action
}
