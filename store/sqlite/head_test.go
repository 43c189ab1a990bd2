// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/sqlite"
)

// TestHeadOnEveryBranch compares the head at each message of random trees with the
// newest state whose message is on the path. States are in both tables, in any order
// of their messages.
func TestHeadOnEveryBranch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		s := open(t, sqlite.Memory, sqlite.Options{})
		c, now := conversation(t, s), time.Now()
		tree := []artel.MessageID{""} // the root of all branches first
		of := []artel.MessageID{}     // the messages of the states, in the order of their numbers
		update(t, s, func(tx store.Tx) error {
			for range 30 {
				m := artel.Message{ID: artel.NewMessageID(now), Conversation: c, Parent: tree[max(0, len(tree)-1-r.IntN(4))], Role: artel.RoleUser, CreatedAt: now}
				if err := tx.Messages.Create(m); err != nil {
					return err
				}
				tree = append(tree, m.ID)
			}
			for n := range 12 {
				v := artel.Version{Message: tree[r.IntN(len(tree))], CreatedAt: now, Update: artel.UpdateRewrite}
				if n > 0 && v.Message == "" && r.IntN(2) == 0 {
					v.Message = artel.NewMessageID(now) // of no message
				}
				number, err := tx.Journal.Append(c, "doc", v, nil)
				if err != nil {
					return err
				}
				of = append(of, v.Message)
				if v.Number = number; r.IntN(2) == 0 {
					text := "text"
					if err := tx.Journal.Fold(c, "doc", v, &text); err != nil {
						return err
					}
				}
			}
			return nil
		})
		err := s.View(t.Context(), artel.Local, func(tx store.Tx) error {
			for _, at := range tree {
				path, err := tx.Messages.Path(c, at, 0)
				if err != nil {
					return err
				}
				on := map[artel.MessageID]bool{"": true}
				for _, m := range path {
					on[m.ID] = true
				}
				want := 0
				for n, m := range of {
					if on[m] {
						want = n + 1
					}
				}
				head, err := tx.Artifacts.Head(c, "doc", at)
				if head.Version != want || (want == 0) != (artel.KindOf(err) == artel.NotFound) || want > 0 && err != nil {
					t.Errorf("at %s: version %d, %v; want %d", at, head.Version, err, want)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
