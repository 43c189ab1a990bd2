// SPDX-License-Identifier: Apache-2.0

package gatewaylog

import (
	"context"
	"time"

	"github.com/artelhq/artel"
)

// MaxReported is how many calls one report has at most.
const MaxReported = 100

// A ReportedCall is a call of MCP that a proxy beside the server has answered. The OpenAPI
// document has a schema of this name.
type ReportedCall struct {
	Time     time.Time       `json:"time"`
	Endpoint string          `json:"endpoint" maxLength:"200" doc:"method of MCP"`
	Status   int             `json:"status" minimum:"100" maximum:"599"`
	Millis   float64         `json:"ms" minimum:"0"`
	BytesIn  int64           `json:"bytes_in" minimum:"0" doc:"that the tool returned"`
	BytesOut int64           `json:"bytes_out" minimum:"0" doc:"that the host got"`
	Changes  []GatewayChange `json:"changes,omitempty" maxItems:"200"`
	Unlisted int             `json:"unlisted,omitempty" minimum:"0"`
	Error    string          `json:"error,omitempty" maxLength:"2000"`
	MCP      MCPCall         `json:"mcp"`
}

// Reported returns what a proxy reports of an entry about a call of MCP.
func Reported(e GatewayEntry) ReportedCall {
	r := ReportedCall{
		Time: e.Time, Endpoint: e.Endpoint, Status: e.Status, Millis: e.Millis, BytesIn: e.BytesIn, BytesOut: e.BytesOut,
		Changes: e.Changes, Unlisted: e.Unlisted, Error: artel.Shorten(e.Error, maxError),
	}
	if e.MCP != nil {
		r.MCP = *e.MCP
	}
	return r
}

// Report adds calls to the log of the context's owner, at most [MaxReported]. Their refs make
// no bytes readable.
func (l *Log) Report(ctx context.Context, calls []ReportedCall) error {
	if len(calls) > MaxReported {
		return artel.Errorf(artel.TooLarge, "gatewaylog.Log.Report", "", "one report has at most %d calls; send several", MaxReported)
	}
	for _, r := range calls {
		e := GatewayEntry{
			Time: r.Time, Inbound: MCP, Endpoint: artel.Shorten(r.Endpoint, maxName), Status: r.Status, Millis: r.Millis,
			BytesIn: r.BytesIn, BytesOut: r.BytesOut, Unlisted: r.Unlisted, Error: r.Error, MCP: &r.MCP,
		}
		for _, c := range r.Changes {
			e.Changes = append(e.Changes, GatewayChange{
				Did: artel.Shorten(c.Did, 40), Field: artel.Shorten(c.Field, maxName), Ref: c.Ref, MediaType: artel.Shorten(c.MediaType, maxName), Size: max(c.Size, 0),
			})
		}
		l.Add(ctx, e)
	}
	return nil
}
