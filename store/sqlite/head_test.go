// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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

// TestHeadsOfGrowingBranches compares the heads of several artifacts at messages of a tree
// that grows, in which what is known of branches is used again, with the newest states
// whose messages are on the path.
func TestHeadsOfGrowingBranches(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := open(t, filepath.Join(t.TempDir(), "rows.db"), sqlite.Options{})
	c, now := conversation(t, s), time.Now()
	tree := []artel.MessageID{""}
	parent := map[artel.MessageID]artel.MessageID{}
	of := map[artel.ArtifactID][]artel.MessageID{}
	check := func(tx store.Tx) error {
		for range 8 {
			at := tree[len(tree)-1-r.IntN(min(len(tree), 400))]
			on := map[artel.MessageID]bool{"": true}
			for m := at; m != ""; m = parent[m] {
				on[m] = true
			}
			want := map[artel.ArtifactID]int{}
			for id, states := range of {
				for n, m := range states {
					if on[m] {
						want[id] = n + 1
					}
				}
				head, err := tx.Artifacts.Head(c, id, at)
				if head.Version != want[id] || (want[id] == 0) != (artel.KindOf(err) == artel.NotFound) || want[id] > 0 && err != nil {
					t.Errorf("%s at %s: version %d, %v; want %d", id, at, head.Version, err, want[id])
				}
			}
			heads, err := tx.Artifacts.Heads(c, at)
			if err != nil {
				return err
			}
			got := map[artel.ArtifactID]int{}
			for _, a := range heads {
				got[a.ID] = a.Version
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("heads at %s: -want +got\n%s", at, diff)
			}
		}
		return nil
	}
	for range 4 {
		update(t, s, func(tx store.Tx) error {
			for range 300 {
				m := artel.Message{ID: artel.NewMessageID(now), Conversation: c, Parent: tree[max(0, len(tree)-1-r.IntN(3))], Role: artel.RoleUser, CreatedAt: now}
				if err := tx.Messages.Create(m); err != nil {
					return err
				}
				tree, parent[m.ID] = append(tree, m.ID), m.Parent
			}
			for range 10 {
				id := artel.ArtifactID(fmt.Sprintf("doc_%d", r.IntN(8)))
				v, text := artel.Version{Message: tree[r.IntN(len(tree))], CreatedAt: now, Update: artel.UpdateRewrite}, "text"
				var err error
				if v.Number, err = tx.Journal.Append(c, id, v, nil); err == nil {
					err = tx.Journal.Fold(c, id, v, &text)
				}
				if err != nil {
					return err
				}
				of[id] = append(of[id], v.Message)
			}
			return nil
		})
		if err := s.View(t.Context(), artel.Local, check); err != nil {
			t.Fatal(err)
		}
		update(t, s, check)
		if err := s.View(t.Context(), artel.Local, check); err != nil {
			t.Fatal(err)
		}
	}
}
