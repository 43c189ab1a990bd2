// SPDX-License-Identifier: Apache-2.0

// Package bus implements [event.Notifier] for several processes.
//
// Begin with [New] and a [Transport]; [Connect] makes the one of NATS, and store/postgres has one that
// needs nothing but the database.
//
// Each process has an [event.LocalNotifier] for its own listeners, and publishes the
// same under a subject of the conversation. A process subscribes to that
// subject while it has listeners of the conversation, and to another one, of
// questions, while it writes an answer.
//
// A piece of an answer has the place where it belongs. A process that misses the
// pieces before it, or begins to listen late, asks for them, and the process that
// writes the answer replies. Pieces that come twice are dropped. Messages of a process
// about a conversation are numbered, and the last number is repeated a few times in
// the seconds after, so that lost messages are noticed. A process that could not send says so when it can again.
//
// Nothing is stored, and everything may be lost: the truth is in the log. While the
// transport is not healthy, and whenever a message was lost, followers read the log:
// then every second.
package bus

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
)

// A Transport carries messages between processes, to all who have subscribed when
// they are published. It may lose, repeat and delay them. It is safe for concurrent
// use.
type Transport interface {
	// Publish sends a message. It never blocks. An error says that it is lost.
	Publish(subject string, message []byte) error

	// Subscribe calls receive for each message, one at a time, until the returned
	// function is called. It never blocks. receive may call reply, which does nothing
	// if no reply is expected.
	Subscribe(subject string, receive func(message []byte, reply func([]byte))) (cancel func(), err error)

	// Request publishes a message and returns the first reply. It fails early if
	// there is no subscription.
	Request(ctx context.Context, subject string, message []byte) ([]byte, error)

	// Health reports whether messages get through, and how many times some were lost.
	Health() (ok bool, losses uint64)
}

const (
	// Tick is how often followers read the log while the transport is not healthy.
	Tick     = time.Second
	beacons  = 3         // how many times the last number is repeated
	asking   = Tick      // for a reply
	maxTries = 5         // of a question
	maxText  = 128 << 10 // bytes of text in one message
	ended    = 64        // messages that are remembered as no longer written, in a conversation
)

// A Bus is an [event.Notifier].
type Bus struct {
	local     *event.LocalNotifier
	transport Transport
	prefix    string
	self      string // names this process
	log       *slog.Logger
	ctx       context.Context // ends with Close
	cancel    context.CancelFunc
	work      sync.WaitGroup

	mu      sync.Mutex
	rooms   map[artel.ConversationID]*room
	lost    uint64 // losses of the transport that were handled
	unsent  bool   // a message of this process is lost, which others do not know
	healthy bool
}

var _ event.Notifier = (*Bus)(nil)

// A room is a conversation in which this process listens or writes. It is guarded
// by Bus.mu.
type room struct {
	listeners int
	hear      func()        // ends the subscription to messages; nil: none
	answer    func()        // ends that to questions; nil: none
	number    uint64        // of the last message of this process
	beacons   int           // still to be sent
	quiet     bool          // no message was sent since the last tick
	mine      []piece       // answers that this process writes, with their lengths
	theirs    []piece       // those of others that are in the local notifier
	dropped   []event.Delta // answers that this process writes, and another one has discarded
	ended     []artel.MessageID
	heard     map[string]uint64 // number of the last message, by process
	asking    bool
	again     bool // to be asked once more
}

// A piece names an answer, and says how much of it there is.
type piece struct {
	Within    artel.CallPath  `json:"within,omitempty"`
	Message   artel.MessageID `json:"message"`
	Text      int             `json:"text"`      // bytes
	Reasoning int             `json:"reasoning"` // bytes
	from      string          // the process that writes it, in room.theirs
}

// A message is what processes tell each other. A piece has the lengths before it.
type message struct {
	From    string          `json:"from"`
	Number  uint64          `json:"number"`
	Kind    string          `json:"kind"`
	Discard artel.CallPath  `json:"discard,omitempty"`
	At      *piece          `json:"at,omitempty"`
	Run     artel.RunID     `json:"run,omitempty"`
	Agent   artel.AgentName `json:"agent,omitempty"`
	Text    []byte          `json:"text,omitempty"` // may end within a character
	Thought []byte          `json:"thought,omitempty"`
}

// The kinds.
const (
	kindNotify  = "notify"
	kindStream  = "stream"
	kindDiscard = "discard"
	kindBeacon  = "beacon"
	kindLost    = "lost" // messages of this process
)

// A question asks for answers that are being written, from where the asking process
// has them.
type question struct {
	From string  `json:"from"`
	Has  []piece `json:"has,omitempty"`
}

// A reply has the pieces that follow, and those that are written.
type reply struct {
	From    string    `json:"from"`
	Number  uint64    `json:"number"`
	Writes  []piece   `json:"writes"`
	Pieces  []message `json:"pieces,omitempty"`
	HasMore bool      `json:"has_more,omitempty"`
}

// New returns a bus over t. prefix begins the subjects, and separates
// deployments. The caller closes it.
func New(t Transport, prefix string, log *slog.Logger) *Bus {
	ctx, cancel := context.WithCancel(context.Background())
	b := &Bus{
		local: event.NewNotifier(), transport: t, prefix: prefix, self: rand.Text(), log: log, ctx: ctx, cancel: cancel,
		rooms: map[artel.ConversationID]*room{}, healthy: true,
	}
	_, b.lost = t.Health()
	b.enter()
	b.work.Go(b.tick)
	return b
}

// Close ends all subscriptions. It does not close the transport.
func (b *Bus) Close() {
	b.mu.Lock()
	b.cancel() // no question is asked any more
	for _, r := range b.rooms {
		end(&r.hear)
		end(&r.answer)
	}
	b.mu.Unlock()
	b.work.Wait()
}

func end(subscription *func()) {
	if *subscription != nil {
		(*subscription)()
		*subscription = nil
	}
}

// subject hashes a conversation, since subjects are seen by all who use the transport.
func (b *Bus) subject(c artel.ConversationID) string {
	sum := sha256.Sum256([]byte(c))
	return b.prefix + "." + hex.EncodeToString(sum[:16])
}

func (b *Bus) room(c artel.ConversationID) *room {
	r := b.rooms[c]
	if r == nil {
		// Numbers increase, also when a conversation comes again.
		r = &room{number: uint64(time.Now().UnixMicro()), heard: map[string]uint64{}}
		b.rooms[c] = r
	}
	return r
}

// leave forgets a room in which nothing happens.
func (b *Bus) leave(c artel.ConversationID, r *room) {
	if len(r.mine) == 0 {
		end(&r.answer)
	}
	if r.listeners == 0 {
		end(&r.hear)
		for _, p := range r.theirs {
			b.local.Discard(c, p.Within)
		}
		r.theirs = nil
		clear(r.heard)
	}
	if r.listeners == 0 && len(r.mine)+len(r.dropped) == 0 && r.beacons == 0 && b.rooms[c] == r {
		delete(b.rooms, c)
	}
}

// Notify implements [event.Notifier].
func (b *Bus) Notify(c artel.ConversationID) {
	b.local.Notify(c)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.publish(c, b.room(c), message{Kind: kindNotify})
}

// Stream implements [event.Notifier].
func (b *Bus) Stream(c artel.ConversationID, d event.Delta) {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.room(c)
	b.restore(c, r, d)
	b.local.Stream(c, d)
	at := entry(&r.mine, d.Within, d.Message)
	r.theirs = slices.DeleteFunc(r.theirs, func(p piece) bool { return p.Within == d.Within }) // this process writes it now
	if r.answer == nil {
		cancel, err := b.transport.Subscribe(b.subject(c)+".ask", func(question []byte, reply func([]byte)) { b.reply(c, question, reply) })
		if err != nil {
			b.log.Warn("questions of other processes about an answer are not heard; they have it when it is complete", "conversation", c, "err", err)
			cancel = func() {}
		}
		r.answer = cancel
	}
	for _, m := range cut(message{Kind: kindStream, At: at, Run: d.Run, Agent: d.Agent, Text: []byte(d.Text), Thought: []byte(d.Reasoning)}) {
		b.publish(c, r, m)
	}
	at.Text += len(d.Text)
	at.Reasoning += len(d.Reasoning)
}

// restore brings an answer back that another process has discarded, because it did not know
// yet that this one has the run.
func (b *Bus) restore(c artel.ConversationID, r *room, d event.Delta) {
	for _, whole := range r.dropped {
		if whole.Message == d.Message {
			b.local.Stream(c, whole)
			at := entry(&r.mine, whole.Within, whole.Message)
			at.Text, at.Reasoning = len(whole.Text), len(whole.Reasoning)
		}
	}
	r.dropped = slices.DeleteFunc(r.dropped, func(one event.Delta) bool { return one.Within == d.Within })
}

// entry returns the piece of an answer, which replaces another one of the thread.
func entry(all *[]piece, within artel.CallPath, m artel.MessageID) *piece {
	i := slices.IndexFunc(*all, func(p piece) bool { return p.Within == within })
	if i < 0 {
		i = len(*all)
		*all = append(*all, piece{})
	}
	if (*all)[i].Message != m {
		(*all)[i] = piece{Within: within, Message: m}
	}
	return &(*all)[i]
}

// cut cuts a long message.
func cut(m message) []message {
	at := *m.At
	var out []message
	for {
		next := m
		place := at
		next.At = &place
		next.Thought = first(m.Thought, maxText)
		if next.Text = nil; len(next.Thought) == len(m.Thought) { // reasoning comes before text
			next.Text = first(m.Text, maxText-len(next.Thought))
		}
		out = append(out, next)
		m.Thought, m.Text = m.Thought[len(next.Thought):], m.Text[len(next.Text):]
		if len(m.Thought)+len(m.Text) == 0 {
			return out
		}
		at.Reasoning += len(next.Thought)
		at.Text += len(next.Text)
	}
}

// first returns at most n bytes of b, which end with a character: followers get each
// piece as JSON.
func first(b []byte, n int) []byte {
	if n >= len(b) {
		return b
	}
	for end := n; end >= 0 && end > n-utf8.UTFMax; end-- {
		if utf8.RuneStart(b[end]) {
			return b[:end]
		}
	}
	return b[:n] // it is no text
}

// Discard implements [event.Notifier].
func (b *Bus) Discard(c artel.ConversationID, within artel.CallPath) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.local.Discard(c, within)
	r := b.room(c)
	r.discard(within, "")
	r.dropped = slices.DeleteFunc(r.dropped, func(d event.Delta) bool { return d.Within.In(within) })
	b.publish(c, r, message{Kind: kindDiscard, Discard: within})
	b.leave(c, r)
}

// discard forgets the answers of a thread, which a process has discarded; "" is this one. An answer of
// a third process may be one that began since, and comes back with its next piece.
func (r *room) discard(within artel.CallPath, from string) {
	in := func(p piece) bool { return p.Within.In(within) }
	for _, p := range r.theirs {
		if in(p) && (from == "" || from == p.from) {
			r.end(p.Message)
		}
	}
	r.mine, r.theirs = slices.DeleteFunc(r.mine, in), slices.DeleteFunc(r.theirs, in)
}

// end remembers a message of which late pieces are dropped.
func (r *room) end(m artel.MessageID) {
	if len(r.ended) == ended {
		r.ended = slices.Delete(r.ended, 0, 1)
	}
	r.ended = append(r.ended, m)
}

// publish numbers a message and sends it.
func (b *Bus) publish(c artel.ConversationID, r *room, m message) {
	if m.Kind != kindBeacon {
		r.number++
		r.beacons, r.quiet = beacons, false
	}
	m.From, m.Number = b.self, r.number
	data, err := json.Marshal(m)
	if err == nil {
		err = b.transport.Publish(b.subject(c), data)
	}
	if err != nil {
		b.unsent = true
		b.log.Debug("other processes are not told of an event; they read the log when messages get through again", "conversation", c, "err", err)
	}
}

// Listen implements [event.Notifier].
func (b *Bus) Listen(c artel.ConversationID) event.Listener {
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.room(c)
	r.listeners++
	if r.hear == nil {
		cancel, err := b.transport.Subscribe(b.subject(c), func(data []byte, _ func([]byte)) { b.receive(c, data) })
		if err != nil {
			b.log.Warn("other processes are not heard; followers read the log at each heartbeat", "conversation", c, "err", err)
			cancel = func() {}
		}
		r.hear = cancel
		b.ask(c, r)
	}
	return &listener{Listener: b.local.Listen(c), leave: sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		r.listeners--
		b.leave(c, r)
	})}
}

type listener struct {
	event.Listener
	leave func()
}

func (l *listener) Close() {
	l.Listener.Close()
	l.leave()
}

// receive takes a message of another process.
func (b *Bus) receive(c artel.ConversationID, data []byte) {
	var m message
	if json.Unmarshal(data, &m) != nil || m.From == b.self {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	r := b.rooms[c]
	if r == nil || r.listeners == 0 {
		return
	}
	last, known := r.heard[m.From]
	if b.count(r, m) {
		b.local.Notify(c)
		if known || m.Kind == kindBeacon {
			b.ask(c, r)
		}
	}
	switch m.Kind {
	case kindNotify:
		b.local.Notify(c)
	case kindStream:
		if !b.take(c, r, m) {
			b.ask(c, r)
		}
	case kindDiscard:
		if known && m.Number <= last {
			return // it came twice, and may meet an answer that began since
		}
		for _, d := range b.local.Writing(c) {
			if d.Within.In(m.Discard) && slices.ContainsFunc(r.mine, func(p piece) bool { return p.Message == d.Message }) {
				r.dropped = append(r.dropped, d)
			}
		}
		b.local.Discard(c, m.Discard)
		r.discard(m.Discard, m.From)
	}
}

// take gives the local notifier what it lacks of a piece. It reports false if
// something before the piece is missing.
func (b *Bus) take(c artel.ConversationID, r *room, m message) bool {
	if m.At == nil || slices.Contains(r.ended, m.At.Message) {
		return true
	}
	if slices.ContainsFunc(r.mine, func(p piece) bool { return p.Within == m.At.Within }) {
		return true // of a process that lost the run to this one
	}
	for _, p := range r.theirs {
		if p.Within == m.At.Within && p.Message != m.At.Message {
			r.end(p.Message)
		}
	}
	at := entry(&r.theirs, m.At.Within, m.At.Message)
	at.from = m.From
	if m.At.Text > at.Text || m.At.Reasoning > at.Reasoning {
		return false
	}
	text, thought := rest(m.Text, at.Text-m.At.Text), rest(m.Thought, at.Reasoning-m.At.Reasoning)
	if len(text)+len(thought) > 0 {
		b.local.Stream(c, event.Delta{Run: m.Run, Agent: m.Agent, Within: m.At.Within, Message: m.At.Message, Text: string(text), Reasoning: string(thought)})
		at.Text += len(text)
		at.Reasoning += len(thought)
	}
	return true
}

// rest returns what follows the first n bytes.
func rest(b []byte, n int) []byte { return b[min(n, len(b)):] }
