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
	for name, value := range map[string]string{"key": q.Key, "service": string(q.Service), "status": q.Status, "cursor": q.Page.Cursor} {
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
