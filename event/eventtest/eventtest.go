// SPDX-License-Identifier: Apache-2.0

// Package eventtest tests implementations of [event.Notifier].
//
// Begin with [Run]. Each clause is one subtest with its own notifier. The kit
// itself is tested with notifiers that are broken on purpose: each clause must
// fail for one of them. Notifications may be late, as between processes, by up
// to [Patience]; the kit does not test speed.
package eventtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/contracttest"
)

// Patience is how long a clause waits for an expected notification, and Quiet
// how long it waits for an unexpected one.
const (
	Patience = 5 * time.Minute
	Quiet    = 50 * time.Millisecond
)

// Run tests the notifiers that open returns. open is called once for each
// clause, and closes what it opens when the test ends.
func Run(t *testing.T, open func(testing.TB) event.Notifier) {
	contracttest.Run(t, clauses(), func(t *testing.T, cl clause) error { return hold(t.Context(), cl, open(t)) })
}

type clause = contracttest.Clause[*check]

func clauses() []clause {
	return []clause{
		{"first wait", firstWait},
		{"notification wakes", notificationWakes},
		{"notification is remembered", notificationIsRemembered},
		{"text arrives", textArrives},
		{"text is joined", textIsJoined},
		{"reasoning arrives", reasoningArrives},
		{"reasoning then text", reasoningThenText},
		{"late listener", lateListener},
		{"late to reasoning", lateToReasoning},
		{"new message", newMessage},
		{"several writers", severalWriters},
		{"discard", discard},
		{"discard a thread", discardThread},
		{"every listener", everyListener},
		{"other conversations", otherConversations},
		{"context", contextEnds},
		{"close", closing},
		{"never blocks", neverBlocks},
		{"concurrent use", concurrentUse},
	}
}

func hold(ctx context.Context, cl clause, n event.Notifier) error {
	return contracttest.Hold(ctx, func(c *contracttest.Check) { cl.Check(&check{n, c}) })
}

const (
	here  artel.ConversationID = "cnv_here"
	there artel.ConversationID = "cnv_there"
)

// A check runs one clause.
type check struct {
	event.Notifier
	*contracttest.Check
}

func (c *check) say(m artel.MessageID, text string) {
	c.Stream(here, event.Delta{Run: "run_1", Agent: "lead", Message: m, Text: text})
}

func (c *check) think(m artel.MessageID, reasoning string) {
	c.Stream(here, event.Delta{Run: "run_1", Agent: "lead", Message: m, Reasoning: reasoning})
}

// listen returns a listener whose first Wait has returned.
func (c *check) listen() event.Listener {
	l := c.Listen(here)
	c.wait("first wait", l)
	return l
}

// wait returns an expected notification.
func (c *check) wait(what string, l event.Listener) event.Notification {
	ctx, cancel := context.WithTimeout(c.Context(), Patience)
	defer cancel()
	n, err := l.Wait(ctx)
	if err != nil {
		c.Stopf("%s: no notification: %w", what, err)
	}
	return n
}

// silent fails if there is a notification.
func (c *check) silent(what string, l event.Listener) {
	ctx, cancel := context.WithTimeout(c.Context(), Quiet)
	defer cancel()
	if n, err := l.Wait(ctx); err == nil {
		c.Failf("%s: got %+v, want no notification", what, n)
	}
}

// receives collects text until it is want.
func (c *check) receives(what string, l event.Listener, m artel.MessageID, want string) {
	c.receivesBoth(what, l, m, "", want)
}

// receivesBoth collects reasoning and text until both are as wanted.
func (c *check) receivesBoth(what string, l event.Listener, m artel.MessageID, thought, want string) {
	got, reasoned := "", ""
	for got != want || reasoned != thought {
		n := c.wait(fmt.Sprintf("%s: has %q and %q, wants %q and %q", what, reasoned, got, thought, want), l)
		if !n.HasText() {
			continue
		}
		if n.Reset {
			got, reasoned = "", ""
		} else if got+reasoned == "" {
			c.Failf("%s: the first piece %q does not say reset", what, n.Reasoning+n.Text)
		}
		got += n.Text
		reasoned += n.Reasoning
		c.Same(what+": its message", n.Message, m)
		c.Same(what+": its run", n.Run, artel.RunID("run_1"))
		c.Same(what+": its agent", n.Agent, artel.AgentName("lead"))
		if !strings.HasPrefix(want, got) || !strings.HasPrefix(thought, reasoned) {
			c.Failf("%s: got reasoning %q and text %q, want %q and %q", what, reasoned, got, thought, want)
			return
		}
	}
}

func firstWait(c *check) {
	l := c.Listen(here)
	defer l.Close()
	c.Same("Grown at the first wait", c.wait("first wait", l).Grown, true)
	c.silent("second wait", l)
}

func notificationWakes(c *check) {
	l := c.listen()
	defer l.Close()
	for range 3 {
		notifications := make(chan event.Notification, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(c.Context(), Patience)
			defer cancel()
			n, _ := l.Wait(ctx)
			notifications <- n
		})
		c.Notify(here)
		wg.Wait()
		c.Same("Grown after Notify", (<-notifications).Grown, true)
	}
	c.silent("after the last notification", l)
}

func notificationIsRemembered(c *check) {
	l := c.listen()
	defer l.Close()
	c.Notify(here)
	c.Notify(here)
	c.Same("Grown after notifications without a waiter", c.wait("notification", l).Grown, true)
}

func textArrives(c *check) {
	l := c.listen()
	defer l.Close()
	c.say("msg_1", "one ")
	c.receives("first piece", l, "msg_1", "one ")
	c.say("msg_1", "two")
	n := c.wait("second piece", l)
	c.Same("second piece", n.Text, "two")
	c.Same("its Reset", n.Reset, false)
	c.silent("after the text", l)
}

func textIsJoined(c *check) {
	l := c.listen()
	defer l.Close()
	want := ""
	for i := range 1000 {
		piece := fmt.Sprintf("%d,", i)
		want += piece
		c.say("msg_1", piece)
	}
	c.receives("many pieces", l, "msg_1", want)
	c.silent("after the text", l)
}

func reasoningArrives(c *check) {
	l := c.listen()
	defer l.Close()
	c.think("msg_1", "hm ")
	c.receivesBoth("first thought", l, "msg_1", "hm ", "")
	c.think("msg_1", "so")
	n := c.wait("second thought", l)
	c.Same("second thought", n.Reasoning, "so")
	c.Same("its text", n.Text, "")
	c.Same("its Reset", n.Reset, false)
	c.silent("after the thoughts", l)
}

// reasoningThenText: text continues the answer that the reasoning began.
func reasoningThenText(c *check) {
	l := c.listen()
	defer l.Close()
	c.think("msg_1", "hm")
	c.receivesBoth("thought", l, "msg_1", "hm", "")
	c.say("msg_1", "text")
	n := c.wait("text after a thought", l)
	c.Same("text after a thought", n.Text, "text")
	c.Same("its reasoning", n.Reasoning, "")
	c.Same("its Reset", n.Reset, false)
	c.say("msg_2", "next")
	n = c.wait("the next message", l)
	c.Same("text of the next message", n.Text, "next")
	c.Same("its reasoning", n.Reasoning, "")
	c.Same("its Reset", n.Reset, true)
}

func lateToReasoning(c *check) {
	c.think("msg_1", "thought ")
	c.say("msg_1", "said ")
	l := c.Listen(here)
	defer l.Close()
	c.receivesBoth("the answer so far", l, "msg_1", "thought ", "said ")
	c.think("msg_1", "and more")
	n := c.wait("thought after", l)
	c.Same("thought after", n.Reasoning, "and more")
	c.Same("its text", n.Text, "")
	c.Discard(here, "")
	late := c.Listen(here)
	defer late.Close()
	c.Same("reasoning of a late listener after Discard", c.wait("first wait", late).Reasoning, "")
}

func lateListener(c *check) {
	c.say("msg_1", "said before ")
	l := c.Listen(here)
	defer l.Close()
	c.receives("text so far", l, "msg_1", "said before ")
	c.say("msg_1", "and after")
	n := c.wait("text after", l)
	c.Same("text after", n.Text, "and after")
}

func newMessage(c *check) {
	l := c.listen()
	defer l.Close()
	c.say("msg_1", "old")
	c.receives("first message", l, "msg_1", "old")
	c.say("msg_2", "new")
	n := c.wait("second message", l)
	c.Same("its text", n.Text, "new")
	c.Same("its Reset", n.Reset, true)
	c.Same("its message", n.Message, artel.MessageID("msg_2"))
	late := c.Listen(here)
	defer late.Close()
	c.receives("late listener", late, "msg_2", "new")
}

// severalWriters: a run and its subagents write at the same time, and a slow
// listener receives all of them.
func severalWriters(c *check) {
	l := c.listen()
	defer l.Close()
	paths := []artel.CallPath{"", "call_1", "call_1/call_2"}
	for range 3 {
		for i, p := range paths {
			c.Stream(here, event.Delta{Run: "run_1", Agent: "lead", Within: p, Message: artel.MessageID(fmt.Sprint("msg_", i)), Text: "a"})
		}
	}
	received := map[artel.CallPath]string{}
	for range paths {
		n := c.wait("each writer", l)
		received[n.Within] += n.Text
		// The answer just received grows, and does not starve the others.
		c.Stream(here, event.Delta{Run: "run_1", Agent: "lead", Within: n.Within, Message: n.Message, Text: "b"})
	}
	for _, p := range paths {
		c.Same(fmt.Sprintf("text of %q", p), received[p], "aaa")
	}
	c.Discard(here, "")
	c.silent("after all were discarded", l)
}

func discard(c *check) {
	l := c.listen()
	defer l.Close()
	c.say("msg_1", "gone")
	c.receives("text", l, "msg_1", "gone")
	c.Discard(here, "")
	c.silent("after Discard", l)
	late := c.Listen(here)
	defer late.Close()
	c.Same("text of a late listener after Discard", c.wait("first wait", late).Text, "")
	c.silent("late listener after Discard", late)
	c.say("msg_2", "next")
	c.receives("next message", l, "msg_2", "next")
	c.receives("next message, late listener", late, "msg_2", "next")
}

// discardThread: a subagent's answer is stored while others are being written.
func discardThread(c *check) {
	say := func(p artel.CallPath, m artel.MessageID) {
		c.Stream(here, event.Delta{Run: "run_1", Agent: "lead", Within: p, Message: m, Text: "a"})
	}
	say("", "msg_1")
	say("call_1", "msg_2")
	say("call_1/call_2", "msg_3")
	say("call_11", "msg_4")
	c.Discard(here, "call_1")
	late := c.Listen(here)
	defer late.Close()
	received := map[artel.CallPath]string{}
	for range 2 {
		n := c.wait("each answer that is left", late)
		received[n.Within] += n.Text
	}
	c.Same("the answers that are left", received, map[artel.CallPath]string{"": "a", "call_11": "a"})
	c.silent("after the answers that are left", late)
}

func everyListener(c *check) {
	listeners := make([]event.Listener, 5)
	for i := range listeners {
		listeners[i] = c.listen()
		defer listeners[i].Close()
	}
	c.say("msg_1", "for all")
	for i, l := range listeners {
		c.receives(fmt.Sprintf("listener %d", i), l, "msg_1", "for all")
	}
	c.Notify(here)
	for i, l := range listeners {
		c.Same(fmt.Sprintf("Grown for listener %d", i), c.wait("notification", l).Grown, true)
	}
}

func otherConversations(c *check) {
	l := c.listen()
	defer l.Close()
	c.Notify(there)
	c.Stream(there, event.Delta{Run: "run_2", Agent: "other", Message: "msg_2", Text: "not for you"})
	c.silent("notification of another conversation", l)
	c.say("msg_1", "for you")
	c.Discard(there, "")
	c.receives("text after another was discarded", l, "msg_1", "for you")
}

func contextEnds(c *check) {
	l := c.listen()
	defer l.Close()
	ctx, cancel := context.WithCancel(c.Context())
	errs := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { _, err := l.Wait(ctx); errs <- err })
	cancel()
	wg.Wait()
	if err := <-errs; artel.KindOf(err) != artel.Canceled {
		c.Failf("Wait whose context ended: got %v, want an error of kind canceled", err)
	}
	c.Notify(here)
	c.Same("Grown after a canceled wait", c.wait("notification", l).Grown, true)
}

func closing(c *check) {
	stay, leave := c.listen(), c.listen()
	defer stay.Close()
	leave.Close()
	c.say("msg_1", "text")
	c.receives("listener beside a closed one", stay, "msg_1", "text")
}

func neverBlocks(c *check) {
	l := c.Listen(here) // and never calls Wait
	defer l.Close()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 5000 {
			c.Notify(here)
			c.say("msg_1", "x")
		}
		c.Discard(here, "")
		close(done)
	})
	select {
	case <-done:
	case <-time.After(Patience):
		c.Failf("Notify or Stream blocks if a listener does not wait")
		return
	}
	wg.Wait()
}

func concurrentUse(c *check) {
	const writerCount, pieces = 4, 50
	want := writerCount * pieces
	var listeners, writers sync.WaitGroup
	for range 4 {
		l := c.Listen(here)
		listeners.Go(func() {
			defer l.Close()
			ctx, cancel := context.WithTimeout(c.Context(), Patience)
			defer cancel()
			for got := 0; got < want; {
				n, err := l.Wait(ctx)
				if err != nil {
					c.Failf("a listener got %d of %d characters: %w", got, want, err)
					return
				}
				if n.Reset {
					got = 0
				}
				got += len(n.Text)
			}
		})
	}
	for range writerCount {
		writers.Go(func() {
			for range pieces {
				c.say("msg_1", "x")
				c.Notify(here)
			}
		})
	}
	writers.Wait()
	listeners.Wait()
}
