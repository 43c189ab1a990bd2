// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"encoding/csv"
	"io"
	"net/http"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/store"
)

// A UsageRow is what model calls have used. It has the field by which the list is.
type UsageRow struct {
	Day     string          `json:"day,omitempty" doc:"in UTC, as 2026-03-04"`
	User    artel.Owner     `json:"user,omitempty"`
	Key     string          `json:"key,omitempty" doc:"id of the key or token of the gateway's client; absent: none"`
	Name    string          `json:"name,omitempty" doc:"of the key, if it exists"`
	Service artel.ServiceID `json:"service,omitempty"`
	Model   string          `json:"model,omitempty"`
	Agent   artel.AgentName `json:"agent,omitempty" doc:"absent: none, such as of the gateway"`

	Calls     int64      `json:"calls"`
	Input     int64      `json:"input_tokens"`
	Cached    int64      `json:"cached_tokens" doc:"of the input, read from the provider's cache"`
	Output    int64      `json:"output_tokens"`
	Reasoning int64      `json:"thought_tokens" doc:"of the output"`
	Cost      artel.Cost `json:"cost" doc:"in US dollars, of the calls with a known cost"`
}

// A UsageList is the answer of GET /usage.
type UsageList struct {
	From  string           `json:"from" doc:"first day, in UTC"`
	To    string           `json:"to" doc:"last day"`
	By    store.UsageField `json:"by" enum:"day,user,key,service,model,agent"`
	Items []UsageRow       `json:"items"`
	Total UsageRow         `json:"total"`
}

func usageRow(r store.UsageRow, names map[string]string) UsageRow {
	c := r.Counts
	v := UsageRow{
		User: r.User, Key: r.Key, Name: names[r.Key], Service: r.Service, Model: r.Model, Agent: r.Agent, Calls: c.Calls, Input: c.Input, Cached: c.Cached,
		Output: c.Output, Reasoning: c.Reasoning, Cost: artel.Cost{USD: float64(c.Cost) / 1e9, Calls: int(c.Calls - c.Unknown)},
	}
	if !r.Day.IsZero() {
		v.Day = r.Day.Format(time.DateOnly)
	}
	return v
}

// A UsageQuery selects usage.
type UsageQuery struct {
	From   string           `query:"from" maxLength:"40" doc:"first day in UTC, as 2026-03-04, or a time; default: 29 days before the last"`
	To     string           `query:"to" maxLength:"40" doc:"last day; default: today"`
	By     store.UsageField `query:"by" enum:"day,user,key,service,model,agent" default:"day"`
	Format string           `query:"format" enum:"json,csv" doc:"default: as Accept says"`
}

// day reads a day, or the day of a time.
func dayOf(name, text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	for _, layout := range []string{time.DateOnly, time.RFC3339Nano} {
		if t, err := time.Parse(layout, text); err == nil {
			return t.UTC().Truncate(24 * time.Hour), nil
		}
	}
	return time.Time{}, artel.Errorf(artel.Invalid, "httpapi", name, "%q is no day: want one such as 2026-03-04", artel.Shorten(text, 40))
}

// UsageDays are how many days a list of usage has if the first is not said.
const UsageDays = 30

// ListUsage lists usage for the page and the API.
func ListUsage(ctx context.Context, a *app.App, q UsageQuery) (out UsageList, err error) {
	to, err := dayOf("to", q.To, a.Usage.Today())
	if err != nil {
		return out, err
	}
	from, err := dayOf("from", q.From, to.AddDate(0, 0, 1-UsageDays))
	if err != nil {
		return out, err
	}
	if q.By == "" {
		q.By = store.ByDay
	}
	rows, err := a.Usage.List(ctx, from, to, q.By)
	if err != nil {
		return out, err
	}
	out = UsageList{From: from.Format(time.DateOnly), To: to.Format(time.DateOnly), By: q.By, Items: []UsageRow{}}
	names := map[string]string{}
	if q.By == store.ByKey {
		if names, err = a.Keys.Names(ctx); err != nil {
			return out, err
		}
	}
	var total store.UsageCounts
	for _, r := range rows {
		out.Items = append(out.Items, usageRow(r, names))
		total = total.Plus(r.Counts)
	}
	out.Total = usageRow(store.UsageRow{Counts: total}, nil)
	return out, nil
}

func (f *server) usage() {
	op := f.op(http.MethodGet, "/usage", "list-usage", "List what your model calls have used, by runs and at the gateway; those of all users with the scope admin", http.StatusOK)
	op.Responses["200"] = &huma.Response{
		Description: "JSON, or CSV with a line of names at its head if the query or the header Accept asks for it",
		Content: map[string]*huma.MediaType{
			"application/json": {Schema: f.api.OpenAPI().Components.Schemas.Schema(reflect.TypeFor[UsageList](), true, "UsageList")},
			"text/csv":         {Schema: &huma.Schema{Type: huma.TypeString}},
		},
	}
	register(f, op, func(ctx context.Context, in *struct {
		UsageQuery
		Accept string `header:"Accept"`
	},
	) (*huma.StreamResponse, error) {
		list, err := ListUsage(ctx, f.app, in.UsageQuery)
		if err != nil {
			return nil, err
		}
		if in.Format == "csv" || in.Format == "" && strings.Contains(in.Accept, "text/csv") {
			return f.serveExport(app.Exported{
				Filename: "usage-" + string(list.By) + ".csv", MediaType: "text/csv; charset=utf-8",
				Write: func(_ context.Context, w io.Writer) error { return WriteUsage(w, list) },
			}, nil)
		}
		return &huma.StreamResponse{Body: func(hc huma.Context) { sendJSON(hc, list) }}, nil
	})
}

// WriteUsage writes a list as CSV.
func WriteUsage(w io.Writer, l UsageList) error {
	out := csv.NewWriter(w)
	head := []string{string(l.By)}
	if l.By == store.ByKey {
		head = append(head, "name")
	}
	_ = out.Write(append(head, "calls", "input_tokens", "cached_tokens", "output_tokens", "thought_tokens", "cost_usd", "calls_with_cost")) // Error has it
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for _, r := range l.Items {
		row := []string{cell(r.Label())}
		if l.By == store.ByKey {
			row = []string{cell(r.Key), cell(r.Name)}
		}
		_ = out.Write(append(row, number(r.Calls), number(r.Input), number(r.Cached), number(r.Output), number(r.Reasoning), strconv.FormatFloat(r.Cost.USD, 'f', -1, 64), strconv.Itoa(r.Cost.Calls)))
	}
	out.Flush()
	return out.Error()
}

// Label is the value of the field by which the list is; "": none.
func (r UsageRow) Label() string {
	for _, v := range []string{r.Day, string(r.User), r.Name, r.Key, string(r.Service), r.Model, string(r.Agent)} {
		if v != "" {
			return v
		}
	}
	return ""
}
