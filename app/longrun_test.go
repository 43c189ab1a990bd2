// SPDX-License-Identifier: Apache-2.0

package app_test

import (
	"context"
	"testing"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/app/apptest"
	"github.com/artelhq/artel/model"
	"github.com/artelhq/artel/run"
	"github.com/artelhq/artel/store"
)

// The update that ends a long run does not follow all of its messages while a person
// looks at another branch. The store of the bench fails the test otherwise.
func TestEndOfLongRunOnAnotherBranch(t *testing.T) {
	asked := make(chan struct{}, 9)
	b := newBench(t, provide(func(ctx context.Context, r *model.Request, yield func(model.Delta, error) bool) {
		asked <- struct{}{}
		<-ctx.Done()
		yield(nil, ctx.Err())
	}))
	c := b.conversation()
	r := b.send(c, run.Input{Text: "Go."})
	<-asked
	var last artel.MessageID
	b.store(func(tx store.Tx) error { // what the run would have written
		last = r.Message
		for i := range 1200 {
			m := artel.Message{
				ID: artel.NewMessageID(r.StartedAt), Conversation: c, Parent: last, Role: artel.RoleAssistant, Run: r.ID, CreatedAt: r.StartedAt,
				Parts: artel.Parts{artel.Text{Text: "a step"}},
			}
			if i%2 == 1 {
				m.Role = artel.RoleUser
			}
			if err := tx.Messages.Create(m); err != nil {
				return err
			}
			last = m.ID
		}
		return nil
	})
	b.lengthen(c, 1) // another branch
	if _, err := b.Runs.Inject(apptest.Context(t), r.ID, "And this."); err != nil {
		t.Fatal(err)
	}
	if r, err := b.Runs.Cancel(apptest.Context(t), r.ID); err != nil || r.State != artel.RunCancelled {
		t.Errorf("it ended as %s, %v", r.State, err)
	}
	b.store(func(tx store.Tx) error {
		list, err := tx.Messages.Children(c, last)
		if err != nil || len(list[last]) != 1 {
			t.Fatalf("behind the end of the run are %v, %v", list, err)
		}
		said, err := tx.Messages.Get(list[last][0])
		if artel.TextOf(said.Parts) != "And this." {
			t.Errorf("the run ends with %+v", said)
		}
		return err
	})
}
