// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
)

// cpu is how long this process has worked so far: on a machine that others use
// too it says more than the clock.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// A run of one model call, whose model answers at once, on a database in a
// file. Each run begins a branch at the end of a history of so many messages of
// 400 characters.
func BenchmarkRuns(b *testing.B) {
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			r := newRunner(b, n)
			began := cpu()
			for b.Loop() {
				r.run(b)
			}
			b.ReportMetric(float64((cpu()-began).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

// A runner makes runs on one conversation.
type runner struct {
	app  *app.App
	c    artel.ConversationID
	leaf *artel.MessageID
	seen artel.Seq
}

func newRunner(b *testing.B, messages int) *runner {
	s := sqlitetest.Open(b, filepath.Join(b.TempDir(), "artel.db"))
	instant := provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		_ = yield(model.TextDelta(strings.Repeat("Yes, that is so. ", 23)), nil) && yield(model.Finish{Reason: model.StopEnd}, nil)
	})
	service := model.DemoService()
	service.Capabilities.ContextWindow.Value = 42_667 // a quarter is for the reply
	r := new(runner)
	config, _ := apptest.Config(b, instant)
	config.Store, config.Services = s, model.NewRegistry([]model.Service{service}, service.ID)
	config.Options.Log = slog.New(slog.DiscardHandler)
	r.app = apptest.Open(b, config)
	c, err := r.app.Conversations.Create(apptest.Context(b), app.NewConversation{})
	if err != nil {
		b.Fatal(err)
	}
	r.c = c.ID
	for range messages / 2 {
		reply := r.run(b).Reply
		r.leaf = &reply
	}
	return r
}

// run asks, and waits for the answer.
func (r *runner) run(b *testing.B) artel.Run {
	run, err := r.app.Runs.Send(apptest.Context(b), r.c, run.Input{Parent: r.leaf, Text: fmt.Sprintf("%d: %s", b.N, strings.Repeat("Is that really so? ", 21))})
	if err != nil {
		b.Fatal(err)
	}
	for e, err := range r.app.Events.Follow(apptest.Context(b), r.c, r.seen, 0) {
		if err != nil {
			b.Fatal(err)
		}
		if r.seen = e.Seq; e.Type == artel.EventRunFinished && e.Run == run.ID {
			break
		}
	}
	if run, err = r.app.Runs.Find(apptest.Context(b), run.ID); err != nil || run.State != artel.RunDone {
		b.Fatal(run.State, err)
	}
	return run
}
