// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// FoldRun makes one visible version for each artifact with unfolded edits of the
// run, under the number of the last edit. It computes the versions and their texts
// first, outside of any update, and then calls commit, which must call fold in the
// transaction that ends the run, or that finishes it after a crash. If the run has
// made an edit meanwhile, which only another process can do, fold fails and all of
// this is repeated. FoldRun is idempotent. The empty run stands for edits outside any
// run, each of which becomes a version.
func FoldRun(ctx context.Context, s store.Store, owner artel.Owner, conv artel.ConversationID, run artel.RunID,
	commit func(fold func(store.Tx) error) error,
) error {
	for {
		var p foldPlan
		err := s.View(ctx, owner, func(tx store.Tx) (err error) {
			p, err = planFold(tx, conv, run)
			return err
		})
		if err == nil {
			err = p.foldInner(ctx, s, owner)
		}
		if err != nil {
			return failed("artifact.FoldRun", string(run), err)
		}
		if err := commit(p.fold); !errors.Is(err, errMoved) {
			return err
		}
	}
}

// A foldPlan has the versions that a run will leave.
type foldPlan struct {
	conv     artel.ConversationID
	run      artel.RunID
	versions []foldedVersion
}

// A foldedVersion is one version that is made of edits.
type foldedVersion struct {
	id artel.ArtifactID
	artel.Version
	text  *string // nil: binary, or beyond maxFoldTexts
	first int     // number of the first edit
	edits int

	snapshot int // an edit with a text that follows from its changes; 0: none
}

// foldRows is how many edits one update marks as folded, and foldLast how many are
// left to the update that also writes the text. foldTogether updates are begun at
// once: they share a commit with each other and with updates of others, which
// otherwise alternate with them.
const (
	foldRows     = 256
	foldLast     = 16
	foldTogether = 2
)

// foldInner marks most edits of long chains as folded, in short updates. If the
// process dies after it, the next FoldRun finds the first and the last edit unfolded.
func (p foldPlan) foldInner(ctx context.Context, s store.Store, owner artel.Owner) error {
	var drops errgroup.Group
	drops.SetLimit(foldTogether)
	for _, v := range p.versions {
		if v.snapshot != 0 { // the version will have a text
			drops.Go(func() error {
				return s.Update(ctx, owner, func(tx store.Tx) error { return p.dropText(tx, v) })
			})
		}
	}
	if err := drops.Wait(); err != nil { // before the edits with these texts are folded
		return err
	}
	var g errgroup.Group
	g.SetLimit(foldTogether)
	for _, v := range p.versions {
		for left := v.edits - foldLast; left > 0; left -= foldRows {
			g.Go(func() error {
				return s.Update(ctx, owner, func(tx store.Tx) error {
					_, err := tx.Journal.FoldInner(p.conv, v.id, p.run, v.first, v.Number, min(left, foldRows))
					return err
				})
			})
		}
	}
	return g.Wait()
}

// dropText drops the text of an edit that follows from its changes. If another process
// has folded the edit, it may be a visible version, which keeps its text.
func (p foldPlan) dropText(tx store.Tx, v foldedVersion) error {
	left, err := tx.Journal.Edits(p.conv, store.EditQuery{Artifact: v.id, Number: v.snapshot, Unfolded: true, Outline: true})
	if err != nil || len(left) == 0 {
		return err
	}
	return tx.Journal.DropText(p.conv, v.id, v.snapshot)
}

// maxFoldTexts is how many bytes of texts a plan keeps. Texts beyond it are read
// again when they are folded.
const maxFoldTexts = 256 << 20

func planFold(tx store.Tx, conv artel.ConversationID, run artel.RunID) (foldPlan, error) {
	p := foldPlan{conv: conv, run: run}
	edits, err := tx.Journal.Edits(conv, store.EditQuery{Run: run, Unfolded: true, Spans: true})
	if err != nil {
		return p, err
	}
	edits = slices.DeleteFunc(edits, func(e store.Edit) bool { return e.Run != run })
	kept := 0
	for len(edits) > 0 {
		n := 1
		for run != "" && n < len(edits) && edits[n].Artifact == edits[0].Artifact {
			n++
		}
		v, err := merged(tx, conv, edits[:n])
		if err != nil {
			return p, err
		}
		if !v.IsBinary() {
			text, base, _, err := replayAt(tx, conv, v.id, v.Number)
			if err != nil {
				return p, failed("artifact.FoldRun", string(v.id), err)
			}
			if slices.ContainsFunc(edits[:n], func(e store.Edit) bool { return e.Number == base && len(e.Changes) > 0 }) {
				v.snapshot = base
			}
			v.Preview = artel.Beginning(text, artel.PreviewChars)
			if kept += len(text); kept <= maxFoldTexts {
				v.text = &text
			}
		}
		p.versions = append(p.versions, v)
		edits = edits[n:]
	}
	return p, nil
}

// merged returns the version that an artifact's edits make, which are sorted by
// number.
func merged(tx store.Tx, conv artel.ConversationID, edits []store.Edit) (foldedVersion, error) {
	first, end := edits[0], edits[len(edits)-1]
	if end.Number-first.Number >= len(edits) { // between them are edits of others, or those that foldInner has marked
		all, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: first.Artifact, Run: first.Run, After: first.Number - 1, Spans: true})
		if err != nil {
			return foldedVersion{}, err
		}
		edits = slices.DeleteFunc(all, func(e store.Edit) bool { return e.Run != first.Run || e.Number > end.Number })
	}
	last, err := journalled(tx, conv, end.Artifact, end.Number)
	if err != nil {
		return foldedVersion{}, err
	}
	v := foldedVersion{id: last.Artifact, Version: last.Version, first: first.Number, edits: len(edits)}
	v.Parent = first.Parent
	v.Changes = nil
	for _, e := range edits {
		v.Changes = append(v.Changes, e.Changes...)
		if strength(e.Update) > strength(v.Update) && v.Update != artel.UpdateDelete {
			v.Update = e.Update
		}
	}
	return v, nil
}

// fold makes the planned versions. It is errMoved if the run has other unfolded
// edits than those of the plan. Its cost does not grow with the length of the
// journal or of the texts, beyond writing them.
func (p foldPlan) fold(tx store.Tx) error {
	for _, v := range p.versions {
		text := v.text
		if text == nil && !v.IsBinary() {
			s, err := textAt(tx, p.conv, v.id, v.Number)
			if err != nil {
				return failed("artifact.FoldRun", string(v.id), err)
			}
			text = &s
		}
		err := foldVersion(tx, p.conv, v.id, v.Version, text)
		if errors.Is(err, artel.Conflict) { // it is folded already
			return errMoved
		}
		if err != nil {
			return failed("artifact.FoldRun", string(v.id), err)
		}
	}
	left, err := tx.Journal.Edits(p.conv, store.EditQuery{Run: p.run, Unfolded: true, Outline: true})
	if err != nil {
		return failed("artifact.FoldRun", string(p.run), err)
	}
	if slices.ContainsFunc(left, func(e store.Edit) bool { return e.Run == p.run }) {
		return errMoved
	}
	return failed("artifact.FoldRun", string(p.run), endRun(tx, p.run))
}

// snapshotInterval is the approximate distance between stored texts on a branch,
// and so the number of edits replayed to read an old version. The newest version
// always has its text.
const snapshotInterval = 32

// foldVersion makes v visible. It drops the text of the previous version if the
// journal can rebuild it in a few steps.
func foldVersion(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, v artel.Version, text *string) error {
	if err := tx.Journal.Fold(conv, id, v, text); err != nil || text == nil || v.Parent == 0 {
		return err
	}
	old, err := tx.Versions.Get(conv, id, v.Parent)
	if errors.Is(err, artel.NotFound) { // only journalled
		return nil
	}
	if err != nil || old.IsBinary() || old.Parent/snapshotInterval != old.Number/snapshotInterval {
		return err
	}
	e, err := journalled(tx, conv, id, old.Number)
	if err != nil || !rebuildable(e) {
		return err
	}
	return tx.Journal.DropText(conv, id, old.Number)
}

// rebuildable reports whether the journal holds the text of e: whole, or as
// changes to the text of its parent.
func rebuildable(e store.Edit) bool {
	switch {
	case e.Text != nil, len(e.Changes) > 0:
		return true
	case e.Update == artel.UpdateRename, e.Update == artel.UpdateDelete:
		return e.Parent > 0
	}
	return false
}

// strength orders update types. A version gets the strongest type of its edits,
// or UpdateDelete if the last one deletes.
func strength(u artel.UpdateType) int {
	return slices.Index([]artel.UpdateType{
		artel.UpdateDelete, artel.UpdateRename, artel.UpdateExact, artel.UpdateFuzzy,
		artel.UpdateRewrite, artel.UpdateRestore, artel.UpdateCreate,
	}, u)
}
