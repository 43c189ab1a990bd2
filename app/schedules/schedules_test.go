// SPDX-License-Identifier: Apache-2.0

package schedules_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/schedules"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const me artel.Owner = "ann"

// fakeRuns starts no runs, and notes which it would start.
type fakeRuns struct {
	mu      sync.Mutex
	started []store.Start
	active  map[artel.RunID]bool
	err     error
	refuse  error
	asked   int
}

func (f *fakeRuns) Check(context.Context, store.Schedule) error { return f.refuse }

func (f *fakeRuns) Start(ctx context.Context, s store.Schedule, st store.Start) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if artel.OwnerOf(ctx) != s.User {
		return fmt.Errorf("started as %s", artel.OwnerOf(ctx))
	}
	if f.err != nil {
		return f.err
	}
	if !slices.ContainsFunc(f.started, func(o store.Start) bool { return o.Run == st.Run }) {
		f.started = append(f.started, st)
	}
	return nil
}

func (f *fakeRuns) Active(_ context.Context, run artel.RunID) (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.active[run], nil
}

func (f *fakeRuns) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeRuns) times() (asked int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func (f *fakeRuns) all() []store.Start {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.started)
}

// bench is a database with schedules, whose clock a test sets.
type bench struct {
	t       *testing.T
	ctx     context.Context
	address string
	db      store.Store
	runs    *fakeRuns
	*schedules.Schedules

	mu  sync.Mutex
	now time.Time
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, ctx: artel.WithOwner(t.Context(), me), address: rowstest.Address(t), runs: &fakeRuns{active: map[artel.RunID]bool{}}, now: time.Date(2026, 3, 28, 12, 0, 30, 0, time.UTC)}
	b.db = rowstest.At(t, b.address)
	b.Schedules = b.server(b.db)
	return b
}

// server returns the schedules of another process.
func (b *bench) server(db store.Store) *schedules.Schedules {
	return schedules.New(db, b.runs, schedules.Options{Every: time.Millisecond, Lease: time.Minute, Log: slog.New(slog.DiscardHandler), Now: func() time.Time {
		b.mu.Lock()
		defer b.mu.Unlock()
		return b.now
	}})
}

func (b *bench) pass(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.now = b.now.Add(d)
}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) start(ss *schedules.Schedules) (stop func()) {
	ctx, cancel := context.WithCancel(b.ctx)
	done := make(chan struct{})
	go func() { defer close(done); ss.Run(ctx) }()
	stop = func() { cancel(); <-done }
	b.t.Cleanup(stop)
	return stop
}

func (b *bench) make(s store.Schedule) store.Schedule {
	b.t.Helper()
	s.Name, s.Text = "x", "Go."
	s, err := b.Create(b.ctx, s)
	b.must(err)
	return s
}

func (b *bench) until(what string, holds func() bool) {
	b.t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			b.t.Fatalf("%s: not within a minute", what)
		}
	}
}

func (b *bench) log(id string) []store.Start {
	b.t.Helper()
	all, _, err := b.Starts(b.ctx, store.StartQuery{Schedule: id})
	b.must(err)
	return all
}

// over waits until a schedule has n starts that are over, and returns the newest.
func (b *bench) over(id string, n int) store.Start {
	b.t.Helper()
	var all []store.Start
	b.until(fmt.Sprint(n, " starts"), func() bool {
		all = b.log(id)
		return len(all) == n && all[0].State != store.StartWaiting
	})
	return all[0]
}

// TestTimes: the next times are those of the zone, also where its clocks change.
func TestTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, c := range []struct{ cron, zone, want string }{
		{"30 8 * * *", "Europe/Berlin", "2026-03-29T06:30:00Z 2026-03-30T06:30:00Z"}, // summer time begins on the 29th
		{"30 2 * * *", "Europe/Berlin", "2026-03-30T00:30:00Z"},                      // there is no 2:30 on the 29th
		{"30 8 * * *", "UTC", "2026-03-29T08:30:00Z 2026-03-30T08:30:00Z"},
		{"0  9 * * 1-5", "Asia/Shanghai", "2026-03-30T01:00:00Z 2026-03-31T01:00:00Z"},
		{"@daily", "UTC", "2026-03-29T00:00:00Z 2026-03-30T00:00:00Z"},
		{"0 0 29 2 *", "UTC", "2028-02-29T00:00:00Z"},
	} {
		next, err := b.Next(c.cron, c.zone, 2)
		var got []string
		for _, at := range next {
			got = append(got, at.Format(time.RFC3339))
		}
		if err != nil || !strings.HasPrefix(strings.Join(got, " "), c.want) {
			t.Errorf("%s in %s: got %v, %v; want %s", c.cron, c.zone, got, err, c.want)
		}
	}
	for _, wrong := range [][2]string{
		{"* * * *", "UTC"},
		{"61 * * * *", "UTC"},
		{"@every 1s", "UTC"},
		{"TZ=UTC * * * * *", "UTC"},
		{"0 0 31 2 *", "UTC"},
		{"", "UTC"},
		{"* * * * *", "Mars/Base"},
		{"* * * * *", "Local"},
		{"* * * * *", "../etc"},
	} {
		if _, err := b.Create(b.ctx, store.Schedule{Name: "x", Text: "x", Cron: wrong[0], Zone: wrong[1]}); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%q: %v", wrong, err)
		}
	}
}

// TestStarts: a run is started at each time, in the conversation of the schedule or in a new
// one, and none while the one before is active.
func TestStarts(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.make(store.Schedule{Cron: "* * * * *", Conversation: "conv_1"})
	fresh := b.make(store.Schedule{Cron: "* * * * *"})
	if s.Zone != "UTC" || !s.NextAt.Equal(time.Date(2026, 3, 28, 12, 1, 0, 0, time.UTC)) {
		t.Errorf("got %+v", s)
	}
	b.start(b.Schedules)
	b.pass(40 * time.Second)
	first := b.over(s.ID, 1)
	if first.State != store.StartDone || !first.PlannedAt.Equal(s.NextAt) || first.Conversation != "conv_1" || first.Missed != 0 || first.Manual {
		t.Errorf("got %+v", first)
	}
	if other := b.over(fresh.ID, 1); other.Conversation == "" || other.Conversation == "conv_1" {
		t.Errorf("got %+v", other)
	}
	b.runs.mu.Lock()
	b.runs.active[first.Run] = true
	b.runs.mu.Unlock()
	b.pass(time.Minute)
	if second := b.over(s.ID, 2); second.State != store.StartSkipped || second.Error == "" {
		t.Errorf("while the first is active: %+v", second)
	}
	b.runs.mu.Lock()
	b.runs.active[first.Run] = false
	b.runs.mu.Unlock()
	b.pass(time.Minute)
	if third := b.over(s.ID, 3); third.State != store.StartDone {
		t.Errorf("after the first has ended: %+v", third)
	}
}

// TestLate: times that passed while no server was running are one start, which says so.
func TestLate(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.make(store.Schedule{Cron: "0 * * * *"})
	b.pass(5 * time.Hour)
	stop := b.start(b.Schedules)
	st := b.over(s.ID, 1)
	stop()
	if st.State != store.StartDone || !st.PlannedAt.Equal(s.NextAt) || st.Missed != 4 || st.CreatedAt.Sub(st.PlannedAt) < 4*time.Hour {
		t.Errorf("got %+v", st)
	}
	all, err := b.List(b.ctx)
	b.must(err)
	if want := time.Date(2026, 3, 28, 18, 0, 0, 0, time.UTC); !all[0].NextAt.Equal(want) {
		t.Errorf("the next time is %v, want %v", all[0].NextAt, want)
	}
}

// TestPaused: a paused schedule starts nothing but what a user asks for, and makes up for nothing.
func TestPaused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.make(store.Schedule{Cron: "* * * * *"})
	s, err := b.Update(b.ctx, s.ID, func(s *store.Schedule) { s.Paused = true })
	b.must(err)
	if !s.NextAt.IsZero() {
		t.Errorf("got %+v", s)
	}
	b.start(b.Schedules)
	b.pass(10 * time.Minute)
	st, err := b.StartNow(b.ctx, s.ID)
	b.must(err)
	if got := b.over(s.ID, 1); !got.Manual || got.Run != st.Run || got.State != store.StartDone {
		t.Errorf("got %+v", got)
	}
	s, err = b.Update(b.ctx, s.ID, func(s *store.Schedule) { s.Paused = false })
	b.must(err)
	if want := time.Date(2026, 3, 28, 12, 11, 0, 0, time.UTC); !s.NextAt.Equal(want) {
		t.Errorf("the next time is %v, want %v", s.NextAt, want)
	}
}

// TestTogether: of several servers with one database, one starts the run of each time.
func TestTogether(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	other := b.db
	if !strings.HasPrefix(b.address, "/") { // a SQLite file has one server
		other = rowstest.At(t, b.address)
	}
	var all []store.Schedule
	for range 10 {
		all = append(all, b.make(store.Schedule{Cron: "* * * * *"}))
	}
	b.start(b.Schedules)
	b.start(b.server(other))
	const rounds = 5
	for n := range rounds {
		b.pass(time.Minute)
		for _, s := range all {
			b.over(s.ID, n+1)
		}
	}
	if n, asked := len(b.runs.all()), b.runs.times(); n != rounds*len(all) || asked != n {
		t.Errorf("%d runs were started in %d attempts, want %d", n, asked, rounds*len(all))
	}
}

// TestAfterCrash: a start that a process has taken and not made is made by another one, with
// the same run; a lasting failure is the end of it.
func TestAfterCrash(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	s := b.make(store.Schedule{Cron: "0 * * * *"})
	b.runs.fail(artel.Errorf(artel.Unavailable, "", "", "the disk is full"))
	stop := b.start(b.Schedules)
	b.pass(time.Hour)
	b.until("an attempt", func() bool { return b.runs.times() == 1 })
	stop()
	taken := b.log(s.ID)[0]
	if taken.State != store.StartWaiting {
		t.Fatalf("got %+v", taken)
	}
	b.runs.fail(nil)
	b.start(b.server(b.db))
	b.pass(2 * time.Minute) // the claim has ended
	if st := b.over(s.ID, 1); st.State != store.StartDone || st.Run != taken.Run || len(b.runs.all()) != 1 || b.runs.all()[0].Conversation != taken.Conversation {
		t.Errorf("got %+v", st)
	}
	b.runs.fail(artel.Errorf(artel.Denied, "", "", "the budget is used up"))
	b.pass(time.Hour)
	if st := b.over(s.ID, 2); st.State != store.StartFailed || !strings.Contains(st.Error, "the budget is used up") {
		t.Errorf("got %+v", st)
	}
}

// TestRefused: what a schedule cannot have, and those of others.
func TestRefused(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	for _, s := range []store.Schedule{{Text: "x"}, {Name: "x"}, {Name: "a\nb", Text: "x"}, {Name: "x", Text: " \n"}} {
		s.Cron = "* * * * *"
		if _, err := b.Create(b.ctx, s); artel.KindOf(err) != artel.Invalid {
			t.Errorf("%+v: %v", s, err)
		}
	}
	if _, err := b.Create(b.ctx, store.Schedule{Name: "x", Cron: "* * * * *", Text: strings.Repeat("x", 20_001)}); artel.KindOf(err) != artel.TooLarge {
		t.Errorf("a long text: %v", err)
	}
	s := b.make(store.Schedule{Cron: "* * * * *"})
	b.runs.refuse = artel.Errorf(artel.NotFound, "", "", "no such conversation")
	if _, err := b.Update(b.ctx, s.ID, func(s *store.Schedule) { s.Conversation = "conv_x" }); artel.KindOf(err) != artel.NotFound {
		t.Errorf("a missing conversation: %v", err)
	}
	b.runs.refuse = nil
	other := artel.WithOwner(t.Context(), "bob")
	_, update := b.Update(other, s.ID, func(*store.Schedule) {})
	_, now := b.StartNow(other, s.ID)
	_, _, starts := b.Starts(other, store.StartQuery{Schedule: s.ID})
	for what, err := range map[string]error{"Delete": b.Delete(other, s.ID), "Update": update, "StartNow": now, "Starts": starts} {
		if artel.KindOf(err) != artel.NotFound {
			t.Errorf("%s of another user's: %v", what, err)
		}
	}
	for range schedules.MaxSchedules - 1 {
		b.make(store.Schedule{Cron: "* * * * *"})
	}
	if _, err := b.Create(b.ctx, store.Schedule{Name: "x", Text: "x", Cron: "* * * * *"}); artel.KindOf(err) != artel.TooLarge {
		t.Errorf("one more than %d: %v", schedules.MaxSchedules, err)
	}
	b.must(b.Delete(b.ctx, s.ID))
}
