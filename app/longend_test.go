// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// lengthen adds messages below a new root, and makes the last the end of the active
// branch.
func (b *bench) lengthen(c artel.ConversationID, n int) (last artel.MessageID) {
	b.t.Helper()
	return b.lengthenAt(c, "", n)
}

// lengthenAt is lengthen below a message.
func (b *bench) lengthenAt(c artel.ConversationID, at artel.MessageID, n int) (last artel.MessageID) {
	b.t.Helper()
	now := time.Now()
	b.store(func(tx store.Tx) error {
		last = at
		for i := range n {
			m := artel.Message{
				ID: artel.NewMessageID(now), Conversation: c, Parent: last, Role: artel.RoleUser, CreatedAt: now,
				Parts: artel.Parts{artel.Text{Text: fmt.Sprintf("message %d", i)}},
			}
			if i%2 == 1 {
				m.Role = artel.RoleAssistant
			}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			last = m.ID
		}
		found, err := tx.Conversations.Get(c)
		if err != nil {
			return err
		}
		found.Leaf = last
		return tx.Conversations.Update(found)
	})
	return last
}

// The update that ends a run reads what the run wrote, and not the conversation
// before it, also when a person looks at another branch meanwhile. The store of the
// bench fails the test otherwise.
func TestEndOfRunInLongConversation(t *testing.T) {
	for _, elsewhere := range []bool{false, true} {
		asked := make(chan struct{}, 9)
		b := newBench(t, provide(func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
			if !slices.ContainsFunc(r.Messages, func(m model.Message) bool { return len(artel.ResultsOf(m.Parts)) > 0 }) {
				_ = yield(call("list_artifacts", m{}), nil) && yield(model.Finish{Reason: model.StopTools}, nil)
				return
			}
			asked <- struct{}{}
			<-ctx.Done()
			yield(nil, ctx.Err())
		}))
		c := b.conversation()
		last := b.lengthen(c, 1200)
		r := b.send(c, run.Input{Text: "Go."})
		<-asked
		if elsewhere {
			b.lengthen(c, 1) // another branch
			if _, err := b.Runs.Inject(apptest.Context(t), r.ID, "And this."); err != nil {
				t.Fatal(err)
			}
		}
		r, err := b.Runs.Cancel(apptest.Context(t), r.ID)
		if err != nil || r.State != artel.RunCancelled {
			t.Errorf("it ended as %s, %v", r.State, err)
		}
		var said artel.Message
		b.store(func(tx store.Tx) error {
			list, err := tx.Messages.Children(c, last)
			for err == nil && len(list[last]) > 0 { // to the end of the run's branch
				last = list[last][0]
				if said, err = tx.Messages.Get(last); err == nil {
					list, err = tx.Messages.Children(c, last)
				}
			}
			return err
		})
		if elsewhere && artel.TextOf(said.Parts) != "And this." || !elsewhere && said.Role != artel.RoleTool {
			t.Errorf("the branch of the run ends with %+v", said)
		}
	}
}

// TestSwitchInLongConversation: the search for the end of a branch reads all
// messages, and so is not in the update, which may read few rows.
func TestSwitchInLongConversation(t *testing.T) {
	b := newBench(t, nil)
	c := b.conversation()
	last := b.lengthen(c, 1200)
	var first artel.MessageID
	b.store(func(tx store.Tx) error {
		list, err := tx.Messages.Children(c, "")
		first = list[""][0]
		return err
	})
	b.lengthen(c, 1) // another branch
	if found, err := b.Conversations.Switch(apptest.Context(t), c, first); err != nil || found.Leaf != last {
		t.Errorf("leaf %s, %v; want %s", found.Leaf, err, last)
	}
}
