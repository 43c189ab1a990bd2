// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// A writer makes an artifact in its first call and says so in its second; it
// sums up when it is asked to. Before the answer with a number it does what
// before says.
type writer struct {
	mu     sync.Mutex
	before map[int]func()
	asked  []*model.Request
}

func (w *writer) generate(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
	all, results := "", 0
	for _, m := range r.Messages {
		all += artel.TextOf(m.Parts) + "\n"
		for _, p := range m.Parts {
			if _, ok := p.(artel.ToolResult); ok {
				results++
			}
		}
	}
	d := model.Delta(model.TextDelta("It is done."))
	number := 2
	switch {
	case strings.Contains(all, phrase.English.Say(phrase.CompactAsk, nil)):
		d, number = model.TextDelta("## 1. Request and intent"), 0
	case results == 0 && !strings.Contains(all, "## 1. Request and intent"):
		d, number = call("create_artifact", m{"id": "note", "title": "N", "content": "one"}), 1
	}
	w.mu.Lock()
	w.asked = append(w.asked, r)
	do := w.before[number]
	w.mu.Unlock()
	if do != nil {
		do()
	}
	_ = yield(d, nil) && yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 9, OutputTokens: 1}}, nil)
}

// theCompaction is what the log tells of the only one, which was asked for.
func (b *bench) theCompaction(c artel.ConversationID) (p artel.CompactionCompleted) {
	b.t.Helper()
	events := b.events(c)
	if n := strings.Count(typesOf(events), "compaction_completed"); n != 1 {
		b.t.Fatalf("%d compactions: %s", n, typesOf(events))
	}
	at := slices.IndexFunc(events, ofType(artel.EventCompactionCompleted))
	if p = payload[artel.CompactionCompleted](b.t, events[at]); p.Reason != artel.CompactRequested {
		b.t.Errorf("it was %s", p.Reason)
	}
	return p
}

// TestCompactionWhileARunWorks: asked for while a run calls its model, it comes
// before the next call, or before the run rests, by that run; asking twice
// changes nothing.
func TestCompactionWhileARunWorks(t *testing.T) {
	for name, number := range map[string]int{"before the next call": 1, "at rest": 2} {
		t.Run(name, func(t *testing.T) {
			w := &writer{before: map[int]func(){}}
			b := newBench(t, provide(w.generate))
			c := b.conversation()
			var taken []artel.Run
			var waits run.Waiting
			var failed error
			w.before[number] = func() {
				for range 2 {
					r, err := b.Runs.Compact(apptest.Context(t), c, "")
					if taken = append(taken, r); err != nil {
						failed = err
					}
				}
				waits, _ = b.Runs.Waiting(apptest.Context(t), c)
			}
			r := b.ask(c, "Write it down.")
			if failed != nil || len(taken) != 2 || taken[0].ID != r.ID || taken[1].ID != r.ID || !waits.Compaction {
				t.Fatalf("asked for: %+v, %+v, %v", taken, waits, failed)
			}
			if r.State != artel.RunDone || r.Usage.Calls != 3 {
				t.Errorf("the run: %+v, %+v", r, r.Error)
			}
			if p := b.theCompaction(c); !p.OK || p.Message == nil || p.Message.Run != r.ID || p.Artifact == nil {
				t.Errorf("the compaction: %+v", p)
			}
			if n := strings.Count(typesOf(b.events(c)), "compaction_requested"); n != 1 {
				t.Errorf("told %d times that it was asked for", n)
			}
			branch := b.said(c)
			if answer, summary := strings.Index(branch, "It is done."), strings.Index(branch, "## 1. Request and intent"); (answer > summary) != (number == 1) {
				t.Errorf("the branch reads %q", branch)
			}
			reply, err := b.Messages.Branch(apptest.Context(t), c, r.Reply, 1)
			if err != nil || len(reply) != 1 || artel.TextOf(reply[0].Parts) != "It is done." {
				t.Errorf("its reply is %+v, %v", reply, err)
			}
			if waits, err := b.Runs.Waiting(apptest.Context(t), c); err != nil || waits.Compaction {
				t.Errorf("it waits still: %+v, %v", waits, err)
			}
			b.ask(c, "Go on.")
			if text := textsOf(w.asked[len(w.asked)-1]); !strings.Contains(text, "## 1. Request and intent") {
				t.Errorf("the next run was sent\n%s", text)
			}
		})
	}
}

// TestInjectedWhileSummedUp: what is said while the run sums up at rest follows the summary.
// It followed the answer before it, on a branch of its own: the summary was of no use, the
// conversation ended in it, and calls of the run were left without results.
func TestInjectedWhileSummedUp(t *testing.T) {
	w := &writer{before: map[int]func(){}}
	b := newBench(t, provide(w.generate))
	c := b.conversation()
	ctx := apptest.Context(t)
	var failed error
	w.before[2] = func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.before = map[int]func(){0: func() {
			r, err := b.Runs.Active(ctx, c)
			if err == nil {
				_, err = b.Runs.Inject(ctx, r.ID, "By the way.")
			}
			failed = errors.Join(failed, err)
		}}
		_, failed = b.Runs.Compact(ctx, c, "")
	}
	r := b.ask(c, "Write it down.")
	if failed != nil || r.State != artel.RunDone {
		t.Fatalf("the run: %+v, %v", r, failed)
	}
	found, err := b.Conversations.Find(ctx, c)
	if err != nil || found.Leaf != r.Reply {
		t.Errorf("the conversation ends in %s, the reply is %s: %v", found.Leaf, r.Reply, err)
	}
	for _, m := range b.turns(c) {
		if len(m.Siblings) != 1 {
			t.Errorf("%s %q has siblings %v", m.ID, artel.TextOf(m.Parts), m.Siblings)
		}
	}
	if branch := b.said(c); strings.Index(branch, "By the way.") < strings.Index(branch, "## 1. Request and intent") || !strings.HasSuffix(branch, "It is done.") {
		t.Errorf("the branch reads %q", branch)
	}
	if text := textsOf(w.asked[len(w.asked)-1]); !strings.Contains(text, "## 1. Request and intent") {
		t.Errorf("the last call was sent\n%s", text)
	}
}

func textsOf(r *model.Request) string {
	var out strings.Builder
	for _, m := range r.Messages {
		out.WriteString(artel.TextOf(m.Parts) + "\n")
	}
	return out.String()
}

// between does something before the next update of a store.
type between struct {
	store.Store
	mu sync.Mutex
	do func()
}

func (s *between) set(do func()) (before func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	before, s.do = s.do, do
	return before
}

func (s *between) Update(ctx context.Context, o artel.Owner, fn func(store.Tx) error) error {
	if do := s.set(nil); do != nil {
		do()
	}
	return s.Store.Update(ctx, o, fn)
}

// TestCompactionInTheLastMoment: it is asked for when the run is about to end,
// and no model call is to come.
func TestCompactionInTheLastMoment(t *testing.T) {
	s, w := &between{}, &writer{before: map[int]func(){}}
	b := newBench(t, provide(w.generate), func(c *app.Config) { s.Store = c.Store; c.Store = s })
	c := b.conversation()
	var failed error
	w.before[2] = func() { // the next thing that is stored is the end of the run
		s.set(func() { _, failed = b.Runs.Compact(apptest.Context(t), c, "") })
	}
	r := b.ask(c, "Write it down.")
	if failed != nil || r.State != artel.RunDone || r.Usage.Calls != 3 {
		t.Fatalf("%v, %+v, %+v", failed, r, r.Error)
	}
	if p := b.theCompaction(c); !p.OK {
		t.Errorf("%+v", p)
	}
	if branch := b.said(c); strings.Count(branch, "It is done.") != 1 {
		t.Errorf("the branch reads %q", branch)
	}
}

// TestCompactionOfACancelledRun is told not to come.
func TestCompactionOfACancelledRun(t *testing.T) {
	g, b, c, r := working(t, "Go.")
	if _, err := b.Runs.Compact(apptest.Context(t), c, ""); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil || r.State != artel.RunCancelled {
		t.Fatalf("got %+v, %v", r, err)
	}
	if p := b.theCompaction(c); p.OK || p.Error == nil {
		t.Errorf("%+v", p)
	}
	if waits, err := b.Runs.Waiting(apptest.Context(t), c); err != nil || waits.Compaction {
		t.Errorf("it waits still: %+v, %v", waits, err)
	}
	g.may <- struct{}{}
	b.ask(c, "Again.")
}

// TestCrashWithACompactionAskedFor kills a process at every third update of a run that
// is asked to sum up, before its second call and at rest: it sums up once, and
// says everything once.
func TestCrashWithACompactionAskedFor(t *testing.T) {
	for number := 1; number <= 2; number++ {
		survived := false
		for k := number; !survived; k += 3 {
			when := []moment{insideUpdate, afterUpdate}[k%2]
			t.Run(fmt.Sprintf("%d %s %d", number, when, k), func(t *testing.T) { survived = crashAskedToCompact(t, when, k, number) })
			if k > 100 {
				t.Fatal("the run has no end")
			}
		}
	}
}

func crashAskedToCompact(t *testing.T, when moment, k, number int) (survived bool) {
	s, w := &mortal{left: 1 << 30, when: when, died: make(chan struct{})}, &writer{before: map[int]func(){}}
	b := newBench(t, provide(w.generate), func(c *app.Config) { s.Store = c.Store; c.Store = s })
	c := b.conversation()
	a := b.App
	w.before[number] = func() { _, _ = a.Runs.Compact(apptest.Context(t), c, "") } // it may be dead by then
	survived = b.dieAt(s, c, "Write it down.", k)
	w.mu.Lock()
	w.before = nil
	w.mu.Unlock()
	r, ok := b.revive(s, c)
	if !ok {
		return survived
	}
	if r = b.ended(r); r.State != artel.RunDone {
		t.Fatalf("the run is %+v, %+v", r, r.Error)
	}
	told := typesOf(b.events(c))
	if asked := strings.Count(told, "compaction_requested"); strings.Count(told, "compaction_completed") != asked || asked > 1 {
		t.Errorf("the log tells %s", told)
	}
	if branch := b.said(c); strings.Count(branch, "It is done.") != 1 || strings.Count(told, "artifact_created") > 2 {
		t.Errorf("the branch reads %q, the log tells %s", branch, told)
	}
	return survived
}
