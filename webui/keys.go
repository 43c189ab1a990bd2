// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/peer"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
)

// A KeysPage shows the keys of the gateway: those of who asks, and all of them to
// administrators.
type KeysPage struct {
	frame
	Keys    []KeyRow
	Form    KeyForm  // of a new key
	May     bool     // who asks may make keys
	Open    bool     // programs need no key
	Secret  *Shown   // of the key that was just made; nil: none
	Clients []Client // with the secret
	Problem string
	Of      string // the key of the problem; "": a new one
}

// A KeyRow is one key.
type KeyRow struct {
	store.GatewayKey
	User  string // the name of its user, if others are listed too; "": not said
	Child bool   // it was made with a token
	Fixed bool   // only the file of the configuration changes it
	Ended bool
	Spent Spent
	Form  KeyForm
	URL   string
}

// Spent says how much of a budget is used up. The zero value is that of a key without one.
type Spent struct {
	Used, Most string
	Share      float64 // of the budget, at most 1
	Month      bool    // the budget is one of a month, not of a day
	Refused    bool    // too little was left for the last request
	Until      time.Time
}

// nearBudget is the share of a budget that makes the page warn.
const nearBudget = 0.8

// Near reports whether little is left.
func (s Spent) Near() bool { return s.Share >= nearBudget && !s.Over() }

// Over reports whether nothing is left, or too little for the last request.
func (s Spent) Over() bool { return s.Share >= 1 || s.Refused }

// A KeyForm has the values of the fields of a key.
type KeyForm struct {
	ID       string // of the elements
	Name     string
	Requests string // a minute; "": no limit
	Tokens   string // a minute
	Parallel string
	USD      string
	Period   store.Period
	Services []ServiceChoice
	Ends     []EndChoice
	Ending   time.Time // of a key that exists; zero: never
	Kept     bool      // the key exists, and its end is kept unless another is chosen
}

// A ServiceChoice is a service that a key may call.
type ServiceChoice struct {
	ID   artel.ServiceID
	Name string
	On   bool
}

// keyDays are the ends that the form of a key offers.
var keyDays = []int{0, 7, 30, 90, 365}

// keepEnd is the choice that leaves the end of a key as it is.
const keepEnd = "keep"

func keyURL(id string) string { return "/keys/" + url.PathEscape(id) }

// keys shows the keys.
func (ui *handler) keys(w http.ResponseWriter, r *http.Request) {
	ui.showKeys(w, r, http.StatusOK, KeysPage{})
}

// showKeys shows the keys. A form of p that was refused shows what was typed.
func (ui *handler) showKeys(w http.ResponseWriter, r *http.Request, status int, p KeysPage) {
	ctx := r.Context()
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageKeys, nil)
	if r.URL.Query().Has("saved") {
		f.Toast = &Toast{ID: "toast-saved", Text: locale(r).Say(phrase.PageSaved, nil)}
	}
	p.frame, p.Open = f, ui.app.Access.Open()
	a, _ := access.Of(ctx)
	p.May = a.May(store.ScopeGateway)
	services := ui.callable(r)
	refused := p.Problem != ""
	p.Form = keyFormOf(store.GatewayKey{}, "key", services)
	if refused && p.Of == "" {
		p.Form.typed(r)
	}
	spent, err := ui.spent(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	all, err := ui.app.Keys.List(ctx)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	users, err := ui.userNames(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	fixed := ui.app.Keys.Fixed(ctx)
	for i, k := range append(all, fixed...) {
		row := KeyRow{
			GatewayKey: k, User: users[k.User], Child: k.Parent != "", Fixed: i >= len(all), URL: keyURL(k.ID),
			Ended: !k.ExpiresAt.IsZero() && !k.ExpiresAt.After(ui.o.Now()), Spent: spent.of(k), Form: keyFormOf(k, k.ID, services),
		}
		if refused && p.Of == k.ID {
			row.Form.typed(r)
		}
		p.Keys = append(p.Keys, row)
	}
	ui.show(w, r, status, "keys.html", p)
}

// callable lists the services that keys can be limited to.
func (ui *handler) callable(r *http.Request) (all []model.Service) {
	for _, s := range ui.app.Models.Services(r.Context()) {
		if s.Callable() {
			all = append(all, s)
		}
	}
	return all
}

// userNames are the names of the users, for administrators of a server with several.
func (ui *handler) userNames(r *http.Request) (map[artel.Owner]string, error) {
	a, _ := access.Of(r.Context())
	if !a.May(store.ScopeAdmin) {
		return nil, nil
	}
	users, err := ui.app.Access.Users.List(r.Context())
	if err != nil || len(users) < 2 {
		return nil, err
	}
	names := map[artel.Owner]string{}
	for _, u := range users {
		names[u.ID] = u.Name
	}
	return names, nil
}

// spendings are what keys have cost, in billionths of a dollar, since a budget began.
type spendings struct {
	now     time.Time
	since   map[store.Period]map[string]int64
	refused func(store.GatewayKey) bool
}

// spent sums what keys have cost in the current day and month.
func (ui *handler) spent(r *http.Request) (spendings, error) {
	now := ui.o.Now()
	s := spendings{now, map[store.Period]map[string]int64{}, ui.app.Usage.Refused}
	for _, p := range []store.Period{store.PerDay, store.PerMonth} {
		rows, err := ui.app.Usage.List(r.Context(), p.Begin(now), store.PerDay.Begin(now), store.ByKey)
		if err != nil {
			return s, err
		}
		s.since[p] = map[string]int64{}
		for _, row := range rows {
			s.since[p][row.Key] += row.Counts.Cost
		}
	}
	return s, nil
}

// of returns what a key has spent of its budget.
func (s spendings) of(k store.GatewayKey) Spent {
	b := k.Limits.Budget
	if b.USD <= 0 {
		return Spent{}
	}
	used := float64(s.since[b.Period][k.ID]) / 1e9
	return Spent{
		Used: dollarsOf(used), Most: dollarsOf(b.USD), Share: min(1, used/b.USD), Month: b.Period == store.PerMonth, Refused: s.refused(k), Until: b.Period.End(s.now),
	}
}

// dollarsOf writes an amount of US dollars, with more digits if it is small.
func dollarsOf(usd float64) string {
	return Usage{Usage: artel.Usage{Calls: 1, Cost: artel.Cost{USD: usd, Calls: 1}}}.Money()
}

// keyFormOf returns the form of a key. id begins the ids of its elements.
func keyFormOf(k store.GatewayKey, id string, services []model.Service) KeyForm {
	number := func(n int64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatInt(n, 10)
	}
	l := k.Limits
	f := KeyForm{
		ID: id, Name: k.Name, Requests: number(int64(l.Requests)), Tokens: number(l.Tokens), Parallel: number(int64(l.Concurrent)),
		Period: cmp.Or(l.Budget.Period, store.PerMonth), Ending: k.ExpiresAt, Kept: k.ID != "",
	}
	if l.Budget.USD > 0 {
		f.USD = strconv.FormatFloat(l.Budget.USD, 'f', -1, 64)
	}
	for _, s := range services {
		f.Services = append(f.Services, ServiceChoice{s.ID, cmp.Or(s.Name, string(s.ID)), slices.Contains(k.Services, s.ID)})
	}
	for _, id := range k.Services {
		if !slices.ContainsFunc(services, func(s model.Service) bool { return s.ID == id }) {
			f.Services = append(f.Services, ServiceChoice{id, string(id), true})
		}
	}
	for _, days := range keyDays {
		f.Ends = append(f.Ends, EndChoice{days, days == 0 && !f.Kept})
	}
	return f
}

// typed shows what was typed into the form.
func (f *KeyForm) typed(r *http.Request) {
	v := r.PostForm
	f.Name, f.Requests, f.Tokens, f.Parallel = v.Get("name"), v.Get("requests"), v.Get("tokens"), v.Get("concurrent")
	f.USD, f.Period = v.Get("usd"), store.Period(v.Get("period"))
	for i := range f.Services {
		f.Services[i].On = slices.Contains(v["service"], string(f.Services[i].ID))
	}
	for i := range f.Ends {
		f.Ends[i].On = strconv.Itoa(f.Ends[i].Days) == v.Get("days")
	}
}

// readKey reads the fields of a form into a key.
func readKey(r *http.Request, k *store.GatewayKey, now time.Time) error {
	const op = "webui.keys"
	v := r.PostForm
	var wrong error
	number := func(field string) int64 {
		text := strings.TrimSpace(v.Get(field))
		if text == "" {
			return 0
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil && wrong == nil {
			wrong = artel.Errorf(artel.Invalid, op, field, "%q is not a whole number", artel.Shorten(text, 40))
		}
		return n
	}
	k.Name = strings.TrimSpace(v.Get("name"))
	k.Limits = store.KeyLimits{Requests: int(number("requests")), Tokens: number("tokens"), Concurrent: int(number("concurrent"))}
	if text := strings.TrimSpace(v.Get("usd")); text != "" {
		usd, err := strconv.ParseFloat(text, 64)
		if err != nil && wrong == nil {
			wrong = artel.Errorf(artel.Invalid, op, "usd", "%q is not a number of dollars", artel.Shorten(text, 40))
		}
		k.Limits.Budget = store.Budget{USD: usd, Period: store.Period(v.Get("period"))}
	}
	k.Services = nil
	for _, id := range v["service"] {
		k.Services = append(k.Services, artel.ServiceID(id))
	}
	switch days := v.Get("days"); days {
	case keepEnd:
	default:
		k.ExpiresAt = time.Time{}
		if n := atoi(days); n > 0 && slices.Contains(keyDays, n) {
			k.ExpiresAt = now.Add(time.Duration(n) * 24 * time.Hour)
		}
	}
	return wrong
}

// keyForm parses a form; false: the answer is sent.
func (ui *handler) keyForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxKeyForm)
	if err := r.ParseForm(); err != nil {
		ui.fail(w, r, artel.Errorf(artel.Invalid, "webui.keys", "form", "the form cannot be read: %w", err))
		return false
	}
	return true
}

// maxKeyForm is the most bytes of a form, which may name a thousand services.
const maxKeyForm = 256 << 10

// refuseKey shows the keys with what was wrong with a form of one of them.
func (ui *handler) refuseKey(w http.ResponseWriter, r *http.Request, id string, err error) {
	status, text := ui.explain(r, err)
	ui.showKeys(w, r, status, KeysPage{Problem: text, Of: id})
}

// makeKey makes a key and shows its secret, with the lines that programs need.
func (ui *handler) makeKey(w http.ResponseWriter, r *http.Request) {
	if !ui.keyForm(w, r) {
		return
	}
	var k store.GatewayKey
	err := readKey(r, &k, ui.o.Now())
	var secret string
	if err == nil {
		secret, k, err = ui.app.Keys.Create(r.Context(), k)
	}
	if err != nil {
		ui.refuseKey(w, r, "", err)
		return
	}
	service := "MODEL"
	for _, s := range ui.callable(r) {
		if k.Services == nil || slices.Contains(k.Services, s.ID) {
			service = string(s.ID)
			break
		}
	}
	ui.showKeys(w, r, http.StatusOK, KeysPage{Secret: &Shown{k.Name, secret}, Clients: clients(peer.Of(r).URL(), service, secret)})
}

// changeKey changes a key, or whether it is accepted.
func (ui *handler) changeKey(w http.ResponseWriter, r *http.Request) {
	if !ui.keyForm(w, r) {
		return
	}
	id := r.PathValue("id")
	var wrong error
	change := func(k *store.GatewayKey) { wrong = readKey(r, k, ui.o.Now()) }
	if do := r.PostForm.Get("do"); do == "enable" || do == "disable" {
		change = func(k *store.GatewayKey) { k.Disabled = do == "disable" }
	}
	check := store.GatewayKey{}
	if change(&check); wrong == nil {
		_, wrong = ui.app.Keys.Update(r.Context(), id, change)
	}
	if wrong != nil {
		ui.refuseKey(w, r, id, wrong)
		return
	}
	http.Redirect(w, r, "/keys?saved", http.StatusSeeOther)
}

// revokeKey revokes a key.
func (ui *handler) revokeKey(w http.ResponseWriter, r *http.Request) {
	if err := ui.app.Keys.Revoke(r.Context(), r.PathValue("id")); err != nil {
		ui.refuseKey(w, r, r.PathValue("id"), err)
		return
	}
	http.Redirect(w, r, "/keys?saved", http.StatusSeeOther)
}
