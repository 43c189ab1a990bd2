// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	mathrand "math/rand/v2"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/artelhq/artel"
)

const (
	// busPause is the least time between two statements that send: what is published in it
	// goes with the second.
	busPause = 5 * time.Millisecond
	// busBeat is the time after which a process that has nothing to say sends an empty
	// notification. Each process hears its own ones, and so learns that they get through.
	busBeat = time.Second
	// busSilence is how long a notification may take until the bus counts as unhealthy, and
	// busDeaf until the connection is made again.
	busSilence = 2 * time.Second
	busDeaf    = 10 * time.Second
	// busAnswer is how long the database may take for a statement.
	busAnswer = 5 * time.Second
	// busQueue is how many bytes wait at most, while the database cannot be reached.
	busQueue = 4 << 20
	// busBatch is how many notifications are in a statement at most.
	busBatch = 256
)

// Bus carries messages between processes by LISTEN and NOTIFY. It is a transport of event/bus, for
// deployments without a server of their own for that. Begin with [NewBus].
//
// A process has two connections. One listens to a channel of the schema. The other one sends what has
// been published: at once, or, if the last statement was less than 5 ms ago, together
// with what is published until then, as one statement without a transaction around it. Notifications of
// transactions that write would be slow, since PostgreSQL commits all of them one after the other.
//
// Every process gets all messages. Messages of more than about 7,900 bytes are sent in parts. What was sent while a
// connection was lost is counted by [Bus.Health]; what was published meanwhile is sent afterwards.
type Bus struct {
	config *pgx.ConnConfig
	log    *slog.Logger
	self   string // names this process
	cancel context.CancelFunc
	work   sync.WaitGroup
	wake   chan struct{} // there is something to send
	deaf   time.Duration // how long nothing may come back until the connection is made again

	mu       sync.Mutex
	closed   bool
	queue    []frame
	size     int // bytes of queue
	subs     map[string][]*subscription
	requests map[string]chan []byte
	peers    peers
	losses   uint64
	state    busState
}

// busState is what a bus knows of its connections.
type busState struct {
	sends  bool               // the last statement was executed
	deafen context.CancelFunc // ends the connection that listens; nil: there is none
	hears  bool               // it has received a notification of this process
	beat   bool               // send something, whether or not there is something to say
	number uint64             // of the last payload that was packed
	sent   uint64             // of the last one that the database has
	heard  uint64             // of the last one that came back
	since  time.Time          // since when one is awaited; zero: none is
	warned bool               // that nothing comes back
}

// A subscription is a function that receives the messages of a subject.
type subscription struct {
	receive func(message []byte, reply func([]byte))
	ended   atomic.Bool
}

// NewBus returns a bus through the database of an address, which is that of [Open] or another
// one of the same database and schema. The schema separates deployments. The error is of kind Invalid if the address
// cannot be read; a database that does not answer is tried again for ever. A pooler that gives a connection to
// several clients in turn, as pgbouncer does in its transaction mode, does not pass notifications on: the bus then is not
// healthy and says so in the log. Give it the address of the database itself.
func NewBus(address string, log *slog.Logger) (*Bus, error) { return newBus(address, log, busDeaf) }

func newBus(address string, log *slog.Logger, deaf time.Duration) (*Bus, error) {
	pool, err := pgxpool.ParseConfig(address)
	if err != nil {
		// The error has the password removed.
		return nil, artel.Errorf(artel.Invalid, "store.NewBus", "", "the address of the database cannot be read: %w", err)
	}
	config := pool.ConnConfig
	config.RuntimeParams["application_name"] = "artel-bus"
	if config.ConnectTimeout == 0 {
		config.ConnectTimeout = busAnswer
	}
	config.DialFunc = dialer().DialContext
	config.DefaultQueryExecMode = pgx.QueryExecModeExec // a pooler then fails at nothing but what it cannot do
	ctx, cancel := context.WithCancel(context.Background())
	b := &Bus{
		config: config, log: log, self: rand.Text(), cancel: cancel, wake: make(chan struct{}, 1), deaf: deaf,
		subs: map[string][]*subscription{}, requests: map[string]chan []byte{}, peers: peers{},
	}
	b.work.Go(func() { b.send(ctx) })
	b.work.Go(func() { b.listen(ctx) })
	return b, nil
}

// dialer returns one whose connections to a host that is gone end after half a minute.
func dialer() *net.Dialer {
	return &net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 10 * time.Second, Interval: 5 * time.Second, Count: 4}}
}

// Close sends what is left, if the database answers, and closes the connections.
func (b *Bus) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.cancel()
	b.work.Wait()
}

// Publish sends a message to all other processes that have subscribed. It never blocks. An
// error says that the message is lost.
func (b *Bus) Publish(subject string, message []byte) error {
	return b.put("store.Publish", frame{kind: frameMessage, subject: subject, data: message})
}

func (b *Bus) put(op string, f frame) error {
	switch {
	case !fits(f.subject):
		return artel.Errorf(artel.Invalid, op, "", "a subject has up to 255 visible characters of ASCII")
	case len(f.data) > maxMessage:
		return artel.Errorf(artel.TooLarge, op, "", "a message of %d bytes; the limit is %d", len(f.data), maxMessage)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case b.closed:
		return artel.Errorf(artel.Unavailable, op, "", "the bus is closed")
	case b.size+len(f.data) > busQueue:
		return artel.Errorf(artel.Unavailable, op, "", "the database cannot be reached, and %d bytes wait for it already", b.size)
	}
	b.queue = append(b.queue, f)
	b.size += len(f.data) + len(f.subject)
	b.hurry()
	return nil
}

// hurry wakes the goroutine that sends.
func (b *Bus) hurry() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// Subscribe calls receive for each message of a subject, one at a time, until the returned
// function is called. It never blocks, and receive must not either. receive may call reply, which does nothing if
// no reply is expected.
func (b *Bus) Subscribe(subject string, receive func(message []byte, reply func([]byte))) (cancel func(), err error) {
	s := &subscription{receive: receive}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.subs[subject] = append(b.subs[subject], s)
	return func() {
		s.ended.Store(true)
		b.mu.Lock()
		defer b.mu.Unlock()
		left := slices.DeleteFunc(slices.Clone(b.subs[subject]), func(one *subscription) bool { return one == s })
		if b.subs[subject] = left; len(left) == 0 {
			delete(b.subs, subject)
		}
	}, nil
}

// Request publishes a message and returns the first reply. Without one, it waits until ctx ends.
func (b *Bus) Request(ctx context.Context, subject string, message []byte) ([]byte, error) {
	const op = "store.Request"
	id, reply := rand.Text(), make(chan []byte, 1)
	b.mu.Lock()
	b.requests[id] = reply
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.requests, id)
	}()
	if err := b.put(op, frame{kind: frameQuestion, subject: subject, id: b.self + "/" + id, data: message}); err != nil {
		return nil, err
	}
	select {
	case data := <-reply:
		return data, nil
	case <-ctx.Done():
		return nil, artel.Errorf(artel.Unavailable, op, "", "there is no reply: %w", ctx.Err())
	}
}

// Health reports whether messages get through, and how many times some were lost.
func (b *Bus) Health() (ok bool, losses uint64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	s := b.state
	return s.sends && s.hears && (s.since.IsZero() || time.Since(s.since) < busSilence), b.losses
}

// send sends what is published, until ctx ends.
func (b *Bus) send(ctx context.Context) {
	var c *connection
	var payloads []string // what is packed and not yet sent
	beat := time.NewTicker(busBeat)
	defer beat.Stop()
	defer func() {
		last, stop := context.WithTimeout(context.WithoutCancel(ctx), busBeat)
		defer stop()
		if c != nil {
			_ = c.notify(last, b.pack(payloads)) // followers read the log
		}
		c.close()
	}()
	var wait backoff
	var before time.Time
	for {
		if len(payloads) == 0 {
			select {
			case <-ctx.Done():
				return
			case <-b.wake:
				if !sleep(ctx, busPause-time.Since(before)) {
					return
				}
			case <-beat.C:
				b.watch(time.Since(before) > busBeat/2)
			}
			if payloads = b.pack(nil); len(payloads) == 0 {
				continue
			}
		}
		before = time.Now()
		err := error(nil)
		if c == nil {
			c, err = b.connect(ctx)
		}
		now := payloads[:min(len(payloads), busBatch)]
		if err == nil {
			err = c.notify(ctx, now)
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			if c.close(); wait == 0 {
				b.log.Warn("messages to other servers wait for the database", "err", err)
			}
			c = nil
			b.set(func(s *busState) { s.sends = false })
			if !wait.sleep(ctx) {
				return
			}
			continue
		}
		wait = 0
		payloads = payloads[len(now):]
		b.set(func(s *busState) {
			if s.sent = s.number - uint64(len(payloads)); s.heard < s.sent && (s.since.IsZero() || !s.sends) {
				s.since = time.Now()
			}
			s.sends = true
		})
	}
}

// pack adds what is published to payloads.
func (b *Bus) pack(payloads []string) []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	more, last := pack(b.self, b.state.number, b.queue)
	if b.state.beat && len(more)+len(payloads) == 0 {
		last++
		more = []string{header(b.self, last, payloadWhole)}
	}
	b.queue, b.size, b.state.beat, b.state.number = nil, 0, false, last
	return append(payloads, more...)
}

func (b *Bus) set(change func(*busState)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	change(&b.state)
}

// watch looks whether notifications come back.
func (b *Bus) watch(beat bool) {
	b.set(func(s *busState) {
		s.beat = s.beat || beat
		if s.deafen == nil || s.since.IsZero() || time.Since(s.since) < b.deaf {
			return
		}
		if !s.warned {
			s.warned = true
			b.log.Warn("the database does not pass notifications on, so that followers at other servers read the log every second; a pooler such as pgbouncer in transaction mode cannot do it: give the address of the database itself",
				"host", b.config.Host)
		}
		s.deafen()
		s.deafen = nil
	})
}

// listen receives what is sent, until ctx ends.
func (b *Bus) listen(ctx context.Context) {
	var wait backoff
	for ctx.Err() == nil {
		err := b.hear(ctx)
		if ctx.Err() != nil {
			return
		}
		heard := false
		b.set(func(s *busState) { heard, s.hears, s.deafen = s.hears, false, nil })
		if heard {
			wait = 0
		}
		if wait == 0 && !errors.Is(err, context.Canceled) { // that was said
			b.log.Warn("messages of other servers are not heard; the connection to the database is made again", "err", err)
		}
		if !wait.sleep(ctx) {
			return
		}
	}
}

// hear receives on one connection, until it is lost.
func (b *Bus) hear(ctx context.Context) error {
	c, err := b.connect(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if _, err := c.Exec(ctx, "LISTEN "+c.channel); err != nil {
		return err
	}
	b.set(func(s *busState) { s.deafen, s.since, s.beat = cancel, time.Now(), true })
	b.hurry()
	for {
		n, err := c.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		b.receive(n.Payload)
	}
}

// receive takes a payload.
func (b *Bus) receive(payload string) {
	from, number, kind, body, ok := parse(payload)
	if !ok {
		return // of another program
	}
	b.mu.Lock()
	if from == b.self {
		b.echo(number)
		b.mu.Unlock()
		return
	}
	frames, lost := b.peers.take(from, number, kind, body, time.Now())
	if lost {
		b.losses++
	}
	b.mu.Unlock()
	for _, f := range frames {
		b.deliver(f)
	}
}

// echo notes that a payload of this process came back. The caller holds mu.
func (b *Bus) echo(number uint64) {
	s := &b.state
	if !s.hears {
		b.losses++ // what was sent while this process did not listen
	}
	s.hears, s.warned = true, false
	s.heard = max(s.heard, number)
	if s.since = time.Now(); s.heard >= s.sent {
		s.since = time.Time{}
	}
}

// deliver gives a message to those who wait for it.
func (b *Bus) deliver(f frame) {
	b.mu.Lock()
	to := b.subs[f.subject]
	if f.kind == frameReply {
		if f.subject == b.self && b.requests[f.id] != nil {
			select {
			case b.requests[f.id] <- f.data:
			default: // it has a reply
			}
		}
		to = nil
	}
	b.mu.Unlock()
	for _, s := range to {
		if !s.ended.Load() {
			s.receive(f.data, func(data []byte) { b.reply(f, data) })
		}
	}
}

// reply answers a question.
func (b *Bus) reply(to frame, data []byte) {
	for i := range len(to.id) {
		if to.kind == frameQuestion && to.id[i] == '/' {
			_ = b.put("store.Reply", frame{kind: frameReply, subject: to.id[:i], id: to.id[i+1:], data: data}) // who asked asks again
			return
		}
	}
}

// A connection is one of a bus.
type connection struct {
	*pgx.Conn
	channel string
}

func (b *Bus) connect(ctx context.Context) (*connection, error) {
	c, err := pgx.ConnectConfig(ctx, b.config)
	if err != nil {
		return nil, err
	}
	out := &connection{Conn: c}
	ctx, cancel := context.WithTimeout(ctx, busAnswer)
	defer cancel()
	if err := c.QueryRow(ctx, "SELECT 'artel_' || md5(coalesce(current_schema(), ''))").Scan(&out.channel); err != nil {
		out.close()
		return nil, err
	}
	return out, nil
}

// notify sends payloads in one statement.
func (c *connection) notify(ctx context.Context, payloads []string) error {
	if len(payloads) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, busAnswer)
	defer cancel()
	_, err := c.Exec(ctx, "SELECT pg_notify($1, payload) FROM unnest($2::text[]) AS payload", c.channel, payloads)
	return err
}

// close ends the connection, if there is one.
func (c *connection) close() {
	if c == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), busBeat)
	defer cancel()
	_ = c.Conn.Close(ctx)
}

// A backoff is the time until a connection is tried again.
type backoff time.Duration

func (w *backoff) sleep(ctx context.Context) bool {
	*w = min(max(2**w, backoff(50*time.Millisecond)), backoff(2*time.Second))
	return sleep(ctx, time.Duration(*w)/2+mathrand.N(time.Duration(*w)/2))
}

// sleep reports whether ctx is still there afterwards.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	select {
	case <-ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}
