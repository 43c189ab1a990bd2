// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql"
	"math"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type conversations struct{ *tx }

const conversationColumns = "id, title, agent, service, leaf, created_at, updated_at"

func checkConversation(op string, c artel.Conversation) error {
	return checkText(op, string(c.ID), string(c.ID), c.Title, string(c.Agent), string(c.Service), string(c.Leaf))
}

func (t conversations) Create(c artel.Conversation) error {
	const op = "store.Conversations.Create"
	if err := checkConversation(op, c); err != nil {
		return err
	}
	_, err := t.change(op, string(c.ID),
		"INSERT INTO conversations (owner, "+conversationColumns+") VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
		t.owner, c.ID, c.Title, c.Agent, c.Service, c.Leaf, micros(c.CreatedAt), micros(c.UpdatedAt))
	return err
}

func (t conversations) Get(id artel.ConversationID) (artel.Conversation, error) {
	const op = "store.Conversations.Get"
	var c artel.Conversation
	var created, updated int64
	found, err := t.row(op, string(id),
		"SELECT "+conversationColumns+" FROM conversations WHERE owner = ? AND id = ?", []any{t.owner, id},
		&c.ID, &c.Title, &c.Agent, &c.Service, &c.Leaf, &created, &updated)
	if err == nil && !found {
		err = noConversation(op, id)
	}
	if err != nil {
		return artel.Conversation{}, err
	}
	c.CreatedAt, c.UpdatedAt = moment(created), moment(updated)
	return c, nil
}

func (t conversations) List(p store.Page) ([]artel.Conversation, string, error) {
	const op, list = "store.Conversations.List", "conversations"
	limit, err := pageLimit(op, p)
	if err != nil {
		return nil, "", err
	}
	us, tie := int64(math.MaxInt64), ""
	if p.Cursor != "" {
		if us, tie, err = parseCursor(op, list, p.Cursor); err != nil {
			return nil, "", err
		}
	}
	var items []artel.Conversation
	next := ""
	err = t.rows(op, "", "SELECT "+conversationColumns+` FROM conversations
		WHERE owner = ? AND (updated_at, id) < (?, ?) ORDER BY updated_at DESC, id DESC LIMIT ?`,
		[]any{t.owner, us, tie, limit + 1}, func(r *sql.Rows) error {
			var c artel.Conversation
			var created, updated int64
			if err := r.Scan(&c.ID, &c.Title, &c.Agent, &c.Service, &c.Leaf, &created, &updated); err != nil {
				return err
			}
			if len(items) == limit {
				last := items[limit-1]
				next = cursor(list, micros(last.UpdatedAt), string(last.ID))
				return nil
			}
			c.CreatedAt, c.UpdatedAt = moment(created), moment(updated)
			items = append(items, c)
			return nil
		})
	if err != nil {
		return nil, "", err
	}
	return items, next, nil
}

func (t conversations) Update(c artel.Conversation) error {
	const op = "store.Conversations.Update"
	if err := checkConversation(op, c); err != nil {
		return err
	}
	n, err := t.change(op, string(c.ID),
		"UPDATE conversations SET title = ?, agent = ?, service = ?, leaf = ?, updated_at = ? WHERE owner = ? AND id = ?",
		c.Title, c.Agent, c.Service, c.Leaf, micros(c.UpdatedAt), t.owner, c.ID)
	if err == nil && n == 0 {
		err = noConversation(op, c.ID)
	}
	return err
}

// Delete relies on the foreign keys to remove what is in the conversation.
func (t conversations) Delete(id artel.ConversationID) error {
	const op = "store.Conversations.Delete"
	n, err := t.change(op, string(id), "DELETE FROM conversations WHERE owner = ? AND id = ?", t.owner, id)
	if err == nil && n == 0 {
		err = noConversation(op, id)
	}
	return err
}
