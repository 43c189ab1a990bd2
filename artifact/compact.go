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

// compactRows is the number of edits that one update removes.
const compactRows = 100

// CompactJournal removes folded edits made before a time from the journal of an
// artifact, and returns their number. Visible versions and their parents keep
// their texts. The remaining edit of a run contains all removed changes. Nothing
// is removed while the conversation has an active run, because the run may refer
// to any number. CompactJournal works in short updates and does not block views.
func (c *Collection) CompactJournal(ctx context.Context, j store.JournalKey, before time.Time) (int, error) {
	total := 0
	for {
		var remove []int
		var rewritten []store.Edit
		err := c.store.View(ctx, j.Owner, func(tx store.Tx) (err error) {
			remove, rewritten, err = planCompaction(tx, j, before)
			return err
		})
		if err == nil && len(remove) > 0 {
			err = c.store.Update(ctx, j.Owner, func(tx store.Tx) error {
				if err := requireIdle(tx, j.Conversation); err != nil {
					return err
				}
				return tx.Journal.Compact(j.Conversation, j.Artifact, remove, rewritten)
			})
		}
		switch {
		case errors.Is(err, artel.NotFound), errors.Is(err, artel.Conflict):
			return total, nil // deleted, a run has begun, or another process compacts it
		case err != nil || len(remove) == 0:
			return total, failed("artifact.Condense", string(j.Artifact), err)
		}
		total += len(remove)
	}
}

// requireIdle returns Conflict if the conversation has an active run.
func requireIdle(tx store.Tx, conv artel.ConversationID) error {
	r, err := tx.Runs.Active(conv)
	switch {
	case errors.Is(err, artel.NotFound):
		return nil
	case err == nil:
		return artel.Errorf(artel.Conflict, "", string(conv), "run %s is active", r.ID)
	}
	return err
}

// planCompaction returns the numbers of the oldest edits to remove, at most
// compactRows, and their remaining children, rewritten to follow from what is
// left.
func planCompaction(tx store.Tx, j store.JournalKey, before time.Time) (remove []int, rewritten []store.Edit, err error) {
	if err := requireIdle(tx, j.Conversation); err != nil {
		return nil, nil, err
	}
	edits, err := tx.Journal.Edits(j.Conversation, store.EditQuery{Artifact: j.Artifact, Outline: true})
	if err != nil || len(edits) == 0 {
		return nil, nil, err
	}
	needed, err := neededEdits(tx, j, edits, before)
	if err != nil {
		return nil, nil, err
	}
	removed := map[int]bool{}
	for _, e := range edits {
		if !needed[e.Number] && len(remove) < compactRows {
			removed[e.Number] = true
			remove = append(remove, e.Number)
		}
	}
	for _, e := range edits {
		if removed[e.Number] || !removed[e.Parent] {
			continue
		}
		e, err := without(tx, j, e.Number, removed)
		if err != nil {
			return nil, nil, err
		}
		rewritten = append(rewritten, e)
	}
	return remove, rewritten, nil
}

// neededEdits returns the numbers of the edits that must stay: visible versions,
// edits that are new or live, the newest edit, and the parents of all of these.
func neededEdits(tx store.Tx, j store.JournalKey, edits []store.Edit, before time.Time) (map[int]bool, error) {
	visible, err := tx.Versions.List(j.Conversation, j.Artifact)
	if err != nil && !errors.Is(err, artel.NotFound) {
		return nil, err
	}
	needed := map[int]bool{edits[len(edits)-1].Number: true}
	deletions := map[int]bool{}
	for _, v := range visible {
		needed[v.Number], needed[v.Parent] = true, true
		deletions[v.Number] = v.Update == artel.UpdateDelete
	}
	for _, e := range edits {
		if !e.Folded || !e.CreatedAt.Before(before) {
			needed[e.Number], needed[e.Parent] = true, true
		}
		if deletions[e.Number] { // restoring needs the state before the deletion
			needed[e.Parent] = true
		}
	}
	return needed, nil
}

// without returns an edit rewritten to follow from its nearest ancestor that is
// not removed.
func without(tx store.Tx, j store.JournalKey, number int, removed map[int]bool) (store.Edit, error) {
	e, err := journalled(tx, j.Conversation, j.Artifact, number)
	if err != nil {
		return store.Edit{}, err
	}
	changes := e.Changes
	var base *string // the text to which changes apply
	for removed[e.Parent] {
		parent, err := journalled(tx, j.Conversation, j.Artifact, e.Parent)
		if err != nil {
			return store.Edit{}, err
		}
		if base == nil {
			if base = parent.Text; base == nil {
				changes = slices.Concat(parent.Changes, changes)
			}
		}
		e.Parent = parent.Parent
	}
	switch {
	case e.IsBinary():
	case e.Text != nil:
		switch {
		case len(e.Changes) == 0: // the text never followed from them
		case base != nil: // it does not follow from the new parent
			e.Changes = nil
		default:
			e.Changes = changes
		}
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
