// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/json"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type hooks struct{ *Tx }

func (t hooks) Queue(c artel.ConversationID, events ...artel.Event) error {
	const op = "store.Hooks.Queue"
	if err := t.usable(op, true); err != nil {
		return err
	}
	if c == "" || c != t.required { // otherwise the events were appended just now
		if err := t.requireConversation(op, c); err != nil {
			return err
		}
	}
	for _, e := range events {
		// A type is quoted in the JSON of events. Its underscores match any character, which
		// confuses no two types.
		if err := t.later(op, string(c), `INSERT INTO deliveries (webhook, conversation, event, type, created_at, state, attempts, due_at)
			SELECT id, ?, ?, ?, ?, ?, 0, ? FROM webhooks WHERE "user" = ? AND disabled = 0 AND events LIKE ?`,
			string(c), int64(e.Seq), string(e.Type), micros(e.Time), string(store.DeliveryWaiting), micros(e.Time), string(t.owner), `%"`+string(e.Type)+`"%`); err != nil {
			return err
		}
	}
	return nil
}

type webhooks struct{ *Tx }

const webhookColumns = `SELECT id, "user", coalesce(delivered_at, 0), created_at, name, url, events, secret, disabled, reason FROM webhooks`

func scanWebhook(rows Row, w *store.Webhook) error {
	var events string
	var delivered int64
	if err := rows.Scan(&w.ID, &w.User, &delivered, (*timeColumn)(&w.CreatedAt), &w.Name, &w.URL, &events, &w.Secret, &w.Disabled, &w.Reason); err != nil {
		return err
	}
	w.DeliveredAt = optionalMicros(delivered)
	return json.Unmarshal([]byte(events), &w.Events)
}

// optionalMicros returns the time of a column; 0 is none.
func optionalMicros(us int64) time.Time {
	if us == 0 {
		return time.Time{}
	}
	return fromMicros(us)
}

func (t webhooks) Create(w store.Webhook) error {
	const op = "store.Webhooks.Create"
	if err := checkText(op, w.ID, w.ID, string(w.User), w.Name, w.URL, w.Reason); err != nil {
		return err
	}
	events, err := encode(op, w.ID, w.Events)
	if err != nil {
		return err
	}
	_, err = t.change(op, w.ID, `INSERT INTO webhooks (id, "user", delivered_at, created_at, name, url, events, secret, disabled, reason) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		w.ID, string(w.User), optional(w.DeliveredAt), micros(w.CreatedAt), w.Name, w.URL, events, secretColumn(w.Secret), w.Disabled, w.Reason)
	return err
}

func (t webhooks) Get(id string) (store.Webhook, error) {
	const op = "store.Webhooks.Get"
	found, err := list(t.Tx, op, artel.Shorten(id, 80), webhookColumns+" WHERE id = ?", []any{id}, scanWebhook)
	if err == nil && len(found) == 0 {
		err = artel.Errorf(artel.NotFound, op, artel.Shorten(id, 80), "no such webhook")
	}
	if err != nil {
		return store.Webhook{}, err
	}
	return found[0], nil
}

func (t webhooks) List(user artel.Owner) ([]store.Webhook, error) {
	return list(t.Tx, "store.Webhooks.List", string(user), webhookColumns+` WHERE "user" = ? ORDER BY n`, []any{string(user)}, scanWebhook)
}

func (t webhooks) Update(w store.Webhook) error {
	const op = "store.Webhooks.Update"
	if err := checkText(op, w.ID, w.Name, w.URL, w.Reason); err != nil {
		return err
	}
	events, err := encode(op, w.ID, w.Events)
	if err != nil {
		return err
	}
	n, err := t.change(op, w.ID, `UPDATE webhooks SET name = ?, url = ?, events = ?, secret = ?, disabled = ?, reason = ? WHERE "user" = ? AND id = ?`,
		w.Name, w.URL, events, secretColumn(w.Secret), w.Disabled, w.Reason, string(w.User), w.ID)
	return present(op, w.ID, "webhook", n, err)
}

func (t webhooks) Mark(id string, delivered time.Time, reason string) error {
	const op = "store.Webhooks.Mark"
	if err := checkText(op, id, reason); err != nil {
		return err
	}
	n, err := t.change(op, id, "UPDATE webhooks SET delivered_at = coalesce(?, delivered_at) WHERE id = ?", optional(delivered), id)
	if err = present(op, id, "webhook", n, err); err != nil || reason == "" {
		return err
	}
	_, err = t.change(op, id, "UPDATE webhooks SET disabled = 1, reason = ? WHERE id = ?", reason, id)
	return err
}

func (t webhooks) Delete(user artel.Owner, id string) error {
	const op = "store.Webhooks.Delete"
	if id == "" {
		_, err := t.change(op, string(user), `DELETE FROM webhooks WHERE "user" = ?`, string(user))
		return err
	}
	n, err := t.change(op, id, `DELETE FROM webhooks WHERE "user" = ? AND id = ?`, string(user), id)
	return present(op, id, "webhook", n, err)
}

type deliveries struct{ *Tx }

const deliveryColumns = `SELECT n, webhook, conversation, event, type, created_at, state, attempts, coalesce(due_at, 0), coalesce(tried_at, 0), status, took, answer, error FROM deliveries`

func scanDelivery(rows Row, d *store.Delivery) error {
	var due, tried, took int64
	err := rows.Scan(&d.Number, &d.Webhook, &d.Conversation, &d.Event, &d.Type, (*timeColumn)(&d.CreatedAt), &d.State, &d.Attempts, &due, &tried, &d.Last.Status, &took, &d.Last.Answer, &d.Last.Error)
	d.DueAt, d.Last.At, d.Last.Took = optionalMicros(due), optionalMicros(tried), time.Duration(took)*time.Microsecond
	return err
}

func (t deliveries) Add(d store.Delivery) error {
	const op = "store.Deliveries.Add"
	if err := checkText(op, d.Webhook, d.Last.Answer, d.Last.Error); err != nil {
		return err
	}
	_, err := t.change(op, d.Webhook, `INSERT INTO deliveries (webhook, conversation, event, type, created_at, state, attempts, due_at, tried_at, status, took, answer, error) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.Webhook, string(d.Conversation), int64(d.Event), string(d.Type), micros(d.CreatedAt), string(d.State), d.Attempts, optional(d.DueAt), optional(d.Last.At), d.Last.Status, d.Last.Took.Microseconds(), d.Last.Answer, d.Last.Error)
	return err
}

func (t deliveries) List(q store.DeliveryQuery) (items []store.Delivery, next string, err error) {
	const op, kind = "store.Deliveries.List", "deliveries"
	limit, err := pageLimit(op, q.Page)
	if err != nil {
		return nil, "", err
	}
	query, args := deliveryColumns+" WHERE webhook = ?", []any{q.Webhook}
	if q.Number != 0 {
		query, args = query+" AND n = ?", append(args, q.Number)
	}
	if q.Cursor != "" {
		before, _, err := parseCursor(op, kind, q.Cursor)
		if err != nil {
			return nil, "", err
		}
		query, args = query+" AND n < ?", append(args, before)
	}
	items, err = list(t.Tx, op, q.Webhook, query+" ORDER BY n DESC LIMIT ?", append(args, limit+1), scanDelivery)
	if len(items) > limit {
		items = items[:limit]
		next = cursor(kind, items[limit-1].Number, "")
	}
	return items, next, err
}

func (t deliveries) Due(now time.Time) ([]string, error) {
	return list(t.Tx, "store.Deliveries.Due", "", `SELECT w.id FROM webhooks w WHERE w.disabled = 0 AND EXISTS (SELECT 1 FROM deliveries d WHERE d.webhook = w.id AND d.due_at <= ?)
		AND NOT EXISTS (SELECT 1 FROM users u WHERE u.id = w."user" AND u.disabled <> 0) ORDER BY w.n`,
		[]any{micros(now)}, func(rows Row, id *string) error { return rows.Scan(id) })
}

func (t deliveries) Take(webhook string, now, until time.Time, limit int) (taken []store.Delivery, err error) {
	const op = "store.Deliveries.Take"
	due, err := list(t.Tx, op, webhook, deliveryColumns+" WHERE webhook = ? AND due_at <= ? ORDER BY n LIMIT ?", []any{webhook, micros(now), limit}, scanDelivery)
	for _, d := range due {
		n, err := t.change(op, webhook, "UPDATE deliveries SET attempts = attempts + 1, due_at = ? WHERE n = ? AND due_at = ?", micros(until), d.Number, micros(d.DueAt))
		if err != nil {
			return nil, err
		}
		if n == 1 {
			d.Attempts++
			d.DueAt = until
			taken = append(taken, d)
		}
	}
	return taken, err
}

func (t deliveries) Report(d store.Delivery) error {
	const op = "store.Deliveries.Report"
	if err := checkText(op, d.Webhook, d.Last.Answer, d.Last.Error); err != nil {
		return err
	}
	n, err := t.change(op, d.Webhook, "UPDATE deliveries SET state = ?, attempts = ?, due_at = ?, tried_at = ?, status = ?, took = ?, answer = ?, error = ? WHERE webhook = ? AND n = ?",
		string(d.State), d.Attempts, optional(d.DueAt), optional(d.Last.At), d.Last.Status, d.Last.Took.Microseconds(), d.Last.Answer, d.Last.Error, d.Webhook, d.Number)
	return present(op, d.Webhook, "delivery", n, err)
}

func (t deliveries) Trim(webhook string, newest int) (waiting int, err error) {
	const op = "store.Deliveries.Trim"
	if _, err := t.change(op, webhook, "DELETE FROM deliveries WHERE webhook = ?1 AND due_at IS NULL AND n <= (SELECT n FROM deliveries WHERE webhook = ?1 AND due_at IS NULL ORDER BY n DESC LIMIT 1 OFFSET ?2)", webhook, newest); err != nil {
		return 0, err
	}
	_, err = t.row(op, webhook, "SELECT count(*) FROM deliveries WHERE webhook = ? AND due_at IS NOT NULL", []any{webhook}, &waiting)
	return waiting, err
}
