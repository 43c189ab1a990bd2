// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// RestoreTx makes a version that is as version number was, in somebody's
// transaction: it has no message, so that one on another branch can claim it.
// It is of kind NotFound where there is no such version, or where that is a
// deletion.
func (c *Collection) RestoreTx(tx store.Tx, conv artel.ConversationID, id artel.ArtifactID, number int) (artel.Artifact, error) {
	const op = "artifact.Again"
	then, err := version(tx, conv, id, number)
	if err != nil {
		return artel.Artifact{}, failed(op, string(id), err)
	}
	if then.Update == artel.UpdateDelete {
		return artel.Artifact{}, artel.Errorf(artel.NotFound, op, string(id), "version %d is its deletion", number)
	}
	var text *string
	if !then.IsBinary() {
		s, err := textAt(tx, conv, id, number)
		if err != nil {
			return artel.Artifact{}, failed(op, string(id), err)
		}
		text = &s
	}
	v := then.Version
	v.Parent, v.Message, v.Run, v.Changes = number, "", "", nil
	v.Author, v.Update, v.CreatedAt = AuthorUser, artel.UpdateRestore, c.now()
	if v.Number, err = tx.Journal.Append(conv, id, v, nil); err == nil {
		err = tx.Journal.Fold(conv, id, v, text)
	}
	return v.Artifact(conv, id, v.CreatedAt), failed(op, string(id), err)
}
