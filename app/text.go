// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"fmt"

	"github.com/artelhq/artel"
)

// Text returns what there is to read of an artifact: of a document the text
// that was taken out of it, as Markdown, and of a text itself. Number 0 is the
// head of a branch with the edits of an active run, any other a visible
// version. Nothing of it is kept with the artifact.
func (as *Artifacts) Text(ctx context.Context, c artel.ConversationID, id artel.ArtifactID, number int, at artel.MessageID) (Derived, error) {
	at, err := as.core.branch(ctx, c, at)
	if err != nil {
		return Derived{}, err
	}
	d, err := as.core.artifacts.Derived(ctx, artel.OwnerOf(ctx), artel.Ref{Conversation: c, Artifact: id, Version: number}, at)
	if err == nil && number > 0 && !d.Visible {
		err = &artel.Error{
			Op: "app.Artifacts.Text", Subject: string(id), Kind: artel.NotFound, Code: artel.CodeArtifactNotFound,
			Err: fmt.Errorf("version %d is not among the visible ones", number),
		}
	}
	if err != nil {
		return Derived{}, err
	}
	return d, nil
}
