// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

const engineAbout = "A turn is everything between two model calls of a run: the end of an answer that calls a tool, the tool, what is stored of both " +
	"on disk, and the next request, on a branch of messages of 400 characters. The model answers at once; its own time is not counted. " +
	"The anchor makes the same three commits, each of one row, and builds nothing. " +
	"The concurrent runs are started together over HTTP, on a server in a process of its own, each with an answer of 100 pieces out of a model in another; " +
	"their time is until the last has ended, and memory is what the server's rose by."

const (
	engineTurns  = 30
	engineWindow = 200_000
)

func measureEngine(ctx context.Context, l *lab) ([]result, error) {
	var results []result
	for _, n := range []int{100, 1000, 3000} {
		m, err := interleave(l.rounds(2),
			func() (float64, error) { return turnTime(ctx, l, n) },
			func() (float64, error) { return threeCommits(ctx, l) })
		if err != nil {
			return nil, err
		}
		r := result{work: "a turn, p50", size: count(n, "messages"), unit: millis(), artel: m[0], anchor: m[1]}
		if n == 1000 {
			r.target = target{limit: 5e-3}
		}
		results = append(results, r)
	}
	var memory []result
	for _, n := range []int{50, 150, 500} {
		took, above, err := together(ctx, l, n)
		if err != nil {
			return nil, fmt.Errorf("%d runs at once: %w", n, err)
		}
		results = append(results, result{work: "runs at once", size: count(n, "runs"), unit: times("runs"), artel: float64(n) / took.Seconds()})
		r := result{work: "memory of runs at once", size: count(n, "runs"), unit: megabytes(), artel: float64(above)}
		if n == 500 {
			r.target = target{limit: 500e6}
		}
		memory = append(memory, r)
	}
	return append(results, memory...), nil
}

// An instantModel answers immediately: with a tool call the given number of times,
// then with a word. It records the time between its calls.
type instantModel struct {
	mu    sync.Mutex
	asked int
	left  time.Time
	gaps  []float64 // seconds
}

func (s *instantModel) Generate(_ context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked++; s.asked > 1 {
			s.gaps = append(s.gaps, time.Since(s.left).Seconds())
		}
		finish := model.Finish{Reason: model.StopEnd, Usage: artel.Usage{Calls: 1}}
		var what model.Delta = model.TextDelta("Done.")
		if s.asked <= engineTurns {
			finish.Reason = model.StopTools
			what = model.CallDelta{ID: artel.CallID(fmt.Sprintf("call_%d", s.asked)), Name: "list_artifacts", Arguments: json.RawMessage("{}")}
		}
		if !yield(what, nil) {
			return
		}
		s.left = time.Now()
		yield(finish, nil)
	}
}

// turnTime is the median of the turns of one run.
func turnTime(ctx context.Context, l *lab, messages int) (_ float64, err error) {
	dir, err := l.folder()
	if err != nil {
		return 0, err
	}
	rows, err := sqlite.Open(ctx, filepath.Join(dir, "bench.db"), sqlite.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	watch := &instantModel{}
	capabilities := model.TextOnly()
	capabilities.ContextWindow = model.Fact[int]{Value: engineWindow + 400*messages, Source: model.FromOperator}
	service := model.Service{ID: "bench", Dialect: model.Demo, Model: aModel, Capabilities: capabilities}
	a, err := app.New(app.Config{
		Store: rows, Blobs: blob.NewMemory(), Notifier: event.NewNotifier(), Services: model.NewRegistry([]model.Service{service}, service.ID),
		Providers: map[model.Dialect]model.Provider{model.Demo: watch},
		Options:   app.Options{SpoolDir: dir, Log: slog.New(slog.DiscardHandler)},
	})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, a.Close(context.WithoutCancel(ctx))) }()
	c, err := a.Conversations.Create(ctx, app.NewConversation{Title: "bench"})
	if err != nil {
		return 0, err
	}
	if err := fill(ctx, rows, c, messages); err != nil {
		return 0, err
	}
	run, err := a.Runs.Send(ctx, c.ID, run.Input{Text: "Go."})
	if err != nil {
		return 0, err
	}
	for e, err := range a.Events.Follow(ctx, c.ID, 0, time.Minute) {
		if err != nil {
			return 0, err
		}
		if e.Type == artel.EventRunFinished {
			break
		}
	}
	if run, err = a.Runs.Find(ctx, run.ID); err != nil {
		return 0, err
	}
	if run.State != artel.RunDone || len(watch.gaps) != engineTurns {
		return 0, fmt.Errorf("the run is %s after %d turns: %+v", run.State, len(watch.gaps), run.Error)
	}
	return median(watch.gaps[1:]), nil // the first build of a run counts its tokens
}

// fill stores n messages as a branch of the conversation.
func fill(ctx context.Context, rows store.Store, c artel.Conversation, n int) error {
	history := messages(n)
	begin := time.Now().Add(-time.Hour)
	return rows.Update(ctx, artel.Local, func(tx store.Tx) error {
		for i, m := range history {
			m.CreatedAt = begin.Add(time.Duration(i) * time.Millisecond)
			m.ID, m.Conversation, m.Parent = artel.NewMessageID(m.CreatedAt), c.ID, c.Leaf
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			c.Leaf = m.ID
		}
		return tx.Conversations.Update(c)
	})
}

// threeCommits is the anchor: the three commits that a turn waits for (the answer with
// the start of the tool call, the tool result, and the record of the request).
func threeCommits(ctx context.Context, l *lab) (_ float64, err error) {
	dir, err := l.folder()
	if err != nil {
		return 0, err
	}
	rows, err := sqlite.Open(ctx, filepath.Join(dir, "bench.db"), sqlite.Options{})
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	now := time.Now()
	c := artel.Conversation{ID: artel.NewConversationID(now), CreatedAt: now, UpdatedAt: now}
	if err := rows.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(c) }); err != nil {
		return 0, err
	}
	var took []float64
	for range engineTurns {
		began := time.Now()
		for range 3 {
			if err := rows.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Conversations.Update(c) }); err != nil {
				return 0, err
			}
		}
		took = append(took, time.Since(began).Seconds())
	}
	return median(took), nil
}

// together starts n runs at once and returns their total time and the growth of the
// server's memory.
func together(ctx context.Context, l *lab, n int) (took time.Duration, above int64, err error) {
	var running processes
	defer func() { running.stop(&err) }()
	upstream, err := startRole(ctx, "instant")
	if err != nil {
		return 0, 0, err
	}
	running = append(running, upstream)
	dir, err := l.folder()
	if err != nil {
		return 0, 0, err
	}
	config := filepath.Join(dir, "artel.yaml")
	services := fmt.Sprintf("services: [{id: bench, baseURL: %q, model: %s, apiKey: k}]\n", upstream.url+"/v1", aModel)
	if err := os.WriteFile(config, []byte(services), 0o600); err != nil {
		return 0, 0, err
	}
	server, err := start(ctx, "/healthz", l.program, "serve", "--data", filepath.Join(dir, "data"), "--config", config)
	if err != nil {
		return 0, 0, err
	}
	running = append(running, server)
	client := httpapi.NewClient(server.url, nil)
	ids := make([]artel.ConversationID, n)
	for i := range ids {
		c, err := client.CreateConversation(ctx, httpapi.NewConversation{})
		if err != nil {
			return 0, 0, err
		}
		ids[i] = c.ID
	}
	above, err = server.aboveIdle(func() error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i, id := range ids {
			wg.Go(func() { errs[i] = wholeRun(ctx, client, id) })
		}
		wg.Wait()
		return errors.Join(errs...)
	})
	return took, above, err
}

// wholeRun sends one message and follows its run to its end.
func wholeRun(ctx context.Context, client *httpapi.Client, id artel.ConversationID) error {
	sent, err := client.Send(ctx, id, httpapi.NewMessage{Text: "Go."})
	if err != nil {
		return err
	}
	for e, err := range client.Events(ctx, id, 0, time.Minute) {
		if err != nil {
			return err
		}
		if e.Type != artel.EventRunFinished {
			continue
		}
		var end artel.RunFinished
		if err := json.Unmarshal(e.Data, &end); err != nil {
			return err
		}
		if end.State != artel.RunDone {
			return fmt.Errorf("run %s is %s: %+v", sent.RunID, end.State, end.Error)
		}
		return nil
	}
	return io.ErrUnexpectedEOF
}
