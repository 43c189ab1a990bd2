// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/event/audit"
	"github.com/artelhq/artel/store"
)

// An AuditEntry says who did what to which thing, when and from where. The
// OpenAPI document has a schema of this name.
type AuditEntry struct {
	Number  int64     `json:"n" doc:"above that of every entry before it"`
	Time    time.Time `json:"time"`
	Actor   string    `json:"actor,omitempty" doc:"the id of a user; absent: unknown, or the server itself"`
	Action  string    `json:"action"`
	Target  string    `json:"target,omitempty" doc:"what was acted on"`
	Detail  string    `json:"detail,omitempty" doc:"such as the decision"`
	Address string    `json:"address,omitempty" doc:"of the client; absent: the server itself"`
}

// An AuditQuery selects entries of the audit log.
type AuditQuery struct {
	Actor  string    `query:"actor" maxLength:"200" doc:"the id of a user"`
	Action string    `query:"action" maxLength:"100"`
	Since  time.Time `query:"since" doc:"entries from this time on"`
	Until  time.Time `query:"until" doc:"entries before this time"`
}

// of returns the query of a page.
func (q AuditQuery) of(p store.Page) (store.AuditQuery, error) {
	if q.Action != "" && !slices.Contains(audit.Actions(), audit.Action(q.Action)) {
		return store.AuditQuery{}, artel.Errorf(artel.Invalid, "httpapi", "action", "%q is no action", artel.Shorten(q.Action, 80))
	}
	return store.AuditQuery{Actor: artel.Owner(q.Actor), Action: q.Action, Since: q.Since, Until: q.Until, Page: p}, nil
}

func (f *server) audit() {
	register(f, f.op(http.MethodGet, "/audit", "list-audit", "List the audit log of the deployment, the newest entries first", http.StatusOK),
		func(ctx context.Context, in *struct {
			PageQuery
			AuditQuery
		},
		) (*body[List[AuditEntry]], error) {
			if err := access.Require(ctx, store.ScopeAdmin); err != nil {
				return nil, err
			}
			items, next, err := f.auditPage(ctx, in.AuditQuery, store.Page{Cursor: in.Cursor, Limit: in.Limit})
			return answer(listOf(items, next), err)
		})
	all := f.op(http.MethodGet, "/audit/export", "export-audit", "Export the audit log of the deployment as CSV, the newest entries first", http.StatusOK)
	all.Responses["200"] = &huma.Response{
		Description: "a file for download, with a line of names at its head",
		Content:     map[string]*huma.MediaType{"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}}},
	}
	register(f, all, func(ctx context.Context, in *AuditQuery) (*huma.StreamResponse, error) {
		if err := access.Require(ctx, store.ScopeAdmin); err != nil {
			return nil, err
		}
		if _, err := in.of(store.Page{}); err != nil {
			return nil, err
		}
		if err := f.app.Audit.Add(ctx, audit.Act{Action: audit.AuditExported}); err != nil {
			return nil, err
		}
		return f.serveExport(app.Exported{
			Filename: "audit.csv", MediaType: "text/csv; charset=utf-8",
			Write: func(ctx context.Context, w io.Writer) error { return f.writeAudit(ctx, w, *in) },
		}, nil)
	})
}

func (f *server) auditPage(ctx context.Context, q AuditQuery, p store.Page) ([]AuditEntry, string, error) {
	selected, err := q.of(p)
	if err != nil {
		return nil, "", err
	}
	rows, next, err := f.app.Audit.List(ctx, selected)
	items := make([]AuditEntry, len(rows))
	for i, e := range rows {
		items[i] = AuditEntry{e.Number, e.Time, string(e.Actor), e.Action, e.Target, e.Detail, e.Address}
	}
	return items, next, err
}

// writeAudit writes entries as CSV, page by page.
func (f *server) writeAudit(ctx context.Context, w io.Writer, q AuditQuery) error {
	out := csv.NewWriter(w)
	if err := out.Write([]string{"n", "time", "actor", "action", "target", "detail", "address"}); err != nil {
		return err
	}
	for cursor := ""; ; {
		items, next, err := f.auditPage(ctx, q, store.Page{Cursor: cursor, Limit: 500})
		if err != nil {
			return err
		}
		for _, e := range items {
			if err := out.Write([]string{strconv.FormatInt(e.Number, 10), e.Time.Format(time.RFC3339Nano), cell(e.Actor), e.Action, cell(e.Target), cell(e.Detail), e.Address}); err != nil {
				return err
			}
		}
		if out.Flush(); next == "" || out.Error() != nil {
			return out.Error()
		}
		cursor = next
	}
}

// cell keeps spreadsheets from reading a text as a formula.
func cell(s string) string {
	if s != "" && strings.ContainsAny(s[:1], "=+-@\t\r") {
		return "'" + s
	}
	return s
}
