// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/bus"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres"
	"github.com/artelhq/artel/store/postgres/postgrestest"
)

// A pair is the notifiers of two processes; both are the same for one process.
type pair struct {
	name       string
	one, other event.Notifier
}

// wakes measures how long a follower in another process waits for what one process
// tells or stores, with 1,000 conversations that are followed. The processes are parts of this
// one, with connections of their own.
func wakes(ctx context.Context) error {
	pg, err := postgrestest.Start("fsync=on", "synchronous_commit=on", "full_page_writes=on", "autovacuum=on")
	if err != nil {
		return err
	}
	defer pg.Stop()
	db, err := postgres.Open(ctx, pg.Address, postgres.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	hub, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: -1, NoLog: true, NoSigs: true})
	if err != nil {
		return err
	}
	hub.Start()
	defer hub.Shutdown()
	if !hub.ReadyForConnections(time.Minute) {
		return errors.New("the server of NATS does not start")
	}
	d, err := fill(ctx, db)
	if err != nil {
		return err
	}
	log := slog.New(slog.DiscardHandler)
	one := event.NewNotifier()
	pairs := []pair{{"one process", one, one}}
	for _, name := range []string{"NATS", "NOTIFY"} {
		var both [2]event.Notifier
		for i := range both {
			var t bus.Transport
			if name == "NATS" {
				n, err := bus.Connect(hub.ClientURL(), log)
				if err != nil {
					return err
				}
				defer n.Close()
				t = n
			} else {
				n, err := postgres.NewBus(pg.Address, log)
				if err != nil {
					return err
				}
				defer n.Close()
				t = n
			}
			for ok := false; !ok; ok, _ = t.Health() {
				time.Sleep(time.Millisecond)
			}
			b := bus.New(t, "bench", log)
			defer b.Close()
			both[i] = b
		}
		pairs = append(pairs, pair{name, both[0], both[1]})
	}
	fmt.Println("| what a follower waits for | | p50 | p99 | p50, to one process |")
	fmt.Println("|---|---|---:|---:|---:|")
	for _, w := range []struct {
		name    string
		measure func(context.Context, *dataset, pair) ([]time.Duration, error)
	}{
		{"a notification, 200 in a second, 1,000 conversations", rings},
		{"a stored event, 200 in a second, 64 conversations", stored},
		{"text, 100 answers of 50 pieces in a second", texts},
	} {
		var base time.Duration
		for _, p := range pairs {
			all, err := w.measure(ctx, d, p)
			if err != nil {
				return err
			}
			p50 := median(all)
			if base == 0 {
				base = p50
			}
			fmt.Printf("| %s | %s | %s | %s | %.1f |\n", w.name, p.name, milliseconds(p50), milliseconds(all[len(all)*99/100]), float64(p50)/float64(base))
		}
	}
	return nil
}

func milliseconds(d time.Duration) string { return fmt.Sprintf("%.3f ms", d.Seconds()*1e3) }

// paced calls do for a while, at random times.
func paced(perSecond int, do func() error) error {
	const while = 4 * time.Second
	next := time.Now()
	for end := next.Add(while); next.Before(end); {
		next = next.Add(time.Duration(rand.ExpFloat64() * float64(time.Second) / float64(perSecond)))
		time.Sleep(time.Until(next))
		if err := do(); err != nil {
			return err
		}
	}
	return nil
}

// rings measures notifications of one process to followers of another.
func rings(ctx context.Context, _ *dataset, p pair) ([]time.Duration, error) {
	const conversations = 1000
	ctx, cancel := context.WithCancel(ctx)
	var mu sync.Mutex
	var all []time.Duration
	sent := map[artel.ConversationID]time.Time{}
	var wg, ready sync.WaitGroup
	var ids []artel.ConversationID
	for range conversations {
		id := artel.NewConversationID(time.Now())
		ids = append(ids, id)
		l := p.other.Listen(id)
		ready.Add(1)
		wg.Go(func() {
			defer l.Close()
			_, _ = l.Wait(ctx)
			ready.Done()
			for {
				n, err := l.Wait(ctx)
				now := time.Now()
				if err != nil {
					return
				}
				mu.Lock()
				if at, ok := sent[id]; ok && n.Grown {
					all = append(all, now.Sub(at))
					delete(sent, id)
				}
				mu.Unlock()
			}
		})
	}
	ready.Wait()
	time.Sleep(6 * time.Second) // questions of those who begin to listen
	err := paced(200, func() error {
		id := ids[rand.IntN(conversations)]
		mu.Lock()
		_, waits := sent[id]
		if !waits {
			sent[id] = time.Now()
		}
		mu.Unlock()
		if !waits {
			p.one.Notify(id)
		}
		return nil
	})
	time.Sleep(100 * time.Millisecond)
	cancel()
	wg.Wait()
	if len(sent) > 0 {
		err = fmt.Errorf("%d notifications are lost", len(sent))
	}
	return all, err
}

// stored measures from the call that stores an event until a follower in another process has it.
func stored(ctx context.Context, d *dataset, p pair) ([]time.Duration, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one, other := event.NewLog(d.store, p.one), event.NewLog(d.store, p.other)
	var mu sync.Mutex
	var all []time.Duration
	var wg, ready sync.WaitGroup
	for _, c := range d.conversations {
		var last artel.Seq
		if err := d.store.View(ctx, artel.Local, func(tx store.Tx) (err error) {
			last, err = tx.Events.Last(c)
			return err
		}); err != nil {
			return nil, err
		}
		ready.Add(1)
		wg.Go(func() {
			began := sync.OnceFunc(ready.Done)
			for e, err := range other.Follow(ctx, artel.Local, c, last, event.FollowOptions{Idle: func() error { began(); return nil }}) {
				if err != nil {
					return
				}
				now := time.Now()
				var started artel.ToolStarted
				if json.Unmarshal(e.Data, &started) != nil {
					continue
				}
				at, _ := strconv.ParseInt(string(started.Call), 10, 64)
				mu.Lock()
				all = append(all, now.Sub(time.Unix(0, at)))
				mu.Unlock()
			}
		})
	}
	ready.Wait()
	time.Sleep(6 * time.Second)
	err := paced(200, func() error {
		now := time.Now()
		call := artel.CallID(strconv.FormatInt(now.UnixNano(), 10))
		e, err := artel.NewEvent("", "agent", now, artel.ToolStarted{Call: call, Name: "read", Arguments: []byte("{}")})
		if err != nil {
			return err
		}
		wg.Go(func() { _, _ = one.Append(ctx, artel.Local, d.conversations[rand.IntN(len(d.conversations))], e) })
		return nil
	})
	time.Sleep(500 * time.Millisecond)
	cancel()
	wg.Wait()
	return all, err
}

// texts measures pieces of answers on their way to followers in another process.
func texts(ctx context.Context, _ *dataset, p pair) ([]time.Duration, error) {
	const answers, pieces = 100, 200
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var mu sync.Mutex
	var all []time.Duration
	var failed error
	var wg sync.WaitGroup
	for range answers {
		c := artel.NewConversationID(time.Now())
		l := p.other.Listen(c)
		wg.Go(func() {
			defer l.Close()
			for got := 0; got < pieces; {
				n, err := l.Wait(ctx)
				now := time.Now()
				mu.Lock()
				if err != nil {
					failed = err
				}
				for _, piece := range strings.SplitAfter(n.Text, "\n") {
					var at time.Time
					if piece != "" && json.Unmarshal([]byte(piece), &at) == nil {
						all = append(all, now.Sub(at))
						got++
					}
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
		wg.Go(func() {
			time.Sleep(rand.N(20 * time.Millisecond))
			for range pieces {
				text, _ := json.Marshal(time.Now())
				p.one.Stream(c, event.Delta{Run: "run_1", Agent: "lead", Message: "msg_1", Text: string(text) + "\n"})
				time.Sleep(20 * time.Millisecond)
			}
		})
	}
	wg.Wait()
	slices.Sort(all)
	return all, failed
}
