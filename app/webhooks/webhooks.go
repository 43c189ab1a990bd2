// SPDX-License-Identifier: Apache-2.0

// Package webhooks tells programs of users what happens in their conversations: events of
// the log are sent to addresses, signed as the Standard Webhooks specification says.
//
// Begin with [New]. [Webhooks.Create] makes a webhook, and [Webhooks.Run] sends. An event
// and its deliveries are stored in one transaction (package event), so that a crash loses
// none. A delivery is named after its conversation and the number of its event: attempts that
// are repeated, also by another process after a crash, have the same name, by which receivers
// know what they already have.
package webhooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/internal/fetch"
	"github.com/artelhq/artel/internal/secret"
	"github.com/artelhq/artel/store"
)

// Options are what may be left out.
type Options struct {
	AllowPrivate bool             // addresses on this machine and in private networks too
	Waits        []time.Duration  // before the second attempt and those that follow; nil: as [Waits]
	Timeout      time.Duration    // of an attempt; 0: 15 s
	Every        time.Duration    // how often what is due is looked for; 0: 1 s
	Log          *slog.Logger     // nil: slog.Default
	Now          func() time.Time // nil: time.Now
}

// Waits returns the usual waits: eleven attempts in two days and five hours.
func Waits() []time.Duration {
	return []time.Duration{
		5 * time.Second, 30 * time.Second, 2 * time.Minute, 10 * time.Minute, 30 * time.Minute,
		time.Hour, 3 * time.Hour, 6 * time.Hour, 18 * time.Hour, 24 * time.Hour,
	}
}

// Limits of webhooks.
const (
	MaxWebhooks = 20   // of a user
	maxName     = 100  // code points
	maxURL      = 2000 // bytes
)

// Webhooks are the use cases of webhooks. They are safe for concurrent use.
type Webhooks struct {
	store   store.Store
	secrets *secret.Box
	o       Options
	client  *http.Client
	wake    chan struct{} // has a value when something may be due

	mu   sync.Mutex
	busy map[string]bool // webhooks that are being sent to
}

// New returns the webhooks of a deployment. Without secrets none can be made.
func New(s store.Store, secrets *secret.Box, o Options) *Webhooks {
	if o.Waits == nil {
		o.Waits = Waits()
	}
	o.Timeout, o.Every = cmp.Or(o.Timeout, 15*time.Second), cmp.Or(o.Every, time.Second)
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Webhooks{
		store: s, secrets: secrets, o: o, wake: make(chan struct{}, 1), busy: map[string]bool{},
		client: fetch.NewClient(fetch.Options{AllowPrivate: o.AllowPrivate, MaxRedirects: -1, IdlePerHost: 2}),
	}
}

// Events returns the types of events that webhooks can receive.
func Events() []artel.EventType { return event.ForWebhooks() }

// purpose of the encrypted secrets.
const purpose = "webhook"

// keys are the secrets of a webhook.
type keys struct {
	Current  []byte    `json:"current"`
	Previous []byte    `json:"previous,omitempty"` // signs too, until Until
	Until    time.Time `json:"until,omitzero"`
}

// Overlap is how long the secret before the last rotation signs too.
const Overlap = 24 * time.Hour

// SecretPrefix begins the secrets.
const SecretPrefix = "whsec_"

const keyBytes = 32

func (ws *Webhooks) seal(w *store.Webhook, k keys) error {
	plain, err := json.Marshal(k)
	if err != nil {
		return artel.Errorf(artel.Internal, "webhooks", w.ID, "%w", err)
	}
	w.Secret, err = ws.secrets.Seal(purpose, w.ID, plain)
	return err
}

func (ws *Webhooks) open(w store.Webhook) (k keys, err error) {
	plain, err := ws.secrets.Open(purpose, w.ID, w.Secret)
	if err == nil {
		err = json.Unmarshal(plain, &k)
	}
	return k, err
}

func newKey() (key []byte, shown string) {
	key = make([]byte, keyBytes)
	_, _ = rand.Read(key) // it never fails
	return key, SecretPrefix + base64.StdEncoding.EncodeToString(key)
}

// check refuses what a webhook cannot have.
func (ws *Webhooks) check(ctx context.Context, w store.Webhook) error {
	const op = "webhooks"
	if strings.TrimSpace(w.Name) == "" || !utf8.ValidString(w.Name) || utf8.RuneCountInString(w.Name) > maxName || strings.ContainsAny(w.Name, "\r\n") {
		return artel.Errorf(artel.Invalid, op, "name", "want one line of 1 to %d characters", maxName)
	}
	u, err := url.Parse(w.URL)
	switch {
	case len(w.URL) > maxURL:
		return artel.Errorf(artel.TooLarge, op, "url", "has %d bytes; want at most %d", len(w.URL), maxURL)
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || !utf8.ValidString(w.URL):
		return artel.Errorf(artel.Invalid, op, "url", "%q is not an address; want one such as https://example.com/hook", artel.Shorten(strings.ToValidUTF8(w.URL, "?"), 80))
	case u.User != nil:
		return artel.Errorf(artel.Invalid, op, "url", "an address has no name and password; requests are signed instead")
	case u.Fragment != "":
		return artel.Errorf(artel.Invalid, op, "url", "an address has no #%s, which no request transports", artel.Shorten(u.Fragment, 40))
	case len(w.Events) == 0:
		return artel.Errorf(artel.Invalid, op, "events", "want at least one of %s", eventNames())
	}
	for i, e := range w.Events {
		if !slices.Contains(Events(), e) || slices.Contains(w.Events[:i], e) {
			return artel.Errorf(artel.Invalid, op, "events", "%q is unknown or twice; there are %s", artel.Shorten(strings.ToValidUTF8(string(e), "?"), 40), eventNames())
		}
	}
	if !ws.o.AllowPrivate && fetch.Inner(ctx, nil, u.Hostname()) {
		return artel.Errorf(artel.Denied, op, "url", "%s is this machine or in a private network; the operator can allow such addresses (webhooks.allow_private)", artel.Shorten(u.Hostname(), 80))
	}
	return nil
}

func eventNames() string {
	var names []string
	for _, e := range Events() {
		names = append(names, string(e))
	}
	return strings.Join(names, ", ")
}

// Create makes a webhook of the acting user and returns its secret, which cannot be read
// again. Name, URL and Events of w are read; without Events it receives all.
func (ws *Webhooks) Create(ctx context.Context, w store.Webhook) (shown string, made store.Webhook, err error) {
	const op = "webhooks.Create"
	if w.Events == nil {
		w.Events = Events()
	}
	if err := ws.check(ctx, w); err != nil {
		return "", made, err
	}
	if ws.secrets == nil {
		return "", made, artel.Errorf(artel.Unavailable, op, "", "this server has no key for stored secrets, with which those of webhooks are encrypted")
	}
	key, shown := newKey()
	made = store.Webhook{ID: "hook" + rand.Text(), User: artel.OwnerOf(ctx), CreatedAt: ws.now(), Name: w.Name, URL: w.URL, Events: w.Events}
	if err := ws.seal(&made, keys{Current: key}); err != nil {
		return "", store.Webhook{}, err
	}
	err = ws.change(ctx, audit.Act{Action: audit.WebhookCreated, Target: made.ID, Detail: made.Name}, func(tx store.PeopleTx) error {
		all, err := tx.Webhooks.List(made.User)
		if err != nil {
			return err
		}
		if len(all) >= MaxWebhooks {
			return artel.Errorf(artel.TooLarge, op, "", "you have %d webhooks, the most that a user can have; delete some", len(all))
		}
		return tx.Webhooks.Create(made)
	})
	if err != nil {
		return "", store.Webhook{}, err
	}
	return shown, made, nil
}

// List returns the webhooks of the acting user, in order of creation.
func (ws *Webhooks) List(ctx context.Context) (all []store.Webhook, err error) {
	err = ws.store.People().View(ctx, func(tx store.PeopleTx) error {
		all, err = tx.Webhooks.List(artel.OwnerOf(ctx))
		return err
	})
	return all, err
}

// own returns a webhook of the acting user.
func own(ctx context.Context, tx store.PeopleTx, id string) (store.Webhook, error) {
	w, err := tx.Webhooks.Get(id)
	if err == nil && w.User != artel.OwnerOf(ctx) {
		err = artel.Errorf(artel.NotFound, "webhooks", artel.Shorten(id, 80), "no such webhook")
	}
	return w, err
}

// change runs fn in a transaction with an entry of the audit log.
func (ws *Webhooks) change(ctx context.Context, act audit.Act, fn func(store.PeopleTx) error) error {
	return ws.store.People().Update(ctx, func(tx store.PeopleTx) error {
		if err := fn(tx); err != nil {
			return err
		}
		return audit.Record(ctx, store.Tx{Audit: tx.Audit}, ws.now(), act)
	})
}

// Update changes a webhook; change may set Name, URL, Events and Disabled. What waits for a
// webhook that is enabled again is sent.
func (ws *Webhooks) Update(ctx context.Context, id string, change func(*store.Webhook)) (w store.Webhook, err error) {
	if err := ws.store.People().View(ctx, func(tx store.PeopleTx) error { w, err = own(ctx, tx, id); return err }); err != nil {
		return w, err
	}
	change(&w)
	if err := ws.check(ctx, w); err != nil { // it may ask for a name, which no transaction waits for
		return store.Webhook{}, err
	}
	err = ws.change(ctx, audit.Act{Action: audit.WebhookChanged, Target: id, Detail: w.Name}, func(tx store.PeopleTx) error {
		before, err := own(ctx, tx, id)
		if err != nil {
			return err
		}
		w = before
		change(&w)
		w.ID, w.User, w.CreatedAt, w.DeliveredAt, w.Secret, w.Reason = before.ID, before.User, before.CreatedAt, before.DeliveredAt, before.Secret, before.Reason
		if !w.Disabled {
			w.Reason = ""
		}
		return tx.Webhooks.Update(w)
	})
	ws.poke()
	return w, err
}

// Rotate gives a webhook a new secret and returns it; it cannot be read again. For [Overlap],
// the one before signs too.
func (ws *Webhooks) Rotate(ctx context.Context, id string) (shown string, err error) {
	key, shown := newKey()
	var w store.Webhook
	err = ws.change(ctx, audit.Act{Action: audit.WebhookRotated, Target: id}, func(tx store.PeopleTx) (err error) {
		if w, err = own(ctx, tx, id); err != nil {
			return err
		}
		k, err := ws.open(w)
		if err != nil { // the key of the stored secrets is another one: there is no earlier secret
			k = keys{}
		}
		next := keys{Current: key}
		if len(k.Current) > 0 {
			next.Previous, next.Until = k.Current, ws.now().Add(Overlap)
		}
		if err := ws.seal(&w, next); err != nil {
			return err
		}
		return tx.Webhooks.Update(w)
	})
	if err != nil {
		return "", err
	}
	return shown, nil
}

// Delete removes a webhook with its log. What waits is not sent.
func (ws *Webhooks) Delete(ctx context.Context, id string) error {
	return ws.change(ctx, audit.Act{Action: audit.WebhookDeleted, Target: id}, func(tx store.PeopleTx) error {
		if _, err := own(ctx, tx, id); err != nil {
			return err
		}
		return tx.Webhooks.Delete(artel.OwnerOf(ctx), id)
	})
}

// Deliveries lists what was and is sent to a webhook, newest first. next is "" at the end.
func (ws *Webhooks) Deliveries(ctx context.Context, q store.DeliveryQuery) (items []store.Delivery, next string, err error) {
	err = ws.store.People().View(ctx, func(tx store.PeopleTx) error {
		if _, err := own(ctx, tx, q.Webhook); err != nil {
			return err
		}
		items, next, err = tx.Deliveries.List(q)
		return err
	})
	return items, next, err
}

// Again sends a delivery once more, under its name.
func (ws *Webhooks) Again(ctx context.Context, id string, number int64) (d store.Delivery, err error) {
	const op = "webhooks.Again"
	err = ws.store.People().Update(ctx, func(tx store.PeopleTx) error {
		w, err := own(ctx, tx, id)
		if err != nil {
			return err
		}
		if w.Disabled {
			return disabled(op, w)
		}
		all, _, err := tx.Deliveries.List(store.DeliveryQuery{Webhook: id, Number: number})
		if err != nil {
			return err
		}
		if number == 0 || len(all) == 0 {
			return artel.Errorf(artel.NotFound, op, id, "there is no delivery %d in the log", number)
		}
		d = all[0]
		if d.State == store.DeliveryWaiting && d.DueAt.After(ws.now()) && d.Last.At.IsZero() {
			return nil // its first attempt is at work
		}
		d.State, d.Attempts, d.DueAt = store.DeliveryWaiting, 0, ws.now()
		return tx.Deliveries.Report(d)
	})
	ws.poke()
	return d, err
}

func disabled(op string, w store.Webhook) error {
	return artel.Errorf(artel.Conflict, op, w.ID, "this webhook is disabled; enable it first")
}

// Test sends a test to a webhook.
func (ws *Webhooks) Test(ctx context.Context, id string) (d store.Delivery, err error) {
	const op = "webhooks.Test"
	now := ws.now()
	d = store.Delivery{Webhook: id, Event: artel.Seq(now.UnixMicro()), CreatedAt: now, State: store.DeliveryWaiting, DueAt: now}
	err = ws.store.People().Update(ctx, func(tx store.PeopleTx) error {
		w, err := own(ctx, tx, id)
		if err != nil {
			return err
		}
		if w.Disabled {
			return disabled(op, w)
		}
		if err := tx.Deliveries.Add(d); err != nil {
			return err
		}
		all, _, err := tx.Deliveries.List(store.DeliveryQuery{Webhook: id, Page: store.Page{Limit: 1}})
		if err == nil && len(all) > 0 {
			d = all[0]
		}
		return err
	})
	ws.poke()
	return d, err
}

// poke makes [Webhooks.Run] look for what is due.
func (ws *Webhooks) poke() {
	select {
	case ws.wake <- struct{}{}:
	default:
	}
}

func (ws *Webhooks) now() time.Time { return ws.o.Now().UTC().Truncate(time.Microsecond) }
