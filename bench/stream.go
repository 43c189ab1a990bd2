// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/blob"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/httpapi"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

const streamAbout = "Subscribers follow one conversation with `GET …/events`, events are appended one by one, each on disk before the next, and a delivery is one event at one subscriber. " +
	"The anchor is a net/http handler that writes the same frames out of a channel to each subscriber and stores nothing. " +
	"With few subscribers most of the time goes into the disk, which the anchor does without. " +
	"Memory is what the server's resident memory rose by until all were answered, for each of them, after ten others came and went. The budgets are those of 1,000 and 5,000."

func measureStream(ctx context.Context, l *lab) (results []result) {
	var speed, memory []result
	for _, subscribers := range []int{100, 300, 1000, 5000} {
		var s, m result
		during(count(subscribers, "subscribers"), func() { s, m = fanOut(ctx, l, subscribers) })
		if subscribers >= 1000 {
			s.target, m.target = target{ratio: 0.8}, target{limit: 40e3}
		}
		speed, memory = append(speed, s), append(memory, m)
	}
	return append(speed, memory...)
}

func fanOut(ctx context.Context, l *lab, n int) (speed, memory result) {
	var running processes
	defer running.stop()
	var groups []*subscribers
	defer func() {
		for _, c := range groups {
			c.close() // before the processes end
		}
	}()
	var samples []sample
	var above []float64
	for _, role := range []string{"events", "fanout"} {
		dir := l.folder()
		p := running.startRole(ctx, role, "--data", dir)
		path := p.post(ctx, "/path")
		first := subscribe(ctx, p, path, 10)
		first.close()
		idle := p.rss()
		group := subscribe(ctx, p, path, n)
		groups = append(groups, group)
		above = append(above, float64(p.rss()-idle)/float64(n))
		events := max(50, 30_000/n)
		samples = append(samples, func() float64 {
			took := group.await(events, func() { p.post(ctx, fmt.Sprintf("/publish?n=%d", events)) })
			return float64(events*n) / took.Seconds()
		})
	}
	m := interleave(l.rounds(3), samples...)
	size := count(n, "subscribers")
	speed = result{work: "burst", size: size, unit: times("deliveries"), artel: m[0], anchor: m[1]}
	memory = result{work: "memory of a connection", size: size, unit: kilobytes(), artel: above[0], anchor: above[1]}
	return speed, memory
}

// n are many n in this process.
type subscribers struct {
	conns []net.Conn
	heard chan int // a subscriber's index, each time it has what it waits for
	wants []chan int
	wg    sync.WaitGroup
}

// subscribe connects n subscribers and waits until each has a response.
func subscribe(ctx context.Context, p *process, path string, n int) *subscribers {
	c := &subscribers{heard: make(chan int, n)}
	addr := strings.TrimPrefix(p.url, "http://")
	for range n {
		conn := must((&net.Dialer{}).DialContext(ctx, "tcp", addr))
		want := make(chan int, 1)
		c.conns, c.wants = append(c.conns, conn), append(c.wants, want)
		must(io.WriteString(conn, "GET "+path+" HTTP/1.1\r\nHost: "+addr+"\r\n\r\n"))
		in := bufio.NewReaderSize(conn, 8<<10)
		if status, err := in.ReadString('\n'); err != nil || !strings.Contains(status, " 200 ") {
			fail("a subscriber is answered %q: %w", strings.TrimSpace(status), err)
		}
		c.wg.Go(func() { c.listen(in, want) })
	}
	return c
}

// listen counts events until close ends the connection, and reports every time the
// wanted number has arrived.
func (c *subscribers) listen(in *bufio.Reader, want <-chan int) {
	for n := range want {
		for n > 0 {
			line, err := in.ReadSlice('\n')
			if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
				return
			}
			if bytes.HasPrefix(line, []byte("event: ")) {
				n--
			}
		}
		c.heard <- n
	}
}

// await measures the time from publish until every subscriber has n more events.
func (c *subscribers) await(n int, publish func()) time.Duration {
	for _, want := range c.wants {
		want <- n
	}
	began := time.Now()
	publish()
	late := time.After(time.Minute)
	for range c.wants {
		select {
		case <-c.heard:
		case <-late:
			fail("not every subscriber has heard every event after a minute")
		}
	}
	return time.Since(began)
}

func (c *subscribers) close() {
	for _, conn := range c.conns {
		_ = conn.Close()
	}
	for _, want := range c.wants {
		close(want)
	}
	c.wg.Wait()
}

// serveEvents is Artel's API over a database, with an endpoint that appends.
func serveEvents(ctx context.Context, mux *http.ServeMux, dir string) io.Closer {
	db := must(sqlite.Open(ctx, filepath.Join(dir, "artel.db"), sqlite.Options{}))
	notifier := event.NewNotifier()
	a := must(app.New(app.Config{
		Store: db, Blobs: blob.NewMemory(), Notifier: notifier, Services: model.NewRegistry([]model.Service{model.DemoService()}, ""),
		Options: app.Options{Log: slog.New(slog.DiscardHandler)},
	}))
	now := time.Now().UTC()
	c := artel.Conversation{ID: artel.NewConversationID(now), CreatedAt: now, UpdatedAt: now}
	check(db.Update(ctx, artel.Local, func(tx store.Tx) error { return tx.Conversations.Create(c) }))
	events := event.NewLog(db, notifier)
	api := httpapi.New(a, httpapi.Options{Log: slog.New(slog.DiscardHandler)})
	mux.HandleFunc(httpapi.Base+"/", func(w http.ResponseWriter, r *http.Request) {
		api.ServeHTTP(w, r.WithContext(artel.WithOwner(r.Context(), artel.Local)))
	})
	handle(mux, "POST /path", func(*http.Request) (string, error) {
		return httpapi.Base + "/conversations/" + string(c.ID) + "/events", nil
	})
	handle(mux, "POST /publish", func(r *http.Request) (string, error) {
		n, err := number(r, "n")
		for range n {
			if err == nil {
				_, err = events.Append(r.Context(), artel.Local, c.ID, anEvent())
			}
		}
		return "", err
	})
	return db
}

// anEvent is one of some 250 bytes on the wire.
func anEvent() artel.Event {
	e, err := artel.NewEvent("", "assistant", time.Now().UTC(), artel.AgentStarted{Service: "bench", Model: strings.Repeat("m", 100)})
	if err != nil {
		panic(err) // strings can be marshalled
	}
	return e
}

// serveFanout is the anchor.
func serveFanout(_ context.Context, mux *http.ServeMux, _ string) io.Closer {
	var mu sync.Mutex
	all := map[chan []byte]bool{}
	handle(mux, "POST /path", func(*http.Request) (string, error) { return "/events", nil })
	handle(mux, "POST /publish", func(r *http.Request) (string, error) {
		n, err := number(r, "n")
		for i := range n {
			frame := fmt.Appendf(nil, "id: %d\nevent: agent_started\ndata: {\"seq\":%d,\"type\":\"agent_started\",\"data\":{\"model\":%q}}\n\n", i, i, strings.Repeat("m", 100))
			mu.Lock()
			for c := range all {
				c <- frame
			}
			mu.Unlock()
		}
		return "", err
	})
	mux.HandleFunc("GET /events", func(w http.ResponseWriter, r *http.Request) {
		frames := make(chan []byte, 256)
		mu.Lock()
		all[frames] = true
		mu.Unlock()
		defer func() {
			mu.Lock()
			defer mu.Unlock()
			delete(all, frames)
		}()
		out := http.NewResponseController(w)
		w.Header().Set("Content-Type", "text/event-stream")
		_ = out.Flush()
		for {
			select {
			case frame := <-frames:
				if _, err := w.Write(frame); err != nil || out.Flush() != nil {
					return
				}
			case <-r.Context().Done():
				return
			}
		}
	})
	return closers{}
}
