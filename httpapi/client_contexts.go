// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/inspect"
	"github.com/artelhq/artel/run/record"
)

func contextURL(key record.ContextKey) string {
	return "/runs/" + url.PathEscape(string(key.Run)) + "/contexts/" + strconv.Itoa(key.Number)
}

// Contexts lists what the model calls of a run were sent.
func (c *Client) Contexts(ctx context.Context, run artel.RunID) (out List[record.ContextSummary], err error) {
	return out, c.json(ctx, http.MethodGet, "/runs/"+url.PathEscape(string(run))+"/contexts", nil, &out)
}

// Context returns the record of a model call.
func (c *Client) Context(ctx context.Context, key record.ContextKey) (out ContextView, err error) {
	return out, c.json(ctx, http.MethodGet, contextURL(key), nil, &out)
}

// ContextMessages lists the messages that a model call was sent.
func (c *Client) ContextMessages(ctx context.Context, key record.ContextKey) (out List[record.Block], err error) {
	return out, c.json(ctx, http.MethodGet, contextURL(key)+"/messages", nil, &out)
}

// ContextRequest returns the request of a model call as it was sent to the
// model's API.
func (c *Client) ContextRequest(ctx context.Context, key record.ContextKey) (out inspect.SentRequest, err error) {
	return out, c.json(ctx, http.MethodGet, contextURL(key)+"/request", nil, &out)
}

// ContextDiff compares the request of a model call with an earlier one; the
// zero with means the previous call.
func (c *Client) ContextDiff(ctx context.Context, key, with record.ContextKey) (out inspect.ContextDiff, err error) {
	path := contextURL(key) + "/diff"
	if with != (record.ContextKey{}) {
		path += "?with=" + url.QueryEscape(string(with.Run)+"/"+strconv.Itoa(with.Number))
	}
	return out, c.json(ctx, http.MethodGet, path, nil, &out)
}

// Why explains why a model call saw a message or a file, or did not.
func (c *Client) Why(ctx context.Context, key record.ContextKey, about string) (out inspect.Why, err error) {
	return out, c.json(ctx, http.MethodGet, contextURL(key)+"/why?about="+url.QueryEscape(about), nil, &out)
}

// Preview builds the context of a message that is being written.
func (c *Client) Preview(ctx context.Context, id artel.ConversationID, m NewMessage) (out PreviewView, err error) {
	return out, c.json(ctx, http.MethodPost, "/conversations/"+url.PathEscape(string(id))+"/preview", m, &out)
}

// Settings exports all settings of the user. tag is for SaveSettings.
func (c *Client) Settings(ctx context.Context) (file json.RawMessage, tag string, err error) {
	req, err := c.request(ctx, http.MethodGet, "/settings", nil)
	if err != nil {
		return nil, "", err
	}
	return c.tagged(req)
}

// CompareSettings returns what an import of a file would change.
func (c *Client) CompareSettings(ctx context.Context, file json.RawMessage) (out SettingsReport, err error) {
	return out, c.json(ctx, http.MethodPost, "/settings/compare", file, &out)
}

// SaveSettings replaces all settings of the user by those of a file. tag is
// that of the replaced settings; "" replaces any.
func (c *Client) SaveSettings(ctx context.Context, file json.RawMessage, tag string) (json.RawMessage, string, error) {
	req, err := c.request(ctx, http.MethodPut, "/settings", bytes.NewReader(file))
	if err != nil {
		return nil, "", err
	}
	req.Header.Set("Content-Type", "application/json")
	if tag != "" {
		req.Header.Set("If-Match", tag)
	}
	return c.tagged(req)
}

func (c *Client) tagged(req *http.Request) (body json.RawMessage, tag string, err error) {
	resp, err := c.send(req)
	if err != nil {
		return nil, "", err
	}
	defer func() { _ = resp.Body.Close() }()
	err = json.NewDecoder(resp.Body).Decode(&body)
	return body, resp.Header.Get("ETag"), err
}
