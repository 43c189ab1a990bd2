// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/webhooks"
	"github.com/artelhq/artel/store"
)

// A NewWebhook is the body of POST /webhooks.
type NewWebhook struct {
	Name   string            `json:"name" minLength:"1" maxLength:"100" doc:"for you"`
	URL    string            `json:"url" minLength:"1" maxLength:"2000" doc:"receives the events, as POST"`
	Events []artel.EventType `json:"events,omitempty" maxItems:"10" doc:"types of events that it receives: run_finished, permission_requested, elicitation_requested, artifact_created, artifact_updated; absent: all of these"`
}

// A MadeWebhook is the answer of POST /webhooks and of its rotation.
type MadeWebhook struct {
	ID     string `json:"id"`
	Secret string `json:"secret" doc:"signs the requests; it cannot be read again"`
}

// A WebhookView is a webhook without its secret.
type WebhookView struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	URL         string            `json:"url"`
	Events      []artel.EventType `json:"events" nullable:"false"`
	CreatedAt   time.Time         `json:"created_at"`
	DeliveredAt *time.Time        `json:"delivered_at,omitempty" doc:"of the last accepted delivery; absent: none"`
	Disabled    bool              `json:"disabled,omitempty" doc:"nothing is sent, and new events are not kept for it"`
	Reason      string            `json:"disabled_reason,omitempty" doc:"why the server disabled it; absent: you did"`
}

func webhookView(w store.Webhook) WebhookView {
	return WebhookView{w.ID, w.Name, w.URL, w.Events, w.CreatedAt, optionalTime(w.DeliveredAt), w.Disabled, w.Reason}
}

// A WebhookChange is the body of PATCH /webhooks/{id}.
type WebhookChange struct {
	Name     *string           `json:"name,omitempty" maxLength:"100"`
	URL      *string           `json:"url,omitempty" maxLength:"2000"`
	Events   []artel.EventType `json:"events,omitempty" maxItems:"10"`
	Disabled *bool             `json:"disabled,omitempty" doc:"what waits is sent after it is enabled again"`
}

func (c WebhookChange) apply(w *store.Webhook) {
	if c.Name != nil {
		w.Name = *c.Name
	}
	if c.URL != nil {
		w.URL = *c.URL
	}
	if c.Events != nil {
		w.Events = c.Events
	}
	if c.Disabled != nil {
		w.Disabled = *c.Disabled
	}
}

// A DeliveryView is a line of the log of a webhook.
type DeliveryView struct {
	Number       int64                `json:"number" doc:"in the log"`
	ID           string               `json:"id" doc:"the header webhook-id: the conversation and the number of the event, or a test; it stays the same when it is sent again"`
	Conversation artel.ConversationID `json:"conversation_id,omitempty" doc:"absent: a test"`
	Event        artel.Seq            `json:"event" doc:"its number in the log of the conversation"`
	Type         artel.EventType      `json:"type,omitempty"`
	CreatedAt    time.Time            `json:"created_at"`
	State        store.DeliveryState  `json:"state" enum:"waiting,accepted,failed"`
	Attempts     int                  `json:"attempts"`
	DueAt        *time.Time           `json:"due_at,omitempty" doc:"of the next attempt"`
	TriedAt      *time.Time           `json:"tried_at,omitempty" doc:"of the last attempt"`
	Status       int                  `json:"status,omitempty" doc:"of the last answer"`
	Millis       int64                `json:"duration_ms,omitempty" doc:"of the last attempt"`
	Answer       string               `json:"answer,omitempty" doc:"the beginning of the last answer"`
	Error        string               `json:"error,omitempty" doc:"of the last attempt"`
}

func deliveryView(d store.Delivery) DeliveryView {
	return DeliveryView{
		Number: d.Number, ID: webhooks.Name(d), Conversation: d.Conversation, Event: d.Event, Type: d.Type, CreatedAt: d.CreatedAt, State: d.State, Attempts: d.Attempts, DueAt: optionalTime(d.DueAt),
		TriedAt: optionalTime(d.Last.At), Status: d.Last.Status, Millis: d.Last.Took.Milliseconds(), Answer: d.Last.Answer, Error: d.Last.Error,
	}
}

// A WebhookID names the webhook of a path.
type WebhookID struct {
	ID string `path:"id" maxLength:"200"`
}

func (f *server) webhooks() {
	hooks := f.app.Webhooks
	const path = "/webhooks"
	register(f, f.op(http.MethodGet, path, "list-webhooks", "List your webhooks, in order of creation", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[WebhookView]], error) {
			all, err := hooks.List(ctx)
			return answer(listOf(views(all, webhookView), ""), err)
		})
	register(f, f.op(http.MethodPost, path, "make-webhook", "Make a webhook, which receives events of your conversations; its secret is shown once", http.StatusCreated),
		func(ctx context.Context, in *struct{ Body NewWebhook }) (*body[MadeWebhook], error) {
			secret, w, err := hooks.Create(ctx, store.Webhook{Name: in.Body.Name, URL: in.Body.URL, Events: in.Body.Events})
			return answer(MadeWebhook{w.ID, secret}, err)
		})
	register(f, f.op(http.MethodPatch, path+"/{id}", "change-webhook", "Change a webhook", http.StatusOK),
		func(ctx context.Context, in *struct {
			WebhookID
			Body WebhookChange
		},
		) (*body[WebhookView], error) {
			w, err := hooks.Update(ctx, in.ID, in.Body.apply)
			return answer(webhookView(w), err)
		})
	register(f, f.op(http.MethodDelete, path+"/{id}", "delete-webhook", "Delete a webhook with its log", http.StatusNoContent),
		func(ctx context.Context, in *WebhookID) (*none, error) { return nil, hooks.Delete(ctx, in.ID) })
	register(f, f.op(http.MethodPost, path+"/{id}/secret", "rotate-webhook-secret", "Give a webhook a new secret, which is shown once; the one before signs too for 24 hours", http.StatusOK),
		func(ctx context.Context, in *WebhookID) (*body[MadeWebhook], error) {
			secret, err := hooks.Rotate(ctx, in.ID)
			return answer(MadeWebhook{in.ID, secret}, err)
		})
	register(f, f.op(http.MethodPost, path+"/{id}/test", "test-webhook", "Send a test to a webhook", http.StatusAccepted),
		func(ctx context.Context, in *WebhookID) (*body[DeliveryView], error) {
			d, err := hooks.Test(ctx, in.ID)
			return answer(deliveryView(d), err)
		})
	register(f, f.op(http.MethodGet, path+"/{id}/deliveries", "list-deliveries", "List what was and is sent to a webhook, newest first: all that waits, and the last 500 others", http.StatusOK),
		func(ctx context.Context, in *struct {
			WebhookID
			Cursor string `query:"cursor" maxLength:"200"`
			Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
		},
		) (*body[List[DeliveryView]], error) {
			all, next, err := hooks.Deliveries(ctx, store.DeliveryQuery{Webhook: in.ID, Page: store.Page{Cursor: in.Cursor, Limit: in.Limit}})
			return answer(listOf(views(all, deliveryView), next), err)
		})
	register(f, f.op(http.MethodPost, path+"/{id}/deliveries/{number}/again", "send-again", "Send a delivery once more, under the same id", http.StatusAccepted),
		func(ctx context.Context, in *struct {
			WebhookID
			Number int64 `path:"number" minimum:"1"`
		},
		) (*body[DeliveryView], error) {
			d, err := hooks.Again(ctx, in.ID, in.Number)
			return answer(deliveryView(d), err)
		})
}
