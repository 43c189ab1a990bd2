// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/jackc/pgx/v5"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store"
	"github.com/artelhq/artel/store/postgres/postgrestest"
	"github.com/artelhq/artel/store/rows"
	"github.com/artelhq/artel/store/sqlite/sqlitetest"
)

// fillTables makes two rows in each table of a file of SQLite, with values that are hard to
// carry over. It returns the file.
func fillTables(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "from.db")
	if err := sqlitetest.Open(t, path).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path+"?_pragma=foreign_keys(1)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	const hard = "zero \x00 one \x01 quote ' \" 中文 🧵 "
	for _, table := range rows.Tables() {
		if strings.HasPrefix(table, "stored") { // triggers fill them
			continue
		}
		columns, err := db.Query("SELECT name, type, \"notnull\" FROM pragma_table_info(?)", table)
		if err != nil {
			t.Fatal(err)
		}
		var names, marks []string
		var values [2][]any
		for columns.Next() {
			var name, kind string
			var filled bool
			if err := columns.Scan(&name, &kind, &filled); err != nil {
				t.Fatal(err)
			}
			names, marks = append(names, `"`+name+`"`), append(marks, "?")
			for k := range values {
				var v any
				switch key := table + "." + name; {
				case key == "conversations.id":
					v = fmt.Sprint(hard, "conversation", k)
				case key == "artifacts.id":
					v = fmt.Sprint(hard, "artifact", k)
				case key == "users.id":
					v = fmt.Sprint(hard, "user", k)
				case key == "webhooks.id" || key == "deliveries.webhook":
					v = fmt.Sprint(hard, "webhook", k)
				case key == "schedules.id" || key == "schedule_runs.schedule":
					v = fmt.Sprint(hard, "schedule", k)
				case name == "deleted_at" || name == "parent" || name == "parent_n":
					switch {
					case filled && kind == "TEXT":
						v = ""
					case filled:
						v = 0
					}
				case name == "parts":
					v = fmt.Sprintf(`[{"type":"text","text":"needle %d"}]`, k)
				case name == "role" && table == "messages":
					v = "user"
				case name == "state":
					v = "done"
				case name == "owner":
					v = "local"
				case name == "info", name == "media", name == "usage" && table == "runs":
					v = "{}"
				case name == "in_blob":
					v = k
				case kind == "INTEGER":
					v = 1<<40 + k
					if name == "n" || name == "number" || name == "seq" {
						v = k + 1
					}
				case kind == "REAL":
					v = 0.1 + float64(k)
				case kind == "BLOB":
					v = []byte{0, 255, byte(k)}
				default:
					v = fmt.Sprint(hard, name, k)
				}
				values[k] = append(values[k], v)
			}
		}
		if err := columns.Err(); err != nil {
			t.Fatal(err)
		}
		columns.Close()
		for _, row := range values {
			if _, err := db.Exec("INSERT INTO "+table+" ("+strings.Join(names, ", ")+") VALUES ("+strings.Join(marks, ", ")+")", row...); err != nil {
				t.Fatalf("%s: %v", table, err)
			}
		}
	}
	return path
}

// TestCopy copies rows of every table from SQLite to PostgreSQL and back, and finds the same
// rows and the same by a search; numbers continue. A copy that was broken off is continued, and
// one of other rows refused.
func TestCopy(t *testing.T) {
	ctx := t.Context()
	from := sqlitetest.Open(t, fillTables(t))
	to := postgrestest.Open(t, server.Schema(t))
	broken, cancel := context.WithCancel(ctx)
	if _, err := rows.Copy(broken, from.Store, to.Store, rows.CopyOptions{Objects: true, Far: func(table string, _ int64) {
		if table == "events" {
			cancel()
		}
	}}); err == nil {
		t.Fatal("it was not broken off")
	}
	if _, err := rows.Copy(ctx, from.Store, to.Store, rows.CopyOptions{Objects: true}); artel.KindOf(err) != artel.Conflict || !strings.Contains(err.Error(), "--resume") {
		t.Errorf("into what has rows: %v", err)
	}
	there, err := rows.Copy(ctx, from.Store, to.Store, rows.CopyOptions{Objects: true, Resume: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, table := range there {
		if table.Rows != 2 {
			t.Errorf("%d rows of %s", table.Rows, table.Table)
		}
	}
	again := sqlitetest.Open(t, filepath.Join(t.TempDir(), "back.db"))
	back, err := rows.Copy(ctx, to.Store, again.Store, rows.CopyOptions{Objects: true})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(there, back); d != "" {
		t.Error(d)
	}
	found := func(s store.Store) (ids []artel.ConversationID) {
		t.Helper()
		if err := s.View(ctx, artel.Local, func(tx store.Tx) error {
			list, _, err := tx.Conversations.List(store.ConversationQuery{Search: "needle"})
			for _, c := range list {
				ids = append(ids, c.ID)
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return ids
	}
	used := func(s store.Store) (n int64) {
		t.Helper()
		if err := s.View(ctx, artel.Local, func(tx store.Tx) (err error) {
			n, err = tx.Storage.Used()
			return err
		}); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for name, s := range map[string]store.Store{"PostgreSQL": to, "back in SQLite": again} {
		if got := found(s); len(got) != 2 {
			t.Errorf("%s: the search finds %q", name, got)
		}
		if got, want := used(s), used(from); got != want {
			t.Errorf("%s: %d bytes are used, not %d", name, got, want)
		}
		c := artel.Conversation{ID: artel.NewConversationID(time.Now())}
		if err := s.Update(ctx, artel.Local, func(tx store.Tx) error {
			return errors.Join(tx.Conversations.Create(c), tx.Messages.Create(artel.Message{ID: artel.NewMessageID(time.Now()), Conversation: c.ID, Role: artel.RoleUser}))
		}); err != nil {
			t.Errorf("%s: the next message: %v", name, err)
		}
	}
	if _, err := rows.Copy(ctx, from.Store, to.Store, rows.CopyOptions{Objects: true, Resume: true}); artel.KindOf(err) != artel.Conflict {
		t.Errorf("onto other rows: %v", err)
	}
}

// TestCopyHasAll: no table of the schema is left out.
func TestCopyHasAll(t *testing.T) {
	address := server.Schema(t)
	postgrestest.Open(t, address)
	c, err := pgx.Connect(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close(context.Background())
	found, err := c.Query(t.Context(), "SELECT table_name::text FROM information_schema.tables WHERE table_schema = current_schema()")
	if err != nil {
		t.Fatal(err)
	}
	names, err := pgx.CollectRows(found, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"goose_db_version": true, "schema_oldest": true, "stored_sums": true, "stored_changes": true, "grams": true}
	for _, name := range rows.Tables() {
		known[name] = true
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("the table %s is not copied", name)
		}
	}
}
