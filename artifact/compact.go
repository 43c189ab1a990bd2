// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

// condenseRows is how many edits one update takes out of a journal.
const condenseRows = 100

// CompactJournal takes the edits that were made before a time and led to a visible
// version out of the journal of an artifact, and returns how many. Every
// visible version keeps its text, and so does what a visible version says was
// its parent. The edit that is left of a run tells of all that it took. A
// journal whose conversation has an active run stays as it is, since the run
// may name what it was told. It works in short updates; readers of one state
// never wait and never notice.
func (c *Collection) CompactJournal(ctx context.Context, j store.JournalKey, before time.Time) (int, error) {
	total := 0
	for {
		var gone []int
		var kept []store.Edit
		err := c.store.View(ctx, j.Owner, func(tx store.Tx) (err error) {
			gone, kept, err = condensed(tx, j, before)
			return err
		})
		if err == nil && len(gone) > 0 {
			err = c.store.Update(ctx, j.Owner, func(tx store.Tx) error {
				if err := atRest(tx, j.Conversation); err != nil {
					return err
				}
				return tx.Journal.Compact(j.Conversation, j.Artifact, gone, kept)
			})
		}
		switch {
		case errors.Is(err, artel.NotFound), errors.Is(err, artel.Conflict):
			return total, nil // it was deleted, a run has begun, or another process is at it
		case err != nil || len(gone) == 0:
			return total, failed("artifact.Condense", string(j.Artifact), err)
		}
		total += len(gone)
	}
}

// atRest is of kind Conflict where the conversation has an active run.
func atRest(tx store.Tx, conv artel.ConversationID) error {
	r, err := tx.Runs.Active(conv)
	switch {
	case errors.Is(err, artel.NotFound):
		return nil
	case err == nil:
		return artel.Errorf(artel.Conflict, "", string(conv), "run %s is active", r.ID)
	}
	return err
}

// condensed returns the numbers of the oldest edits that can go, a few of them,
// and the edits that follow from them, as they are without them.
func condensed(tx store.Tx, j store.JournalKey, before time.Time) (gone []int, kept []store.Edit, err error) {
	if err := atRest(tx, j.Conversation); err != nil {
		return nil, nil, err
	}
	edits, err := tx.Journal.Edits(j.Conversation, store.EditQuery{Artifact: j.Artifact, Outline: true})
	if err != nil || len(edits) == 0 {
		return nil, nil, err
	}
	stays, err := staying(tx, j, edits, before)
	if err != nil {
		return nil, nil, err
	}
	goes := map[int]bool{}
	for _, e := range edits {
		if !stays[e.Number] && len(gone) < condenseRows {
			goes[e.Number] = true
			gone = append(gone, e.Number)
		}
	}
	for _, e := range edits {
		if goes[e.Number] || !goes[e.Parent] {
			continue
		}
		e, err := without(tx, j, e.Number, goes)
		if err != nil {
			return nil, nil, err
		}
		kept = append(kept, e)
	}
	return gone, kept, nil
}

// staying returns the numbers that have to stay: what is visible, its parents,
// what is new, live or the newest, and what that was made from.
func staying(tx store.Tx, j store.JournalKey, edits []store.Edit, before time.Time) (map[int]bool, error) {
	visible, err := tx.Versions.List(j.Conversation, j.Artifact)
	if err != nil && !errors.Is(err, artel.NotFound) {
		return nil, err
	}
	stays := map[int]bool{edits[len(edits)-1].Number: true}
	deletions := map[int]bool{}
	for _, v := range visible {
		stays[v.Number], stays[v.Parent] = true, true
		deletions[v.Number] = v.Update == artel.UpdateDelete
	}
	for _, e := range edits {
		if !e.Folded || !e.CreatedAt.Before(before) {
			stays[e.Number], stays[e.Parent] = true, true
		}
		if deletions[e.Number] { // restoring brings back what was there before
			stays[e.Parent] = true
		}
	}
	return stays, nil
}

// without returns an edit as it follows from the first one below it that does
// not go.
func without(tx store.Tx, j store.JournalKey, number int, goes map[int]bool) (store.Edit, error) {
	e, err := journalled(tx, j.Conversation, j.Artifact, number)
	if err != nil {
		return store.Edit{}, err
	}
	changes := e.Changes
	var base *string // the whole text that the changes are made to
	for goes[e.Parent] {
		below, err := journalled(tx, j.Conversation, j.Artifact, e.Parent)
		if err != nil {
			return store.Edit{}, err
		}
		if base == nil {
			if base = below.Text; base == nil {
				changes = slices.Concat(below.Changes, changes)
			}
		}
		e.Parent = below.Parent
	}
	switch {
	case e.Text != nil || e.IsBinary():
	case base != nil:
		text, err := edit.ApplyChanges(*base, changes)
		if err != nil {
			return store.Edit{}, artel.Errorf(artel.Internal, "", "", "the journal does not fit its base: %w", err)
		}
		e.Text, e.Changes = &text, nil
	default:
		e.Changes = changes
	}
	return e, nil
}
