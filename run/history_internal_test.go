// SPDX-License-Identifier: Apache-2.0

package run

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/event"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/rows/rowstest"
)

// TestHistories: what is kept of branches is what reading them would give, whatever was added, on
// whatever branch, and muted since.
func TestHistories(t *testing.T) {
	db := rowstest.Open(t)
	events := EventWriter{Log: event.NewLog(db, event.NewNotifier()), Now: time.Now}
	const owner artel.Owner = "ann"
	update := func(t *rapid.T, fn func(tx store.Tx) error) {
		if err := db.Update(t.Context(), owner, fn); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Now().UTC()
		c := artel.Conversation{ID: artel.NewConversationID(now), CreatedAt: now, UpdatedAt: now}
		update(t, func(tx store.Tx) error { return tx.Conversations.Create(c) })
		all := []artel.MessageID{""}
		var hs histories
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				parent := rapid.SampledFrom(all).Draw(t, "parent")
				n := rapid.SampledFrom([]int{1, 2, 20}).Draw(t, "messages")
				update(t, func(tx store.Tx) error {
					for range n {
						m := artel.Message{ID: artel.NewMessageID(now), Conversation: c.ID, Parent: parent, Role: artel.RoleUser, Parts: artel.Parts{artel.Text{Text: fmt.Sprint(len(all))}}, CreatedAt: now}
						if err := tx.Messages.Create(m); err != nil {
							return err
						}
						all, parent = append(all, m.ID), m.ID
					}
					return events.Append(tx, c.ID, artel.Event{}, artel.UserInput{})
				})
			},
			"mute": func(t *rapid.T) {
				id := rapid.SampledFrom(all).Draw(t, "message")
				if id == "" {
					return
				}
				update(t, func(tx store.Tx) error {
					m, err := tx.Messages.Get(id)
					if err != nil {
						return err
					}
					if err := tx.Messages.SetMuted(id, !m.Muted); err != nil {
						return err
					}
					return events.Append(tx, c.ID, artel.Event{}, artel.MessageMuted{Message: id, Muted: !m.Muted})
				})
			},
			"": func(t *rapid.T) {
				leaf := rapid.SampledFrom(all).Draw(t, "leaf")
				if leaf == "" {
					return
				}
				err := db.View(t.Context(), owner, func(tx store.Tx) error {
					got, err := hs.branch(tx, owner, c.ID, leaf)
					if err != nil {
						return err
					}
					want, err := tx.Messages.Path(c.ID, leaf, 0)
					if err == nil && !reflect.DeepEqual(got, want) {
						t.Fatalf("kept %d messages, want %d", len(got), len(want))
					}
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
			},
		})
	})
}

// TestHistoriesAreBounded: the branches that were used last are kept, as far as they fit.
func TestHistoriesAreBounded(t *testing.T) {
	var hs histories
	for i := range 3 * maxKeptBranches {
		hs.keep(keptBranch{conversation: artel.ConversationID(fmt.Sprint(i))})
	}
	if n := len(hs.kept); n > maxKeptBranches || hs.kept[n-1].conversation != artel.ConversationID(fmt.Sprint(3*maxKeptBranches-1)) {
		t.Errorf("%d branches are kept", n)
	}
	hs.keep(keptBranch{conversation: "long", messages: []artel.Message{{Parts: artel.Parts{artel.Text{Text: string(make([]byte, maxKeptBytes+1))}}}}})
	for _, k := range hs.kept {
		if k.conversation == "long" {
			t.Error("a branch is kept that is longer than all may be")
		}
	}
}
