// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/json"

	"github.com/artelhq/artel"
)

type variables struct{ *Tx }

func (t variables) Put(c artel.ConversationID, m artel.MessageID, value json.RawMessage) error {
	const op = "store.Variables.Put"
	if err := t.requireConversation(op, c); err != nil {
		return err
	}
	if err := checkText(op, string(m), string(m)); err != nil {
		return err
	}
	if err := checkJSON(op, string(m), value); err != nil {
		return err
	}
	_, err := t.change(op, string(m), "INSERT INTO variables (owner, conversation, message, value) VALUES (?, ?, ?, ?) ON CONFLICT (owner, conversation, message) DO UPDATE SET value = excluded.value", t.owner, c, m, string(value))
	return err
}

func (t variables) Messages(c artel.ConversationID) ([]artel.MessageID, error) {
	const op = "store.Variables.Messages"
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	return list(t.Tx, op, string(c), "SELECT message FROM variables WHERE owner = ? AND conversation = ? ORDER BY message", []any{t.owner, c},
		func(rows Row, m *artel.MessageID) error { return rows.Scan(m) })
}

func (t variables) On(c artel.ConversationID, path []artel.MessageID) (json.RawMessage, error) {
	const op = "store.Variables.On"
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	there := make(map[artel.MessageID]bool)
	err := t.rows(op, string(c), "SELECT message FROM variables WHERE owner = ? AND conversation = ?", []any{t.owner, c}, func(rows Row) error {
		var m artel.MessageID
		err := rows.Scan(&m)
		there[m] = true
		return err
	})
	if err != nil || len(there) == 0 {
		return nil, err
	}
	for i := len(path) - 1; i >= 0; i-- {
		if !there[path[i]] {
			continue
		}
		var value string
		_, err := t.row(op, string(path[i]), "SELECT value FROM variables WHERE owner = ? AND conversation = ? AND message = ?", []any{t.owner, c, path[i]}, &value)
		return json.RawMessage(value), err
	}
	return nil, nil
}
