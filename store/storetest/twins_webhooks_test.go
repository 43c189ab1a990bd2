// SPDX-License-Identifier: Apache-2.0

package storetest

import (
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type sharedWebhooks struct{ store.Webhooks }

func (w sharedWebhooks) Update(v store.Webhook) error {
	v.User = "ann"
	return w.Webhooks.Update(v)
}

type lossyHooks struct{ store.Hooks }

func (h lossyHooks) Queue(c artel.ConversationID, events ...artel.Event) error {
	return h.Hooks.Queue(c, events[0])
}

type repeatingDeliveries struct{ store.Deliveries }

func (d repeatingDeliveries) Take(hook string, now, _ time.Time, limit int) ([]store.Delivery, error) {
	return d.Deliveries.Take(hook, now, now, limit)
}

type hoardedDeliveries struct{ store.Deliveries }

func (d hoardedDeliveries) Trim(hook string, _ int) (int, error) { return d.Deliveries.Trim(hook, 100) }

type eagerSchedules struct{ store.Schedules }

func (s eagerSchedules) Advance(id string, _, to time.Time) (bool, error) {
	v, err := s.Get(id)
	if err != nil {
		return false, err
	}
	return s.Schedules.Advance(id, v.NextAt, to)
}

type repeatingStarts struct{ store.Starts }

func (s repeatingStarts) Take(now, _ time.Time, limit int) ([]store.Start, error) {
	return s.Starts.Take(now, now, limit)
}

// webhookTwins break what is promised about webhooks and schedules.
func webhookTwins() map[string]func(*twin) {
	return map[string]func(*twin){
		"people/webhooks":  breakPeople(func(tx *store.PeopleTx) { tx.Webhooks = sharedWebhooks{tx.Webhooks} }),
		"webhooks/queue":   nouns(func(tx *store.Tx) { tx.Hooks = lossyHooks{tx.Hooks} }),
		"webhooks/take":    breakPeople(func(tx *store.PeopleTx) { tx.Deliveries = repeatingDeliveries{tx.Deliveries} }),
		"people/schedules": breakPeople(func(tx *store.PeopleTx) { tx.Schedules = eagerSchedules{tx.Schedules} }),
		"schedules/starts": breakPeople(func(tx *store.PeopleTx) { tx.Starts = repeatingStarts{tx.Starts} }),
		"webhooks/report":  breakPeople(func(tx *store.PeopleTx) { tx.Deliveries = hoardedDeliveries{tx.Deliveries} }),
	}
}
