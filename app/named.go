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
		c, _, err = titled(tx, name)
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
			found, known, err := titled(tx, name)
			if !errors.Is(err, artel.NotFound) {
				c = found
				return err
			}
			c = artel.Conversation{ID: artel.NewConversationID(now), Title: name, CreatedAt: now, UpdatedAt: now}
			if err := tx.Conversations.Create(c); err != nil {
				return err
			}
			return remember(tx, c, known)
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

// titled returns the conversation that was made for a title if it still has it, or the newest one with
// the title, and the revision of the setting with its id; 0: there is none.
func titled(tx store.Tx, title string) (c artel.Conversation, known int, err error) {
	s, err := tx.Settings.Get(titleSetting(title))
	if err != nil && !errors.Is(err, artel.NotFound) {
		return c, 0, err
	}
	if err == nil {
		var id artel.ConversationID
		if json.Unmarshal(s.Value, &id) == nil {
			if c, err := tx.Conversations.Get(id); err == nil && c.Title == title {
				return c, s.Revision, nil
			}
		}
	}
	q := store.ConversationQuery{Search: title, Page: store.Page{Limit: 500}}
	for {
		list, next, err := tx.Conversations.List(q)
		if err != nil {
			return c, 0, err
		}
		for _, found := range list {
			if found.Title == title {
				return found.Conversation, s.Revision, nil
			}
		}
		if next == "" {
			return c, s.Revision, artel.Errorf(artel.NotFound, "app.Conversations.Named", artel.Shorten(title, 80), "there is no conversation with this title")
		}
		q.Cursor = next
	}
}

// remember stores the id of the conversation that was made for a title. known is the revision that
// [titled] has seen: the setting is not read again, since in a database with several writers that
// would find what another call has stored meanwhile, and replace it.
func remember(tx store.Tx, c artel.Conversation, known int) (err error) {
	s := store.Setting{Name: titleSetting(c.Title), UpdatedAt: c.CreatedAt, Revision: known}
	if s.Value, err = json.Marshal(c.ID); err != nil {
		return err
	}
	_, err = tx.Settings.Put(s)
	return err
}
