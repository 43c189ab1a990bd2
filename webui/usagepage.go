// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// A UsagePage shows what model calls have used: those of who asks, and of all users to
// administrators.
type UsagePage struct {
	frame
	From, To string // days in UTC
	By       store.UsageField
	Fields   []UsageChoice
	Ranges   []UsageRange
	Total    Counts
	Plots    []Plot
	Series   []Series // of the plots
	Bar      int      // days of one bar
	Rows     []Counts
	Unlisted int // rows that only the file has
	Near     []KeyRow
	CSV      string
	Problem  string
}

// A UsageChoice is a field by which usage can be listed.
type UsageChoice struct {
	Field store.UsageField
	Said  phrase.Key
}

// A UsageRange is a range of days that a link chooses.
type UsageRange struct {
	Days int
	URL  string
	On   bool
}

// Counts are what the calls of a row have used.
type Counts struct {
	Name  string // for people
	Calls int64
	In    int64
	Out   int64
	Hits  float64 // the part of In that was read from the provider's cache
	Money Usage
}

func countsOf(name string, c store.UsageCounts) Counts {
	n := Counts{Name: name, Calls: c.Calls, In: c.Input, Out: c.Output}
	if c.Input > 0 {
		n.Hits = float64(c.Cached) / float64(c.Input)
	}
	n.Money.Calls, n.Money.Cost = int(c.Calls), artel.Cost{USD: float64(c.Cost) / 1e9, Calls: int(c.Calls - c.Unknown)}
	return n
}

// A Series is what one value of the field has used, in one color of the plots.
type Series struct {
	Name string
	Tone string
}

// A Plot has a bar for each day, or for several days if there are many.
type Plot struct {
	ID    string
	Title phrase.Key
	Most  string // at the top of the axis
	Width int    // of the picture, in its units; it is plotHeight high
	Bars  []Bar
}

// A Bar is a part of a plot.
type Bar struct {
	X, Y, W, H float64
	Tone       string
	Text       string // the day and the value
}

const (
	plotHeight = 100 // units
	barWidth   = 10  // units, with the space between bars
	maxBars    = 92  // more days share bars
	maxSeries  = 5   // the rest of them is one more
	maxRows    = 200 // of the table
)

// fieldsSaid are the fields by which usage can be listed.
var fieldsSaid = []UsageChoice{
	{store.ByDay, phrase.PageUsageDay},
	{store.ByModel, phrase.PageUsageModel},
	{store.ByService, phrase.PageUsageService},
	{store.ByKey, phrase.PageUsageKey},
	{store.ByAgent, phrase.PageUsageAgent},
	{store.ByUser, phrase.PageUsageUser},
}

// usageDays are the ranges that links choose.
var usageDays = []int{7, 30, 90, 365}

// usage shows what model calls have used.
func (ui *handler) usage(w http.ResponseWriter, r *http.Request) {
	p, status, err := ui.usagePage(r)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	ui.show(w, r, status, "usage.html", p)
}

func (ui *handler) usagePage(r *http.Request) (p UsagePage, status int, err error) {
	if p.frame, err = ui.frame(r, ""); err != nil {
		return p, 0, err
	}
	l := locale(r)
	p.Title = l.Say(phrase.PageUsage, nil)
	q := r.URL.Query()
	p.By = store.UsageField(cmp.Or(q.Get("by"), string(store.ByModel)))
	for _, f := range fieldsSaid {
		if f.Field != store.ByUser || p.Admin {
			p.Fields = append(p.Fields, f)
		}
	}
	to, wrongTo := dayOf(q.Get("to"), ui.app.Usage.Today())
	from, wrongFrom := dayOf(q.Get("from"), to.AddDate(0, 0, 1-usageDays[1]))
	p.From, p.To = from.Format(time.DateOnly), to.Format(time.DateOnly)
	for _, days := range usageDays {
		first := to.AddDate(0, 0, 1-days).Format(time.DateOnly)
		v := url.Values{"by": {string(p.By)}, "from": {first}, "to": {p.To}}
		p.Ranges = append(p.Ranges, UsageRange{days, "/usage?" + v.Encode(), first == p.From})
	}
	rows, wrong := []store.UsageRow(nil), cmp.Or(wrongTo, wrongFrom)
	if wrong == nil {
		rows, wrong = ui.app.Usage.List(r.Context(), from, to, daily(p.By)...)
	}
	if wrong != nil {
		if artel.KindOf(wrong) != artel.Invalid {
			return p, 0, wrong
		}
		status, p.Problem = ui.explain(r, wrong)
		return p, status, nil
	}
	p.CSV = "/api/v1/usage?" + url.Values{"by": {string(p.By)}, "from": {p.From}, "to": {p.To}, "format": {"csv"}}.Encode()
	names, err := ui.usageNames(r, p.By)
	if err != nil {
		return p, 0, err
	}
	p.fill(l, rows, names, from, to)
	if p.Near, err = ui.nearKeys(r); err != nil {
		return p, 0, err
	}
	return p, http.StatusOK, nil
}

// dayOf reads a day; an empty text is otherwise.
func dayOf(text string, otherwise time.Time) (time.Time, error) {
	if text == "" {
		return otherwise, nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		return otherwise, artel.Errorf(artel.Invalid, "webui.usage", "day", "%q is no day: want one such as 2026-03-04", artel.Shorten(text, 40))
	}
	return t, nil
}

// daily returns the fields of rows by day and another field.
func daily(by store.UsageField) []store.UsageField {
	if by == store.ByDay {
		return []store.UsageField{store.ByDay}
	}
	return []store.UsageField{store.ByDay, by}
}

// usageNames are what people call the values of a field; those without a name are shown
// as they are.
func (ui *handler) usageNames(r *http.Request, by store.UsageField) (map[string]string, error) {
	names := map[string]string{}
	switch by {
	case store.ByKey:
		return ui.app.Keys.Names(r.Context())
	case store.ByService:
		for _, s := range ui.app.Models.Services(r.Context()) {
			names[string(s.ID)] = s.Name
		}
	case store.ByUser:
		users, err := ui.userNames(r)
		for id, name := range users {
			names[string(id)] = name
		}
		return names, err
	}
	return names, nil
}

// valueOf is the value of the field by which rows are listed.
func valueOf(row store.UsageRow, by store.UsageField) string {
	switch by {
	case store.ByUser:
		return string(row.User)
	case store.ByKey:
		return row.Key
	case store.ByService:
		return string(row.Service)
	case store.ByModel:
		return row.Model
	case store.ByAgent:
		return string(row.Agent)
	}
	return ""
}

// withoutValue says what the rows without a value are.
var withoutValue = map[store.UsageField]phrase.Key{
	store.ByKey: phrase.PageUsageNoKey, store.ByAgent: phrase.PageUsageNoAgent, store.ByModel: phrase.PageUsageNone, store.ByService: phrase.PageUsageNone, store.ByUser: phrase.PageUsageNone,
}

// fill makes the total, the plots and the table of rows by day and field.
func (p *UsagePage) fill(l phrase.Locale, rows []store.UsageRow, names map[string]string, from, to time.Time) {
	sums, total := map[string]store.UsageCounts{}, store.UsageCounts{}
	for _, row := range rows {
		v := valueOf(row, p.By)
		sums[v], total = sums[v].Plus(row.Counts), total.Plus(row.Counts)
	}
	p.Total = countsOf("", total)
	most := func(a, b string) int {
		x, y := sums[a], sums[b]
		return cmp.Or(cmp.Compare(y.Cost, x.Cost), cmp.Compare(y.Input+y.Output, x.Input+x.Output), strings.Compare(a, b))
	}
	values := slices.SortedFunc(maps.Keys(sums), most)
	name := func(v string) string {
		if v == "" {
			return l.Say(withoutValue[p.By], nil)
		}
		return cmp.Or(names[v], v)
	}
	series := map[string]int{}
	for i, v := range values {
		series[v] = min(i, maxSeries)
		if p.By != store.ByDay && i < maxSeries {
			p.Series = append(p.Series, Series{name(v), tones[i]})
		}
	}
	if len(values) > maxSeries {
		p.Series = append(p.Series, Series{l.Say(phrase.PageUsageOthers, map[string]any{"Count": len(values) - maxSeries}), tones[maxSeries]})
	}
	if p.By == store.ByDay {
		for _, row := range slices.Backward(rows) {
			p.Rows = append(p.Rows, countsOf(row.Day.Format(time.DateOnly), row.Counts))
		}
	} else {
		for _, v := range values {
			p.Rows = append(p.Rows, countsOf(name(v), sums[v]))
		}
	}
	if n := len(p.Rows) - maxRows; n > 0 {
		p.Rows, p.Unlisted = p.Rows[:maxRows], n
	}
	p.plot(rows, from, to, func(row store.UsageRow) int { return series[valueOf(row, p.By)] })
}

// plot makes the plots of rows; seriesOf tells the series of one.
func (p *UsagePage) plot(rows []store.UsageRow, from, to time.Time, seriesOf func(store.UsageRow) int) {
	days := int(to.Sub(from)/(24*time.Hour)) + 1
	p.Bar = (days + maxBars - 1) / maxBars
	bars := make([][maxSeries + 1]store.UsageCounts, (days+p.Bar-1)/p.Bar)
	for _, row := range rows {
		i, s := int(row.Day.Sub(from)/(24*time.Hour))/p.Bar, seriesOf(row)
		bars[i][s] = bars[i][s].Plus(row.Counts)
	}
	label := func(i int) string {
		first := from.AddDate(0, 0, i*p.Bar)
		last := first.AddDate(0, 0, p.Bar-1)
		if last.After(to) {
			last = to
		}
		if first.Equal(last) {
			return first.Format(time.DateOnly)
		}
		return first.Format(time.DateOnly) + " – " + last.Format(time.DateOnly)
	}
	stacked := func(id string, title phrase.Key, of func(store.UsageCounts) float64, show func(float64) string) {
		plot := Plot{ID: id, Title: title, Width: len(bars) * barWidth}
		top := 0.0
		for _, parts := range bars {
			sum := 0.0
			for _, c := range parts {
				sum += of(c)
			}
			top = max(top, sum)
		}
		if top == 0 {
			return
		}
		plot.Most = show(top)
		for i, parts := range bars {
			y := float64(plotHeight)
			for s, c := range parts {
				v := of(c)
				if v <= 0 {
					continue
				}
				h := v / top * plotHeight
				y -= h
				text := label(i) + ": " + show(v)
				if s < len(p.Series) {
					text = label(i) + ", " + p.Series[s].Name + ": " + show(v)
				}
				plot.Bars = append(plot.Bars, Bar{float64(i*barWidth) + 1, y, barWidth - 2, h, tones[s], text})
			}
		}
		p.Plots = append(p.Plots, plot)
	}
	stacked("cost", phrase.PageUsageCost, func(c store.UsageCounts) float64 { return float64(c.Cost) / 1e9 }, dollarsOf)
	stacked("tokens", phrase.PageUsageTokens, func(c store.UsageCounts) float64 { return float64(c.Input + c.Output) }, func(v float64) string { return thousands(int(v)) })
	hits := Plot{ID: "cache", Title: phrase.PageUsageCache, Most: percent(1), Width: len(bars) * barWidth}
	for i, parts := range bars {
		var sum store.UsageCounts
		for _, c := range parts {
			sum = sum.Plus(c)
		}
		if sum.Cached == 0 {
			continue
		}
		share := float64(sum.Cached) / float64(sum.Input)
		hits.Bars = append(hits.Bars, Bar{float64(i*barWidth) + 1, plotHeight * (1 - share), barWidth - 2, plotHeight * share, tones[0], fmt.Sprintf("%s: %s", label(i), percent(share))})
	}
	if len(hits.Bars) > 0 {
		p.Plots = append(p.Plots, hits)
	}
}

// nearKeys lists the keys of which little or nothing of the budget is left.
func (ui *handler) nearKeys(r *http.Request) (near []KeyRow, err error) {
	spent, err := ui.spent(r)
	if err != nil {
		return nil, err
	}
	all, err := ui.app.Keys.List(r.Context())
	if err != nil {
		return nil, err
	}
	for _, k := range append(all, ui.app.Keys.Fixed(r.Context())...) {
		if s := spent.of(k); s.Near() || s.Over() {
			near = append(near, KeyRow{GatewayKey: k, Spent: s})
		}
	}
	return near, nil
}
