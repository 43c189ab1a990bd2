// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"cmp"
	"errors"
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

// A state is a numbered state of an artifact: a visible version, or an edit that is
// only in the journal.
type state struct {
	artel.Version
	visible bool
}

// version returns state n of an artifact.
func version(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, n int) (state, error) {
	if n < 1 {
		return state{}, missing("versions are numbered from 1")
	}
	v, err := tx.Versions.Get(conv, id, n)
	if err == nil {
		return state{v, true}, nil
	}
	if !errors.Is(err, artel.NotFound) {
		return state{}, err
	}
	e, err := journalled(tx, conv, id, n)
	return state{e.Version, false}, err
}

// journalled returns edit n of an artifact.
func journalled(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, n int) (store.Edit, error) {
	edits, err := tx.Journal.Edits(conv, store.EditQuery{Artifact: id, Number: n})
	switch {
	case errors.Is(err, artel.NotFound): // the conversation
		return store.Edit{}, missing("there is no such artifact here")
	case err != nil:
		return store.Edit{}, err
	case len(edits) == 1 && edits[0].Digest == "":
		return store.Edit{}, missing("version %d was removed: a tool had left it, and nothing referred to it", n)
	case len(edits) == 1:
		return edits[0], nil
	}
	used, err := tx.Artifacts.Exists(conv, id)
	if err == nil && !used {
		return store.Edit{}, missing("there is no such artifact here")
	}
	if err == nil {
		err = missing("there is no version %d of it", n)
	}
	return store.Edit{}, err
}

// versions returns the visible versions of an artifact, which may be deleted.
func versions(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID) ([]artel.Version, error) {
	list, err := tx.Versions.List(conv, id)
	if errors.Is(err, artel.NotFound) {
		err = missing("there is no such artifact here")
	}
	return list, err
}

// textOf returns the text of v, and Unsupported for binary content.
func textOf(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, v artel.Version) (string, error) {
	if v.IsBinary() {
		return "", artel.Errorf(artel.Unsupported, "", "", "version %d is binary (%s) and has no text", v.Number, v.MediaType)
	}
	return textAt(tx, conv, id, v.Number)
}

// textAt returns the text of state n. If it is not stored, textAt takes the
// nearest ancestor with a stored text and replays the edits since. All reads of
// text use it.
func textAt(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, n int) (string, error) {
	j := journal{tx: tx, conv: conv, id: id}
	var replay []store.Edit
	for {
		text, err := tx.Versions.Text(conv, id, n)
		if err == nil {
			return replayed(text, replay)
		}
		if !errors.Is(err, artel.NotFound) {
			return "", err
		}
		e, err := j.edit(n)
		if err != nil {
			return "", err
		}
		if e.Text != nil {
			return replayed(*e.Text, replay)
		}
		if e.Parent < 1 || e.Parent >= n {
			return "", artel.Errorf(artel.Internal, "", "", "the journal has no text for edit %d", n)
		}
		replay = append(replay, e)
		n = e.Parent
	}
}

// A journal looks up the ancestors of an edit. Chains are usually one or two long;
// for longer ones it reads all unfolded edits at once.
type journal struct {
	tx    store.Tx
	conv  artel.ConversationID
	id    artel.ArtifactID
	asked int
	edits map[int]store.Edit // unfolded edits; nil: not read yet
}

func (j *journal) edit(n int) (store.Edit, error) {
	const oneByOne = 2
	if j.asked++; j.asked > oneByOne && j.edits == nil {
		edits, err := j.tx.Journal.Edits(j.conv, store.EditQuery{Artifact: j.id, Unfolded: true})
		if err != nil {
			return store.Edit{}, err
		}
		j.edits = make(map[int]store.Edit, len(edits))
		for _, e := range edits {
			j.edits[e.Number] = e
		}
	}
	if e, ok := j.edits[n]; ok {
		return e, nil
	}
	return journalled(j.tx, j.conv, j.id, n)
}

// replayed applies edits, given newest first, to their base text.
func replayed(text string, edits []store.Edit) (string, error) {
	var changes []artel.Change
	for _, e := range slices.Backward(edits) {
		changes = append(changes, e.Changes...)
	}
	text, err := edit.ApplyChanges(text, changes)
	if err != nil {
		return "", artel.Errorf(artel.Internal, "", "", "the journal does not fit its base: %w", err)
	}
	return text, nil
}

// FoldRun makes one visible version for each artifact with unfolded edits of the
// run, under the number of the last edit. It must be called in the transaction
// that ends the run, or that finishes it after a crash. It is idempotent. The
// empty run stands for edits outside any run, each of which becomes a version.
func FoldRun(tx store.Tx, conv artel.ConversationID, run artel.RunID) error {
	edits, err := tx.Journal.Edits(conv, store.EditQuery{Run: run, Unfolded: true})
	if err != nil {
		return failed("artifact.FoldRun", string(run), err)
	}
	edits = slices.DeleteFunc(edits, func(e store.Edit) bool { return e.Run != run })
	slices.SortStableFunc(edits, func(a, b store.Edit) int {
		return cmp.Or(cmp.Compare(a.Artifact, b.Artifact), cmp.Compare(a.Number, b.Number))
	})
	for len(edits) > 0 {
		n := 1
		for run != "" && n < len(edits) && edits[n].Artifact == edits[0].Artifact {
			n++
		}
		if err := fold(tx, conv, edits[:n]); err != nil {
			return failed("artifact.FoldRun", string(edits[0].Artifact), err)
		}
		edits = edits[n:]
	}
	return nil
}

// fold makes one visible version of an artifact's edits, which are sorted by
// number.
func fold(tx store.Tx, conv artel.ConversationID, edits []store.Edit) error {
	last := edits[len(edits)-1]
	v := last.Version
	v.Parent = edits[0].Parent
	v.Changes = nil
	for _, e := range edits {
		v.Changes = append(v.Changes, e.Changes...)
		if strength(e.Update) > strength(v.Update) && v.Update != artel.UpdateDelete {
			v.Update = e.Update
		}
	}
	if v.IsBinary() {
		return foldVersion(tx, conv, last.Artifact, v, nil)
	}
	text, err := textAt(tx, conv, last.Artifact, last.Number)
	if err != nil {
		return err
	}
	v.Preview = artel.Beginning(text, artel.PreviewChars)
	return foldVersion(tx, conv, last.Artifact, v, &text)
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
