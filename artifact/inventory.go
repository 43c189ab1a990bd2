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
		list, err := c.heads(tx, owner, conv, at, false)
		if err != nil {
			return err
		}
		items = make([]InventoryItem, 0, len(list))
		var unknown []int // items without a preview
		c.mu.Lock()
		for _, a := range list {
			if a.ID == artel.TaskPlan {
				continue
			}
			item := InventoryItem{Artifact: a}
			if !a.Binary && previewChars > 0 {
				p, ok := c.previews[keyOf(a, previewChars)]
				if item.Preview = p; !ok {
					unknown = append(unknown, len(items))
				}
			}
			items = append(items, item)
		}
		c.mu.Unlock()
		return c.preview(tx, at, items, unknown, previewChars)
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

func keyOf(a artel.Artifact, chars int) previewKey {
	return previewKey{a.Conversation, a.ID, a.Version, chars}
}

const (
	// maxPreviews is how many previews are remembered before all are forgotten.
	maxPreviews = 32_768

	// fewPreviews is for how many texts are read one by one.
	fewPreviews = 8
)

// preview fills in how the texts of some items begin, and remembers it.
func (c *Collection) preview(tx store.Tx, at artel.MessageID, items []InventoryItem, unknown []int, chars int) error {
	known := map[artel.ArtifactID]store.Beginning{}
	if len(unknown) > fewPreviews {
		list, err := tx.Artifacts.Beginnings(items[0].Artifact.Conversation, at, chars)
		if err != nil {
			return err
		}
		for _, b := range list {
			known[b.Artifact] = b
		}
	}
	for _, i := range unknown {
		a := items[i].Artifact
		if b, ok := known[a.ID]; ok && b.Number == a.Version {
			items[i].Preview = b.Text
			continue
		}
		text, err := textAt(tx, a.Conversation, a.ID, a.Version)
		if err != nil {
			return err
		}
		items[i].Preview = strings.Clone(firstChars(text, chars))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.previews)+len(unknown) > maxPreviews {
		clear(c.previews)
	}
	for _, i := range unknown {
		c.previews[keyOf(items[i].Artifact, chars)] = items[i].Preview
	}
	return nil
}
