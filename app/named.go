// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"unicode/utf8"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/media/scrub"
	"github.com/artelhq/artel/store"
)

// Named returns the conversation with an id or, if name is no id, the newest one with
// this title. With create, a missing title makes a conversation, once for all callers
// at the same time. Otherwise a missing one is of kind NotFound.
func (cs *Conversations) Named(ctx context.Context, name string, create bool) (artel.Conversation, error) {
	const op = "app.Conversations.Named"
	name = strings.TrimSpace(scrub.Line(name))
	if id, err := artel.ParseConversationID(name); err == nil {
		return cs.Find(ctx, id)
	}
	switch n := utf8.RuneCountInString(name); {
	case n == 0:
		return artel.Conversation{}, artel.Errorf(artel.Invalid, op, "conversation", "is empty; give an id or a title")
	case n > store.MaxSearch:
		return artel.Conversation{}, artel.Errorf(artel.TooLarge, op, "conversation", "has %d characters; a title to look for has at most %d", n, store.MaxSearch)
	}
	var c artel.Conversation
	err := cs.core.view(ctx, func(tx store.Tx) (err error) {
		c, err = titled(tx, name)
		return err
	})
	if !errors.Is(err, artel.NotFound) {
		return c, err
	}
	if !create {
		return c, artel.Errorf(artel.NotFound, op, artel.Shorten(name, 80), "there is no conversation with this id or title")
	}
	now := cs.core.now()
	for ctx.Err() == nil {
		err = cs.core.update(ctx, func(tx store.Tx) error {
			found, err := titled(tx, name)
			if !errors.Is(err, artel.NotFound) {
				c = found
				return err
			}
			c = artel.Conversation{ID: artel.NewConversationID(now), Title: name, CreatedAt: now, UpdatedAt: now}
			if err := tx.Conversations.Create(c); err != nil {
				return err
			}
			return remember(tx, c)
		})
		// A Conflict: another call, which did not see this one, was quicker to remember its own.
		if !errors.Is(err, artel.Conflict) {
			break
		}
	}
	return c, err
}

// titleSetting is the name of the setting with the id of the conversation that
// [Conversations.Named] made for a title, so that it need not be searched for.
func titleSetting(title string) string {
	sum := sha256.Sum256([]byte(title))
	return "conversation_named/" + hex.EncodeToString(sum[:16])
}

// titled returns the conversation that was made for a title if it still has it, or
// the newest one with the title.
func titled(tx store.Tx, title string) (artel.Conversation, error) {
	if s, err := tx.Settings.Get(titleSetting(title)); err == nil {
		var id artel.ConversationID
		if json.Unmarshal(s.Value, &id) == nil {
			if c, err := tx.Conversations.Get(id); err == nil && c.Title == title {
				return c, nil
			}
		}
	}
	q := store.ConversationQuery{Search: title, Page: store.Page{Limit: 500}}
	for {
		list, next, err := tx.Conversations.List(q)
		if err != nil {
			return artel.Conversation{}, err
		}
		for _, c := range list {
			if c.Title == title {
				return c.Conversation, nil
			}
		}
		if next == "" {
			return artel.Conversation{}, artel.Errorf(artel.NotFound, "app.Conversations.Named", artel.Shorten(title, 80), "there is no conversation with this title")
		}
		q.Cursor = next
	}
}

// remember stores the id of the conversation that was made for a title.
func remember(tx store.Tx, c artel.Conversation) error {
	s := store.Setting{Name: titleSetting(c.Title), UpdatedAt: c.CreatedAt}
	old, err := tx.Settings.Get(s.Name)
	if err == nil {
		s.Revision = old.Revision
	} else if !errors.Is(err, artel.NotFound) {
		return err
	}
	if s.Value, err = json.Marshal(c.ID); err != nil {
		return err
	}
	_, err = tx.Settings.Put(s)
	return err
}
