// SPDX-License-Identifier: Apache-2.0

package artifact

import (
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

// textAt returns the text of state n. All reads of text use it or replayAt.
func textAt(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, n int) (string, error) {
	text, _, _, err := replayAt(tx, conv, id, n)
	return text, err
}

// replayAt also returns the number of the state whose text is stored, and what
// reading the text costs beyond reading that one.
func replayAt(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, n int) (text string, base int, cost replayCost, err error) {
	r, err := tx.Journal.Replay(conv, id, n)
	if errors.Is(err, artel.NotFound) {
		if _, failed := version(tx, conv, id, n); failed != nil {
			err = failed
		}
	}
	if err != nil {
		return "", 0, replayCost{}, err
	}
	text, err = edit.ApplyChanges(r.Text, r.Changes)
	if err != nil {
		return "", 0, replayCost{}, artel.Errorf(artel.Internal, "", "", "the journal does not fit its base: %w", err)
	}
	return text, r.Base, replayCost{edits: r.Edits, bytes: changedBytes(r.Changes)}, nil
}

// replayCost is what is replayed to read a text.
type replayCost struct {
	edits    int
	bytes    int // of changes
	snapshot int // the edit whose text is the base, if this process has stored it only to make reads cheaper
}

func changedBytes(changes []artel.Change) int {
	n := 0
	for _, c := range changes {
		n += len(c.Old) + len(c.New)
	}
	return n
}

// after returns the cost of reading a text of size bytes after one more edit, and
// whether the journal should keep that text whole, so that the cost begins anew: after
// 64 edits, later in long texts so that an edit never writes more than 16 KB more on
// average, and after 1 MB of changes.
func (r replayCost) after(changes []artel.Change, size int) (next replayCost, whole bool) {
	const (
		maxEdits     = 64
		bytesPerEdit = 16 << 10
		maxBytes     = 1 << 20
	)
	next = replayCost{r.edits + 1, r.bytes + changedBytes(changes), r.snapshot}
	return next, next.edits >= maxEdits+size/bytesPerEdit || next.bytes >= maxBytes+size
}

// newestBefore returns the newest visible version of an artifact below number n that
// is no deletion.
func newestBefore(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, n int) (int, error) {
	list, err := tx.Versions.List(conv, id)
	if err != nil {
		return 0, err
	}
	for _, v := range slices.Backward(list) {
		if v.Number < n && v.Update != artel.UpdateDelete {
			return v.Number, nil
		}
	}
	return 0, missing("no version before its deletion is left")
}
