// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"slices"
	"sync"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/rows"
)

const (
	// lanes is how many transactions of updates run at once before others wait and share one.
	lanes = 8
	// largestGroup is how many updates share a transaction at most.
	largestGroup = 32
)

// lockTimeout is of groups. They wait less long for locks than others do, since they hold those
// of several updates: in a circle with another group both would wait.
const lockTimeout = "SET LOCAL lock_timeout = 200"

// Groups are the updates of a store that wait for a transaction. Up to [lanes] transactions
// run at once. When one has ended, what waits meanwhile shares the next one: the functions
// run one after the other in the order in which they came, and one commit stores them all.
// An update that finds a free lane waits for nothing and has a transaction of its own.
type groups struct {
	mu      sync.Mutex
	busy    int // lanes
	waiting []*member
}

// A member is an update that waits for its turn in a group.
type member struct {
	turn  chan *group // receives the group when it is the turn of the member; nil: a lane of its own
	wrote bool        // it may have changed something
	err   error       // of its function, which has changed nothing
	alone bool        // it needs a transaction of its own
}

// A group is a transaction of several updates. The member whose turn it is uses it.
type group struct {
	conn    *conn
	begins  int // statements that begin it
	members []*member
	next    int           // whose turn is next
	ended   chan struct{} // closed when the outcome is known
	failed  bool          // nothing was stored, and each member needs a transaction of its own
	unknown error         // it is not known whether it was stored
}

// enterLane waits for a lane. It returns the group to be a member of, or nil if the caller has
// the lane to itself and must call leaveLane.
func (s *Store) enterLane(ctx context.Context) (*member, *group, error) {
	g := &s.groups
	g.mu.Lock()
	if g.busy < lanes {
		g.busy++
		g.mu.Unlock()
		return nil, nil, nil
	}
	m := &member{turn: make(chan *group, 1)}
	g.waiting = append(g.waiting, m)
	g.mu.Unlock()
	select {
	case of := <-m.turn:
		return m, of, nil
	case <-ctx.Done():
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if i := slices.Index(g.waiting, m); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	} else {
		go func() { // it is in a group already, which continues without it
			switch of := <-m.turn; {
			case of == nil:
				s.leaveLane()
			case !of.failed:
				s.pass(of)
			}
		}()
	}
	return nil, nil, rows.Canceled("store.Update", ctx.Err())
}

// leaveLane gives a lane to those that wait.
func (s *Store) leaveLane() {
	g := &s.groups
	g.mu.Lock()
	defer g.mu.Unlock()
	n := min(len(g.waiting), largestGroup)
	if n == 0 {
		g.busy--
		return
	}
	members := slices.Clone(g.waiting[:n])
	g.waiting = slices.Delete(g.waiting, 0, n)
	if n == 1 {
		members[0].turn <- nil
		return
	}
	begin := []pending{{query: "BEGIN"}, {query: lockTimeout}}
	of := &group{conn: &conn{store: s, group: true, queue: begin}, begins: len(begin), members: members, next: 1, ended: make(chan struct{})}
	members[0].turn <- of
}

// pass gives the group to the next member, and commits after the last one.
func (s *Store) pass(of *group) {
	switch {
	case of.failed:
	case of.next < len(of.members):
		of.next++
		of.members[of.next-1].turn <- of
		return
	default:
		s.commitGroup(of)
	}
	s.endGroup(of)
}

// commitGroup stores what the members have written. Whatever goes wrong, except that the
// outcome is unknown, has stored nothing.
func (s *Store) commitGroup(of *group) {
	c := of.conn
	if c.pooled == nil && len(c.queue) <= of.begins { // no member has read or written anything
		return
	}
	if c.ctx == nil {
		c.ctx = context.Background()
	}
	c.ctx = context.WithoutCancel(c.ctx)
	ended, _, err := s.commit(c)
	if !ended {
		s.rollBack(c)
	}
	if artel.CodeOf(err) == artel.CodeOutcomeUnknown {
		of.unknown = err
		return
	}
	of.failed = err != nil
}

// endGroup tells the members the outcome. Those that have not had their turn get it.
func (s *Store) endGroup(of *group) {
	of.conn.end()
	for _, m := range of.members[of.next:] {
		m.turn <- of
	}
	close(of.ended)
	s.leaveLane()
}

// join runs fn as a member of a group. alone reports that the function has to be run in a
// transaction of its own: this one stored nothing of it.
func (s *Store) join(ctx context.Context, owner artel.Owner, fn func(*rows.Tx) error, m *member, of *group) (alone bool, err error) {
	if of.failed {
		return true, nil
	}
	s.work(ctx, owner, fn, m, of)
	<-of.ended
	switch {
	case m.alone, of.failed, of.unknown != nil && !m.wrote:
		return true, nil
	case of.unknown != nil:
		return false, of.unknown
	}
	return false, m.err
}

// work runs fn in the transaction of a group, and passes that on.
func (s *Store) work(ctx context.Context, owner artel.Owner, fn func(*rows.Tx) error, m *member, of *group) {
	c := of.conn
	c.ctx, c.wrote = ctx, false
	before := len(c.queue)
	sent := c.sent
	t := rows.Begin(ctx, c, rows.Options{Owner: owner, Write: true, Dialect: s.dialect, Lineage: s.lineage})
	returned := false // stays false if fn panics or calls runtime.Goexit
	defer func() {
		t.End()
		if !returned {
			of.failed = true
		}
		if of.failed {
			s.rollBack(c)
		}
		s.pass(of)
	}()
	err := fn(t)
	if err == nil && ctx.Err() != nil {
		err = rows.Canceled("store.Update", ctx.Err())
	}
	returned = true
	m.wrote = c.wrote
	busy := c.failed == errBusy //nolint:errorlint // it is never wrapped
	switch {
	case (err != nil || busy) && c.wrote, c.failed != nil && !busy:
		of.failed = true // what it wrote must not be stored; the others do it again
		return
	case busy:
		m.alone, c.failed = true, nil
	case err != nil:
		m.err = err
	default:
		return
	}
	if c.sent == sent { // its queries were not sent, and need not be
		c.queue = c.queue[:before]
	} else {
		c.queue = nil
	}
}
