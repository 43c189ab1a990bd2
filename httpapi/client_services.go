// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"

	"github.com/artelhq/artel/app/entries"
)

// AddService adds a service.
func (c *Client) AddService(ctx context.Context, e ServiceEntry) (out StoredView, err error) {
	return out, c.json(ctx, http.MethodPost, "/services", e, &out)
}

// StoredService reads the entry of a service that was added.
func (c *Client) StoredService(ctx context.Context, id string) (out StoredView, err error) {
	return out, c.json(ctx, http.MethodGet, "/services/"+url.PathEscape(id), nil, &out)
}

// ChangeService replaces the fields of a service that was added.
func (c *Client) ChangeService(ctx context.Context, id string, e ServiceEntry) (out StoredView, err error) {
	return out, c.json(ctx, http.MethodPut, "/services/"+url.PathEscape(id), e, &out)
}

// DeleteService deletes a service that was added.
func (c *Client) DeleteService(ctx context.Context, id string) error {
	return c.json(ctx, http.MethodDelete, "/services/"+url.PathEscape(id), nil, nil)
}

// CheckService tries a service that need not be added.
func (c *Client) CheckService(ctx context.Context, e ServiceEntry) (out entries.CheckReport, err error) {
	return out, c.json(ctx, http.MethodPost, "/services/check", e, &out)
}
