// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"context"
	"errors"
	"strings"

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

// An InventoryItem is one artifact as an inventory shows it.
type InventoryItem struct {
	Artifact artel.Artifact
	Preview  string // how its text begins; "" for binary content
}

// Inventory returns the heads on a branch by id, live edits included, without
// deleted ones and without the task plan. Each text has its first previewChars
// code points as a preview.
func (c *Collection) Inventory(ctx context.Context, owner artel.Owner, conv artel.ConversationID, at artel.MessageID, previewChars int) ([]InventoryItem, error) {
	var items []InventoryItem
	err := c.store.View(ctx, owner, func(tx store.Tx) error {
		list, err := heads(tx, conv, at)
		if err != nil {
			return err
		}
		items = make([]InventoryItem, 0, len(list))
		for _, a := range list {
			if a.ID == artel.TaskPlan {
				continue
			}
			item := InventoryItem{Artifact: a}
			if !a.Binary && previewChars > 0 {
				if item.Preview, err = c.preview(tx, a, previewChars); err != nil {
					return err
				}
			}
			items = append(items, item)
		}
		return nil
	})
	if err != nil {
		return nil, failed("artifact.Inventory", string(conv), err)
	}
	return items, nil
}

// previewKey names the beginning of an immutable state. Conversations are
// unique over all owners, and ids are looked up before previews are.
type previewKey struct {
	conv   artel.ConversationID
	id     artel.ArtifactID
	number int
	chars  int
}

// maxPreviews is how many previews are remembered before all are forgotten.
const maxPreviews = 4096

// preview returns the beginning of a's text. An inventory is made for each
// model call and little changes in between, so it is remembered.
func (c *Collection) preview(tx store.Tx, a artel.Artifact, chars int) (string, error) {
	key := previewKey{a.Conversation, a.ID, a.Version, chars}
	c.mu.Lock()
	p, ok := c.previews[key]
	c.mu.Unlock()
	if ok {
		return p, nil
	}
	text, err := textAt(tx, a.Conversation, a.ID, a.Version)
	if err != nil {
		return "", err
	}
	p = strings.Clone(firstChars(text, chars))
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.previews) >= maxPreviews {
		clear(c.previews)
	}
	c.previews[key] = p
	return p, nil
}
