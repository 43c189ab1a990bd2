// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
)

func atOnce(n int) func(*app.Config) { return func(c *app.Config) { c.UserRuns = n } }

// TestRunsAtOnce: a run beyond the limit is refused and says what to do; a message for a
// conversation that is busy is queued and starts in its turn; another user is not limited.
func TestRunsAtOnce(t *testing.T) {
	g, b, first, r := working(t, "one", atOnce(1))
	ctx := apptest.Context(t)
	queued := b.send(first, run.Input{Text: "two", Queue: true})
	second := b.conversation()
	for _, in := range []run.Input{{Text: "three"}, {Text: "three", Queue: true}} {
		_, err := b.Runs.Send(ctx, second, in)
		if artel.KindOf(err) != artel.TooLarge || artel.CodeOf(err) != run.CodeRunLimit || !strings.Contains(fmt.Sprint(err), "1 of your runs are at work") {
			t.Fatalf("a run beyond the limit: %v", err)
		}
	}
	other := artel.WithOwner(ctx, "other")
	c, err := b.Conversations.Create(other, app.NewConversation{Title: "of another user"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Runs.Send(other, c.ID, run.Input{Text: "four"})
	if err != nil {
		t.Fatalf("a run of another user: %v", err)
	}
	<-g.came
	for range 2 {
		g.may <- struct{}{}
	}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Fatalf("the first run: %+v", r)
	}
	<-g.came // the queued one
	g.may <- struct{}{}
	if queued = b.ended(queued); queued.State != artel.RunDone {
		t.Fatalf("the queued run: %+v", queued)
	}
	_ = o
	g.may <- struct{}{}
	b.ended(b.send(second, run.Input{Text: "five"})) // everything has ended
}

// TestRunsAtOnceUnderLoad: however many messages arrive at once, as many runs start as may
// be at work and no more, and each message that is accepted is answered.
func TestRunsAtOnceUnderLoad(t *testing.T) {
	const most, conversations, messages = 3, 8, 4
	var now, peak atomic.Int64
	open := make(chan struct{})
	b := newBench(t, provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		n := now.Add(1)
		defer now.Add(-1)
		for old := peak.Load(); n > old && !peak.CompareAndSwap(old, n); old = peak.Load() {
		}
		<-open
		_ = yield(model.TextDelta("done"), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
	}), atOnce(most))
	ctx := apptest.Context(t)
	var all []artel.ConversationID
	for range conversations {
		c, err := b.Conversations.Create(ctx, app.NewConversation{Title: "titled"})
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, c.ID)
	}
	var wg sync.WaitGroup
	accepted := make(chan artel.Run, conversations*(messages+1))
	send := func(c artel.ConversationID) bool {
		r, err := b.Runs.Send(ctx, c, run.Input{Text: "go", Queue: true})
		switch {
		case err == nil:
			accepted <- r
		case artel.CodeOf(err) != run.CodeRunLimit:
			t.Errorf("%v", err)
		}
		return err == nil
	}
	for _, c := range all {
		wg.Go(func() { send(c) })
	}
	wg.Wait()
	if n := len(accepted); n != most {
		t.Errorf("%d runs were accepted at once, want %d", n, most)
	}
	close(open)
	for _, c := range all {
		wg.Go(func() {
			for sent := 0; sent < messages && !t.Failed() && ctx.Err() == nil; runtime.Gosched() {
				if send(c) {
					sent++
				}
			}
		})
	}
	wg.Wait()
	close(accepted)
	for r := range accepted {
		if r = b.ended(r); r.State != artel.RunDone {
			t.Errorf("%+v", r)
		}
	}
	if n := peak.Load(); n > most {
		t.Errorf("%d runs were at work at once, want at most %d", n, most)
	}
}
