// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
)

// A turn is everything between two model calls of a run: what is stored of the
// answer and of the tool it calls, the tool, and the next request, on a branch
// of so many messages of 400 characters that all fit the window.
func BenchmarkTurn(b *testing.B) {
	for _, n := range []int{100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) { benchmarkTurn(b, n) })
	}
}

func benchmarkTurn(b *testing.B, messages int) {
	const turns = 30
	var (
		asked int
		left  time.Time
		spent time.Duration
		gaps  []time.Duration
		work  []time.Duration
	)
	watch := provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		if asked++; asked > 2 { // the first build counts the tokens
			gaps, work = append(gaps, time.Since(left)), append(work, cpu()-spent)
		}
		finish := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{Calls: 1}}
		var what model.Delta = model.TextDelta("Done.")
		if asked <= turns {
			finish.Reason = model.StopTools
			what = model.CallDelta{ID: artel.CallID(fmt.Sprintf("call_%d", asked)), Name: "list_artifacts", Arguments: json.RawMessage("{}")}
		}
		if yield(what, nil) {
			left, spent = time.Now(), cpu()
			yield(finish, nil)
		}
	})
	s := sqlitetest.Open(b, filepath.Join(b.TempDir(), "artel.db"))
	service := model.DemoService()
	service.Capabilities.ContextWindow.Value = 200_000 + 400*messages
	config, _ := apptest.Config(b, watch)
	config.Store, config.Services = s, model.NewRegistry([]model.Service{service}, service.ID)
	config.Options.Log = slog.New(slog.DiscardHandler)
	a := apptest.Open(b, config)
	for b.Loop() {
		asked = 0
		c, err := a.Conversations.Create(apptest.Context(b), app.NewConversation{})
		if err == nil {
			err = s.Update(apptest.Context(b), artel.Local, func(tx store.Tx) error { return talkedInto(tx, c, messages) })
		}
		if err != nil {
			b.Fatal(err)
		}
		run, err := a.Runs.Send(apptest.Context(b), c.ID, run.Input{Text: "Go."})
		if err != nil {
			b.Fatal(err)
		}
		for e, err := range a.Events.Follow(apptest.Context(b), c.ID, 0, 0) {
			if err != nil {
				b.Fatal(err)
			}
			if e.Type == artel.EventRunFinished {
				break
			}
		}
		if run, err = a.Runs.Find(apptest.Context(b), run.ID); err != nil || run.State != artel.RunDone {
			b.Fatal(run.State, run.Error, err)
		}
	}
	median := func(ds []time.Duration) float64 {
		slices.Sort(ds)
		return float64(ds[len(ds)/2].Microseconds()) / 1000
	}
	b.ReportMetric(median(gaps), "ms/turn")
	b.ReportMetric(median(work), "cpu-ms/turn")
}

// talkedInto gives a conversation a branch.
func talkedInto(tx store.Tx, c artel.Conversation, n int) error {
	begin := time.Now().Add(-time.Hour)
	for i := range n {
		m := artel.Message{Conversation: c.ID, Parent: c.Leaf, Role: artel.RoleUser, CreatedAt: begin.Add(time.Duration(i) * time.Millisecond)}
		if i%2 == 1 {
			m.Role = artel.RoleAssistant
		}
		m.ID = artel.NewMessageID(m.CreatedAt)
		m.Parts = artel.Parts{artel.Text{Text: fmt.Sprint(i, strings.Repeat(" Is that really so?", 21))}}
		if err := tx.Messages.Create(m); err != nil {
			return err
		}
		c.Leaf = m.ID
	}
	return tx.Conversations.Update(c)
}
