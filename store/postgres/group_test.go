// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres"
	"github.com/artelhq/artel/store/postgres/postgrestest"
)

// groupOf takes all lanes, has updates wait for them, and frees one: they become a group. held is
// called when all wait. It returns the errors of the updates.
func groupOf(t *testing.T, s *postgres.Store, held func(), updates ...func(store.Tx) error) []error {
	t.Helper()
	var holders, holding, members sync.WaitGroup
	first, others := make(chan struct{}), make(chan struct{})
	for i := range postgres.Lanes {
		free := others
		if i == 0 {
			free = first
		}
		holding.Add(1)
		holders.Go(func() {
			if err := s.Update(t.Context(), artel.Local, func(store.Tx) error {
				holding.Done()
				<-free
				return nil
			}); err != nil {
				t.Error(err)
			}
		})
	}
	holding.Wait()
	errs := make([]error, len(updates))
	for i, update := range updates {
		members.Go(func() { errs[i] = s.Update(t.Context(), artel.Local, update) })
		for postgres.Waiting(s) != i+1 {
			time.Sleep(time.Millisecond)
		}
	}
	held()
	close(first)
	members.Wait()
	close(others)
	holders.Wait()
	return errs
}

func nothing() {}

// TestGroup stores updates of many conversations in one commit.
func TestGroup(t *testing.T) {
	address := server.Schema(t)
	direct := postgrestest.Open(t, address)
	p := newProxy(t, address, func(int64) string { return "" })
	s, err := postgres.Open(t.Context(), p.address, postgres.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	const n = 10
	var updates []func(store.Tx) error
	var all []artel.ConversationID
	for range n {
		c := conversation(t, direct)
		all = append(all, c)
		updates = append(updates, func(tx store.Tx) error { _, err := tx.Events.Append(c, artel.Event{}); return err })
	}
	before := p.commits.Load()
	for i, err := range groupOf(t, s, nothing, updates...) {
		if err != nil {
			t.Errorf("update %d: %v", i, err)
		}
	}
	for _, c := range all {
		if got := events(t, direct, c); got != 1 {
			t.Errorf("%d events, want 1", got)
		}
	}
	if got := p.commits.Load() - before; got != 1 {
		t.Errorf("%d updates took %d commits, want 1", n, got)
	}
}

// TestGroupOutcomes has members of a group fail in every way: each learns its own outcome, and
// what failed has left nothing.
func TestGroupOutcomes(t *testing.T) {
	s := postgrestest.Open(t, server.Schema(t))
	errOwn := errors.New("own")
	add := func(c artel.ConversationID, err error) func(store.Tx) error {
		return func(tx store.Tx) error {
			_, e := tx.Events.Append(c, artel.Event{})
			return errors.Join(e, err)
		}
	}
	for name, tt := range map[string]struct {
		update func(c artel.ConversationID) func(store.Tx) error
		want   func(error) bool
	}{
		"an error before it wrote": {func(artel.ConversationID) func(store.Tx) error {
			return func(store.Tx) error { return errOwn }
		}, func(err error) bool { return errors.Is(err, errOwn) }},
		"an error after it read": {func(c artel.ConversationID) func(store.Tx) error {
			return func(tx store.Tx) error {
				if _, err := tx.Events.Last(c); err != nil {
					return err
				}
				return errOwn
			}
		}, func(err error) bool { return errors.Is(err, errOwn) }},
		"an error after it wrote": {func(c artel.ConversationID) func(store.Tx) error { return add(c, errOwn) }, func(err error) bool { return errors.Is(err, errOwn) }},
		"a conversation that is there": {func(c artel.ConversationID) func(store.Tx) error {
			return func(tx store.Tx) error { return tx.Conversations.Create(artel.Conversation{ID: c}) }
		}, func(err error) bool { return artel.KindOf(err) == artel.Conflict }},
		"a conversation that is not there": {func(artel.ConversationID) func(store.Tx) error {
			return add(artel.NewConversationID(time.Now()), nil)
		}, func(err error) bool { return artel.KindOf(err) == artel.NotFound }},
	} {
		t.Run(name, func(t *testing.T) {
			first, failing, last := conversation(t, s), conversation(t, s), conversation(t, s)
			errs := groupOf(t, s, nothing, add(first, nil), tt.update(failing), add(last, nil), add(first, nil))
			if errs[0] != nil || errs[2] != nil || errs[3] != nil || !tt.want(errs[1]) {
				t.Errorf("outcomes: %v", errs)
			}
			for c, want := range map[artel.ConversationID]int{first: 2, failing: 0, last: 1} {
				if got := events(t, s, c); got != want {
					t.Errorf("%d events, want %d", got, want)
				}
			}
		})
	}
}

// TestGroupExit has the goroutine of a member end: the others are stored, and it is not.
func TestGroupExit(t *testing.T) {
	s := postgrestest.Open(t, server.Schema(t))
	c := conversation(t, s)
	update := func(tx store.Tx) error { _, err := tx.Events.Append(c, artel.Event{}); return err }
	errs := groupOf(t, s, nothing, update, func(tx store.Tx) error {
		if err := update(tx); err != nil {
			return err
		}
		runtime.Goexit()
		return nil
	}, update)
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if got := events(t, s, c); got != 2 {
		t.Errorf("%d events, want 2", got)
	}
}

// TestGroupCanceled cancels a member that waits: the others are stored, and it is not.
func TestGroupCanceled(t *testing.T) {
	s := postgrestest.Open(t, server.Schema(t))
	c := conversation(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	update := func(tx store.Tx) error { _, err := tx.Events.Append(c, artel.Event{}); return err }
	errs := groupOf(t, s, nothing, update, func(tx store.Tx) error {
		cancel()
		return update(tx)
	}, update)
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	errs = groupOf(t, s, func() {
		if err := s.Update(ctx, artel.Local, update); artel.KindOf(err) != artel.Canceled {
			t.Errorf("canceled: %v", err)
		}
	}, update, update)
	if err := errors.Join(errs...); err != nil {
		t.Error(err)
	}
	if got := events(t, s, c); got != 5 {
		t.Errorf("%d events, want 5", got)
	}
}

// TestGroupLostCommit cuts the connection at the commit of a group, on either side of it. Each
// member is stored once, and where the database cannot be asked, each learns that it is not known.
func TestGroupLostCommit(t *testing.T) {
	for _, side := range []string{"before", "after"} {
		for _, away := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s away=%v", side, away), func(t *testing.T) {
				address := server.Schema(t)
				direct := postgrestest.Open(t, address)
				p := newProxy(t, address, nil)
				p.cut = func(n int64) string {
					if n != 1 {
						return ""
					}
					p.away.Store(away)
					return side
				}
				s, err := postgres.Open(t.Context(), p.address, postgres.Options{})
				if err != nil {
					t.Fatal(err)
				}
				defer s.Close()
				postgres.SetPatience(s, 200*time.Millisecond)
				const n = 5
				var updates []func(store.Tx) error
				var all []artel.ConversationID
				for range n {
					c := conversation(t, direct)
					all = append(all, c)
					updates = append(updates, func(tx store.Tx) error {
						_, err := tx.Events.Append(c, artel.Event{})
						return err
					})
				}
				errs := groupOf(t, s, nothing, updates...)
				stored := 0
				for i, c := range all {
					got := events(t, direct, c)
					stored += got
					switch {
					case errs[i] == nil && got != 1:
						t.Errorf("update %d was acknowledged and has %d events", i, got)
					case away && artel.CodeOf(errs[i]) != artel.CodeOutcomeUnknown:
						t.Errorf("update %d: %v, want %s", i, errs[i], artel.CodeOutcomeUnknown)
					case got > 1:
						t.Errorf("update %d was stored %d times", i, got)
					}
				}
				if !away && errors.Join(errs...) != nil {
					t.Errorf("the database could say: %v", errs)
				}
				if side == "after" && stored != n {
					t.Errorf("%d of %d are stored, though only the answer was lost", stored, n)
				}
			})
		}
	}
}

// TestGroupsInCircles has many writers update the same few conversations in different orders.
func TestGroupsInCircles(t *testing.T) {
	address := server.Schema(t)
	stores := []store.Store{postgrestest.Open(t, address), postgrestest.Open(t, address)}
	var all []artel.ConversationID
	for range 4 {
		all = append(all, conversation(t, stores[0]))
	}
	const writers, each = 6, 8
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				err := stores[w%2].Update(t.Context(), artel.Local, func(tx store.Tx) error {
					for k := range 2 {
						if _, err := tx.Events.Append(all[(w*(1+2*k)+i+k)%len(all)], artel.Event{}); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	total := 0
	for _, c := range all {
		err := stores[0].View(t.Context(), artel.Local, func(tx store.Tx) error {
			last, err := tx.Events.Last(c)
			total += int(last)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if want := 2 * writers * each; total != want {
		t.Errorf("%d events, want %d", total, want)
	}
}
