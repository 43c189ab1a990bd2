// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"slices"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type events struct{ *Tx }

func (t events) Append(c artel.ConversationID, list ...artel.Event) (artel.Seq, error) {
	const op = "store.Events.Append"
	if err := t.usable(op, true); err != nil {
		return 0, err
	}
	if err := t.requireLater(op, c); err != nil {
		return 0, err
	}
	seq, err := t.last(op, c)
	if err != nil {
		return 0, err
	}
	for _, e := range list {
		seq++
		if err := checkText(op, string(c), string(e.Type), string(e.Run), string(e.Agent), string(e.Within)); err != nil {
			return 0, err
		}
		if err := checkJSON(op, string(c), e.Data); err != nil {
			return 0, err
		}
		var data *string
		if e.Data != nil {
			s := string(e.Data)
			data = &s
		}
		if err := t.later(op, string(c), `INSERT INTO events (owner, conversation, seq, type, run, agent, within, time, data)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`, t.owner, c, seq, e.Type, e.Run, e.Agent, e.Within, micros(e.Time), data); err != nil {
			return 0, err
		}
	}
	return seq, nil
}

func (t events) Read(c artel.ConversationID, after artel.Seq, limit int) ([]artel.Event, error) {
	const op = "store.Events.Read"
	return t.read(op, c, limit, "seq > ? ORDER BY seq", after)
}

func (t events) Contexts(c artel.ConversationID, upTo artel.Seq, limit int) ([]artel.Event, error) {
	list, err := t.read("store.Events.Contexts", c, limit, "seq <= ? AND type = 'context_built' ORDER BY seq DESC", upTo)
	slices.Reverse(list)
	return list, err
}

func (t events) Milestones(c artel.ConversationID, limit int) ([]artel.Event, error) {
	list, err := t.read("store.Events.Milestones", c, limit, "seq > ? AND type IN ('compaction_completed', 'service_changed', 'service_chosen') ORDER BY seq DESC", 0)
	slices.Reverse(list)
	return list, err
}

// read returns the events of a conversation selected and ordered by condition,
// which has one number as its parameter.
func (t events) read(op string, c artel.ConversationID, limit int, selected string, seq artel.Seq) ([]artel.Event, error) {
	if limit < 1 {
		return nil, artel.Errorf(artel.Invalid, op, "limit", "is %d, want at least 1", limit)
	}
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	var found []artel.Event
	bytes := 0
	err := t.rows(op, string(c), "SELECT seq, type, run, agent, within, time, data FROM events WHERE owner = ? AND conversation = ? AND "+selected+" LIMIT ?",
		[]any{t.owner, c, seq, limit}, func(rows Row) error {
			var e artel.Event
			if err := rows.Scan(&e.Seq, &e.Type, &e.Run, &e.Agent, &e.Within, (*timeColumn)(&e.Time), (*jsonColumn)(&e.Data)); err != nil {
				return err
			}
			found = append(found, e)
			if bytes += len(e.Data); bytes >= store.MaxEventBytes {
				return errStop
			}
			return nil
		})
	if err != nil {
		return nil, err
	}
	return found, nil
}

func (t events) Last(c artel.ConversationID) (artel.Seq, error) {
	const op = "store.Events.Last"
	if err := t.requireConversation(op, c); err != nil {
		return 0, err
	}
	return t.last(op, c)
}

func (t events) last(op string, c artel.ConversationID) (artel.Seq, error) {
	var seq artel.Seq
	_, err := t.row(op, string(c), "SELECT seq FROM events WHERE owner = ? AND conversation = ? ORDER BY seq DESC LIMIT 1", []any{t.owner, c}, &seq)
	return seq, err
}
