// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"math"
	"time"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type conversations struct{ *Tx }

const conversationColumns = "id, title, agent, service, leaf, created_at, updated_at"

func checkConversation(op string, c artel.Conversation) error {
	return checkText(op, string(c.ID), string(c.ID), c.Title, string(c.Agent), string(c.Service), string(c.Leaf))
}

func (t conversations) Create(c artel.Conversation) error {
	return t.create("store.Conversations.Create", c)
}

func (t conversations) create(op string, c artel.Conversation) error {
	if err := checkConversation(op, c); err != nil {
		return err
	}
	if t.Beside != "" {
		var one int
		if _, err := t.row(op, "", t.Beside, []any{t.owner}, &one); err != nil {
			return err
		}
	}
	_, err := t.change(op, string(c.ID),
		"INSERT INTO conversations (owner, "+conversationColumns+`, folded_title, number)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, `+t.Number+")",
		t.owner, c.ID, c.Title, c.Agent, c.Service, c.Leaf, micros(c.CreatedAt), micros(c.UpdatedAt), fold(c.Title))
	return err
}

func (t conversations) Get(id artel.ConversationID) (artel.Conversation, error) {
	const op = "store.Conversations.Get"
	var c artel.Conversation
	found, err := t.row(op, string(id),
		"SELECT "+conversationColumns+" FROM conversations WHERE owner = ? AND id = ? AND deleted_at IS NULL"+t.locked(), []any{t.owner, id},
		conversationDest(&c)...)
	if err == nil && !found {
		err = noConversation(op, id)
	}
	if err != nil {
		return artel.Conversation{}, err
	}
	return c, nil
}

func (t conversations) List(q store.ConversationQuery) ([]store.Listed, string, error) {
	const op, list = "store.Conversations.List", "conversations"
	limit, err := pageLimit(op, q.Page)
	if err != nil {
		return nil, "", err
	}
	words, err := wordsOf(op, q.Search)
	if err != nil {
		return nil, "", err
	}
	if q.Best && len(words) > 0 {
		return t.listBest(op, q, words, limit)
	}
	us, tie := int64(math.MaxInt64), ""
	if q.Cursor != "" {
		if us, tie, err = parseCursor(op, list, q.Cursor); err != nil {
			return nil, "", err
		}
	}
	var items []store.Listed
	if len(words) > 0 {
		items, err = t.search(op, q, words, us, tie, limit+1)
	} else {
		where, args := filled(q)
		args = append(append([]any{t.owner, us, tie}, args...), limit+1)
		err = t.rows(op, "", "SELECT "+conversationColumns+` FROM conversations
			WHERE owner = ? AND (updated_at, id) < (?, ?) AND deleted_at IS NULL`+where+` ORDER BY updated_at DESC, id DESC LIMIT ?`,
			args, func(rows Row) error {
				var c store.Listed
				err := scanConversation(rows, &c.Conversation)
				items = append(items, c)
				return err
			})
	}
	if err != nil {
		return nil, "", err
	}
	if len(items) <= limit {
		return items, "", nil
	}
	last := items[limit-1]
	return items[:limit], cursor(list, micros(last.UpdatedAt), string(last.ID)), nil
}

// filled returns the condition of a query that leaves out empty conversations, and
// its arguments. Both parts are looked up in a primary key.
func filled(q store.ConversationQuery) (where string, args []any) {
	if !q.Filled {
		return "", nil
	}
	return ` AND (leaf <> '' OR id = ? OR EXISTS (SELECT 1 FROM artifacts
		WHERE artifacts.owner = conversations.owner AND artifacts.conversation = conversations.id))`, []any{q.Also}
}

// listBest returns a page of a ranked search.
func (t conversations) listBest(op string, q store.ConversationQuery, words []string, limit int) (items []store.Listed, next string, err error) {
	var after *standing
	if q.Cursor != "" {
		if after, err = parseStanding(op, q.Cursor); err != nil {
			return nil, "", err
		}
	}
	items, places, err := t.ranked(op, q, words, after, limit+1)
	if err != nil || len(items) <= limit {
		return items, "", err
	}
	return items[:limit], places[limit-1].cursor(), nil
}

func (t conversations) Update(c artel.Conversation) error {
	const op = "store.Conversations.Update"
	if err := checkConversation(op, c); err != nil {
		return err
	}
	n, err := t.change(op, string(c.ID),
		"UPDATE conversations SET title = ?, folded_title = ?, agent = ?, service = ?, leaf = ?, updated_at = ? WHERE owner = ? AND id = ? AND deleted_at IS NULL",
		c.Title, fold(c.Title), c.Agent, c.Service, c.Leaf, micros(c.UpdatedAt), t.owner, c.ID)
	if err == nil && n == 0 {
		err = noConversation(op, c.ID)
	}
	return err
}

func (t conversations) Delete(id artel.ConversationID, at time.Time) error {
	const op = "store.Conversations.Delete"
	n, err := t.change(op, string(id), "UPDATE conversations SET deleted_at = ? WHERE owner = ? AND id = ? AND deleted_at IS NULL", micros(at), t.owner, id)
	if err == nil && n == 0 {
		err = noConversation(op, id)
	}
	if t.lastConv == id {
		t.lastConv = ""
	}
	return err
}

func (t conversations) Restore(id artel.ConversationID) error {
	const op = "store.Conversations.Restore"
	n, err := t.change(op, string(id), "UPDATE conversations SET deleted_at = NULL WHERE owner = ? AND id = ? AND deleted_at IS NOT NULL AND purging = 0 AND importing = 0", t.owner, id)
	if err == nil && n == 0 {
		err = artel.Errorf(artel.NotFound, op, string(id), "no deleted conversation with this id, or it is too late to restore it")
	}
	return err
}

func conversationDest(c *artel.Conversation) []any {
	return []any{&c.ID, &c.Title, &c.Agent, &c.Service, &c.Leaf, (*timeColumn)(&c.CreatedAt), (*timeColumn)(&c.UpdatedAt)}
}

// scanConversation scans a row of conversationColumns and extra.
func scanConversation(rows Row, c *artel.Conversation, extra ...any) error {
	return rows.Scan(append(conversationDest(c), extra...)...)
}
