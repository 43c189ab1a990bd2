// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
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
	"Processor time is that of the whole process, with the collection of garbage. " +
	"The anchor makes the same three commits, each of one row, and builds nothing. " +
	"By a profile of 1,000 messages, three updates and two views of the database have nearly half of the processor time of a turn, and the build of the request has nearly half. " +
	"What grows with the history are the passes of the build over the messages, which are neither counted nor encoded again. " +
	"The concurrent runs are started together over HTTP, on a server in a process of its own, each with an answer of 100 pieces out of a model in another; " +
	"their time is until the last has ended, and memory is what the server's rose by."

const (
	engineTurns  = 30
	engineWindow = 200_000
)

func measureEngine(ctx context.Context, l *lab) []result {
	var results []result
	for _, n := range []int{100, 1000, 3000} {
		var cpus, plain []float64
		m := interleave(l.rounds(2),
			func() float64 {
				wall, cpu := turnTime(ctx, l, n)
				cpus = append(cpus, cpu)
				return wall
			},
			func() float64 {
				wall, cpu := threeCommits(ctx, l)
				plain = append(plain, cpu)
				return wall
			})
		r := result{work: "a turn, p50", size: count(n, "messages"), unit: millis(), artel: m[0], anchor: m[1]}
		p := result{work: "a turn, processor time, p50", size: count(n, "messages"), unit: millis(), artel: median(cpus), anchor: median(plain)}
		if n == 1000 {
			r.target, p.target = target{limit: 5e-3}, target{limit: 1.5e-3}
		}
		results = append(results, r, p)
	}
	var memory []result
	for _, n := range []int{50, 150, 500} {
		var took time.Duration
		var above int64
		during(count(n, "runs at once"), func() { took, above = together(ctx, l, n) })
		results = append(results, result{work: "runs at once", size: count(n, "runs"), unit: times("runs"), artel: float64(n) / took.Seconds()})
		r := result{work: "memory of runs at once", size: count(n, "runs"), unit: megabytes(), artel: float64(above)}
		if n == 500 {
			r.target = target{limit: 500e6}
		}
		memory = append(memory, r)
	}
	return append(results, memory...)
}

// An instantModel answers immediately: with a tool call the given number of times,
// then with a word. It records the time between its calls.
type instantModel struct {
	mu    sync.Mutex
	asked int
	left  time.Time
	gaps  []float64 // seconds
	from  time.Duration
	busy  []float64 // seconds of processor time
}

func (s *instantModel) Generate(_ context.Context, _ *model.Request) iter.Seq2[model.Delta, error] {
	return func(yield func(model.Delta, error) bool) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked++; s.asked > 1 {
			s.gaps, s.busy = append(s.gaps, time.Since(s.left).Seconds()), append(s.busy, (busy()-s.from).Seconds())
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
		s.left, s.from = time.Now(), busy()
		yield(finish, nil)
	}
}

// turnTime returns the medians of the turns of one run, in time and in processor time.
func turnTime(ctx context.Context, l *lab, messages int) (wall, cpu float64) {
	dir := l.folder()
	rows := must(sqlite.Open(ctx, filepath.Join(dir, "bench.db"), sqlite.Options{}))
	defer shut(rows)
	watch := &instantModel{}
	capabilities := model.TextOnly()
	capabilities.ContextWindow = model.Fact[int]{Value: engineWindow + 400*messages, Source: model.FromOperator}
	service := model.Service{ID: "bench", Dialect: model.Demo, Model: aModel, Capabilities: capabilities}
	a := must(app.New(app.Config{
		Store: rows, Blobs: blob.NewMemory(), Notifier: event.NewNotifier(), Services: model.NewRegistry([]model.Service{service}, service.ID),
		Providers: map[model.Dialect]model.Provider{model.Demo: watch},
		Options:   app.Options{SpoolDir: dir, Log: slog.New(slog.DiscardHandler)},
	}))
	defer func() { check(a.Close(context.WithoutCancel(ctx))) }()
	ctx = artel.WithOwner(ctx, artel.Local)
	c := must(a.Conversations.Create(ctx, app.NewConversation{Title: "bench"}))
	fill(ctx, rows, c, messages)
	run := must(a.Runs.Send(ctx, c.ID, run.Input{Text: "Go."}))
	for e, err := range a.Events.Follow(ctx, c.ID, 0, time.Minute) {
		check(err)
		if e.Type == artel.EventRunFinished {
			break
		}
	}
	run = must(a.Runs.Find(ctx, run.ID))
	if run.State != artel.RunDone || len(watch.gaps) != engineTurns {
		fail("the run is %s after %d turns: %+v", run.State, len(watch.gaps), run.Error)
	}
	return median(watch.gaps[1:]), median(watch.busy[1:]) // the first build of a run counts its tokens
}

// fill stores n messages as a branch of the conversation.
func fill(ctx context.Context, rows store.Store, c artel.Conversation, n int) {
	history := messages(n)
	begin := time.Now().Add(-time.Hour)
	check(rows.Update(ctx, artel.Local, func(tx store.Tx) error {
		for i, m := range history {
			m.CreatedAt = begin.Add(time.Duration(i) * time.Millisecond)
			m.ID, m.Conversation, m.Parent = artel.NewMessageID(m.CreatedAt), c.ID, c.Leaf
			check(tx.Messages.Create(m))
			c.Leaf = m.ID
		}
		return tx.Conversations.Update(c)
	}))
}

// threeCommits is the anchor: the three commits that a turn waits for (the answer with
// the start of the tool call, the tool result, and the record of the request).
func threeCommits(ctx context.Context, l *lab) (wall, cpu float64) {
	dir := l.folder()
	rows := must(sqlite.Open(ctx, filepath.Join(dir, "bench.db"), sqlite.Options{}))
	defer shut(rows)
	now := time.Now()
	c := artel.Conversation{ID: artel.NewConversationID(now), CreatedAt: now, UpdatedAt: now}
	check(rows.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(c) }))
	var took, busied []float64
	for range engineTurns {
		began, from := time.Now(), busy()
		for range 3 {
			check(rows.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Conversations.Update(c) }))
		}
		took, busied = append(took, time.Since(began).Seconds()), append(busied, (busy()-from).Seconds())
	}
	return median(took), median(busied)
}

// together starts n runs at once and returns their total time and the growth of the
// server's memory.
func together(ctx context.Context, l *lab, n int) (took time.Duration, above int64) {
	var running processes
	defer running.stop()
	upstream := running.startRole(ctx, "instant")
	dir := l.folder()
	config := filepath.Join(dir, "artel.yaml")
	services := fmt.Sprintf("services: [{id: bench, baseURL: %q, model: %s, apiKey: k}]\n", upstream.url+"/v1", aModel)
	check(os.WriteFile(config, []byte(services), 0o600))
	server := running.start(ctx, l.program, "serve", "--data", filepath.Join(dir, "data"), "--config", config)
	client := httpapi.NewClient(server.url, nil)
	ids := make([]artel.ConversationID, n)
	for i := range ids {
		ids[i] = must(client.CreateConversation(ctx, httpapi.NewConversation{})).ID
	}
	above = server.aboveIdle(func() error {
		began := time.Now()
		defer func() { took = time.Since(began) }()
		return atOnce(n, func(i int) error { return wholeRun(ctx, client, ids[i]) })
	})
	return took, above
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
