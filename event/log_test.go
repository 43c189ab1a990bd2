// SPDX-License-Identifier: Apache-2.0

package event_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/event/eventtest"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestLocalNotifier(t *testing.T) {
	eventtest.Run(t, func(testing.TB) event.Notifier { return event.NewNotifier() })
}

func newConversation(tb testing.TB, s store.Store) artel.ConversationID {
	tb.Helper()
	id := artel.NewConversationID(time.Now())
	if err := s.Update(context.Background(), artel.Local, func(tx store.Tx) error {
		return tx.Conversations.Create(artel.Conversation{ID: id})
	}); err != nil {
		tb.Fatal(err)
	}
	return id
}

func payload(tb testing.TB, p artel.Payload) artel.Event {
	tb.Helper()
	e, err := artel.NewEvent("run_1", "lead", time.Now(), p)
	if err != nil {
		tb.Fatal(err)
	}
	return e
}

func completed(tb testing.TB, id artel.MessageID, text string) artel.Event {
	return payload(tb, artel.MessageCompleted{Message: artel.Message{ID: id, Parts: artel.Parts{artel.Text{Text: text}}}})
}

// take follows until n events have come, heartbeats included.
func take(t *testing.T, l *event.Log, c artel.ConversationID, after artel.Seq, o event.FollowOptions, n int) []artel.Event {
	t.Helper()
	var got []artel.Event
	for e, err := range l.Follow(t.Context(), artel.Local, c, after, o) {
		if err != nil {
			t.Fatal(err)
		}
		if got = append(got, e); len(got) == n {
			break
		}
	}
	return got
}

func TestFollowReadsOnFromANumber(t *testing.T) {
	s := rowstest.Open(t)
	l := event.NewLog(s, event.NewNotifier())
	c := newConversation(t, s)
	const total = 250 // several batches
	for range total {
		if _, err := l.Append(t.Context(), artel.Local, c, payload(t, artel.RunStarted{})); err != nil {
			t.Fatal(err)
		}
	}
	for _, after := range []artel.Seq{0, 1, 99, 100, 249} {
		for i, e := range take(t, l, c, after, event.FollowOptions{}, int(total-after)) {
			if want := after + artel.Seq(i) + 1; e.Seq != want {
				t.Fatalf("after %d: event %d has number %d, want %d", after, i, e.Seq, want)
			}
		}
	}
}

func TestFollowRefuses(t *testing.T) {
	s := rowstest.Open(t)
	l := event.NewLog(s, event.NewNotifier())
	c := newConversation(t, s)
	for _, tt := range []struct {
		name  string
		owner artel.Owner
		conv  artel.ConversationID
		after artel.Seq
		want  artel.Kind
	}{
		{"missing", artel.Local, "cnv_none", 0, artel.NotFound},
		{"foreign", "somebody", c, 0, artel.NotFound},
		{"beyond the end", artel.Local, c, 1, artel.Invalid},
		{"before the beginning", artel.Local, c, -1, artel.Invalid},
	} {
		t.Run(tt.name, func(t *testing.T) {
			n := 0
			for _, err := range l.Follow(t.Context(), tt.owner, tt.conv, tt.after, event.FollowOptions{}) {
				n++
				if !errors.Is(err, tt.want) {
					t.Errorf("got %v, want kind %s", err, tt.want)
				}
			}
			if n != 1 {
				t.Errorf("yielded %d times, want one error and the end", n)
			}
		})
	}
}

func TestFollowEndsWithItsContext(t *testing.T) {
	s := rowstest.Open(t)
	l := event.NewLog(s, event.NewNotifier())
	c := newConversation(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := l.Append(ctx, artel.Local, c, payload(t, artel.RunStarted{}), payload(t, artel.RunStarted{})); err != nil {
		t.Fatal(err)
	}
	for e, err := range l.Follow(ctx, artel.Local, c, 0, event.FollowOptions{}) {
		if err != nil {
			t.Fatalf("got %v, want the end without an error", err)
		}
		if e.Seq == 2 {
			cancel()
		}
	}
	for range l.Follow(ctx, artel.Local, c, 0, event.FollowOptions{}) {
		t.Error("a context that has ended still yields")
	}
}

func TestFollowEndsWithTheConversation(t *testing.T) {
	s := rowstest.Open(t)
	b := event.NewNotifier()
	l := event.NewLog(s, b)
	c := newConversation(t, s)
	if _, err := l.Append(t.Context(), artel.Local, c, payload(t, artel.RunStarted{})); err != nil {
		t.Fatal(err)
	}
	var last error
	for _, err := range l.Follow(t.Context(), artel.Local, c, 0, event.FollowOptions{}) {
		if last = err; err == nil {
			if err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error { return tx.Conversations.Delete(c, time.Now()) }); err != nil {
				t.Fatal(err)
			}
			b.Notify(c)
		}
	}
	if !errors.Is(last, artel.NotFound) {
		t.Errorf("got %v, want kind not_found", last)
	}
}

func TestAppendRefusesWhatIsLiveOnly(t *testing.T) {
	s := rowstest.Open(t)
	l := event.NewLog(s, event.NewNotifier())
	c := newConversation(t, s)
	_, err := l.Append(t.Context(), artel.Local, c, payload(t, artel.RunStarted{}), payload(t, artel.MessageDelta{Text: "x"}))
	if !errors.Is(err, artel.Invalid) {
		t.Errorf("got %v, want kind invalid", err)
	}
	last, err := l.Append(t.Context(), artel.Local, c)
	if err != nil || last != 0 {
		t.Errorf("the log ends at %d, %v; want 0: nothing of a refused append stays", last, err)
	}
}

// TestHeartbeat: each interval of silence yields one zero event, a delivered event
// begins a new interval, and a lost notification is made up for.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := rowstest.Open(t)
		notifier := event.NewNotifier()
		l := event.NewLog(s, notifier)
		c := newConversation(t, s)
		began := time.Now()
		var got []string
		note := func(what string) { got = append(got, fmt.Sprintf("%s %v", what, time.Since(began))) }
		steps := []func(){
			func() {}, // after the first heartbeat: nothing
			func() { // after the second: text, three seconds later
				time.AfterFunc(3*time.Second, func() { notifier.Stream(c, speech("msg_1", "", "x")) })
			},
			func() {}, // after the text
			func() { // after the third: an event whose ring is lost
				if err := s.Update(t.Context(), artel.Local, func(tx store.Tx) error {
					_, err := tx.Events.Append(c, payload(t, artel.RunStarted{}))
					return err
				}); err != nil {
					t.Error(err)
				}
			},
			func() {},
		}
		for e, err := range l.Follow(t.Context(), artel.Local, c, 0, event.FollowOptions{Heartbeat: 10 * time.Second}) {
			if err != nil {
				t.Fatal(err)
			}
			note(string(e.Type))
			steps[0]()
			if steps = steps[1:]; len(steps) == 0 {
				break
			}
		}
		want := []string{" 10s", " 20s", "message_delta 23s", " 33s", "run_started 43s"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestDeltasAfterCompletion: a follower that has a message in full, in this sequence
// or the one before, gets no more pieces of it.
func TestDeltasAfterCompletion(t *testing.T) {
	s := rowstest.Open(t)
	notifier := event.NewNotifier()
	l := event.NewLog(s, notifier)
	c := newConversation(t, s)
	notifier.Stream(c, speech("msg_1", "", "text"))
	if _, err := l.Append(t.Context(), artel.Local, c, completed(t, "msg_1", "text")); err != nil { // and no Discard
		t.Fatal(err)
	}
	if _, err := l.Append(t.Context(), artel.Local, c, payload(t, artel.RunStarted{}), payload(t, artel.RunStarted{})); err != nil {
		t.Fatal(err)
	}
	for _, after := range []artel.Seq{0, 1, 3} {
		n := 0
		for e, err := range l.Follow(t.Context(), artel.Local, c, after, event.FollowOptions{Heartbeat: time.Millisecond}) {
			if err != nil {
				t.Fatal(err)
			}
			if e.Type == artel.EventMessageDelta {
				t.Errorf("after %d: a piece of a message that is complete: %s", after, e.Data)
			}
			if n++; n == 6 {
				break
			}
		}
	}
}

// TestFollowers: whatever is appended, said and hushed, and wherever followers
// connect, break off and come back, each ends with the whole log, once and in
// order, and never shows text that the answer does not have.
func TestFollowers(t *testing.T) {
	s := rowstest.Open(t)
	rapid.Check(t, func(rt *rapid.T) {
		notifier := event.NewNotifier()
		l := event.NewLog(s, notifier)
		c := newConversation(t, s)
		script := rapid.SliceOfN(rapid.SampledFrom([]string{"event", "say", "say", "say", "think", "think", "complete", "complete late discard", "discard", "ring"}), 1, 40).Draw(rt, "script")
		breaks := rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(1, 6), 0, 8), 1, 4).Draw(rt, "breaks")

		truth := map[artel.MessageID]answer{}
		var mu sync.Mutex // guards truth
		var wg sync.WaitGroup
		problems := make(chan string, len(breaks))
		for _, b := range breaks {
			wg.Go(func() {
				f := client{shown: map[artel.MessageID]answer{}, done: map[artel.MessageID]bool{}}
				if err := f.follow(t.Context(), l, c, b, func(m artel.MessageID) answer { mu.Lock(); defer mu.Unlock(); return truth[m] }); err != nil {
					problems <- err.Error()
				}
			})
		}
		messages := 0
		current := func() artel.MessageID { return artel.MessageID(fmt.Sprintf("msg_%d", messages)) }
		add := func(e artel.Event) {
			if _, err := l.Append(t.Context(), artel.Local, c, e); err != nil {
				rt.Error(err)
			}
		}
		complete := func() {
			mu.Lock()
			text := truth[current()].text
			mu.Unlock()
			add(completed(t, current(), text))
			messages++
		}
		for i, step := range script {
			switch step {
			case "event":
				add(payload(t, artel.RunStarted{}))
			case "say":
				piece := fmt.Sprintf("%d,", i)
				mu.Lock()
				truth[current()] = truth[current()].plus("", piece)
				mu.Unlock()
				notifier.Stream(c, speech(current(), "", piece))
			case "think":
				piece := fmt.Sprintf("(%d)", i)
				mu.Lock()
				truth[current()] = truth[current()].plus(piece, "")
				mu.Unlock()
				notifier.Stream(c, speech(current(), piece, ""))
			case "complete":
				complete()
				notifier.Discard(c, "")
			case "complete late discard": // the next message may begin before
				complete()
			case "discard": // the writer gave up; a new message begins
				notifier.Discard(c, "")
				messages++
			case "ring":
				notifier.Notify(c)
			}
		}
		add(payload(t, artel.RunFinished{}))
		notifier.Discard(c, "")
		wg.Wait()
		close(problems)
		for p := range problems {
			rt.Error(p)
		}
	})
}

// An answer is what was thought and said of a message.
type answer struct{ reasoning, text string }

func (a answer) plus(reasoning, text string) answer {
	return answer{a.reasoning + reasoning, a.text + text}
}

func speech(m artel.MessageID, reasoning, text string) event.Delta {
	return event.Delta{Run: "run_1", Agent: "lead", Message: m, Reasoning: reasoning, Text: text}
}

// A client is the state of a follower that reconnects.
type client struct {
	last  artel.Seq
	shown map[artel.MessageID]answer
	done  map[artel.MessageID]bool
}

// follow reads until run_finished, and breaks off after so many events each.
func (f *client) follow(ctx context.Context, l *event.Log, c artel.ConversationID, breaks []int, truth func(artel.MessageID) answer) error {
	for {
		n := 0
		fresh := map[artel.MessageID]bool{}
		for e, err := range l.Follow(ctx, artel.Local, c, f.last, event.FollowOptions{}) {
			if err != nil {
				return err
			}
			if err := f.take(e, fresh, truth); err != nil {
				return err
			}
			if e.Type == artel.EventRunFinished {
				return nil
			}
			if n++; len(breaks) > 0 && n == breaks[0] {
				breaks = breaks[1:]
				break
			}
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

func (f *client) take(e artel.Event, fresh map[artel.MessageID]bool, truth func(artel.MessageID) answer) error {
	switch {
	case e.Type == artel.EventMessageDelta:
		var d artel.MessageDelta
		if err := json.Unmarshal(e.Data, &d); err != nil {
			return err
		}
		if e.Seq != 0 {
			return fmt.Errorf("a delta has number %d", e.Seq)
		}
		if f.done[d.Message] {
			return fmt.Errorf("a piece %q of %s after it was complete", d.Text, d.Message)
		}
		if d.Reset {
			f.shown[d.Message] = answer{}
		} else if !fresh[d.Message] {
			return fmt.Errorf("the first piece %q of %s does not say reset", d.Text, d.Message)
		}
		fresh[d.Message] = true
		got, want := f.shown[d.Message].plus(d.Reasoning, d.Text), truth(d.Message)
		f.shown[d.Message] = got
		if !strings.HasPrefix(want.text, got.text) || !strings.HasPrefix(want.reasoning, got.reasoning) {
			return fmt.Errorf("%s shows %q, but is %q", d.Message, got, want)
		}
		return nil
	case e.Seq != f.last+1:
		return fmt.Errorf("got number %d after %d", e.Seq, f.last)
	}
	f.last = e.Seq
	if e.Type == artel.EventMessageCompleted {
		var m artel.MessageCompleted
		if err := json.Unmarshal(e.Data, &m); err != nil {
			return err
		}
		f.done[m.Message.ID] = true
		if got, want := artel.TextOf(m.Message.Parts), truth(m.Message.ID).text; got != want {
			return fmt.Errorf("%s ended as %q, want %q", m.Message.ID, got, want)
		}
	}
	return nil
}

// TestLongEvents: followers receive all of a log whose events are long, in order, near
// its end and far from it, and no read returns much more than its limit.
func TestLongEvents(t *testing.T) {
	s := rowstest.Open(t)
	longest := &longestRead{Store: s}
	l := event.NewLog(longest, event.NewNotifier())
	c := newConversation(t, s)
	const n, size = 20, 1 << 20
	add := func() {
		for range n {
			if _, err := l.Append(t.Context(), artel.Local, c, completed(t, "msg_1", strings.Repeat("x", size))); err != nil {
				t.Error(err)
			}
		}
	}
	add()
	started := false
	var added sync.WaitGroup
	last := artel.Seq(0)
	idle := func() error {
		if !started && last == n { // it waits near the end
			started = true
			added.Go(add)
		}
		return nil
	}
	for e, err := range l.Follow(t.Context(), artel.Local, c, 0, event.FollowOptions{Idle: idle}) {
		if err != nil || e.Seq != last+1 {
			t.Fatalf("got event %d after %d, %v", e.Seq, last, err)
		}
		if last = e.Seq; last == 2*n {
			break
		}
	}
	added.Wait()
	longest.mu.Lock()
	defer longest.mu.Unlock()
	if longest.bytes > store.MaxEventBytes+size+1000 || longest.bytes < store.MaxEventBytes {
		t.Errorf("the longest read returns %d bytes", longest.bytes)
	}
}

// A longestRead keeps how many bytes of events a view has read at most.
type longestRead struct {
	store.Store
	mu    sync.Mutex
	bytes int
}

func (s *longestRead) View(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	return s.Store.View(ctx, o, func(tx store.Tx) error {
		tx.Events = readSizes{tx.Events, s}
		return fn(tx)
	})
}

type readSizes struct {
	store.Events
	s *longestRead
}

func (r readSizes) Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
	list, err := r.Events.Read(c, after, limit)
	n := 0
	for _, e := range list {
		n += len(e.Data)
	}
	r.s.mu.Lock()
	defer r.s.mu.Unlock()
	r.s.bytes = max(r.s.bytes, n)
	return list, err
}

// TestReconnectAfterLongEvents: a follower that has a completed message, at the end of
// long events, gets no text of it that the writer has not discarded yet.
func TestReconnectAfterLongEvents(t *testing.T) {
	notifier := event.NewNotifier()
	s := rowstest.Open(t)
	l := event.NewLog(s, notifier)
	c := newConversation(t, s)
	for range 6 {
		if _, err := l.Append(t.Context(), artel.Local, c, completed(t, "msg_0", strings.Repeat("x", 1<<20))); err != nil {
			t.Fatal(err)
		}
	}
	last, err := l.Append(t.Context(), artel.Local, c, completed(t, "msg_1", "said"))
	if err != nil {
		t.Fatal(err)
	}
	notifier.Stream(c, event.Delta{Message: "msg_1", Text: "said"})
	notifier.Stream(c, event.Delta{Within: "call_1", Message: "msg_2", Text: "next"})
	for e, err := range l.Follow(t.Context(), artel.Local, c, last, event.FollowOptions{}) {
		if err != nil || !strings.Contains(string(e.Data), "msg_2") {
			t.Errorf("got %s, %v", e.Data, err)
		}
		break
	}
}
