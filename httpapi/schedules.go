// SPDX-License-Identifier: Apache-2.0

package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A NewSchedule is the body of POST /schedules.
type NewSchedule struct {
	Name         string               `json:"name" minLength:"1" maxLength:"100" doc:"for you, and the title of new conversations"`
	Cron         string               `json:"cron" minLength:"1" maxLength:"200" doc:"minute, hour, day, month, weekday, such as 30 8 * * 1-5; or @hourly, @daily, @weekly, @monthly, @yearly"`
	Zone         string               `json:"zone,omitempty" maxLength:"100" doc:"time zone of cron, such as Europe/Berlin; absent: UTC"`
	Agent        artel.AgentName      `json:"agent,omitempty" maxLength:"200" doc:"absent: that of the conversation, or the first one"`
	Conversation artel.ConversationID `json:"conversation_id,omitempty" maxLength:"200" doc:"absent: a new one each time"`
	Text         string               `json:"text" minLength:"1" maxLength:"20000" doc:"the message that the agent gets"`
	Paused       bool                 `json:"paused,omitempty"`
}

// A ScheduleView is a schedule.
type ScheduleView struct {
	ID string `json:"id"`
	NewSchedule
	CreatedAt time.Time   `json:"created_at"`
	Next      []time.Time `json:"next" nullable:"false" doc:"its next three times; none while it is paused"`
}

// A ScheduleChange is the body of PATCH /schedules/{id}.
type ScheduleChange struct {
	Name         *string               `json:"name,omitempty" maxLength:"100"`
	Cron         *string               `json:"cron,omitempty" maxLength:"200"`
	Zone         *string               `json:"zone,omitempty" maxLength:"100"`
	Agent        *artel.AgentName      `json:"agent,omitempty" maxLength:"200" doc:"empty: that of the conversation, or the first one"`
	Conversation *artel.ConversationID `json:"conversation_id,omitempty" maxLength:"200" doc:"empty: a new one each time"`
	Text         *string               `json:"text,omitempty" maxLength:"20000"`
	Paused       *bool                 `json:"paused,omitempty"`
}

func (c ScheduleChange) apply(s *store.Schedule) {
	replace(&s.Name, c.Name)
	replace(&s.Cron, c.Cron)
	replace(&s.Zone, c.Zone)
	replace(&s.Agent, c.Agent)
	replace(&s.Conversation, c.Conversation)
	replace(&s.Text, c.Text)
	replace(&s.Paused, c.Paused)
}

func replace[T any](to, by *T) {
	if by != nil {
		*to = *by
	}
}

// A StartView is a line of the log of a schedule.
type StartView struct {
	Number       int64                `json:"number"`
	PlannedAt    time.Time            `json:"planned_at"`
	CreatedAt    time.Time            `json:"created_at" doc:"later than planned_at if no server was running then"`
	Missed       int                  `json:"missed,omitempty" doc:"later times that passed before it and were left out"`
	Manual       bool                 `json:"manual,omitempty" doc:"you asked for it"`
	State        store.StartState     `json:"state" enum:"waiting,started,skipped,failed"`
	Error        string               `json:"error,omitempty"`
	Conversation artel.ConversationID `json:"conversation_id"`
	Run          artel.RunID          `json:"run_id" doc:"there is such a run if the state is started"`
}

func startView(s store.Start) StartView {
	return StartView{s.Number, s.PlannedAt, s.CreatedAt, s.Missed, s.Manual, s.State, s.Error, s.Conversation, s.Run}
}

// A ScheduleID names the schedule of a path.
type ScheduleID struct {
	ID string `path:"id" maxLength:"200"`
}

// scheduleView shows a schedule with its next times.
func (f *server) scheduleView(s store.Schedule) ScheduleView {
	v := ScheduleView{
		ID: s.ID, CreatedAt: s.CreatedAt, Next: []time.Time{},
		NewSchedule: NewSchedule{Name: s.Name, Cron: s.Cron, Zone: s.Zone, Agent: s.Agent, Conversation: s.Conversation, Text: s.Text, Paused: s.Paused},
	}
	if !s.Paused {
		if next, err := f.app.Schedules.Next(s.Cron, s.Zone, 3); err == nil { // otherwise there is no next time
			v.Next = next
		}
	}
	return v
}

func (f *server) schedules() {
	all := f.app.Schedules
	const path = "/schedules"
	register(f, f.op(http.MethodGet, path, "list-schedules", "List your schedules, in order of creation", http.StatusOK),
		func(ctx context.Context, _ *struct{}) (*body[List[ScheduleView]], error) {
			mine, err := all.List(ctx)
			return answer(listOf(views(mine, f.scheduleView), ""), err)
		})
	register(f, f.op(http.MethodPost, path, "make-schedule", "Make a schedule, which starts runs at the times of a cron expression", http.StatusCreated),
		func(ctx context.Context, in *struct{ Body NewSchedule }) (*body[ScheduleView], error) {
			b := in.Body
			s, err := all.Create(ctx, store.Schedule{Name: b.Name, Cron: b.Cron, Zone: b.Zone, Agent: b.Agent, Conversation: b.Conversation, Text: b.Text, Paused: b.Paused})
			return answer(f.scheduleView(s), err)
		})
	register(f, f.op(http.MethodPatch, path+"/{id}", "change-schedule", "Change a schedule, pause it or continue it", http.StatusOK),
		func(ctx context.Context, in *struct {
			ScheduleID
			Body ScheduleChange
		},
		) (*body[ScheduleView], error) {
			s, err := all.Update(ctx, in.ID, in.Body.apply)
			return answer(f.scheduleView(s), err)
		})
	register(f, f.op(http.MethodDelete, path+"/{id}", "delete-schedule", "Delete a schedule with its log; its conversations stay", http.StatusNoContent),
		func(ctx context.Context, in *ScheduleID) (*none, error) { return nil, all.Delete(ctx, in.ID) })
	register(f, f.op(http.MethodPost, path+"/{id}/run", "run-schedule", "Start a run of a schedule now", http.StatusAccepted),
		func(ctx context.Context, in *ScheduleID) (*body[StartView], error) {
			s, err := all.StartNow(ctx, in.ID)
			return answer(startView(s), err)
		})
	register(f, f.op(http.MethodGet, path+"/{id}/starts", "list-starts", "List what a schedule has started, newest first: the last 200", http.StatusOK),
		func(ctx context.Context, in *struct {
			ScheduleID
			Cursor string `query:"cursor" maxLength:"200"`
			Limit  int    `query:"limit" minimum:"1" maximum:"500" default:"50"`
		},
		) (*body[List[StartView]], error) {
			items, next, err := all.Starts(ctx, store.StartQuery{Schedule: in.ID, Page: store.Page{Cursor: in.Cursor, Limit: in.Limit}})
			return answer(listOf(views(items, startView), next), err)
		})
}
