// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"net/url"
	"strconv"

	"github.com/artelhq/artel/app/gatewaylog"
)

// GatewayLog lists the requests of the gateway, the newest first.
func (c *Client) GatewayLog(ctx context.Context, q gatewaylog.Query) (out List[gatewaylog.GatewayEntry], err error) {
	v := url.Values{}
	for name, value := range map[string]string{"key": q.Key, "service": string(q.Service), "of": string(q.Of), "server": q.Server, "status": q.Status, "cursor": q.Page.Cursor} {
		if value != "" {
			v.Set(name, value)
		}
	}
	if q.Changed {
		v.Set("changed", "true")
	}
	if q.Page.Limit > 0 {
		v.Set("limit", strconv.Itoa(q.Page.Limit))
	}
	return out, c.json(ctx, http.MethodGet, "/gateway/log?"+v.Encode(), nil, &out)
}

// ReportCalls adds calls of MCP to the log, at most [gatewaylog.MaxReported].
func (c *Client) ReportCalls(ctx context.Context, calls []gatewaylog.ReportedCall) error {
	return c.json(ctx, http.MethodPost, "/gateway/log", ReportedCalls{calls}, nil)
}

// GatewayKeys lists the keys of the gateway that the client may see.
func (c *Client) GatewayKeys(ctx context.Context) (out List[KeyView], err error) {
	return out, c.json(ctx, http.MethodGet, "/gateway/keys", nil, &out)
}

// MakeGatewayKey makes a key of the gateway.
func (c *Client) MakeGatewayKey(ctx context.Context, n NewKey) (out MadeKey, err error) {
	return out, c.json(ctx, http.MethodPost, "/gateway/keys", n, &out)
}

// ChangeGatewayKey changes a key of the gateway.
func (c *Client) ChangeGatewayKey(ctx context.Context, id string, change KeyChange) (out KeyView, err error) {
	return out, c.json(ctx, http.MethodPatch, "/gateway/keys/"+url.PathEscape(id), change, &out)
}

// RevokeGatewayKey revokes a key of the gateway.
func (c *Client) RevokeGatewayKey(ctx context.Context, id string) error {
	return c.json(ctx, http.MethodDelete, "/gateway/keys/"+url.PathEscape(id), nil, nil)
}

// AllUsage lists what model calls have used.
func (c *Client) AllUsage(ctx context.Context, q UsageQuery) (out UsageList, err error) {
	v := url.Values{"format": {"json"}}
	for name, value := range map[string]string{"from": q.From, "to": q.To, "by": string(q.By)} {
		if value != "" {
			v.Set(name, value)
		}
	}
	return out, c.json(ctx, http.MethodGet, "/usage?"+v.Encode(), nil, &out)
}
