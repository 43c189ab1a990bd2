// SPDX-License-Identifier: Apache-2.0

package eventtest

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/internal/contracttest"
)

// RunShared tests two notifiers over one bus, as two processes have them: what is
// told to one reaches the listeners of the other. Messages of the bus may be lost,
// repeated and late.
func RunShared(t *testing.T, open func(testing.TB) (one, other event.Notifier)) {
	contracttest.Run(t, sharedClauses(), func(t *testing.T, cl sharedClause) error {
		t.Parallel()
		one, other := open(t)
		return holdShared(t.Context(), cl, one, other)
	})
}

type sharedClause = contracttest.Clause[*shared]

func sharedClauses() []sharedClause {
	return []sharedClause{
		{"a notification wakes there", sharedNotify},
		{"text arrives there", sharedText},
		{"pieces of a character arrive there", sharedPieces},
		{"a late listener there", sharedLate},
		{"a late listener to much", sharedLong},
		{"a new message there", sharedNewMessage},
		{"discard there", sharedDiscard},
		{"the writer moves", sharedMove},
	}
}

func holdShared(ctx context.Context, cl sharedClause, one, other event.Notifier) error {
	return contracttest.Hold(ctx, func(c *contracttest.Check) { cl.Check(&shared{here: &check{one, c}, there: &check{other, c}}) })
}

// shared runs one clause with two notifiers.
type shared struct{ here, there *check }

// grown waits until a listener hears that the log may have grown.
func (c *check) grown(what string, l event.Listener) {
	for !c.wait(what, l).Grown {
	}
}

func sharedNotify(s *shared) {
	l := s.there.listen()
	defer l.Close()
	for i := range 3 {
		s.here.Notify(here)
		s.there.grown(fmt.Sprintf("notification %d", i), l)
	}
}

func sharedText(s *shared) {
	l := s.there.listen()
	defer l.Close()
	want := ""
	for i := range 200 {
		piece := fmt.Sprintf("%d,", i)
		want += piece
		s.here.say("msg_1", piece)
		if i == 100 {
			s.there.receives("the first half", l, "msg_1", want)
			s.here.think("msg_1", "hm")
			for n := (event.Notification{}); n.Reasoning != "hm"; {
				n = s.there.wait("a thought", l)
			}
		}
	}
	rest := ""
	for second := strings.TrimPrefix(want, want[:strings.Index(want, "101,")]); rest != second; {
		n := s.there.wait("the second half", l)
		if rest += n.Text; !strings.HasPrefix(second, rest) || n.Reset {
			s.there.Stopf("the second half is %q", rest)
		}
	}
}

func sharedPieces(s *shared) {
	l := s.there.listen()
	defer l.Close()
	const text = "中文 and é"
	for i := range len(text) {
		s.here.say("msg_1", text[i:i+1])
	}
	s.there.receives("single bytes", l, "msg_1", text)
}

func sharedLate(s *shared) {
	s.here.think("msg_1", "thought ")
	s.here.say("msg_1", "said before ")
	l := s.there.Listen(here)
	defer l.Close()
	s.there.receivesBoth("the answer so far", l, "msg_1", "thought ", "said before ")
	s.here.say("msg_1", "and after")
	got := ""
	for got != "and after" {
		n := s.there.wait("text after", l)
		if got += n.Text; !strings.HasPrefix("and after", got) {
			s.there.Stopf("text after: %q", got)
		}
	}
	second := s.there.Listen(here)
	defer second.Close()
	s.there.receivesBoth("a second listener", second, "msg_1", "thought ", "said before and after")
}

func sharedLong(s *shared) {
	var want strings.Builder
	for i := range 60 {
		piece := strings.Repeat(fmt.Sprint(i, " "), 3000)
		want.WriteString(piece)
		s.here.say("msg_1", piece)
	}
	l := s.there.Listen(here)
	defer l.Close()
	s.there.receives("much text", l, "msg_1", want.String())
}

func sharedNewMessage(s *shared) {
	l := s.there.listen()
	defer l.Close()
	s.here.say("msg_1", "old")
	s.there.receives("first message", l, "msg_1", "old")
	s.here.say("msg_2", "new")
	s.there.receives("second message", l, "msg_2", "new")
}

func sharedDiscard(s *shared) {
	l := s.there.listen()
	defer l.Close()
	s.here.say("msg_1", "gone")
	s.there.receives("text", l, "msg_1", "gone")
	s.here.Stream(here, event.Delta{Run: "run_1", Agent: "lead", Within: "call_1", Message: "msg_2", Text: "stays"})
	for n := (event.Notification{}); n.Text != "stays"; {
		n = s.there.wait("text of a thread", l)
	}
	s.here.Discard(here, "")
	s.here.say("msg_3", "next")
	s.there.receives("next message", l, "msg_3", "next")
	// A lost Discard may take effect a little later.
	for range 1000 {
		if s.there.lateOnly("msg_3") {
			return
		}
	}
	s.there.Failf("late listeners still get what was discarded")
}

// lateOnly reports whether a late listener gets text of one message alone.
func (c *check) lateOnly(m artel.MessageID) bool {
	l := c.Listen(here)
	defer l.Close()
	ctx, cancel := context.WithTimeout(c.Context(), Quiet)
	defer cancel()
	for only := true; ; {
		n, err := l.Wait(ctx)
		if err != nil {
			return only
		}
		only = only && (!n.HasText() || n.Message == m)
	}
}

// sharedMove: a run is continued in another process.
func sharedMove(s *shared) {
	first, second := s.here.listen(), s.there.listen()
	defer first.Close()
	defer second.Close()
	s.here.say("msg_1", "one")
	s.there.receives("from the first writer", second, "msg_1", "one")
	s.there.Discard(here, "")
	s.there.say("msg_2", "two")
	s.there.receives("where it is written", second, "msg_2", "two")
	got := ""
	for got != "two" {
		n := s.here.wait("from the second writer", first)
		if n.Message == artel.MessageID("msg_2") {
			got += n.Text
		}
	}
}
