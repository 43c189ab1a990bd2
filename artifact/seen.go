// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A run may replace only content that it has seen: what was there when it began,
// what it read, and what it wrote. [BeginRun] stores the versions of the beginning,
// and the journal has the run's own edits, so a process that resumes the run knows
// both. Reads are kept in memory only; after a takeover the run reads again.
//
// Each subagent has a workspace of its own and sees what the run had written when it
// began, but not what others of the run write meanwhile.

// noteHeads is the kind of the note with the heads of a run's beginning.
const noteHeads = "heads"

func headsID(run artel.RunID) string { return noteHeads + "_" + string(run) }

// BeginRun stores the versions that the artifacts on the branch of r have when it
// begins. It must be called in the transaction that starts the run, after uploads
// are claimed. A run without a call has seen nothing that it did not read or write.
// [FoldRun] removes what BeginRun stored.
func BeginRun(tx store.Tx, r artel.Run) error {
	list, err := tx.Artifacts.Heads(r.Conversation, r.Message)
	if err != nil || len(list) == 0 {
		return failed("artifact.BeginRun", string(r.ID), err)
	}
	heads := make(map[artel.ArtifactID]int, len(list))
	for _, a := range list {
		heads[a.ID] = a.Version
	}
	body, err := json.Marshal(heads)
	if err == nil {
		err = tx.Notes.Put(store.Note{
			ID: headsID(r.ID), Conversation: r.Conversation, Run: r.ID, Message: r.Message, Kind: noteHeads, Body: body, CreatedAt: r.StartedAt,
		})
	}
	return failed("artifact.BeginRun", string(r.ID), err)
}

// endRun drops what BeginRun stored.
func endRun(tx store.Tx, run artel.RunID) error {
	err := tx.Notes.Delete(headsID(run))
	if errors.Is(err, artel.NotFound) {
		return nil
	}
	return err
}

// Begin reads what the run has seen so far. It is for the beginning of a run or a
// subagent, and of their continuation: what other workspaces of the run write after
// it has to be read first. Without Begin, the first edit does it.
func (e *Editor) Begin(ctx context.Context) error {
	return failed("artifact.Begin", string(e.w.cfg.Run), e.w.loadSeen(ctx))
}

// loadSeen reads, once, what the run had seen before this workspace was opened.
func (w *Workspace) loadSeen(ctx context.Context) error {
	w.loading.Lock()
	defer w.loading.Unlock()
	if w.loaded || w.cfg.Run == "" {
		return nil
	}
	heads := map[artel.ArtifactID]int{}
	var own []store.Edit
	err := w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) error {
		n, err := tx.Notes.Get(headsID(w.cfg.Run))
		if err == nil {
			err = json.Unmarshal(n.Body, &heads)
		}
		if err != nil && !errors.Is(err, artel.NotFound) {
			return err
		}
		own, err = tx.Journal.Edits(w.cfg.Conversation, store.EditQuery{Run: w.cfg.Run, Unfolded: true, Outline: true})
		if errors.Is(err, artel.NotFound) { // the conversation, which the caller reports
			err = nil
		}
		return err
	})
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.heads, w.loaded = heads, true
	before := map[artel.ArtifactID]int{}
	for _, e := range own {
		if seen := before[e.Artifact]; writesAll(e.Update) || seen == e.Parent || seen == 0 && e.Parent <= heads[e.Artifact] {
			before[e.Artifact] = e.Number
		}
	}
	for id, n := range before {
		w.seen[id] = max(w.seen[id], n)
	}
	return nil
}

// writesAll reports whether the writer gives the whole content, and so knows it
// whatever it replaces.
func writesAll(u artel.UpdateType) bool {
	return u == artel.UpdateCreate || u == artel.UpdateRewrite
}

// requireSeen returns Conflict if a run would replace content that it has not
// seen, because that content would be lost unnoticed.
func (w *Workspace) requireSeen(base artel.Artifact, ifVersion int) error {
	if w.cfg.Run == "" || ifVersion != 0 || w.hasSeen(base) {
		return nil
	}
	return stale("somebody else has changed it meanwhile, and it is at version %d now; read it and decide anew", base.Version)
}

// hasSeen reports whether the run has seen base; loadSeen must have been called.
func (w *Workspace) hasSeen(base artel.Artifact) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if n := w.seen[base.ID]; n != 0 {
		return n == base.Version
	}
	return base.Version <= w.heads[base.ID]
}

// markSeen records a version that the writer was shown.
func (w *Workspace) markSeen(id artel.ArtifactID, number int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.seen[id] = max(w.seen[id], number)
}
