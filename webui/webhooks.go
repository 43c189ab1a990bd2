// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/app/webhooks"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// A WebhooksPage shows the webhooks of who asks, or one of them with its log.
type WebhooksPage struct {
	frame
	Hooks   []WebhookRow
	Hook    *WebhookRow // the one that is shown; nil: all
	Form    WebhookForm // of a new webhook, or of the one that is shown
	May     bool        // who asks may change them
	Log     []DeliveryRow
	Older   string // address of the next page of the log; "": none
	Secret  *Shown // that was just made; nil: none
	Problem string
}

// A WebhookRow is one webhook.
type WebhookRow struct {
	store.Webhook
	Path string
}

// A WebhookForm has the values of the fields of a webhook.
type WebhookForm struct {
	Name, URL string
	Events    []EventChoice
}

// An EventChoice is a type of events that a webhook can receive.
type EventChoice struct {
	Type artel.EventType
	Said phrase.Key
	On   bool
}

// A DeliveryRow is one line of the log.
type DeliveryRow struct {
	store.Delivery
	Name     string // its id for the receiver
	Said     phrase.Key
	Kind     string // of the badge
	About    string // address of the conversation; "": a test
	Duration string
}

// eventsSaid are the types of events that webhooks can receive.
var eventsSaid = map[artel.EventType]phrase.Key{
	artel.EventRunFinished: phrase.PageWebhookRunFinished, artel.EventPermissionRequested: phrase.PageWebhookPermission, artel.EventElicitationRequested: phrase.PageWebhookElicitation,
	artel.EventArtifactCreated: phrase.PageWebhookArtifactCreated, artel.EventArtifactUpdated: phrase.PageWebhookArtifactUpdated,
}

// deliverySaid are the states of deliveries, with the kinds of their badges.
var deliverySaid = map[store.DeliveryState]struct {
	said phrase.Key
	kind string
}{
	store.DeliveryWaiting: {phrase.PageWebhookWaiting, "warn"}, store.DeliveryAccepted: {phrase.PageWebhookAccepted, "good"}, store.DeliveryFailed: {phrase.PageWebhookFailed, "bad"},
}

func webhookURL(id string) string { return "/webhooks/" + url.PathEscape(id) }

func webhookFormOf(w store.Webhook) WebhookForm {
	f := WebhookForm{Name: w.Name, URL: w.URL}
	for _, t := range webhooks.Events() {
		f.Events = append(f.Events, EventChoice{t, eventsSaid[t], w.Events == nil || slices.Contains(w.Events, t)})
	}
	return f
}

// webhooks shows all webhooks.
func (ui *handler) webhooks(w http.ResponseWriter, r *http.Request) {
	ui.showWebhooks(w, r, http.StatusOK, "", WebhooksPage{})
}

// webhook shows one webhook with its log.
func (ui *handler) webhook(w http.ResponseWriter, r *http.Request) {
	ui.showWebhooks(w, r, http.StatusOK, r.PathValue("id"), WebhooksPage{})
}

// showWebhooks shows all webhooks, or the one with an id. After a refusal the form has what
// was typed.
func (ui *handler) showWebhooks(w http.ResponseWriter, r *http.Request, status int, id string, p WebhooksPage) {
	ctx := r.Context()
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageWebhooks, nil)
	if r.URL.Query().Has("saved") {
		f.Toast = &Toast{ID: "toast-saved", Text: locale(r).Say(phrase.PageSaved, nil)}
	}
	p.frame, p.May = f, access.Require(ctx, store.ScopeWrite) == nil
	all, err := ui.app.Webhooks.List(ctx)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, h := range all {
		p.Hooks = append(p.Hooks, WebhookRow{h, webhookURL(h.ID)})
	}
	p.Form = webhookFormOf(store.Webhook{})
	if id != "" {
		i := slices.IndexFunc(p.Hooks, func(h WebhookRow) bool { return h.ID == id })
		if i < 0 {
			ui.fail(w, r, artel.Errorf(artel.NotFound, "webui.webhooks", artel.Shorten(id, 80), "no such webhook"))
			return
		}
		p.Hook, p.Form = &p.Hooks[i], webhookFormOf(p.Hooks[i].Webhook)
		if err := ui.deliveries(r, &p); err != nil {
			ui.fail(w, r, err)
			return
		}
	}
	if p.Problem != "" && r.PostForm.Has("url") {
		p.Form.Name, p.Form.URL = r.PostForm.Get("name"), r.PostForm.Get("url")
		for i := range p.Form.Events {
			p.Form.Events[i].On = slices.Contains(r.PostForm["event"], string(p.Form.Events[i].Type))
		}
	}
	ui.show(w, r, status, "webhooks.html", p)
}

// deliveries reads a page of the log of the webhook that is shown.
func (ui *handler) deliveries(r *http.Request, p *WebhooksPage) error {
	items, next, err := ui.app.Webhooks.Deliveries(r.Context(), store.DeliveryQuery{Webhook: p.Hook.ID, Page: store.Page{Cursor: r.URL.Query().Get("cursor"), Limit: 50}})
	if err != nil {
		return err
	}
	for _, d := range items {
		state := deliverySaid[d.State]
		row := DeliveryRow{Delivery: d, Name: webhooks.Name(d), Said: state.said, Kind: state.kind, Duration: d.Last.Took.Round(time.Millisecond).String()}
		if d.Conversation != "" {
			row.About = "/c/" + url.PathEscape(string(d.Conversation))
		}
		p.Log = append(p.Log, row)
	}
	if next != "" {
		p.Older = p.Hook.Path + "?cursor=" + url.QueryEscape(next)
	}
	return nil
}

// webhookForm parses a form; false: the answer is sent.
func (ui *handler) webhookForm(w http.ResponseWriter, r *http.Request) bool {
	r.Body = http.MaxBytesReader(w, r.Body, maxKeyForm)
	if err := r.ParseForm(); err != nil {
		ui.fail(w, r, artel.Errorf(artel.Invalid, "webui.webhooks", "form", "the form cannot be read: %w", err))
		return false
	}
	return true
}

// readWebhook reads the fields of a form into a webhook.
func readWebhook(r *http.Request, h *store.Webhook) {
	h.Name, h.URL, h.Events = strings.TrimSpace(r.PostForm.Get("name")), strings.TrimSpace(r.PostForm.Get("url")), []artel.EventType{}
	for _, t := range r.PostForm["event"] {
		h.Events = append(h.Events, artel.EventType(t))
	}
}

// refuseWebhook shows what was wrong with a form.
func (ui *handler) refuseWebhook(w http.ResponseWriter, r *http.Request, id string, err error) {
	status, text := ui.explain(r, err)
	if artel.KindOf(err) == artel.NotFound {
		id = "" // there is nothing to show
	}
	ui.showWebhooks(w, r, status, id, WebhooksPage{Problem: text})
}

// makeWebhook makes a webhook and shows its secret.
func (ui *handler) makeWebhook(w http.ResponseWriter, r *http.Request) {
	if !ui.webhookForm(w, r) {
		return
	}
	var h store.Webhook
	readWebhook(r, &h)
	secret, h, err := ui.app.Webhooks.Create(r.Context(), h)
	if err != nil {
		ui.refuseWebhook(w, r, "", err)
		return
	}
	ui.showWebhooks(w, r, http.StatusOK, h.ID, WebhooksPage{Secret: &Shown{h.Name, secret}})
}

// changeWebhook changes a webhook, or sends something to it.
func (ui *handler) changeWebhook(w http.ResponseWriter, r *http.Request) {
	if !ui.webhookForm(w, r) {
		return
	}
	ctx, id := r.Context(), r.PathValue("id")
	var err error
	switch do := r.PostForm.Get("do"); do {
	case "rotate":
		var secret string
		if secret, err = ui.app.Webhooks.Rotate(ctx, id); err == nil {
			ui.showWebhooks(w, r, http.StatusOK, id, WebhooksPage{Secret: &Shown{Text: secret}})
			return
		}
	case "test":
		_, err = ui.app.Webhooks.Test(ctx, id)
	case "again":
		number, _ := strconv.ParseInt(r.PostForm.Get("number"), 10, 64) // 0 is refused
		_, err = ui.app.Webhooks.Again(ctx, id, number)
	case "enable", "disable":
		_, err = ui.app.Webhooks.Update(ctx, id, func(h *store.Webhook) { h.Disabled = do == "disable" })
	default:
		_, err = ui.app.Webhooks.Update(ctx, id, func(h *store.Webhook) { readWebhook(r, h) })
	}
	if err != nil {
		ui.refuseWebhook(w, r, id, err)
		return
	}
	http.Redirect(w, r, webhookURL(id)+"?saved", http.StatusSeeOther)
}

// deleteWebhook deletes a webhook.
func (ui *handler) deleteWebhook(w http.ResponseWriter, r *http.Request) {
	if err := ui.app.Webhooks.Delete(r.Context(), r.PathValue("id")); err != nil {
		ui.refuseWebhook(w, r, "", err)
		return
	}
	http.Redirect(w, r, "/webhooks?saved", http.StatusSeeOther)
}
