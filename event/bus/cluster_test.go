// SPDX-License-Identifier: Apache-2.0

package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
	"github.com/artelhq/artel/store"
)

// A cluster is simulated in virtual time: processes that end, stall and lose their connections, with one
// database and a bus that loses, repeats and delays messages. They execute runs by leases, as package run does, and
// clients follow the runs at changing processes.

// simulatedSeeds is the variable with the number of simulations.
const simulatedSeeds = "ARTEL_CLUSTER_SEEDS"

const (
	simulatedProcesses = 5
	simulatedRuns      = 2
	simulatedSteps     = 4
	simulatedFollowers = 5 // of each run
	leaseTime          = 10 * time.Second
	leaseRenew         = 3 * time.Second
)

// TestCluster: each step of a run is stored once, and each follower gets each event once and in order, of
// answers the text that was written, and the end.
func TestCluster(t *testing.T) {
	seeds := uint64(250)
	if text := os.Getenv(simulatedSeeds); text != "" {
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", simulatedSeeds, err)
		}
		seeds = n
	}
	for seed := range seeds {
		if err := simulate(t, seed, true); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
	}
}

// TestClusterFinds: without the check of the lease in each commit, the simulation finds steps
// that two processes have stored.
func TestClusterFinds(t *testing.T) {
	for seed := range uint64(500) {
		if err := simulate(t, seed, false); err != nil {
			return
		}
	}
	t.Error("the simulation has found nothing")
}

// A database is the store of the simulation: events and leases.
type database struct {
	fenced bool // commits check the lease
	mu     sync.Mutex
	runs   map[artel.RunID]*simulatedRun
	events map[artel.ConversationID][]artel.Event
}

type simulatedRun struct {
	lease store.Lease
	done  bool
}

// A session is the store of one process.
type session struct {
	store.Store
	*database
	process *process
}

func (s session) View(ctx context.Context, _ artel.Owner, fn func(store.Tx) error) error {
	if err := s.process.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return fn(store.Tx{Events: simulatedEvents{db: s.database}, Runs: simulatedLeases{db: s.database}})
}

func (s session) Update(ctx context.Context, _ artel.Owner, fn func(store.Tx) error) error {
	if err := s.process.reach(ctx); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	before := map[artel.ConversationID]int{}
	for c, events := range s.events {
		before[c] = len(events)
	}
	leases := map[artel.RunID]simulatedRun{}
	for id, r := range s.runs {
		leases[id] = *r
	}
	err := fn(store.Tx{Events: simulatedEvents{db: s.database}, Runs: simulatedLeases{db: s.database}})
	if err != nil {
		for c := range s.events {
			s.events[c] = s.events[c][:before[c]]
		}
		for id, r := range leases {
			*s.runs[id] = r
		}
	}
	return err
}

func (s session) Overdue(ctx context.Context, now time.Time) (all []store.Lease, err error) {
	if err := s.process.reach(ctx); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.runs {
		if !r.done && r.lease.Until.Before(now) {
			all = append(all, r.lease)
		}
	}
	return all, nil
}

type simulatedEvents struct {
	store.Events
	db *database
}

func (e simulatedEvents) Append(c artel.ConversationID, events ...artel.Event) (artel.Seq, error) {
	for _, one := range events {
		one.Seq = artel.Seq(len(e.db.events[c]) + 1)
		e.db.events[c] = append(e.db.events[c], one)
	}
	return artel.Seq(len(e.db.events[c])), nil
}

func (e simulatedEvents) Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
	all := e.db.events[c][min(int(after), len(e.db.events[c])):]
	return slices.Clone(all[:min(limit, len(all))]), nil
}

func (e simulatedEvents) Last(c artel.ConversationID) (artel.Seq, error) {
	return artel.Seq(len(e.db.events[c])), nil
}

type simulatedLeases struct {
	store.Runs
	db *database
}

func (r simulatedLeases) Renew(l store.Lease, now time.Time) error {
	run := r.db.runs[l.Run]
	if r.db.fenced && run.lease.Holder != l.Holder && !run.lease.Until.Before(now) {
		return artel.Errorf(artel.Conflict, "test", string(l.Run), "another process has it")
	}
	if !l.Until.IsZero() {
		run.lease = l
	}
	return nil
}

func (r simulatedLeases) Update(run artel.Run) error {
	r.db.runs[run.ID].done = true
	return nil
}

// A simulation is one cluster.
type simulation struct {
	seed uint64
	db   *database
	hub  *hub
	runs map[artel.RunID]artel.ConversationID

	mu        sync.Mutex
	processes [simulatedProcesses]*process // those that live
	err       error
	fail      context.CancelFunc
}

func (s *simulation) failed(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
	s.fail()
}

// A process executes runs, and has followers.
type process struct {
	*simulation
	name   string
	port   *port
	log    *event.Log
	random *random
	ctx    context.Context //nolint:containedctx // its life

	mu      sync.Mutex
	active  map[artel.RunID]bool
	started int       // executions
	stalled time.Time // it does nothing until then
	away    time.Time // it reaches no database until then
}

// random is a source that goroutines share.
type random struct {
	mu sync.Mutex
	*rand.Rand
}

func newRandom(a, b uint64) *random { return &random{Rand: rand.New(rand.NewPCG(a, b))} }

func (r *random) upTo(d time.Duration) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return time.Duration(r.Int64N(int64(d)))
}

func (r *random) oneIn(n int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.IntN(n) == 0
}

// nap waits, and reports whether ctx is still there.
func nap(ctx context.Context, d time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

// reach waits for what a statement takes.
func (p *process) reach(ctx context.Context) error {
	p.stall()
	time.Sleep(p.random.upTo(20 * time.Millisecond))
	p.stall()
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if time.Now().Before(p.away) {
		return artel.Errorf(artel.Unavailable, "test", "", "the database is away")
	}
	return nil
}

// stall waits while the process does nothing.
func (p *process) stall() {
	p.mu.Lock()
	until := p.stalled
	p.mu.Unlock()
	time.Sleep(time.Until(until))
}

func simulate(t *testing.T, seed uint64, fenced bool) (err error) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		s := &simulation{seed: seed, runs: map[artel.RunID]artel.ConversationID{}, fail: cancel}
		s.db = &database{fenced: fenced, runs: map[artel.RunID]*simulatedRun{}, events: map[artel.ConversationID][]artel.Event{}}
		s.hub = newHub(rand.New(rand.NewPCG(seed, 1)))
		s.hub.delay = newRandom(seed, 2).upTo
		for i := range simulatedRuns {
			id, c := artel.RunID(fmt.Sprint("run_", i)), artel.ConversationID(fmt.Sprint("cnv_", i))
			s.runs[id], s.db.runs[id] = c, &simulatedRun{lease: store.Lease{Run: id, Conversation: c}}
			s.db.events[c] = nil
		}
		live, end := context.WithCancel(ctx)
		var processes, followers sync.WaitGroup
		for i := range simulatedProcesses {
			processes.Go(func() { s.live(live, i) })
		}
		for _, c := range s.runs {
			for i := range simulatedFollowers {
				followers.Go(func() { s.follow(ctx, c, newRandom(seed, 1000+uint64(i))) })
			}
		}
		followers.Wait()
		if ctx.Err() != nil {
			s.failed("followers wait for the end after an hour")
		}
		end()
		processes.Wait()
		for _, c := range s.runs {
			s.check(c)
		}
		err = s.err
	})
	return err
}

// live is the life of processes with one place in the cluster, one after the other.
func (s *simulation) live(ctx context.Context, place int) {
	crashes := s.seed%2 == 0
	for life := 0; ctx.Err() == nil; life++ {
		r := newRandom(s.seed, uint64(10+place+100*life))
		life, end := context.WithCancel(ctx)
		p := &process{simulation: s, name: fmt.Sprintf("%d-%d", place, r.upTo(time.Hour)), random: r, ctx: life, active: map[artel.RunID]bool{}, port: &port{hub: s.hub}}
		b := bus.New(p.port, "test", slog.New(slog.DiscardHandler))
		p.log = event.NewLog(session{database: s.db, process: p}, b)
		s.set(place, p)
		var work sync.WaitGroup
		work.Go(p.work)
		work.Go(func() { p.suffer() })
		if crashes {
			nap(life, 2*time.Second+r.upTo(time.Minute))
		} else {
			<-life.Done()
		}
		s.set(place, nil)
		end()
		work.Wait()
		b.Close()
		nap(ctx, r.upTo(10*time.Second))
	}
}

func (s *simulation) set(place int, p *process) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.processes[place] = p
}

// suffer makes trouble for a process.
func (p *process) suffer() {
	for nap(p.ctx, p.random.upTo(20*time.Second)) {
		until := time.Now().Add(p.random.upTo(20 * time.Second))
		switch {
		case p.random.oneIn(3):
			p.mu.Lock()
			p.stalled = until
			p.mu.Unlock()
		case p.random.oneIn(2):
			p.mu.Lock()
			p.away = until
			p.mu.Unlock()
		default:
			p.port.cut(true)
			nap(p.ctx, time.Until(until))
			p.port.cut(false)
		}
	}
}

// work takes runs over that no process executes.
func (p *process) work() {
	var runs sync.WaitGroup
	defer runs.Wait()
	s := session{database: p.db, process: p}
	for nap(p.ctx, time.Second+p.random.upTo(time.Second)) {
		leases, err := s.Overdue(p.ctx, time.Now())
		if err != nil {
			continue
		}
		for _, l := range leases {
			if !p.register(l.Run, true) {
				continue
			}
			now := time.Now()
			l.Holder, l.Until = p.name, now.Add(leaseTime)
			var next int
			err := s.Update(p.ctx, artel.Local, func(tx store.Tx) error {
				if err := tx.Runs.Renew(l, now); err != nil {
					return err
				}
				last, err := tx.Events.Last(l.Conversation)
				next = int(last) + 1
				return err
			})
			if err != nil {
				p.register(l.Run, false)
				continue
			}
			runs.Go(func() {
				defer p.register(l.Run, false)
				p.execute(l, next)
			})
		}
	}
}

// register notes that this process executes a run, or does not any more. It reports whether it
// was otherwise before.
func (p *process) register(run artel.RunID, active bool) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.active[run] == active {
		return false
	}
	p.active[run] = active
	if active {
		p.started++
	}
	return true
}

// execute does the steps of a run from one on.
func (p *process) execute(l store.Lease, step int) {
	ctx, lose := context.WithCancel(p.ctx)
	var renewing sync.WaitGroup
	defer renewing.Wait()
	defer lose()
	s := session{database: p.db, process: p}
	renewing.Go(func() {
		renewed := time.Now()
		for nap(ctx, leaseRenew) {
			began, next := time.Now(), l
			next.Until = began.Add(leaseTime)
			err := s.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Runs.Renew(next, time.Time{}) })
			switch {
			case errors.Is(err, artel.Conflict):
				lose()
			case err == nil:
				renewed = began
			case time.Since(renewed) > leaseTime-leaseRenew:
				lose()
			}
		}
	})
	p.mu.Lock()
	name := fmt.Sprint(p.name, "-", p.started)
	p.mu.Unlock()
	n := p.log.Notifier()
	defer n.Discard(l.Conversation, "")
	for ; step <= simulatedSteps; step++ {
		m := artel.MessageID(fmt.Sprintf("msg_%d_%s", step, name))
		for text := textOf(m); text != ""; {
			if !nap(ctx, p.random.upTo(time.Second)) {
				return
			}
			p.stall()
			i := min(len(text), 7)
			n.Stream(l.Conversation, event.Delta{Run: l.Run, Agent: "lead", Message: m, Text: text[:i]})
			text = text[i:]
		}
		e, err := artel.NewEvent(l.Run, "lead", time.Now(), artel.MessageCompleted{Message: artel.Message{ID: m}})
		if err != nil {
			p.failed("an event: %v", err)
			return
		}
		for stored := false; !stored; {
			err := s.Update(ctx, artel.Local, func(tx store.Tx) error {
				if err := tx.Runs.Renew(store.Lease{Run: l.Run, Holder: l.Holder}, time.Time{}); err != nil {
					return err
				}
				if step == simulatedSteps {
					if err := tx.Runs.Update(artel.Run{ID: l.Run}); err != nil {
						return err
					}
				}
				_, err := p.log.AppendTx(tx, l.Conversation, e)
				return err
			})
			if stored = err == nil; !stored && (ctx.Err() != nil || errors.Is(err, artel.Conflict) || !nap(ctx, time.Second)) {
				return
			}
		}
		n.Notify(l.Conversation)
		n.Discard(l.Conversation, "")
	}
}

// textOf returns the text of a message.
func textOf(m artel.MessageID) string { return strings.Repeat(string(m)+" ", 3) }

// follow follows a run to its end, at processes that change.
func (s *simulation) follow(ctx context.Context, c artel.ConversationID, r *random) {
	var last artel.Seq
	completed := map[artel.MessageID]bool{}
	for last < simulatedSteps && nap(ctx, r.upTo(time.Second)) {
		s.mu.Lock()
		p := s.processes[r.upTo(simulatedProcesses)]
		s.mu.Unlock()
		if p == nil {
			continue
		}
		o := event.FollowOptions{}
		if s.seed%2 == 0 { // a process may end after it has stored an event, and tell none of it
			o.Heartbeat = 15 * time.Second
		}
		visit, leave := context.WithCancel(p.ctx)
		stop := context.AfterFunc(ctx, leave)
		if r.oneIn(2) {
			time.AfterFunc(r.upTo(20*time.Second), leave)
		}
		seen := map[artel.MessageID]string{}
		for e, err := range p.log.Follow(visit, artel.Local, c, last, o) {
			if err != nil {
				break // the database is away
			}
			switch e.Type {
			case "":
			case artel.EventMessageDelta:
				var d artel.MessageDelta
				if err := json.Unmarshal(e.Data, &d); err != nil {
					s.failed("a delta: %v", err)
				}
				if d.Reset {
					seen[d.Message] = ""
				}
				if seen[d.Message] += d.Text; !strings.HasPrefix(textOf(d.Message), seen[d.Message]) {
					s.failed("a follower has %q of the message %s", seen[d.Message], d.Message)
				}
				if completed[d.Message] {
					s.failed("a piece of %s follows its end", d.Message)
				}
			default:
				if e.Seq != last+1 {
					s.failed("a follower of %s got the event %d after %d", c, e.Seq, last)
				}
				last = e.Seq
				var m artel.MessageCompleted
				if err := json.Unmarshal(e.Data, &m); err != nil {
					s.failed("an event: %v", err)
				}
				completed[m.Message.ID] = true
			}
			if last == simulatedSteps {
				break
			}
		}
		stop()
		leave()
	}
}

// check reads the log of a finished run: each step is there once.
func (s *simulation) check(c artel.ConversationID) {
	for i, e := range s.db.events[c] {
		var m artel.MessageCompleted
		if err := json.Unmarshal(e.Data, &m); err != nil || !strings.HasPrefix(string(m.Message.ID), fmt.Sprintf("msg_%d_", i+1)) {
			s.failed("the event %d of %s is the end of %s (%v)", i+1, c, m.Message.ID, err)
		}
	}
	if n := len(s.db.events[c]); n != simulatedSteps {
		s.failed("%s has %d steps", c, n)
	}
}
