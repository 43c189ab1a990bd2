// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/gatewaylog"
	"github.com/artelhq/artel/store"
)

func (f *server) gateway() {
	register(f, f.op(http.MethodGet, "/gateway/log", "list-gateway-log", "List the requests that the gateway answered, the newest first", http.StatusOK),
		func(ctx context.Context, in *struct {
			PageQuery
			Key     string `query:"key" maxLength:"200" doc:"the name of a key"`
			Service string `query:"service" maxLength:"200" doc:"the id of a service"`
			Status  string `query:"status" maxLength:"16" doc:"ok, failed, a class as 4xx, or one as 429"`
			Changed bool   `query:"changed" doc:"those alone of which something was changed"`
		},
		) (*body[List[gatewaylog.GatewayEntry]], error) {
			items, next, err := f.app.GatewayLog.List(ctx, gatewaylog.Query{
				Key: in.Key, Service: artel.ServiceID(in.Service), Status: in.Status, Changed: in.Changed, Page: store.Page{Cursor: in.Cursor, Limit: in.Limit},
			})
			return answer(listOf(items, next), err)
		})
}
