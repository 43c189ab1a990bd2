// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

func TestRename(t *testing.T) {
	b := newBench(t, play(t, writes))
	older, c := b.conversation(), b.conversation()
	before, err := b.Conversations.Find(apptest.Context(t), older)
	if err != nil {
		t.Fatal(err)
	}
	longest := strings.Repeat("长", 256)
	for title, want := range map[string]string{"  Ein \t": "Ein", longest: longest, "\u00a0x\u3000": "x", "a\u200fb": "a\u200fb"} {
		got, err := b.Conversations.Rename(apptest.Context(t), older, title)
		if err != nil {
			t.Fatal(err)
		}
		before.Title = want
		if diff := cmp.Diff(before, got); diff != "" { // UpdatedAt too
			t.Errorf("(-want +got):\n%s", diff)
		}
		if found, err := b.Conversations.Find(apptest.Context(t), older); err != nil || found != got {
			t.Errorf("got %+v, %v; want what Rename returned", found, err)
		}
	}
	for title, want := range map[string]artel.Kind{
		"": artel.Invalid, " \n\t ": artel.Invalid, "a\nb": artel.Invalid, "a\x00b": artel.Invalid, "a\u2028b": artel.Invalid, "a\xffb": artel.Invalid,
		longest + "长": artel.TooLarge,
	} {
		if _, err := b.Conversations.Rename(apptest.Context(t), older, title); artel.KindOf(err) != want {
			t.Errorf("%q: got %v, want kind %s", title, err, want)
		}
	}
	if _, err := b.Conversations.Rename(apptest.Context(t), artel.NewConversationID(time.Now()), "x"); artel.KindOf(err) != artel.NotFound {
		t.Errorf("an unknown conversation: got %v", err)
	}
	if _, err := b.Conversations.Rename(artel.WithOwner(apptest.Context(t), "mallory"), older, "x"); artel.KindOf(err) != artel.NotFound {
		t.Errorf("as somebody else: got %v", err)
	}
	// What a person has named keeps its name, before the first message and after.
	for _, title := range []string{"Mine", "Mine again"} {
		if _, err := b.Conversations.Rename(apptest.Context(t), c, title); err != nil {
			t.Fatal(err)
		}
		b.ask(c, "An automatic title.")
		if got, err := b.Conversations.Find(apptest.Context(t), c); err != nil || got.Title != title {
			t.Errorf("got %q, %v; want %q", got.Title, err, title)
		}
	}
}

func TestSearch(t *testing.T) {
	b := newBench(t, play(t, "-- turn 1 --\nThe lighthouse is on the northern cliff.\n"))
	c := b.conversation()
	b.conversation()
	b.ask(c, "Where does the ferry go?")
	for search, n := range map[string]int{"": 2, "ferry": 1, "LIGHTHOUSE ferry": 1, "airport": 0} {
		items, _, err := b.Conversations.List(apptest.Context(t), store.ConversationQuery{Search: search})
		if err != nil || len(items) != n {
			t.Errorf("%q: got %+v, %v; want %d", search, items, err, n)
		}
		if search == "LIGHTHOUSE ferry" && n == 1 && items[0].Excerpt != "The lighthouse is on the northern cliff." {
			t.Errorf("got excerpt %q", items[0].Excerpt)
		}
	}
	if _, _, err := b.Conversations.List(apptest.Context(t), store.ConversationQuery{Search: strings.Repeat("x", 201)}); artel.KindOf(err) != artel.Invalid {
		t.Errorf("a search that is too long: got %v", err)
	}
}

// TestDeleteAndRestore: what is deleted is gone for every use case, comes back
// whole within the hour, and is gone for good after it.
func TestDeleteAndRestore(t *testing.T) {
	var ahead atomic.Int64
	b := newBench(t, play(t, writes), func(c *app.Config) {
		c.Options.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	c := b.conversation()
	r := b.ask(c, "Go.")
	up := b.upload(c, "a.txt", "private")
	uses := map[string]func() error{
		"find": func() error { _, err := b.Conversations.Find(apptest.Context(t), c); return err },
		"send": func() error {
			_, err := b.Runs.Send(apptest.Context(t), c, run.Input{Text: " ", Attachments: []string{"nothing"}})
			if artel.CodeOf(err) == artel.CodeArtifactNotFound { // the conversation is there
				return nil
			}
			return err
		},
		"rename":   func() error { _, err := b.Conversations.Rename(apptest.Context(t), c, "x"); return err },
		"branch":   func() error { _, err := b.Messages.Branch(apptest.Context(t), c, r.Reply, 1); return err },
		"run":      func() error { _, err := b.Runs.Find(apptest.Context(t), r.ID); return err },
		"events":   func() error { _, err := b.Events.Last(apptest.Context(t), c); return err },
		"artifact": func() error { _, _, err := b.Artifacts.Find(apptest.Context(t), c, "note", ""); return err },
		"digest": func() error {
			f, err := b.Files.Open(apptest.Context(t), artel.BlobRef(up.Digest).String())
			return closed(f, err)
		},
	}
	expect := func(when string, want artel.Kind) {
		t.Helper()
		for name, use := range uses {
			if err := use(); artel.KindOf(err) != want {
				t.Errorf("%s, %s: got %v, want kind %q", when, name, err, want)
			}
		}
	}
	purge := func(want int) {
		t.Helper()
		if n, err := b.Purge(context.Background()); err != nil || n != want {
			t.Errorf("got %d purged, %v; want %d", n, err, want)
		}
	}
	restore := func(want artel.Kind) {
		t.Helper()
		got, err := b.Conversations.Restore(apptest.Context(t), c)
		if artel.KindOf(err) != want || err == nil && got.ID != c {
			t.Errorf("got %+v, %v, want kind %q", got, err, want)
		}
	}
	expect("before", "")
	restore(artel.NotFound)
	remove := func() {
		t.Helper()
		if err := b.Conversations.Delete(apptest.Context(t), c); err != nil {
			t.Fatal(err)
		}
	}
	remove()
	expect("deleted", artel.NotFound)
	if err := b.Conversations.Delete(apptest.Context(t), c); artel.KindOf(err) != artel.NotFound {
		t.Errorf("deleting again: got %v", err)
	}
	if _, err := b.Conversations.Restore(artel.WithOwner(apptest.Context(t), "mallory"), c); artel.KindOf(err) != artel.NotFound {
		t.Errorf("restoring as somebody else: got %v", err)
	}
	ahead.Store(int64(59 * time.Minute))
	purge(0)
	restore("")
	expect("restored", "")
	remove()
	ahead.Add(int64(59 * time.Minute))
	purge(0)
	ahead.Add(int64(2 * time.Minute))
	purge(1)
	restore(artel.NotFound)
	expect("purged", artel.NotFound)
}
