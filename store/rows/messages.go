// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type messages struct{ *Tx }

const messageColumns = "m.id, m.conversation, m.parent, m.role, m.agent, m.run, m.muted, m.summary, m.covers, m.created_at, m.parts, m.within, m.edited"

// pathTable is the branch of conversation ?2 of owner ?1 that ends in message
// ?3, for a WITH RECURSIVE; pathEnd of it the last ?4 messages. With || no index of
// conversations is used, from which PostgreSQL would read all messages of a long one.
const (
	pathTable = pathSteps + ")"
	pathEnd   = pathSteps + " WHERE path.depth + 1 < ?4)"
	pathSteps = `path (n, id, parent_n, depth) AS (
	SELECT n, id, parent_n, CAST(0 AS BIGINT) FROM messages WHERE owner = ?1 AND conversation || '' = ?2 AND id = ?3
	UNION ALL
	SELECT m.n, m.id, m.parent_n, depth + 1 FROM path JOIN messages m ON m.n = path.parent_n AND m.owner = ?1`
)

func (t messages) Create(m artel.Message) error {
	const op = "store.Messages.Create"
	if err := checkText(op, string(m.ID), string(m.ID), string(m.Conversation), string(m.Parent), string(m.Role), string(m.Agent), string(m.Run), string(m.Covers), string(m.Within)); err != nil {
		return err
	}
	if err := checkParts(op, string(m.ID), m.Parts); err != nil {
		return err
	}
	if err := t.requireConversation(op, m.Conversation); err != nil {
		return err
	}
	var parent *int64
	if m.Parent != "" {
		n, found, err := t.in(op, m.Conversation, m.Parent)
		if err != nil {
			return err
		}
		if parent = &n; !found {
			return artel.Errorf(artel.Invalid, op, string(m.Parent), "the parent is not a message of conversation %s", m.Conversation)
		}
	}
	var parts *string
	if m.Parts != nil {
		s, err := encodePlain(op, string(m.ID), m.Parts)
		if err != nil {
			return err
		}
		parts = &s
	}
	n, err := t.insert(op, string(m.ID), `INSERT INTO messages
		(owner, id, conversation, parent, parent_n, role, agent, run, muted, summary, covers, created_at, parts, within, edited)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		t.owner, m.ID, m.Conversation, m.Parent, parent, m.Role, m.Agent, m.Run, m.Muted, m.Summary, m.Covers, micros(m.CreatedAt), parts, m.Within, m.Edited)
	if err != nil {
		return err
	}
	return t.indexMessage(op, n, m)
}

func (t messages) Get(id artel.MessageID) (artel.Message, error) {
	const op = "store.Messages.Get"
	if err := t.lock(op, "messages", string(id)); err != nil {
		return artel.Message{}, err
	}
	var r messageRow
	found, err := t.row(op, string(id),
		"SELECT "+messageColumns+" FROM messages m WHERE m.owner = ? AND m.id = ?"+notDeleted("m"), []any{t.owner, id}, r.dest()...)
	if err == nil && !found {
		err = noMessage(op, id)
	}
	if err != nil {
		return artel.Message{}, err
	}
	m, err := r.message()
	if err != nil {
		return artel.Message{}, t.fail(op, string(id), err)
	}
	return m, nil
}

func (t messages) Path(c artel.ConversationID, leaf artel.MessageID, limit int) ([]artel.Message, error) {
	const op = "store.Messages.Path"
	switch {
	case limit < 0:
		return nil, artel.Errorf(artel.Invalid, op, "limit", "is %d, want 0 for all, or more", limit)
	case limit == 0:
		limit = math.MaxInt
	}
	if err := t.branch(op, c, leaf); err != nil || leaf == "" {
		return nil, err
	}
	return list(t.Tx, op, string(leaf), "WITH RECURSIVE "+pathEnd+" SELECT "+messageColumns+
		" FROM path JOIN messages m USING (n) ORDER BY path.depth DESC", []any{t.owner, c, leaf, limit}, scanMessage)
}

func (t messages) List(c artel.ConversationID, p store.Page) ([]artel.Message, string, error) {
	const op, cursors = "store.Messages.List", "messages"
	limit, err := pageLimit(op, p)
	if err != nil {
		return nil, "", err
	}
	us, n := int64(math.MinInt64), int64(0)
	if p.Cursor != "" {
		var tie string
		if us, tie, err = parseCursor(op, cursors, p.Cursor); err != nil {
			return nil, "", err
		}
		if n, err = strconv.ParseInt(tie, 10, 64); err != nil {
			return nil, "", artel.Errorf(artel.Invalid, op, "cursor", "is not a cursor of this list: leave it out to begin again")
		}
	}
	if err := t.requireConversation(op, c); err != nil {
		return nil, "", err
	}
	var items []artel.Message
	var tie int64 // of the last one
	bytes, more := 0, false
	err = t.rows(op, string(c), "SELECT "+messageColumns+`, m.n FROM messages m
		WHERE m.owner = ? AND m.conversation = ? AND (m.created_at, m.n) > (?, ?) ORDER BY m.created_at, m.n LIMIT ?`,
		[]any{t.owner, c, us, n, limit + 1}, func(rows Row) error {
			if more = len(items) == limit || bytes >= store.MaxMessageBytes; more {
				return errStop
			}
			var r messageRow
			if err := rows.Scan(append(r.dest(), &tie)...); err != nil {
				return err
			}
			if r.parts != nil {
				bytes += len(*r.parts)
			}
			m, err := r.message()
			items = append(items, m)
			return err
		})
	if err != nil || !more {
		return items, "", err
	}
	return items, cursor(cursors, micros(items[len(items)-1].CreatedAt), strconv.FormatInt(tie, 10)), nil
}

func (t messages) SetMuted(id artel.MessageID, muted bool) error {
	const op = "store.Messages.SetMuted"
	if err := t.lock(op, "messages", string(id)); err != nil {
		return err
	}
	n, err := t.change(op, string(id), "UPDATE messages SET muted = ? WHERE owner = ? AND id = ?"+notDeleted("messages"), muted, t.owner, id)
	if err == nil && n == 0 {
		err = noMessage(op, id)
	}
	return err
}

func (t messages) Nested(c artel.ConversationID, run artel.RunID) ([]artel.Message, error) {
	const op = "store.Messages.Nested"
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	return list(t.Tx, op, string(run), "SELECT "+messageColumns+` FROM messages m
		WHERE m.owner = ? AND m.conversation = ? AND m.run = ? AND m.within <> '' ORDER BY m.n`, []any{t.owner, c, run}, scanMessage)
}

func (t messages) Children(c artel.ConversationID, parents ...artel.MessageID) (map[artel.MessageID][]artel.MessageID, error) {
	const op = "store.Messages.Children"
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	children := map[artel.MessageID][]artel.MessageID{}
	for some := range slices.Chunk(parents, 500) { // as many variables as every SQLite takes
		args := []any{t.owner, c}
		for _, p := range some {
			args = append(args, p)
		}
		err := t.rows(op, string(c), `SELECT m.parent, m.id FROM messages m
			WHERE m.owner = ? AND m.conversation = ? AND m.parent IN (?`+strings.Repeat(", ?", len(some)-1)+`) AND m.within = '' ORDER BY m.n`,
			args, func(r Row) error {
				var parent, id artel.MessageID
				err := r.Scan(&parent, &id)
				children[parent] = append(children[parent], id)
				return err
			})
		if err != nil {
			return nil, err
		}
	}
	return children, nil
}

// in finds the row of m, if it is a message of c.
func (t *Tx) in(op string, c artel.ConversationID, m artel.MessageID) (n int64, found bool, err error) {
	found, err = t.row(op, string(m), "SELECT n FROM messages WHERE owner = ? AND id = ? AND conversation || '' = ?", []any{t.owner, m, c}, &n)
	return n, found, err
}

// branch is nil when c is there and at is empty or one of its messages.
func (t *Tx) branch(op string, c artel.ConversationID, at artel.MessageID) error {
	if err := t.requireConversation(op, c); err != nil || at == "" {
		return err
	}
	_, found, err := t.in(op, c, at)
	if err == nil && !found {
		err = noMessage(op, at)
	}
	return err
}

func noMessage(op string, id artel.MessageID) error {
	return artel.Errorf(artel.NotFound, op, string(id), "no such message")
}

// A messageRow holds the columns of messageColumns.
type messageRow struct {
	m       artel.Message
	created int64
	parts   *string
}

func (r *messageRow) dest() []any {
	m := &r.m
	return []any{&m.ID, &m.Conversation, &m.Parent, &m.Role, &m.Agent, &m.Run, &m.Muted, &m.Summary, &m.Covers, &r.created, &r.parts, &m.Within, &m.Edited}
}

func (r *messageRow) message() (artel.Message, error) {
	r.m.CreatedAt = fromMicros(r.created)
	if r.parts != nil {
		if err := json.Unmarshal([]byte(*r.parts), &r.m.Parts); err != nil {
			return artel.Message{}, err
		}
	}
	return r.m, nil
}

// scanMessage scans a row of messageColumns.
func scanMessage(rows Row, m *artel.Message) (err error) {
	var r messageRow
	if err := rows.Scan(r.dest()...); err != nil {
		return err
	}
	*m, err = r.message()
	return err
}

// checkParts refuses text that JSON could not carry as it is.
func checkParts(op, subject string, ps artel.Parts) error {
	for _, p := range ps {
		var err error
		switch p := p.(type) {
		case artel.Text:
			err = checkText(op, subject, p.Text)
		case artel.Media:
			err = checkText(op, subject, p.Ref.String(), p.MediaType, string(p.Kind), p.Filename)
		case artel.ToolCall:
			if err = checkText(op, subject, string(p.ID), p.Name); err == nil && len(p.Arguments) > 0 {
				err = checkJSON(op, subject, p.Arguments)
			}
		case artel.ToolResult:
			if err = checkText(op, subject, string(p.CallID), p.Content); err == nil {
				err = checkParts(op, subject, p.Parts)
			}
		case artel.Reasoning:
			if err = checkText(op, subject, p.Text, string(p.Service)); err == nil && len(p.Opaque) > 0 {
				err = checkJSON(op, subject, p.Opaque)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}
