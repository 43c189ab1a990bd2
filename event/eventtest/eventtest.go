// SPDX-License-Identifier: Apache-2.0

// Package eventtest holds implementations of [event.Bell] to their contract.
//
// Begin with [Run]. Each clause is one subtest with a bell of its own. The kit
// is itself held to bells that are broken on purpose: every clause is failed
// by one of them. A bell may be late, as one between processes is, by up to
// [Patience]; the kit says nothing about how fast it is.
package eventtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
)

// Patience is how long a clause waits for what must come, and Quiet how long
// for what must not.
const (
	Patience = 10 * time.Second
	Quiet    = 50 * time.Millisecond
)

// Run holds the bells that open returns to the contract. open is called once
// for each clause; what it opens, it closes with the test.
func Run(t *testing.T, open func(testing.TB) event.Bell) {
	for _, cl := range clauses() {
		t.Run(cl.name, func(t *testing.T) {
			if err := hold(t.Context(), cl, open(t)); err != nil {
				t.Error(err)
			}
		})
	}
}

type clause struct {
	name  string
	check func(*check)
}

func clauses() []clause {
	return []clause{
		{"first wait", firstWait},
		{"ring wakes", ringWakes},
		{"ring is remembered", ringIsRemembered},
		{"text arrives", textArrives},
		{"text is joined", textIsJoined},
		{"reasoning arrives", reasoningArrives},
		{"reasoning then text", reasoningThenText},
		{"late listener", lateListener},
		{"late to reasoning", lateToReasoning},
		{"new message", newMessage},
		{"several speakers", severalSpeakers},
		{"hush", hush},
		{"every listener", everyListener},
		{"other conversations", otherConversations},
		{"context", contextEnds},
		{"close", closing},
		{"never blocks", neverBlocks},
		{"concurrent use", concurrentUse},
	}
}

func hold(ctx context.Context, cl clause, b event.Bell) (err error) {
	c := &check{ctx: ctx, Bell: b}
	defer func() {
		if p := recover(); p != nil && p != any(stop{}) {
			c.failf("panic: %v", p)
		}
		err = errors.Join(c.errs...)
	}()
	cl.check(c)
	return nil
}

const (
	here  artel.ConversationID = "cnv_here"
	there artel.ConversationID = "cnv_there"
)

// A check runs one clause and collects what is wrong.
type check struct {
	event.Bell
	ctx  context.Context // of the clause, which is one call
	errs []error
}

type stop struct{}

func (c *check) failf(format string, args ...any) {
	c.errs = append(c.errs, fmt.Errorf(format, args...))
}

func (c *check) same(what string, got, want any) {
	if got != want {
		c.failf("%s: got %+v, want %+v", what, got, want)
	}
}

func (c *check) say(m artel.MessageID, text string) {
	c.Say(here, event.Speech{Run: "run_1", Agent: "lead", Message: m, Text: text})
}

func (c *check) think(m artel.MessageID, reasoning string) {
	c.Say(here, event.Speech{Run: "run_1", Agent: "lead", Message: m, Reasoning: reasoning})
}

// listen returns a listener that has had its first news.
func (c *check) listen() event.Listener {
	l := c.Listen(here)
	c.wait("first wait", l)
	return l
}

// wait returns news that must come.
func (c *check) wait(what string, l event.Listener) event.News {
	ctx, cancel := context.WithTimeout(c.ctx, Patience)
	defer cancel()
	n, err := l.Wait(ctx)
	if err != nil {
		c.failf("%s: no news: %w", what, err)
		panic(stop{})
	}
	return n
}

// silent fails when news comes.
func (c *check) silent(what string, l event.Listener) {
	ctx, cancel := context.WithTimeout(c.ctx, Quiet)
	defer cancel()
	if n, err := l.Wait(ctx); err == nil {
		c.failf("%s: got news %+v, want none", what, n)
	}
}

// hears collects text until it is want.
func (c *check) hears(what string, l event.Listener, m artel.MessageID, want string) {
	c.hearsBoth(what, l, m, "", want)
}

// hearsBoth collects reasoning and text until they are what is wanted.
func (c *check) hearsBoth(what string, l event.Listener, m artel.MessageID, thought, want string) {
	got, reasoned := "", ""
	for got != want || reasoned != thought {
		n := c.wait(fmt.Sprintf("%s: has %q and %q, wants %q and %q", what, reasoned, got, thought, want), l)
		if !n.Said() {
			continue
		}
		if n.Reset {
			got, reasoned = "", ""
		} else if got+reasoned == "" {
			c.failf("%s: the first piece %q does not say reset", what, n.Reasoning+n.Text)
		}
		got += n.Text
		reasoned += n.Reasoning
		c.same(what+": its message", n.Message, m)
		c.same(what+": its run", n.Run, artel.RunID("run_1"))
		c.same(what+": its agent", n.Agent, artel.AgentName("lead"))
		if !strings.HasPrefix(want, got) || !strings.HasPrefix(thought, reasoned) {
			c.failf("%s: got reasoning %q and text %q, want %q and %q", what, reasoned, got, thought, want)
			return
		}
	}
}

func firstWait(c *check) {
	l := c.Listen(here)
	defer l.Close()
	c.same("Grown at the first wait", c.wait("first wait", l).Grown, true)
	c.silent("second wait", l)
}

func ringWakes(c *check) {
	l := c.listen()
	defer l.Close()
	for range 3 {
		news := make(chan event.News, 1)
		var wg sync.WaitGroup
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(c.ctx, Patience)
			defer cancel()
			n, _ := l.Wait(ctx)
			news <- n
		})
		c.Ring(here)
		wg.Wait()
		c.same("Grown after a ring", (<-news).Grown, true)
	}
	c.silent("after the last ring", l)
}

func ringIsRemembered(c *check) {
	l := c.listen()
	defer l.Close()
	c.Ring(here)
	c.Ring(here)
	c.same("Grown after rings that nobody waited for", c.wait("ring", l).Grown, true)
}

func textArrives(c *check) {
	l := c.listen()
	defer l.Close()
	c.say("msg_1", "one ")
	c.hears("first piece", l, "msg_1", "one ")
	c.say("msg_1", "two")
	n := c.wait("second piece", l)
	c.same("second piece", n.Text, "two")
	c.same("its Reset", n.Reset, false)
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
	c.hears("many pieces", l, "msg_1", want)
	c.silent("after the text", l)
}

func reasoningArrives(c *check) {
	l := c.listen()
	defer l.Close()
	c.think("msg_1", "hm ")
	c.hearsBoth("first thought", l, "msg_1", "hm ", "")
	c.think("msg_1", "so")
	n := c.wait("second thought", l)
	c.same("second thought", n.Reasoning, "so")
	c.same("its text", n.Text, "")
	c.same("its Reset", n.Reset, false)
	c.silent("after the thoughts", l)
}

// reasoningThenText: the text goes on with the answer that the reasoning began.
func reasoningThenText(c *check) {
	l := c.listen()
	defer l.Close()
	c.think("msg_1", "hm")
	c.hearsBoth("thought", l, "msg_1", "hm", "")
	c.say("msg_1", "text")
	n := c.wait("text after a thought", l)
	c.same("text after a thought", n.Text, "text")
	c.same("its reasoning", n.Reasoning, "")
	c.same("its Reset", n.Reset, false)
	c.say("msg_2", "next")
	n = c.wait("the next message", l)
	c.same("text of the next message", n.Text, "next")
	c.same("its reasoning", n.Reasoning, "")
	c.same("its Reset", n.Reset, true)
}

func lateToReasoning(c *check) {
	c.think("msg_1", "thought ")
	c.say("msg_1", "said ")
	l := c.Listen(here)
	defer l.Close()
	c.hearsBoth("the answer so far", l, "msg_1", "thought ", "said ")
	c.think("msg_1", "and more")
	n := c.wait("thought after", l)
	c.same("thought after", n.Reasoning, "and more")
	c.same("its text", n.Text, "")
	c.Hush(here)
	late := c.Listen(here)
	defer late.Close()
	c.same("reasoning of a late listener after hush", c.wait("first wait", late).Reasoning, "")
}

func lateListener(c *check) {
	c.say("msg_1", "said before ")
	l := c.Listen(here)
	defer l.Close()
	c.hears("text so far", l, "msg_1", "said before ")
	c.say("msg_1", "and after")
	n := c.wait("text after", l)
	c.same("text after", n.Text, "and after")
}

func newMessage(c *check) {
	l := c.listen()
	defer l.Close()
	c.say("msg_1", "old")
	c.hears("first message", l, "msg_1", "old")
	c.say("msg_2", "new")
	n := c.wait("second message", l)
	c.same("its text", n.Text, "new")
	c.same("its Reset", n.Reset, true)
	c.same("its message", n.Message, artel.MessageID("msg_2"))
	late := c.Listen(here)
	defer late.Close()
	c.hears("late listener", late, "msg_2", "new")
}

// severalSpeakers: a run and its subagents write at the same time, and a
// listener that is slow hears all of them.
func severalSpeakers(c *check) {
	l := c.listen()
	defer l.Close()
	paths := []artel.CallPath{"", "call_1", "call_1/call_2"}
	for range 3 {
		for i, p := range paths {
			c.Say(here, event.Speech{Run: "run_1", Agent: "lead", Within: p, Message: artel.MessageID(fmt.Sprint("msg_", i)), Text: "a"})
		}
	}
	heard := map[artel.CallPath]string{}
	for range paths {
		n := c.wait("each speaker", l)
		heard[n.Within] += n.Text
		// The one that was heard goes on, and does not keep the others back.
		c.Say(here, event.Speech{Run: "run_1", Agent: "lead", Within: n.Within, Message: n.Message, Text: "b"})
	}
	for _, p := range paths {
		c.same(fmt.Sprintf("what %q has said", p), heard[p], "aaa")
	}
	c.Hush(here)
	c.silent("after all were hushed", l)
}

func hush(c *check) {
	l := c.listen()
	defer l.Close()
	c.say("msg_1", "gone")
	c.hears("text", l, "msg_1", "gone")
	c.Hush(here)
	c.silent("after hush", l)
	late := c.Listen(here)
	defer late.Close()
	c.same("text of a late listener after hush", c.wait("first wait", late).Text, "")
	c.silent("late listener after hush", late)
	c.say("msg_2", "next")
	c.hears("next message", l, "msg_2", "next")
	c.hears("next message, late listener", late, "msg_2", "next")
}

func everyListener(c *check) {
	ears := make([]event.Listener, 5)
	for i := range ears {
		ears[i] = c.listen()
		defer ears[i].Close()
	}
	c.say("msg_1", "for all")
	for i, l := range ears {
		c.hears(fmt.Sprintf("listener %d", i), l, "msg_1", "for all")
	}
	c.Ring(here)
	for i, l := range ears {
		c.same(fmt.Sprintf("Grown for listener %d", i), c.wait("ring", l).Grown, true)
	}
}

func otherConversations(c *check) {
	l := c.listen()
	defer l.Close()
	c.Ring(there)
	c.Say(there, event.Speech{Run: "run_2", Agent: "other", Message: "msg_2", Text: "not for you"})
	c.silent("news of another conversation", l)
	c.say("msg_1", "for you")
	c.Hush(there)
	c.hears("text after another was hushed", l, "msg_1", "for you")
}

func contextEnds(c *check) {
	l := c.listen()
	defer l.Close()
	ctx, cancel := context.WithCancel(c.ctx)
	errs := make(chan error, 1)
	var wg sync.WaitGroup
	wg.Go(func() { _, err := l.Wait(ctx); errs <- err })
	cancel()
	wg.Wait()
	if err := <-errs; artel.KindOf(err) != artel.Canceled {
		c.failf("Wait whose context ended: got %v, want an error of kind canceled", err)
	}
	c.Ring(here)
	c.same("Grown after a wait that was given up", c.wait("ring", l).Grown, true)
}

func closing(c *check) {
	stay, leave := c.listen(), c.listen()
	defer stay.Close()
	leave.Close()
	c.say("msg_1", "text")
	c.hears("listener beside a closed one", stay, "msg_1", "text")
}

func neverBlocks(c *check) {
	l := c.Listen(here) // and never waits
	defer l.Close()
	done := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 5000 {
			c.Ring(here)
			c.say("msg_1", "x")
		}
		c.Hush(here)
		close(done)
	})
	select {
	case <-done:
	case <-time.After(Patience):
		c.failf("ringing and saying to a listener that does not wait blocks")
		return
	}
	wg.Wait()
}

func concurrentUse(c *check) {
	const speakers, pieces = 4, 50
	want := speakers * pieces
	var ears, mouths sync.WaitGroup
	var mu sync.Mutex
	for range 4 {
		l := c.Listen(here)
		ears.Go(func() {
			defer l.Close()
			ctx, cancel := context.WithTimeout(c.ctx, Patience)
			defer cancel()
			for got := 0; got < want; {
				n, err := l.Wait(ctx)
				if err != nil {
					mu.Lock()
					defer mu.Unlock()
					c.failf("a listener got %d of %d characters: %w", got, want, err)
					return
				}
				if n.Reset {
					got = 0
				}
				got += len(n.Text)
			}
		})
	}
	for range speakers {
		mouths.Go(func() {
			for range pieces {
				c.say("msg_1", "x")
				c.Ring(here)
			}
		})
	}
	mouths.Wait()
	ears.Wait()
}
