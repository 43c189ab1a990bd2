// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"sync"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/agent"
	"github.com/artelhq/artel/app"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/artifact"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store/storetest"
)

// TestUpdatesReadNoBranch counts what updates read for a message that needs to know
// its branch: its service is chosen, it has an older version of a document attached,
// one of its calls was always allowed at the beginning of the branch, and another is
// asked about. They read as much after 10,000 messages as after 10.
func TestUpdatesReadNoBranch(t *testing.T) {
	short, long := updateReads(t, 10), updateReads(t, 10_000)
	if long.rows > short.rows {
		t.Errorf("in a long conversation, an update reads %d rows, most by %s; in a short one, none reads more than %d", long.rows, long.most, short.rows)
	}
}

// A readCount is how much an update reads at most.
type readCount struct {
	rows int
	most string // the call that reads most
}

func updateReads(t *testing.T, messages int) (count readCount) {
	var mu sync.Mutex
	turn := 0
	asks := provide(func(_ context.Context, _ *model.Request, yield func(model.Delta, error) bool) {
		turn++
		says := [][]model.Delta{
			{call("create_artifact", m{"id": "a", "title": "A", "content": "one"})},
			{model.TextDelta("Done.")},
			{call("create_artifact", m{"id": "b", "title": "B", "content": "one"}), call("delete_artifact", m{"id": "a"})},
			{model.TextDelta("Done.")},
		}[turn-1]
		for _, d := range says {
			if !yield(d, nil) {
				return
			}
		}
		yield(model.Finish{}, nil)
	})
	b := newBench(t, asks, services("words", "eyes:image"), func(c *app.Config) {
		c.Permissions = agent.Permissions{"create_artifact": agent.Ask, "delete_artifact": agent.Ask}
		c.Store = storetest.Counted(c.Store, func(rows, _ int, most string) {
			mu.Lock()
			defer mu.Unlock()
			if rows > count.rows {
				count = readCount{rows, most}
			}
		})
	})
	ctx, c := apptest.Context(t), b.conversation()
	note := b.upload(c, "note.md", "one")
	first := b.send(c, run.Input{Text: "first", Attachments: []string{string(note.ID)}, Service: "words"})
	b.decide(first, b.question(first), artel.Always)
	first = b.ended(first)
	text := "two"
	if _, err := b.Edits.Save(ctx, app.ArtifactAt{Conversation: c, ID: note.ID}, artifact.Draft{Text: &text}); err != nil {
		t.Fatal(err)
	}
	b.lengthenAt(c, first.Reply, messages)

	in := run.Input{Text: "second", Attachments: []string{"artifact:" + string(note.ID) + "@1"}, Service: model.AutoService}
	if _, err := b.Previews.Build(ctx, c, in); err != nil {
		t.Error(err)
	}
	mu.Lock()
	count = readCount{}
	mu.Unlock()
	second := b.send(c, in)
	b.decide(second, b.question(second), artel.Allow)
	if second = b.ended(second); second.State != artel.RunDone || second.Service != "words" || b.text(c, "b", second.Reply) != "one" {
		t.Errorf("got %+v, %+v", second, second.Error)
	}
	mu.Lock()
	defer mu.Unlock()
	return count
}
