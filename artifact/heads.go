// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Inventories are made for each model call, and little changes in between. So
// the heads of a branch are remembered under the store's mark, and only what
// has changed since is asked for.

// A branchKey names a branch. Its messages never change, so that only its
// artifacts can.
type branchKey struct {
	owner artel.Owner
	conv  artel.ConversationID
	at    artel.MessageID
}

// A branch is its heads by id, deleted ones too, at a mark. It never changes.
type branch struct {
	mark  int64
	heads []artel.Artifact
}

const (
	maxRemembered = 100_000 // heads, over all branches, before all are forgotten
	maxRefreshed  = 500     // heads that are asked for one by one
)

// heads returns the heads of a branch by id: those that are deleted, or those
// that are not. It must be called in a view, whose state is committed.
func (c *Collection) heads(tx store.Tx, owner artel.Owner, conv artel.ConversationID, at artel.MessageID, deleted bool) ([]artel.Artifact, error) {
	all, err := c.allHeads(tx, branchKey{owner, conv, at})
	if err != nil {
		return nil, err
	}
	live, err := tx.Artifacts.Live(conv, at)
	if err != nil {
		return nil, err
	}
	out := make([]artel.Artifact, 0, len(all)+len(live))
	for _, a := range all {
		for len(live) > 0 && live[0].ID < a.ID {
			out, live = append(out, live[0]), live[1:]
		}
		if len(live) > 0 && live[0].ID == a.ID {
			if live[0].Version > a.Version {
				a = live[0]
			}
			live = live[1:]
		}
		out = append(out, a)
	}
	out = append(out, live...)
	return slices.DeleteFunc(out, func(a artel.Artifact) bool { return a.Deleted != deleted }), nil
}

// allHeads returns the heads of a branch, perhaps without what is live.
func (c *Collection) allHeads(tx store.Tx, key branchKey) ([]artel.Artifact, error) {
	c.mu.Lock()
	b, ok := c.branches[key]
	c.mu.Unlock()
	after := int64(math.MaxInt64)
	if ok {
		after = b.mark
	}
	changed, mark, err := tx.Artifacts.Changed(key.conv, after)
	switch {
	case err != nil:
		return nil, err
	case ok && mark == b.mark:
		return b.heads, nil
	case !ok, mark < b.mark, len(changed) > maxRefreshed:
		// Of a view on an older state than the one that is remembered, nothing
		// can be said either.
		b.heads, err = tx.Artifacts.Heads(key.conv, key.at)
	default:
		b.heads, err = refreshed(tx, key, b.heads, changed)
	}
	if err != nil {
		return nil, err
	}
	c.keepBranch(key, branch{mark, b.heads})
	return b.heads, nil
}

// refreshed returns heads with those that have changed as they are now.
func refreshed(tx store.Tx, key branchKey, heads []artel.Artifact, changed []artel.ArtifactID) ([]artel.Artifact, error) {
	heads = slices.Clone(heads)
	for _, id := range changed {
		i, there := slices.BinarySearchFunc(heads, id, func(a artel.Artifact, id artel.ArtifactID) int { return cmp.Compare(a.ID, id) })
		a, err := tx.Artifacts.Head(key.conv, id, key.at)
		switch {
		case errors.Is(err, artel.NotFound) && there:
			heads = slices.Delete(heads, i, i+1)
		case errors.Is(err, artel.NotFound):
		case err != nil:
			return nil, err
		case there:
			heads[i] = a
		default:
			heads = slices.Insert(heads, i, a)
		}
	}
	return heads, nil
}

// keepBranch remembers a branch, unless something newer is known.
func (c *Collection) keepBranch(key branchKey, b branch) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, ok := c.branches[key]
	if ok && before.mark > b.mark {
		return
	}
	c.remembered += len(b.heads) - len(before.heads)
	if c.remembered > maxRemembered {
		clear(c.branches)
		c.remembered = len(b.heads)
	}
	c.branches[key] = b
}
