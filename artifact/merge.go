// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"fmt"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/artifact/diff"
	"github.com/artelhq/artel/artifact/edit"
	"github.com/artelhq/artel/store"
)

// Merge makes the next version from a text that is based on version base, although that is
// not the newest any more: it merges the changes of both by line. If both changed the
// same lines, nothing is written, and the error has code [CodeStale] and a [*Stale] in its
// chain. The writer has not seen the result. A text that changes nothing makes no version.
func (e *Editor) Merge(ctx context.Context, id artel.ArtifactID, base int, text string) (artel.Artifact, error) {
	id = normal(id)
	a, err := e.w.merge(ctx, id, base, text)
	return a, failed("artifact.Merge", artel.Shorten(string(id), 80), err)
}

func (w *Workspace) merge(ctx context.Context, id artel.ArtifactID, base int, text string) (artel.Artifact, error) {
	if err := w.checkText(text); err != nil {
		return artel.Artifact{}, err
	}
	before, err := w.textOfVersion(ctx, id, base)
	if err != nil {
		return artel.Artifact{}, err
	}
	var same artel.Artifact
	a, err := w.editText(ctx, id, 0, func(head artel.Artifact, doc *edit.Document) (written, error) {
		merged, err := diff.Merge(ctx, before, text, doc.Text(), diff.MergeOptions{
			Mine: "yours", Base: fmt.Sprintf("version %d", base), Theirs: fmt.Sprintf("version %d", head.Version),
		})
		switch {
		case err != nil:
			return written{}, err
		case !merged.Clean():
			return written{}, &artel.Error{Kind: artel.Conflict, Code: CodeStale, Err: &Stale{Base: base, Current: head, Merged: &merged}}
		case merged.Text == doc.Text():
			same = head
			return written{}, errUnchanged
		}
		if err := w.checkText(merged.Text); err != nil {
			return written{}, err
		}
		// As an update, not as a rewrite: a run does not know what others wrote.
		return w.rewritten(artel.UpdateExact, head.MediaInfo, doc.Text(), merged.Text), nil
	})
	if errors.Is(err, errUnchanged) {
		return same, nil
	}
	return a, err
}

// textOfVersion reads the text of any version.
func (w *Workspace) textOfVersion(ctx context.Context, id artel.ArtifactID, number int) (text string, err error) {
	err = w.c.store.View(ctx, w.cfg.Owner, func(tx store.Tx) error {
		s, err := version(tx, w.cfg.Conversation, id, number)
		if err == nil {
			text, err = textOf(tx, w.cfg.Conversation, id, s.Version)
		}
		return err
	})
	return text, err
}
