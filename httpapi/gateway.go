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
	register(f, f.op(http.MethodGet, "/gateway/log", "list-gateway-log", "List the requests that the gateway answered and the calls of MCP, the newest first", http.StatusOK),
		func(ctx context.Context, in *struct {
			PageQuery
			Key     string `query:"key" maxLength:"200" doc:"the name of a key"`
			Service string `query:"service" maxLength:"200" doc:"the id of a service"`
			Of      string `query:"of" enum:"gateway,mcp" doc:"requests of the gateway alone, or calls of MCP alone"`
			Server  string `query:"server" maxLength:"200" doc:"the name of a server that was called by MCP; artel: the artifact tools"`
			Status  string `query:"status" maxLength:"16" doc:"ok, failed, a class as 4xx, or one as 429"`
			Changed bool   `query:"changed" doc:"those alone of which something was changed"`
		},
		) (*body[List[gatewaylog.GatewayEntry]], error) {
			items, next, err := f.app.GatewayLog.List(ctx, gatewaylog.Query{
				Key: in.Key, Service: artel.ServiceID(in.Service), Of: store.LogOf(in.Of), Server: in.Server, Status: in.Status, Changed: in.Changed, Page: store.Page{Cursor: in.Cursor, Limit: in.Limit},
			})
			return answer(listOf(items, next), err)
		})
	register(f, f.op(http.MethodPost, "/gateway/log", "report-mcp-calls", "Report calls of MCP that a proxy beside this server has answered, as artel mcp proxy does", http.StatusNoContent),
		func(ctx context.Context, in *struct{ Body ReportedCalls }) (*struct{}, error) {
			return nil, f.app.GatewayLog.Report(ctx, in.Body.Calls)
		})
}

// ReportedCalls are calls of MCP that a proxy has answered.
type ReportedCalls struct {
	Calls []gatewaylog.ReportedCall `json:"calls" minItems:"1" maxItems:"100"`
}
