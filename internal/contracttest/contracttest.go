// SPDX-License-Identifier: Apache-2.0

// Package contracttest is the frame of the test kits, which hold implementations of an
// interface to its contract.
//
// A kit is a list of [Clause], each one promise. A clause notes what is wrong in its
// [Check]. Begin with [Run]. [RunTwins] tests the kit itself with implementations that are
// broken on purpose: each clause must fail for one of them.
package contracttest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
)

// A Clause is one promise. Its function checks it with a value of the kit, which
// embeds a [*Check]. The type has no name of its own, so that kits can list clauses
// without naming the fields.
type Clause[C any] = struct {
	Name  string
	Check func(C)
}

// Run runs each clause as a subtest; hold runs one and returns what is wrong.
func Run[C any](t *testing.T, clauses []Clause[C], hold func(*testing.T, Clause[C]) error) {
	t.Helper()
	for _, cl := range clauses {
		t.Run(cl.Name, func(t *testing.T) {
			if err := hold(t, cl); err != nil {
				t.Error(err)
			}
		})
	}
}

// RunTwins expects hold to fail for each clause and its twin, which is what breaks
// an implementation, by the name of the clause.
func RunTwins[C, T any](t *testing.T, clauses []Clause[C], twins map[string]T, hold func(*testing.T, Clause[C], T) error) {
	t.Helper()
	left := maps.Clone(twins)
	for _, cl := range clauses {
		twin, ok := twins[cl.Name]
		delete(left, cl.Name)
		if !ok {
			t.Errorf("clause %q has no broken twin", cl.Name)
			continue
		}
		t.Run(cl.Name, func(t *testing.T) {
			err := hold(t, cl, twin)
			if err == nil {
				t.Error("the broken twin passes")
			}
			t.Log(err)
		})
	}
	for name := range left {
		t.Errorf("the twin %q belongs to no clause", name)
	}
}

// A Check collects what is wrong in one clause. It is safe for concurrent use.
type Check struct {
	ctx  context.Context // of the clause, which is one call
	mu   sync.Mutex
	errs []error
}

type stopped struct{}

// Hold runs a clause and returns what it found wrong. A panic, which a broken
// implementation may cause, is an error.
func Hold(ctx context.Context, clause func(*Check)) (err error) {
	c := &Check{ctx: ctx}
	defer func() {
		if p := recover(); p != nil && p != any(stopped{}) {
			c.Failf("panic: %v", p)
		}
		err = errors.Join(c.errs...)
	}()
	clause(c)
	return nil
}

// Context returns the context of the clause.
func (c *Check) Context() context.Context { return c.ctx }

// Failf notes what is wrong; the clause continues.
func (c *Check) Failf(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

// Stopf notes what is wrong and ends the clause. Like Must and Want, it may be
// called in the clause's own goroutine only.
func (c *Check) Stopf(format string, args ...any) {
	c.Failf(format, args...)
	panic(stopped{})
}

// Must ends the clause if err is not nil.
func (c *Check) Must(what string, err error) {
	if err != nil {
		c.Stopf("%s: %w", what, err)
	}
}

// Want ends the clause unless ok.
func (c *Check) Want(ok bool, format string, args ...any) {
	if !ok {
		c.Stopf(format, args...)
	}
}

// Kind expects an error of a kind; "" expects none. Errors are [*artel.Error].
func (c *Check) Kind(what string, err error, want artel.Kind) {
	if artel.KindOf(err) != want {
		c.Failf("%s: got error %v of kind %q, want kind %q", what, err, artel.KindOf(err), want)
	}
	if _, ok := errors.AsType[*artel.Error](err); err != nil && !ok {
		c.Failf("%s: error %v is not an *artel.Error", what, err)
	}
}

// Same expects got to equal want.
func (c *Check) Same(what string, got, want any) {
	if diff := cmp.Diff(want, got); diff != "" {
		c.Failf("%s (-want +got):\n%s", what, artel.Shorten(diff, 2000))
	}
}
