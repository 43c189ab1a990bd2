// SPDX-License-Identifier: Apache-2.0

package webui

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/access"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/store"
)

// A SchedulesPage shows the schedules of who asks, or one of them with its log.
type SchedulesPage struct {
	frame
	Schedules []ScheduleRow
	Schedule  *ScheduleRow   // the one that is shown; nil: all
	Form      store.Schedule // values of the fields
	Agents    []artel.AgentName
	May       bool // who asks may change them
	Log       []StartRow
	Older     string // address of the next page of the log; "": none
	Problem   string
}

// A ScheduleRow is one schedule.
type ScheduleRow struct {
	store.Schedule
	Path string
	Next []ZonedTime
}

// A ZonedTime is a time, and how it is written in a zone.
type ZonedTime struct {
	Time time.Time
	Text string
}

// A StartRow is one line of the log.
type StartRow struct {
	store.Start
	Planned ZonedTime
	Said    phrase.Key
	Kind    string // of the badge
	About   string // address of the conversation; "": there is no run
	Late    string // by how much; "": it was on time
}

// startSaid are the states of starts, with the kinds of their badges.
var startSaid = map[store.StartState]struct {
	said phrase.Key
	kind string
}{
	store.StartWaiting: {phrase.PageWebhookWaiting, "warn"}, store.StartDone: {phrase.PageScheduleStarted, "good"},
	store.StartSkipped: {phrase.PageScheduleSkipped, "warn"}, store.StartFailed: {phrase.PageWebhookFailed, "bad"},
}

func scheduleURL(id string) string { return "/schedules/" + url.PathEscape(id) }

// zoned writes a time in the zone of a schedule.
func zoned(at time.Time, zone string) ZonedTime {
	in := at
	if l, err := time.LoadLocation(zone); err == nil {
		in = at.In(l)
	}
	return ZonedTime{at, in.Format("2006-01-02 15:04 MST")}
}

// schedules shows all schedules.
func (ui *handler) schedules(w http.ResponseWriter, r *http.Request) {
	ui.showSchedules(w, r, http.StatusOK, "", "")
}

// schedule shows one schedule with its log.
func (ui *handler) schedule(w http.ResponseWriter, r *http.Request) {
	ui.showSchedules(w, r, http.StatusOK, r.PathValue("id"), "")
}

// showSchedules shows all schedules, or the one with an id. After a refusal the form has
// what was typed.
func (ui *handler) showSchedules(w http.ResponseWriter, r *http.Request, status int, id, problem string) {
	ctx := r.Context()
	f, err := ui.frame(r, "")
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	f.Title = locale(r).Say(phrase.PageSchedules, nil)
	if r.URL.Query().Has("saved") {
		f.Toast = &Toast{ID: "toast-saved", Text: locale(r).Say(phrase.PageSaved, nil)}
	}
	p := SchedulesPage{frame: f, May: access.Require(ctx, store.ScopeWrite) == nil, Problem: problem, Form: store.Schedule{Zone: "UTC"}}
	all, err := ui.app.Schedules.List(ctx)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	agents, err := ui.app.Agents.List(ctx)
	if err != nil {
		ui.fail(w, r, err)
		return
	}
	for _, a := range agents {
		p.Agents = append(p.Agents, a.Name)
	}
	for _, s := range all {
		row := ScheduleRow{Schedule: s, Path: scheduleURL(s.ID)}
		if !s.Paused {
			next, _ := ui.app.Schedules.Next(s.Cron, s.Zone, 3) // none if its zone is not known any more
			for _, at := range next {
				row.Next = append(row.Next, zoned(at, s.Zone))
			}
		}
		p.Schedules = append(p.Schedules, row)
	}
	if id != "" {
		i := slices.IndexFunc(p.Schedules, func(s ScheduleRow) bool { return s.ID == id })
		if i < 0 {
			ui.fail(w, r, artel.Errorf(artel.NotFound, "webui.schedules", artel.Shorten(id, 80), "no such schedule"))
			return
		}
		p.Schedule, p.Form = &p.Schedules[i], p.Schedules[i].Schedule
		if err := ui.starts(r, &p); err != nil {
			ui.fail(w, r, err)
			return
		}
	}
	if problem != "" && r.PostForm.Has("cron") {
		readSchedule(r, &p.Form)
	}
	if p.Form.Agent != "" && !slices.Contains(p.Agents, p.Form.Agent) {
		p.Agents = append(p.Agents, p.Form.Agent)
	}
	ui.show(w, r, status, "schedules.html", p)
}

// starts reads a page of the log of the schedule that is shown.
func (ui *handler) starts(r *http.Request, p *SchedulesPage) error {
	items, next, err := ui.app.Schedules.Starts(r.Context(), store.StartQuery{Schedule: p.Schedule.ID, Page: store.Page{Cursor: r.URL.Query().Get("cursor"), Limit: 50}})
	if err != nil {
		return err
	}
	for _, s := range items {
		state := startSaid[s.State]
		row := StartRow{Start: s, Planned: zoned(s.PlannedAt, p.Schedule.Zone), Said: state.said, Kind: state.kind}
		if s.State == store.StartDone {
			row.About = "/c/" + url.PathEscape(string(s.Conversation))
		}
		if late := s.CreatedAt.Sub(s.PlannedAt); late >= time.Minute {
			row.Late = late.Round(time.Second).String()
		}
		p.Log = append(p.Log, row)
	}
	if next != "" {
		p.Older = p.Schedule.Path + "?cursor=" + url.QueryEscape(next)
	}
	return nil
}

// readSchedule reads the fields of a form into a schedule.
func readSchedule(r *http.Request, s *store.Schedule) {
	v := r.PostForm
	s.Name, s.Cron, s.Zone = strings.TrimSpace(v.Get("name")), strings.TrimSpace(v.Get("cron")), strings.TrimSpace(v.Get("zone"))
	s.Agent, s.Conversation = artel.AgentName(v.Get("agent")), artel.ConversationID(strings.TrimSpace(v.Get("conversation")))
	s.Text = strings.ReplaceAll(v.Get("text"), "\r\n", "\n")
}

// refuseSchedule shows what was wrong with a form.
func (ui *handler) refuseSchedule(w http.ResponseWriter, r *http.Request, id string, err error) {
	status, text := ui.explain(r, err)
	if all, listed := ui.app.Schedules.List(r.Context()); listed != nil || !slices.ContainsFunc(all, func(s store.Schedule) bool { return s.ID == id }) {
		id = "" // there is nothing to show
	}
	ui.showSchedules(w, r, status, id, text)
}

// makeSchedule makes a schedule.
func (ui *handler) makeSchedule(w http.ResponseWriter, r *http.Request) {
	if !ui.webhookForm(w, r) {
		return
	}
	var s store.Schedule
	readSchedule(r, &s)
	s, err := ui.app.Schedules.Create(r.Context(), s)
	if err != nil {
		ui.refuseSchedule(w, r, "", err)
		return
	}
	http.Redirect(w, r, scheduleURL(s.ID)+"?saved", http.StatusSeeOther)
}

// changeSchedule changes a schedule, or starts a run of it.
func (ui *handler) changeSchedule(w http.ResponseWriter, r *http.Request) {
	if !ui.webhookForm(w, r) {
		return
	}
	ctx, id := r.Context(), r.PathValue("id")
	var err error
	switch do := r.PostForm.Get("do"); do {
	case "run":
		_, err = ui.app.Schedules.StartNow(ctx, id)
	case "pause", "resume":
		_, err = ui.app.Schedules.Update(ctx, id, func(s *store.Schedule) { s.Paused = do == "pause" })
	default:
		_, err = ui.app.Schedules.Update(ctx, id, func(s *store.Schedule) { readSchedule(r, s) })
	}
	if err != nil {
		ui.refuseSchedule(w, r, id, err)
		return
	}
	http.Redirect(w, r, scheduleURL(id)+"?saved", http.StatusSeeOther)
}

// deleteSchedule deletes a schedule.
func (ui *handler) deleteSchedule(w http.ResponseWriter, r *http.Request) {
	if err := ui.app.Schedules.Delete(r.Context(), r.PathValue("id")); err != nil {
		ui.refuseSchedule(w, r, "", err)
		return
	}
	http.Redirect(w, r, "/schedules?saved", http.StatusSeeOther)
}
