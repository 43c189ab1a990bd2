// SPDX-License-Identifier: Apache-2.0

package store

import (
	"time"

	"github.com/artelhq/artel"
)

// Schedules stores at which times runs of users are started.
type Schedules interface {
	// Create is of kind Conflict if the id exists. The user need not exist, as with
	// webhooks.
	Create(s Schedule) error
	// Get is of kind NotFound if there is none, like all that follow.
	Get(id string) (Schedule, error)
	// List returns those of a user, in order of creation.
	List(user artel.Owner) ([]Schedule, error)
	// Update replaces the fields from NextAt on.
	Update(s Schedule) error
	// Advance replaces NextAt and reports whether it was from. Of several that advance a
	// schedule from the same time, one does. It is false if there is no such schedule.
	Advance(id string, from, to time.Time) (bool, error)
	// Delete removes a schedule with its starts, and all schedules of the user if the id
	// is empty.
	Delete(user artel.Owner, id string) error
}

// A Schedule starts runs of a user.
type Schedule struct {
	ID        string
	User      artel.Owner
	CreatedAt time.Time

	NextAt       time.Time // zero: none, as while it is paused
	Name         string
	Cron         string // five fields
	Zone         string // of the fields, such as Europe/Berlin
	Agent        artel.AgentName
	Conversation artel.ConversationID // empty: a new one each time
	Text         string               // of the message
	Paused       bool
}

// Starts stores which runs schedules have started, and which they are about to start.
type Starts interface {
	// Add adds a start; Number is ignored.
	Add(s Start) error
	// List returns those of a schedule, newest first. next is "" at the end.
	List(q StartQuery) (items []Start, next string, err error)
	// Due returns the schedules whose NextAt has come. Those of disabled users are left
	// out.
	Due(now time.Time) ([]Schedule, error)
	// Take returns at most limit starts in state [StartWaiting] whose Until has come, oldest
	// first, and sets their Until. Of several that take at the same time, one gets a start.
	Take(now, until time.Time, limit int) ([]Start, error)
	// Report replaces the state, the error and Until. It is of kind NotFound if there is no such start.
	Report(s Start) error
	// Trim removes all but the newest starts of a schedule.
	Trim(schedule string, newest int) error
}

// A Start is one time of a schedule.
type Start struct {
	Number       int64 // grows with each
	Schedule     string
	PlannedAt    time.Time
	CreatedAt    time.Time
	Missed       int                  // later times that passed before it, as while no server was running
	Manual       bool                 // a user asked for it
	Conversation artel.ConversationID // of the run
	Run          artel.RunID          // that it starts, if it does

	State StartState
	Error string    // why there is no run; empty: there is one, or none yet
	Until time.Time // when another process may start it; zero: it is over
}

// A StartState says how far a start is.
type StartState string

// The states.
const (
	StartWaiting StartState = "waiting"
	StartDone    StartState = "started"
	StartSkipped StartState = "skipped" // the run before it was active
	StartFailed  StartState = "failed"
)

// A StartQuery selects starts.
type StartQuery struct {
	Schedule string
	State    StartState // empty: all
	Page
}
