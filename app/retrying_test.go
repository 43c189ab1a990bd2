// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

// TestRetrying: people see that a call is made again, and why, in the log and
// in the run, until it is answered.
func TestRetrying(t *testing.T) {
	busy := &artel.Error{Op: "x", Kind: artel.Unavailable, Err: &model.CallError{
		Service: "demo", Message: "overloaded\nnow", Transient: true, RetryAfter: time.Millisecond,
	}}
	came, may := make(chan struct{}), make(chan struct{})
	tries := 0
	b := newBench(t, provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		if tries++; tries == 1 {
			yield(nil, busy)
			return
		}
		came <- struct{}{}
		<-may
		_ = yield(model.TextDelta("Here."), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
	}))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	<-came
	found, err := b.Runs.Find(apptest.Context(t), r.ID)
	if err != nil || found.Retrying == nil || found.Retrying.Attempt != 2 || found.Retrying.Of != 2 {
		t.Errorf("got %+v, %v", found, err)
	}
	may <- struct{}{}
	if r = b.ended(r); r.State != artel.RunDone || r.Retrying != nil {
		t.Errorf("got %+v", r)
	}
	if got, want := typesOf(b.events(c)), "run_started user_input agent_started retrying message_completed usage run_finished"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, e := range b.events(c) {
		if e.Type != artel.EventRetrying {
			continue
		}
		if p := payload[artel.Retrying](t, e); p.Service != "demo" || p.Wait != 0.001 || !strings.Contains(p.Reason, "overloaded") || strings.Contains(p.Reason, "\n") {
			t.Errorf("got %+v", p)
		}
	}
}

// TestCancelWhileRetrying: a run that waits for another attempt can be stopped.
func TestCancelWhileRetrying(t *testing.T) {
	busy := &artel.Error{Op: "x", Kind: artel.Unavailable, Err: &model.CallError{Message: "overloaded", Transient: true, RetryAfter: 20 * time.Minute}}
	b := newBench(t, provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) { yield(nil, busy) }),
		func(c *app.Config) { c.Options.Caller.MaxWait = time.Hour })
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	b.until(c, ofType(artel.EventRetrying))
	if r, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil || r.State != artel.RunCancelled {
		t.Errorf("got %+v, %v", r, err)
	}
	if _, err := b.Runs.Cancel(apptest.Context(t), r.ID); !errors.Is(err, artel.Conflict) {
		t.Errorf("cancelled twice: %v", err)
	}
}
