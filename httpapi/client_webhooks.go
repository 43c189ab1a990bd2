// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"
)

// Webhooks lists the webhooks of the user.
func (c *Client) Webhooks(ctx context.Context) (out List[WebhookView], err error) {
	return out, c.json(ctx, http.MethodGet, "/webhooks", nil, &out)
}

func webhookPath(id string) string { return "/webhooks/" + url.PathEscape(id) }

// MakeWebhook makes a webhook.
func (c *Client) MakeWebhook(ctx context.Context, n NewWebhook) (out MadeWebhook, err error) {
	return out, c.json(ctx, http.MethodPost, "/webhooks", n, &out)
}

// ChangeWebhook changes a webhook.
func (c *Client) ChangeWebhook(ctx context.Context, id string, change WebhookChange) (out WebhookView, err error) {
	return out, c.json(ctx, http.MethodPatch, webhookPath(id), change, &out)
}

// DeleteWebhook deletes a webhook.
func (c *Client) DeleteWebhook(ctx context.Context, id string) error {
	return c.json(ctx, http.MethodDelete, webhookPath(id), nil, nil)
}

// RotateWebhook gives a webhook a new secret.
func (c *Client) RotateWebhook(ctx context.Context, id string) (out MadeWebhook, err error) {
	return out, c.json(ctx, http.MethodPost, webhookPath(id)+"/secret", nil, &out)
}

// TestWebhook sends a test.
func (c *Client) TestWebhook(ctx context.Context, id string) (out DeliveryView, err error) {
	return out, c.json(ctx, http.MethodPost, webhookPath(id)+"/test", nil, &out)
}

// Deliveries lists what is sent to a webhook, newest first.
func (c *Client) Deliveries(ctx context.Context, id, cursor string, limit int) (out List[DeliveryView], err error) {
	return out, c.json(ctx, http.MethodGet, webhookPath(id)+"/deliveries?"+page(cursor, limit), nil, &out)
}

// SendAgain sends a delivery once more.
func (c *Client) SendAgain(ctx context.Context, id string, number int64) (out DeliveryView, err error) {
	return out, c.json(ctx, http.MethodPost, webhookPath(id)+"/deliveries/"+strconv.FormatInt(number, 10)+"/again", nil, &out)
}
