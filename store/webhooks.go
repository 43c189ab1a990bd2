// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/artelhq/artel"
)

// Hooks queues events for webhooks.
type Hooks interface {
	// Queue adds a delivery of each event, which has its number, for each enabled webhook of
	// the owner that wants its type. In the transaction that appends the events, neither is
	// stored without the other. It is of kind NotFound if there is no such conversation.
	Queue(c artel.ConversationID, events ...artel.Event) error
}

// Webhooks stores the addresses to which events of users are sent.
type Webhooks interface {
	// Create is of kind Conflict if the id exists. The user need not exist: a
	// deployment without users has webhooks, too.
	Create(w Webhook) error
	// Get is of kind NotFound if there is none, like all that follow.
	Get(id string) (Webhook, error)
	// List returns those of a user, in order of creation.
	List(user artel.Owner) ([]Webhook, error)
	// Update replaces the fields from Name on.
	Update(w Webhook) error
	// Mark sets DeliveredAt, unless it is zero, and disables the webhook with a reason,
	// unless it is empty.
	Mark(id string, delivered time.Time, reason string) error
	// Delete removes a webhook with its deliveries, and all webhooks of the user if
	// the id is empty.
	Delete(user artel.Owner, id string) error
}

// A Webhook is an address to which events of a user are sent.
type Webhook struct {
	ID          string
	User        artel.Owner
	DeliveredAt time.Time // of the last delivery that was accepted; zero: none
	CreatedAt   time.Time

	Name     string
	URL      string
	Events   []artel.EventType
	Secret   []byte // encrypted
	Disabled bool
	Reason   string // why it was disabled; empty: by its user
}

// Deliveries stores what is sent to webhooks.
type Deliveries interface {
	// Add adds a delivery; Number is ignored. It is of kind Conflict if the webhook has one
	// with this conversation and number of an event.
	Add(d Delivery) error
	// List returns those of a webhook, newest first. next is "" at the end.
	List(q DeliveryQuery) (items []Delivery, next string, err error)
	// Due returns the ids of the enabled webhooks that have deliveries to be sent at a
	// time. Those of disabled users are left out.
	Due(now time.Time) ([]string, error)
	// Take returns at most limit deliveries of a webhook that are to be sent, oldest first,
	// as they are after it has counted an attempt and set DueAt to until. Of several that
	// take at the same time, one gets a delivery.
	Take(webhook string, now, until time.Time, limit int) ([]Delivery, error)
	// Report replaces the fields from State on. It is of kind NotFound if there is no such
	// delivery.
	Report(d Delivery) error
	// Trim removes all but the newest deliveries of a webhook that are not to be sent, and
	// returns how many are to be sent.
	Trim(webhook string, newest int) (waiting int, err error)
}

// A Delivery is one event for one webhook.
type Delivery struct {
	Number       int64 // grows with each
	Webhook      string
	Conversation artel.ConversationID // empty: a test
	Event        artel.Seq
	Type         artel.EventType // empty: a test
	CreatedAt    time.Time

	State    DeliveryState
	Attempts int
	DueAt    time.Time // of the next attempt; zero: none
	Last     Attempt   // zero: none yet
}

// A DeliveryState says how far a delivery is.
type DeliveryState string

// The states.
const (
	DeliveryWaiting  DeliveryState = "waiting" // for its first or another attempt
	DeliveryAccepted DeliveryState = "accepted"
	DeliveryFailed   DeliveryState = "failed" // for good
)

// An Attempt is one request to the address of a webhook.
type Attempt struct {
	At     time.Time
	Status int // HTTP; 0: no answer
	Took   time.Duration
	Answer string // its beginning
	Error  string // empty: none
}

// A DeliveryQuery selects deliveries.
type DeliveryQuery struct {
	Webhook string
	Number  int64 // only this one; 0: all
	Page
}
