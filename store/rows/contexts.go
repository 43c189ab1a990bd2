// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"database/sql"
	"encoding/json"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

type contexts struct{ *Tx }

func (t contexts) Add(c store.Context, segments []store.Segment) (int, error) {
	const op = "store.Contexts.Add"
	if err := t.requireConversation(op, c.Conversation); err != nil {
		return 0, err
	}
	var in artel.ConversationID
	var number int
	found, err := t.row(op, string(c.Run), "SELECT conversation, 1 + coalesce((SELECT number FROM contexts WHERE owner = ?1 AND run = ?2 ORDER BY number DESC LIMIT 1), 0) FROM runs WHERE owner = ?1 AND id = ?2",
		[]any{t.owner, c.Run}, &in, &number)
	if err != nil {
		return 0, err
	}
	if !found || in != c.Conversation {
		return 0, noRun(op, c.Run)
	}
	for _, j := range []json.RawMessage{c.Summary, c.Record} {
		if j == nil {
			return 0, artel.Errorf(artel.Invalid, op, string(c.Run), "a context without summary or record")
		}
		if err := checkJSON(op, string(c.Run), j); err != nil {
			return 0, err
		}
	}
	usage, err := usageColumn(op, c)
	if err != nil {
		return 0, err
	}
	n, err := t.insert(op, string(c.Run), "INSERT INTO contexts (owner, conversation, run, number, created_at, summary, usage) VALUES (?, ?, ?, ?, ?, ?, ?)",
		t.owner, c.Conversation, c.Run, number, micros(c.CreatedAt), string(c.Summary), usage)
	if err != nil {
		return 0, err
	}
	if _, err := t.change(op, string(c.Run), "INSERT INTO records (n, record) VALUES (?, ?)", n, string(c.Record)); err != nil {
		return 0, err
	}
	return number, t.use(op, c, segments, n)
}

// use stores the segments that context n names. Nearly all of them are usually
// stored already.
func (t contexts) use(op string, c store.Context, segments []store.Segment, n int64) error {
	for _, s := range segments {
		if err := checkText(op, string(c.Run), string(s.Digest)); err != nil {
			return err
		}
		known, err := t.change(op, string(c.Run), "UPDATE segment_uses SET used = ? WHERE owner = ? AND conversation = ? AND digest = ?", n, t.owner, c.Conversation, s.Digest)
		if err == nil && known == 0 {
			_, err = t.change(op, string(c.Run), "INSERT INTO segments (owner, conversation, digest, body) VALUES (?, ?, ?, ?)", t.owner, c.Conversation, s.Digest, notNull(s.Body))
			if err == nil {
				_, err = t.change(op, string(c.Run), "INSERT INTO segment_uses (owner, conversation, digest, used) VALUES (?, ?, ?, ?)", t.owner, c.Conversation, s.Digest, n)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func notNull(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

func usageColumn(op string, c store.Context) (sql.NullString, error) {
	if c.Usage == nil {
		return sql.NullString{}, nil
	}
	s, err := encode(op, string(c.Run), c.Usage)
	return sql.NullString{String: s, Valid: true}, err
}

const contextColumns = "SELECT conversation, run, number, created_at, summary, usage, "

// scanContext scans a row of contextColumns and the record.
func scanContext(op string, scan func(...any) error) (store.Context, error) {
	var c store.Context
	var usage sql.NullString
	if err := scan(&c.Conversation, &c.Run, &c.Number, (*timeColumn)(&c.CreatedAt), (*jsonColumn)(&c.Summary), &usage, (*jsonColumn)(&c.Record)); err != nil {
		return c, err
	}
	if usage.Valid {
		if err := json.Unmarshal([]byte(usage.String), &c.Usage); err != nil {
			return c, artel.Errorf(artel.Internal, op, string(c.Run), "the row is damaged: %w", err)
		}
	}
	return c, nil
}

func (t contexts) Get(run artel.RunID, number int) (store.Context, error) {
	const op = "store.Contexts.Get"
	if err := t.lock(op, "runs", string(run)); err != nil {
		return store.Context{}, err
	}
	var c store.Context
	found := false
	err := t.rows(op, string(run), contextColumns+"(SELECT record FROM records r WHERE r.n = contexts.n) FROM contexts WHERE owner = ? AND run = ? AND number = ?"+notDeleted("contexts"),
		[]any{t.owner, run, number}, func(rows Row) (err error) {
			found = true
			c, err = scanContext(op, rows.Scan)
			return err
		})
	if err == nil && !found {
		err = noContext(op, run, number)
	}
	return c, err
}

func noContext(op string, run artel.RunID, number int) error {
	return artel.Errorf(artel.NotFound, op, string(run), "there is no record of model call %d of this run, or no longer", number)
}

func (t contexts) List(q store.ContextQuery) ([]store.Context, error) {
	const op = "store.Contexts.List"
	if err := t.requireConversation(op, q.Conversation); err != nil {
		return nil, err
	}
	query, args := contextColumns+"NULL FROM contexts WHERE owner = ? AND conversation = ?", []any{t.owner, q.Conversation}
	if q.Run != "" {
		query, args = query+" AND run = ?", append(args, q.Run)
	}
	if q.Before != nil {
		var n int64
		found, err := t.row(op, string(q.Before.Run), "SELECT n FROM contexts WHERE owner = ? AND run = ? AND number = ?", []any{t.owner, q.Before.Run, q.Before.Number}, &n)
		if err == nil && !found {
			err = noContext(op, q.Before.Run, q.Before.Number)
		}
		if err != nil {
			return nil, err
		}
		query, args = query+" AND n < ?", append(args, n)
	}
	limit := q.Limit
	if limit <= 0 {
		limit = 50
	}
	var out []store.Context
	err := t.rows(op, string(q.Conversation), query+" ORDER BY n DESC LIMIT ?", append(args, min(limit, 500)), func(rows Row) error {
		c, err := scanContext(op, rows.Scan)
		out = append(out, c)
		return err
	})
	return out, err
}

func (t contexts) Segments(c artel.ConversationID, digests []artel.Digest) ([]store.Segment, error) {
	const op = "store.Contexts.Segments"
	if err := t.requireConversation(op, c); err != nil {
		return nil, err
	}
	var out []store.Segment
	for _, d := range digests {
		s := store.Segment{Digest: d}
		found, err := t.row(op, string(d), "SELECT body FROM segments WHERE owner = ? AND conversation = ? AND digest = ?", []any{t.owner, c, d}, &s.Body)
		if err != nil {
			return nil, err
		}
		if found {
			s.Body = notNull(s.Body)
			out = append(out, s)
		}
	}
	return out, nil
}

func (t contexts) Report(run artel.RunID, number int, r store.ContextReport) error {
	const op = "store.Contexts.Report"
	if err := t.lock(op, "runs", string(run)); err != nil {
		return err
	}
	var usage, summary sql.NullString
	var err error
	if r.Usage != nil {
		usage.Valid = true
		if usage.String, err = encode(op, string(run), r.Usage); err != nil {
			return err
		}
	}
	if r.Summary != nil {
		if err := checkJSON(op, string(run), r.Summary); err != nil {
			return err
		}
		summary = sql.NullString{String: string(r.Summary), Valid: true}
	}
	n, err := t.change(op, string(run), "UPDATE contexts SET usage = coalesce(?, usage), summary = coalesce(?, summary) WHERE owner = ? AND run = ? AND number = ?"+notDeleted("contexts"),
		usage, summary, t.owner, run, number)
	if err == nil && n == 0 {
		err = noContext(op, run, number)
	}
	return err
}

func (t contexts) Trim(c artel.ConversationID, newest int) error {
	const op = "store.Contexts.Trim"
	if err := t.requireConversation(op, c); err != nil {
		return err
	}
	oldest := int64(1) << 62
	if newest > 0 {
		found, err := t.row(op, string(c), "SELECT n FROM contexts WHERE owner = ? AND conversation = ? ORDER BY n DESC LIMIT 1 OFFSET ?", []any{t.owner, c, newest - 1}, &oldest)
		if err != nil || !found {
			return err
		}
	}
	gone, err := t.change(op, string(c), "DELETE FROM contexts WHERE owner = ? AND conversation = ? AND n < ?", t.owner, c, oldest)
	if err != nil || gone == 0 {
		return err
	}
	_, err = t.change(op, string(c), `DELETE FROM segments WHERE owner = ?1 AND conversation = ?2 AND digest IN
		(SELECT digest FROM segment_uses WHERE owner = ?1 AND conversation = ?2 AND used < ?3)`, t.owner, c, oldest)
	return err
}
