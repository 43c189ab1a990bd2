// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// An Overview is what a model is told of the artifacts on a branch before each
// call. Live edits are in it.
type Overview struct {
	Plan     artel.Artifact // the task plan; without an id: there is none
	PlanText string
	Others   []artel.Artifact // by id
}

// Overview returns the task plan and the other heads on a branch, without
// deleted ones and without the summaries of compactions, which are for people.
// The preview of each text among the others has its first chars code points; up
// to [artel.PreviewChars] no text is read for it.
func (c *Collection) Overview(ctx context.Context, owner artel.Owner, conv artel.ConversationID, at artel.MessageID, chars int) (Overview, error) {
	var out Overview
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		all, err := tx.Artifacts.Heads(conv, at)
		if err != nil {
			return err
		}
		out = Overview{}
		if i := slices.IndexFunc(all, func(a artel.Artifact) bool { return a.ID == artel.TaskPlan && !a.Deleted && !a.Binary }); i >= 0 {
			out.Plan = all[i]
			if out.PlanText, err = textAt(tx, conv, artel.TaskPlan, all[i].Version); err != nil {
				return err
			}
		}
		out.Others = slices.DeleteFunc(all, func(a artel.Artifact) bool {
			return a.Deleted || a.ID == artel.TaskPlan || a.Source == artel.SourceSummary
		})
		for i := range out.Others {
			if err := preview(tx, &out.Others[i], chars); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return Overview{}, failed("artifact.Overview", string(conv), err)
	}
	return out, nil
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
