// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/internal/phrase"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
	"github.com/artelhq/artel/store/storetest"
)

// withoutCompaction lets the oldest messages be dropped.
func withoutCompaction(c *app.Config) {
	all, err := agent.Shipped()
	if err != nil {
		panic(err)
	}
	for i := range all {
		all[i].Compaction.Off = true
	}
	c.Agents = all
}

// summer answers what it is told, sums up where it is asked to, and fails while
// broken is set.
type summer struct {
	broken bool
	asked  []*model.Request
}

func (s *summer) generate(_ context.Context, r *model.Request, yield func(model.Delta, error) bool) {
	s.asked = append(s.asked, r)
	text := "An answer."
	for _, m := range r.Messages {
		if !strings.Contains(artel.TextOf(m.Parts), phrase.English.Say(phrase.CompactAsk, nil)) {
			continue
		}
		if text = "## 1. Request and intent"; s.broken {
			yield(nil, artel.Errorf(artel.Invalid, "x", "", "no"))
			return
		}
	}
	_ = yield(model.TextDelta(text), nil) && yield(model.Finish{Reason: model.StopEnd, Usage: artel.Usage{InputTokens: 9, OutputTokens: 1}}, nil)
}

func (b *bench) compact(c artel.ConversationID) artel.Run {
	b.t.Helper()
	r, err := b.Runs.Compact(apptest.Context(b.t), c, "")
	if err != nil {
		b.t.Fatal(err)
	}
	return b.ended(r)
}

func TestCompact(t *testing.T) {
	s := &summer{}
	b := newBench(t, provide(s.generate))
	c := b.conversation()
	if _, err := b.Runs.Compact(apptest.Context(t), c, ""); !errors.Is(err, artel.Invalid) {
		t.Errorf("an empty conversation: %v", err)
	}
	first := b.ask(c, "Remember the red crane.")

	s.broken = true
	failed := b.compact(c)
	if failed.State != artel.RunFailed || failed.Purpose != artel.RunCompacts {
		t.Fatalf("%+v", failed)
	}
	s.broken = false
	conversation, err := b.Conversations.Find(apptest.Context(t), c)
	if err != nil || conversation.Leaf != first.Reply {
		t.Fatalf("a failed compaction has moved the branch: %+v, %v", conversation, err)
	}

	done := b.compact(c)
	if done.State != artel.RunDone || done.Usage.Calls != 1 {
		t.Fatalf("%+v", done)
	}
	if conversation, err = b.Conversations.Find(apptest.Context(t), c); err != nil {
		t.Fatal(err)
	}
	branch, err := b.Messages.Branch(apptest.Context(t), c, conversation.Leaf, 0)
	if err != nil || len(branch) != 3 {
		t.Fatalf("%+v, %v", branch, err)
	}
	boundary := branch[2]
	if !boundary.Summary || boundary.Covers != first.Reply || !strings.Contains(artel.TextOf(boundary.Parts), "Remember the red crane.") {
		t.Errorf("%+v", boundary)
	}
	_, text, err := b.Artifacts.Find(apptest.Context(t), c, "summary_1", boundary.ID)
	if err != nil || text == nil || !strings.Contains(*text, string(first.Message)) || !strings.Contains(*text, string(first.Reply)) {
		t.Errorf("%v, %v", text, err)
	}
	var types []artel.EventType
	b.store(func(tx store.Tx) error {
		events, err := tx.Events.Read(c, 0, 100)
		types = nil
		for _, e := range events {
			if e.Run == done.ID {
				types = append(types, e.Type)
			}
		}
		return err
	})
	want := []artel.EventType{
		artel.EventRunStarted, artel.EventAgentStarted, artel.EventCompactionStarted, artel.EventUsage,
		artel.EventArtifactCreated, artel.EventCompactionCompleted, artel.EventRunFinished,
	}
	if diff := cmp.Diff(want, types); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}

	b.ask(c, "And now?")
	sent := func() string {
		var all strings.Builder
		for _, m := range s.asked[len(s.asked)-1].Messages {
			all.WriteString(artel.TextOf(m.Parts))
		}
		return all.String()
	}
	if text := sent(); !strings.Contains(text, "## 1. Request") || strings.Contains(text, "An answer.") || strings.Contains(text, "artifact:summary_1") {
		t.Errorf("after the compaction was sent:\n%s", text)
	}
	imported, err := b.bringIn(apptest.Context(t), b.zip(c))
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := b.Messages.List(apptest.Context(t), imported.Conversation.ID, store.Page{Limit: 100})
	if err != nil || len(list) < 3 || !list[2].Summary || list[2].Covers != list[1].ID {
		t.Errorf("the summary of an imported conversation covers something else: %+v, %v", list, err)
	}

	if _, err := b.Messages.Mute(apptest.Context(t), c, boundary.ID, true); err != nil {
		t.Fatal(err)
	}
	b.ask(c, "And with all?")
	if text := sent(); strings.Contains(text, "## 1. Request") || !strings.Contains(text, "An answer.") {
		t.Errorf("with the summary muted was sent:\n%s", text)
	}
}

// store runs fn on what is stored.
func (b *bench) store(fn func(store.Tx) error) {
	b.t.Helper()
	if err := b.config.Store.Update(apptest.Context(b.t), artel.Local, fn); err != nil {
		b.t.Fatal(err)
	}
}

// TestDeathInACompaction: at every moment, there is a summary with its artifact
// or there is neither, and who goes on makes one of each.
func TestDeathInACompaction(t *testing.T) {
	c := &coroner{path: filepath.Join(t.TempDir(), "data.db"), seen: map[[32]byte]bool{}, steps: map[string]int{}}
	watched := &storetest.Steps{At: func(string) error { return nil }}
	s := &summer{}
	b := newBench(t, provide(s.generate), func(config *app.Config) {
		db := sqlitetest.Open(t, c.path)
		watched.Store, config.Store = db, watched
	})
	conv := b.conversation()
	b.ask(conv, "Remember the red crane.")
	watched.At = c.at
	run := b.compact(conv)
	if err := b.Close(apptest.Context(t)); err != nil || c.err != nil || run.State != artel.RunDone {
		t.Fatal(run, err, c.err)
	}
	both := func(b *bench) (summaries, artifacts int) {
		for _, m := range b.messages(conv) {
			if m.Summary {
				summaries++
			}
		}
		list, err := b.Artifacts.List(apptest.Context(t), conv, run.Message)
		if err != nil {
			t.Fatal(err)
		}
		return summaries, len(list)
	}
	for i, d := range c.deaths {
		t.Run(fmt.Sprintf("%d %s", i, d.step), func(t *testing.T) {
			next := after(t, b, d)
			if m, a := both(next); m != a {
				t.Errorf("%d summaries and %d artifacts", m, a)
			}
			if _, err := next.Recover(apptest.Context(t), true); err != nil {
				t.Fatal(err)
			}
			if r, err := next.Runs.Find(apptest.Context(t), run.ID); errors.Is(err, artel.NotFound) {
				return // it had not begun
			} else if r = next.ended(r); r.State != artel.RunDone {
				t.Errorf("it ended as %s: %+v", r.State, r.Error)
			}
			if m, a := both(next); m != 1 || a != 1 {
				t.Errorf("in the end: %d summaries and %d artifacts", m, a)
			}
		})
	}
}
