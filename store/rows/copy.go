// SPDX-License-Identifier: Apache-2.0

package rows

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql/driver"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"slices"
	"strings"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
)

// A table is one of the schema. Rows are copied in the order of its key, which is unique, and
// in which a row comes after those that it refers to.
type table struct {
	name, key string
	number    string // a column that counts up by itself
	own       string // which rows belong to one database, as a condition: they are not copied
}

// from returns the rows that are copied, to be selected from.
func (tb table) from() string {
	if tb.own == "" {
		return tb.name
	}
	return tb.name + " WHERE NOT (" + tb.own + ")"
}

// tables are those whose rows are copied, each after those that it refers to. TestCopyHasAll
// fails for one that is missing.
var tables = []table{
	{"conversations", "owner, id", "number", ""},
	{"messages", "n", "n", ""},
	{"artifacts", "owner, conversation, id", "", ""},
	{"versions", "rowid", "", ""},
	{"edits", "rowid", "", ""},
	{"runs", "owner, id", "", ""},
	{"events", "owner, conversation, seq", "", ""},
	{"answers", "owner, key", "", ""},
	{"renditions", "owner, source, form", "", ""},
	{"variables", "owner, conversation, message", "", ""},
	{"settings", "owner, name", "", ""},
	{"contexts", "n", "n", ""},
	{"segments", "owner, conversation, digest", "", ""},
	{"segment_uses", "owner, conversation, digest", "", ""},
	{"records", "n", "", ""},
	{"files", "owner, id", "", ""},
	{"gateway_log", "n", "n", ""},
	{"notes", "n", "n", ""},
	{"audit", "n", "n", ""},
	{"users", "n", "n", ""},
	{"invitations", `"user"`, "", ""},
	{"sessions", "n", "n", ""},
	{"tokens", "n", "n", ""},
	{"gateway_keys", "n", "n", ""},
	{"usage", `day, "user", key, service, model, agent, source`, "", ""},
	{"usage_marks", "subject", "", ""},
	{"entries", "n", "n", "kind = '" + string(store.SharedKey) + "'"},
	{"identities", "n", "n", ""},
	{"webhooks", "n", "n", ""},
	{"deliveries", "n", "n", ""},
	{"schedules", "n", "n", ""},
	{"schedule_runs", "n", "n", ""},
}

// objects are the tables about the objects of a bucket, which are of no use with another one.
var objects = []table{{"blobs", "digest", "", ""}, {"blob_trash", "key", "", ""}}

// derived are the tables that triggers fill from the others.
var derived = []table{{"stored", "owner", "", ""}, {"stored_blobs", "owner, digest", "", ""}}

// Tables returns the names of the tables whose rows [Copy] copies or makes anew, but for the
// search index.
func Tables() (names []string) {
	for _, tb := range slices.Concat(tables, objects, derived) {
		names = append(names, tb.name)
	}
	return names
}

// CopyOptions says what [Copy] copies.
type CopyOptions struct {
	Objects bool                           // also which objects of the bucket are which blobs
	Resume  bool                           // continue a copy of the same rows that was broken off
	Far     func(table string, rows int64) // is called now and then; may be nil
}

// A Copied is what [Copy] has copied of a table.
type Copied struct {
	Table  string `json:"table"`
	Rows   int64  `json:"rows"`
	Digest string `json:"sha256"` // of the rows in their order, hexadecimal
}

// Most of what one transaction of a copy holds.
const (
	copyRows  = 500
	copyBytes = 4 << 20
)

// Copy copies the rows of one state of a store into another one, which must be empty, and
// compares both afterwards. The search index and the sums of what users store are made anew. An
// error of kind Conflict says that rows are there already, or that rows that were there before
// differ from those of the source; nothing was written then. Copies are made in many
// transactions: one that is broken off leaves what it has copied, which Resume continues if the
// source has not changed. The secrets that the servers of a database share are not copied, and
// those of the destination are removed.
func Copy(ctx context.Context, from, to Store, o CopyOptions) ([]Copied, error) {
	const op = "store.Copy"
	all := slices.Clone(tables)
	if o.Objects {
		all = append(all, objects...)
	}
	there := map[string]Copied{}
	err := to.db.Read(ctx, op, Deployment, func(t *Tx) error {
		for _, tb := range all {
			c, err := t.sum(op, tb, 0, nil)
			if err != nil {
				return err
			}
			if c.Rows > 0 && !o.Resume {
				return artel.Errorf(artel.Conflict, op, tb.name, "the destination has rows already: take an empty one, or continue a copy that was broken off with --resume")
			}
			there[tb.name] = c
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var copied []Copied
	err = from.db.Read(ctx, op, Deployment, func(source *Tx) error {
		// All tables before the first is written: the destination may be another database.
		for _, tb := range all {
			if err := source.begins(op, tb, there[tb.name]); err != nil {
				return err
			}
		}
		if err := to.disown(ctx, all); err != nil {
			return err
		}
		for _, tb := range all {
			c, err := copyTable(ctx, source, to, tb, there[tb.name].Rows, o.Far)
			if err != nil {
				return err
			}
			copied = append(copied, c)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if err := to.reindex(ctx); err != nil {
		return nil, err
	}
	return copied, to.compare(ctx, all, copied, o.Far)
}

// begins returns an error unless the rows of a table begin with those that were copied.
func (t *Tx) begins(op string, tb table, copied Copied) error {
	if copied.Rows == 0 {
		return nil
	}
	c, err := t.sum(op, tb, copied.Rows, nil)
	if err == nil && c != copied {
		err = artel.Errorf(artel.Conflict, op, tb.name, "the destination has %d rows that are not those of the source, or the source has changed since the copy was broken off: take an empty destination", copied.Rows)
	}
	return err
}

// disown removes the rows that belong to the database, because they have numbers that copied
// rows need.
func (s Store) disown(ctx context.Context, all []table) error {
	const op = "store.Copy"
	return s.db.Write(ctx, Deployment, func(t *Tx) error {
		for _, tb := range all {
			if tb.own == "" {
				continue
			}
			if _, err := t.change(op, tb.name, "DELETE FROM "+tb.name+" WHERE "+tb.own); err != nil {
				return err
			}
		}
		return nil
	})
}

// columns returns the columns of a table but for those that say only in which order rows were made.
func (t *Tx) columns(op, table string) (all []string, err error) {
	err = t.rows(op, table, t.Columns, []any{table}, func(r Row) error {
		var name string
		err := r.Scan(&name)
		if name != "rowid" {
			all = append(all, name)
		}
		return err
	})
	slices.Sort(all) // databases have them in the order in which they were added
	return all, err
}

// each calls fn with the rows of a table in order, at most limit if it is not 0. The values are
// valid during the call.
func (t *Tx) each(op string, tb table, limit int64, fn func(columns []string, values []driver.Value) error) error {
	columns, err := t.columns(op, tb.name)
	if err != nil {
		return err
	}
	query, args := "SELECT "+quoted(columns)+" FROM "+tb.from()+" ORDER BY "+tb.key, []any(nil)
	if limit > 0 {
		query, args = query+" LIMIT ?", []any{limit}
	}
	return t.values(op, tb.name, query, args, len(columns), func(values []driver.Value) error {
		return fn(columns, values)
	})
}

func quoted(columns []string) string { return `"` + strings.Join(columns, `", "`) + `"` }

// copyTable copies the rows of a table after the first skip, which are there.
func copyTable(ctx context.Context, source *Tx, to Store, tb table, skip int64, far func(string, int64)) (Copied, error) {
	const op = "store.Copy"
	c := Copied{Table: tb.name}
	sum := sha256.New()
	var insert string
	var batch [][]any
	size := 0
	flush := func() error {
		if len(batch) == 0 {
			return nil
		}
		err := to.db.Write(ctx, Deployment, func(t *Tx) error {
			for _, row := range batch {
				if err := t.later(op, tb.name, insert, row...); err != nil {
					return err
				}
			}
			// Now, because a server that opens what is copied so far may add a row.
			return t.countOn(op, tb)
		})
		batch, size = batch[:0], 0
		if far != nil {
			far(tb.name, c.Rows)
		}
		return err
	}
	err := source.each(op, tb, 0, func(columns []string, values []driver.Value) error {
		c.Rows++
		add(sum, values)
		if c.Rows <= skip {
			return nil
		}
		if insert == "" {
			insert = "INSERT INTO " + tb.name + " (" + quoted(columns) + ") VALUES (" + strings.TrimSuffix(strings.Repeat("?, ", len(columns)), ", ") + ")"
		}
		row := make([]any, len(values))
		for i, v := range values {
			switch v := v.(type) {
			case []byte:
				row[i] = bytes.Clone(v)
				size += len(v)
			case string:
				row[i] = strings.Clone(v)
				size += len(v)
			default:
				row[i] = v
			}
		}
		if batch = append(batch, row); len(batch) < copyRows && size < copyBytes {
			return nil
		}
		return flush()
	})
	if err == nil {
		err = flush()
	}
	if err == nil {
		err = to.db.Write(ctx, Deployment, func(t *Tx) error { return t.countOn(op, tb) })
	}
	c.Digest = hex.EncodeToString(sum.Sum(nil))
	return c, err
}

// countOn has a column continue after the greatest number.
func (t *Tx) countOn(op string, tb table) error {
	if t.CountOn == nil || tb.number == "" {
		return nil
	}
	var n int64
	_, err := t.row(op, tb.name, t.CountOn(tb.name, tb.number), nil, &n)
	return err
}

// add adds the values of a row to a digest: each with its kind and length, so that no two rows
// have the same.
func add(sum hash.Hash, values []driver.Value) {
	var head [9]byte
	for _, v := range values {
		var rest []byte
		var n uint64
		switch v := v.(type) {
		case nil:
			head[0] = 'n'
		case int64:
			head[0], n = 'i', uint64(v)
		case float64:
			head[0], n = 'f', math.Float64bits(v)
		case string:
			head[0], n, rest = 't', uint64(len(v)), []byte(v)
		case []byte:
			head[0], n, rest = 'b', uint64(len(v)), v
		default:
			head[0], rest = '?', fmt.Append(nil, v)
			n = uint64(len(rest))
		}
		binary.BigEndian.PutUint64(head[1:], n)
		sum.Write(head[:])
		sum.Write(rest)
	}
}

// sum reads a table, or its first rows if limit is not 0.
func (t *Tx) sum(op string, tb table, limit int64, far func(string, int64)) (Copied, error) {
	c := Copied{Table: tb.name}
	sum := sha256.New()
	err := t.each(op, tb, limit, func(_ []string, values []driver.Value) error {
		c.Rows++
		add(sum, values)
		if far != nil && c.Rows%copyRows == 0 {
			far(tb.name, c.Rows)
		}
		return nil
	})
	c.Digest = hex.EncodeToString(sum.Sum(nil))
	return c, err
}

// compare reads what was copied, and returns an error if it is not the same.
func (s Store) compare(ctx context.Context, all []table, copied []Copied, far func(string, int64)) error {
	const op = "store.Copy"
	return s.db.Read(ctx, op, Deployment, func(t *Tx) error {
		for i, tb := range all {
			c, err := t.sum(op, tb, 0, far)
			if err != nil {
				return err
			}
			if c != copied[i] {
				return artel.Errorf(artel.Conflict, op, tb.name, "the copy has %d rows and differs from the source, which has %d: the source has changed between two attempts; begin again with an empty destination", c.Rows, copied[i].Rows)
			}
		}
		return nil
	})
}

// reindex makes the search index of all messages, unless there is one.
func (s Store) reindex(ctx context.Context) error {
	const op = "store.Copy"
	type message struct {
		at    Place
		owner artel.Owner
		text  string
	}
	after := int64(0)
	for {
		var found []message
		err := s.db.Read(ctx, op, Deployment, func(t *Tx) (err error) {
			found, err = list(t, op, "", `SELECT m.n, c.number, m.owner, m.parts FROM messages m JOIN conversations c ON c.owner = m.owner AND c.id = m.conversation
				WHERE m.n > ? AND m.role IN (?, ?) AND m.parts IS NOT NULL ORDER BY m.n LIMIT ?`, []any{after, artel.RoleUser, artel.RoleAssistant, copyRows}, func(r Row, m *message) error {
				var raw string
				if err := r.Scan(&m.at.Message, &m.at.Conversation, &m.owner, &raw); err != nil {
					return err
				}
				var parts artel.Parts
				if err := json.Unmarshal([]byte(raw), &parts); err != nil {
					return err
				}
				m.text = artel.TextOf(parts)
				return nil
			})
			return err
		})
		if err != nil || len(found) == 0 {
			return err
		}
		err = s.db.Write(ctx, Deployment, func(t *Tx) error {
			for _, m := range found {
				grams := gramsOf(m.text)
				if grams == "" {
					continue
				}
				if err := t.Grams.Remove(t.conn, m.at); err != nil {
					return t.fail(op, "", err)
				}
				if err := t.Grams.Add(t.conn, m.owner, m.at, grams); err != nil {
					return t.fail(op, "", err)
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
		after = found[len(found)-1].at.Message
	}
}

// Sum returns the numbers of rows and their digests, as [Copy] does.
func Sum(ctx context.Context, s Store, withObjects bool) (all []Copied, err error) {
	const op = "store.Sum"
	err = s.db.Read(ctx, op, Deployment, func(t *Tx) error {
		of := tables
		if withObjects {
			of = slices.Concat(tables, objects)
		}
		for _, tb := range of {
			c, err := t.sum(op, tb, 0, nil)
			if err != nil {
				return err
			}
			all = append(all, c)
		}
		return nil
	})
	return all, err
}

// ForgetObjects removes what a copied database says about the objects of a bucket, when its
// blobs are to be in a folder.
func ForgetObjects(ctx context.Context, s Store) error {
	const op = "store.ForgetObjects"
	return s.db.Write(ctx, Deployment, func(t *Tx) error {
		for _, tb := range objects {
			if _, err := t.change(op, tb.name, "DELETE FROM "+tb.name); err != nil {
				return err
			}
		}
		return nil
	})
}

// Kept returns the digests of the blobs without which something that users store cannot be
// read, and their sizes in bytes, 0 where the size is not known. Other blobs can be made again.
func Kept(ctx context.Context, s Store) (map[artel.Digest]int64, error) {
	const op = "store.Kept"
	all := map[artel.Digest]int64{}
	err := s.db.Read(ctx, op, Deployment, func(t *Tx) error {
		return t.rows(op, "", `SELECT digest, coalesce(media, '{}') FROM versions WHERE in_blob = 1
			UNION SELECT digest, coalesce(media, '{}') FROM edits WHERE in_blob = 1
			UNION SELECT digest, info FROM files`, nil, func(r Row) error {
			var d artel.Digest
			var text string
			var info struct{ Size int64 }
			if err := r.Scan(&d, &text); err != nil {
				return err
			}
			if err := json.Unmarshal([]byte(text), &info); err != nil {
				return artel.Errorf(artel.Internal, op, string(d), "what is known about these bytes cannot be read: %w", err)
			}
			all[d] = max(all[d], info.Size)
			return nil
		})
	})
	return all, err
}
