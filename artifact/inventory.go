// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// Plan returns the text of the task plan on a branch, live edits included, and
// the artifact; false where there is none.
func (c *Collection) Plan(ctx context.Context, owner artel.Owner, conv artel.ConversationID, at artel.MessageID) (string, artel.Artifact, bool, error) {
	var a artel.Artifact
	var text string
	var found bool
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		var err error
		a, err = head(tx, conv, artel.TaskPlan, at)
		if errors.Is(err, artel.NotFound) || err == nil && a.Binary {
			found = false
			return nil
		}
		if err != nil {
			return err
		}
		text, err = textAt(tx, conv, a.ID, a.Version)
		found = err == nil
		return err
	})
	if err != nil || !found {
		return "", artel.Artifact{}, false, failed("artifact.Plan", string(artel.TaskPlan), err)
	}
	return text, a, true, nil
}

// Inventory returns the heads on a branch by id, live edits included, without
// deleted ones, without the task plan and without the summaries of compactions,
// which are for people. The preview of each text has its
// first chars code points; up to [artel.PreviewChars] no text is read for it.
func (c *Collection) Inventory(ctx context.Context, owner artel.Owner, conv artel.ConversationID, at artel.MessageID, chars int) ([]artel.Artifact, error) {
	var list []artel.Artifact
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		all, err := tx.Artifacts.Heads(conv, at)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(all, func(a artel.Artifact) bool {
			return a.Deleted || a.ID == artel.TaskPlan || a.Source == artel.SourceSummary
		})
		for i := range list {
			if err := preview(tx, &list[i], chars); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, failed("artifact.Inventory", string(conv), err)
	}
	return list, nil
}

// preview makes that of a chars code points long. It reads the text where more
// is wanted than is kept, and of states from before previews were.
func preview(tx store.Tx, a *artel.Artifact, chars int) error {
	if chars < artel.PreviewChars {
		a.Preview = artel.Beginning(a.Preview, chars)
	}
	switch {
	case a.Binary, a.Size == 0, chars == 0:
		return nil
	case a.Preview != "" && (chars <= artel.PreviewChars || utf8.RuneCountInString(a.Preview) < artel.PreviewChars):
		return nil
	}
	text, err := textAt(tx, a.Conversation, a.ID, a.Version)
	a.Preview = strings.Clone(artel.Beginning(text, chars)) // and nothing more of it
	return err
}
