// SPDX-License-Identifier: Apache-2.0

package webhooks

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// How much is sent at once, and kept.
const (
	atOnce     = 4                // deliveries to a webhook
	hooksBusy  = 32               // webhooks
	maxBody    = 256 << 10        // bytes of a request
	maxAnswer  = 1000             // code points of an answer that the log keeps
	kept       = 500              // deliveries in the log of a webhook that are not to be sent
	maxWaiting = 10_000           // deliveries that wait, before the webhook is disabled
	lease      = 15 * time.Second // after the longest attempt, when another process may send what one has taken
	longest    = 24 * time.Hour
)

// Run sends what is due until ctx ends. Several processes may run it with one database.
func (ws *Webhooks) Run(ctx context.Context) {
	var wg sync.WaitGroup
	defer wg.Wait()
	defer ws.client.CloseIdleConnections()
	tick := time.NewTicker(ws.o.Every)
	defer tick.Stop()
	slots := make(chan struct{}, hooksBusy)
	for {
		var due []string
		err := ws.store.People().View(ctx, func(tx store.PeopleTx) (err error) {
			due, err = tx.Deliveries.Due(ws.now())
			return err
		})
		if err != nil && ctx.Err() == nil {
			ws.o.Log.WarnContext(ctx, "the deliveries of webhooks cannot be listed", "err", err)
		}
		for _, id := range due {
			if !ws.begin(id) {
				continue
			}
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return
			}
			wg.Go(func() {
				defer func() { ws.end(id); <-slots }()
				if err := ws.deliver(ctx, id); err != nil && ctx.Err() == nil {
					ws.o.Log.WarnContext(ctx, "a webhook cannot be sent to", "webhook", id, "err", err)
				}
			})
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		case <-ws.wake:
		}
	}
}

// begin reports whether a webhook is not yet being sent to, and notes that it is.
func (ws *Webhooks) begin(id string) bool {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.busy[id] {
		return false
	}
	ws.busy[id] = true
	return true
}

func (ws *Webhooks) end(id string) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	delete(ws.busy, id)
}

// deliver sends what is due for a webhook, and shortens its log.
func (ws *Webhooks) deliver(ctx context.Context, id string) error {
	for {
		var w store.Webhook
		var taken []store.Delivery
		err := ws.store.People().Update(ctx, func(tx store.PeopleTx) (err error) {
			taken = nil
			if w, err = tx.Webhooks.Get(id); err != nil || w.Disabled {
				return err
			}
			now := ws.now()
			taken, err = tx.Deliveries.Take(id, now, now.Add(ws.o.Timeout+lease), atOnce)
			return err
		})
		if err != nil {
			return err
		}
		if len(taken) == 0 {
			return ws.trim(ctx, w)
		}
		errs := make([]error, len(taken))
		var wg sync.WaitGroup
		for i, d := range taken {
			wg.Go(func() { errs[i] = ws.attempt(ctx, w, d) })
		}
		wg.Wait()
		if err := errors.Join(errs...); err != nil || ctx.Err() != nil {
			return err
		}
	}
}

// trim shortens the log of a webhook, and disables it if too much waits.
func (ws *Webhooks) trim(ctx context.Context, w store.Webhook) error {
	return ws.store.People().Update(ctx, func(tx store.PeopleTx) error {
		waiting, err := tx.Deliveries.Trim(w.ID, kept)
		if err != nil || waiting <= maxWaiting || w.Disabled {
			return err
		}
		return ws.disable(ctx, tx, w, fmt.Sprintf("%d deliveries waited, more than %d", waiting, maxWaiting))
	})
}

// disable disables a webhook with a reason.
func (ws *Webhooks) disable(ctx context.Context, tx store.PeopleTx, w store.Webhook, reason string) error {
	if err := tx.Webhooks.Mark(w.ID, time.Time{}, reason); err != nil {
		return err
	}
	return audit.Record(ctx, store.Tx{Audit: tx.Audit}, ws.now(), audit.Act{Action: audit.WebhookDisabled, Target: w.ID, Detail: reason, Actor: w.User})
}

// A result is what came of an attempt.
type result struct {
	store.Attempt
	gone  bool          // the receiver wants no more
	final bool          // there is nothing to send
	after time.Duration // the receiver asks to wait so long
}

func (r result) accepted() bool { return r.Status >= 200 && r.Status < 300 }

// attempt sends a delivery, and stores what came of it. An attempt that the end of ctx
// breaks off does not count.
func (ws *Webhooks) attempt(ctx context.Context, w store.Webhook, d store.Delivery) error {
	r := ws.send(ctx, w, d)
	broken := ctx.Err() != nil && !r.accepted()
	ctx = context.WithoutCancel(ctx)
	d.Last = r.Attempt
	var reason string
	switch {
	case broken:
		d.Attempts--
		d.DueAt, d.Last = ws.now(), store.Attempt{}
	case r.accepted():
		d.State, d.DueAt = store.DeliveryAccepted, time.Time{}
	case r.final:
		d.State, d.DueAt = store.DeliveryFailed, time.Time{}
	case r.gone:
		d.State, d.DueAt = store.DeliveryFailed, time.Time{}
		reason = "the receiver answered 410 Gone: it wants no more"
	case d.Attempts > len(ws.o.Waits):
		d.State, d.DueAt = store.DeliveryFailed, time.Time{}
		reason = fmt.Sprintf("no delivery was accepted from %s to %s, in %d attempts of one; the last: %s", d.CreatedAt.Format(time.RFC3339), r.At.Format(time.RFC3339), d.Attempts, r.Error)
	default:
		wait := ws.o.Waits[d.Attempts-1]
		wait += rand.N(wait/10 + 1) // so that not all of them come back at once
		d.DueAt = ws.now().Add(max(wait, min(r.after, longest)))
	}
	err := ws.store.People().Update(ctx, func(tx store.PeopleTx) error {
		if err := tx.Deliveries.Report(d); err != nil {
			return err
		}
		if r.accepted() {
			return tx.Webhooks.Mark(w.ID, r.At, "")
		}
		if reason == "" {
			return nil
		}
		now, err := tx.Webhooks.Get(w.ID)
		if err != nil || now.Disabled || !r.gone && !now.DeliveredAt.Before(d.CreatedAt) {
			return err // others were accepted meanwhile: only this delivery has failed
		}
		return ws.disable(ctx, tx, w, reason)
	})
	if errors.Is(err, artel.NotFound) {
		return nil // the webhook was deleted meanwhile
	}
	return err
}

// Name returns the id that all attempts of a delivery have: of its conversation, and the
// number of its event.
func Name(d store.Delivery) string {
	of := string(d.Conversation)
	if of == "" {
		of = "test"
	}
	return of + "/" + strconv.FormatInt(int64(d.Event), 10)
}

// A Body is what is sent.
type Body struct {
	Type      artel.EventType `json:"type"` // of the event, or "test"
	Timestamp time.Time       `json:"timestamp"`
	Data      BodyData        `json:"data"`
}

// BodyData is the event of a [Body], as the API has it.
type BodyData struct {
	Conversation artel.ConversationID `json:"conversation_id,omitempty"`
	Event        *artel.Event         `json:"event,omitempty"`
	Omitted      bool                 `json:"data_omitted,omitempty"` // the event's own data is too long; the API has it
	Webhook      string               `json:"webhook_id"`
}

// typeTest is the type of a test.
const typeTest artel.EventType = "test"

// body returns the bytes of a delivery. It is of kind NotFound if the conversation is gone.
func (ws *Webhooks) body(ctx context.Context, w store.Webhook, d store.Delivery) ([]byte, error) {
	b := Body{Type: typeTest, Timestamp: d.CreatedAt, Data: BodyData{Webhook: w.ID}}
	if d.Conversation != "" {
		var found []artel.Event
		err := ws.store.View(ctx, w.User, func(tx store.Tx) (err error) {
			found, err = tx.Events.Read(d.Conversation, d.Event-1, 1)
			return err
		})
		if err != nil {
			return nil, err
		}
		if len(found) == 0 {
			return nil, artel.Errorf(artel.NotFound, "webhooks", Name(d), "there is no such event")
		}
		b.Type, b.Timestamp, b.Data.Conversation, b.Data.Event = d.Type, found[0].Time, d.Conversation, &found[0]
		if len(found[0].Data) > maxBody {
			b.Data.Event.Data, b.Data.Omitted = json.RawMessage("{}"), true
		}
	}
	return json.Marshal(b)
}

// Sign returns the signature of a request, by the secrets of which one is the current one.
func Sign(name string, at time.Time, body []byte, secrets ...[]byte) string {
	var all []string
	for _, key := range secrets {
		mac := hmac.New(sha256.New, key)
		fmt.Fprintf(mac, "%s.%d.", name, at.Unix())
		mac.Write(body)
		all = append(all, "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	}
	return strings.Join(all, " ")
}

// send makes the request of a delivery.
func (ws *Webhooks) send(ctx context.Context, w store.Webhook, d store.Delivery) (r result) {
	began := time.Now()
	r.At = ws.now()
	defer func() { r.Took = time.Since(began) }()
	body, err := ws.body(ctx, w, d)
	if err != nil {
		r.final = artel.KindOf(err) == artel.NotFound
		if r.Error = "the event cannot be read: " + err.Error(); r.final {
			r.Error = "the conversation was deleted before the event was sent"
		}
		return r
	}
	k, err := ws.open(w)
	if err != nil {
		r.Error = "the secret cannot be read: " + err.Error()
		return r
	}
	secrets := [][]byte{k.Current}
	if len(k.Previous) > 0 && r.At.Before(k.Until) {
		secrets = append(secrets, k.Previous)
	}
	ctx, stop := context.WithTimeout(ctx, ws.o.Timeout)
	defer stop()
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, w.URL, bytes.NewReader(body))
	if err != nil {
		r.Error = artel.Shorten(err.Error(), maxAnswer)
		return r
	}
	h := q.Header
	h.Set("Content-Type", "application/json")
	h.Set("User-Agent", "Artel-Webhooks")
	h.Set("Webhook-Id", Name(d))
	h.Set("Webhook-Timestamp", strconv.FormatInt(r.At.Unix(), 10))
	h.Set("Webhook-Signature", Sign(Name(d), r.At, body, secrets...))
	resp, err := ws.client.Do(q)
	if err != nil {
		r.Error = ws.explain(err)
		return r
	}
	defer func() { _ = resp.Body.Close() }()
	r.Status, r.gone, r.after = resp.StatusCode, resp.StatusCode == http.StatusGone, retryAfter(resp.Header.Get("Retry-After"), r.At)
	begin, _ := io.ReadAll(io.LimitReader(resp.Body, 4*maxAnswer)) // the status has decided
	r.Answer = artel.Shorten(strings.ToValidUTF8(string(begin), "�"), maxAnswer)
	switch {
	case r.accepted():
	case r.Status >= 300 && r.Status < 400:
		r.Error = fmt.Sprintf("answered %d, and redirects are not followed: enter the address to which it leads", r.Status)
	default:
		r.Error = fmt.Sprintf("answered %d", r.Status)
	}
	return r
}

// explain says why there is no answer, without the address, which may have secrets.
func (ws *Webhooks) explain(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return fmt.Sprintf("no answer within %v", ws.o.Timeout)
	}
	if u, ok := errors.AsType[*url.Error](err); ok {
		err = u.Err
	}
	if artel.KindOf(err) == artel.Denied {
		return artel.Shorten(err.Error(), maxAnswer) + "; the operator can allow private addresses (webhooks.allow_private)"
	}
	return artel.Shorten(strings.ToValidUTF8(err.Error(), "�"), maxAnswer)
}

// retryAfter reads the header Retry-After: seconds, or a time.
func retryAfter(text string, now time.Time) time.Duration {
	if n, err := strconv.Atoi(text); err == nil && n > 0 {
		return time.Duration(min(n, int(longest/time.Second))) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
