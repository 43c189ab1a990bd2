// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"bytes"
	"compress/gzip"
	"context"
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// schema lists what a database is made of.
func schema(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	slices.Sort(all)
	return all
}

// TestBlank is internal, because from outside a new database is the same
// whichever way it was made: it holds the file to the migrations, up to where
// it has come to, and makes it anew for go generate.
func TestBlank(t *testing.T) {
	at := func(path string, version int64) *sql.DB {
		db, err := sql.Open("sqlite", path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		if version > 0 {
			if err := migrateTo(context.Background(), db, version); err != nil {
				t.Fatal(err)
			}
		}
		return db
	}
	dir := t.TempDir()
	if os.Getenv("ARTEL_MAKE_BLANK") != "" {
		known, err := knownSchema()
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "new.db")
		if _, err := at(filepath.Join(dir, "full.db"), known.newest).ExecContext(t.Context(), "VACUUM INTO ?", path); err != nil {
			t.Fatal(err)
		}
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		z, _ := gzip.NewWriterLevel(&b, gzip.BestCompression)
		_, _ = z.Write(content)
		if err := z.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("blank.db.gz", b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	content, err := blank()
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "blank.db")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	made := at(path, 0)
	has, err := schemaOf(t.Context(), made)
	if err != nil || has.newest < schemaNewest {
		t.Fatalf("the blank database has schema %d: %v", has.newest, err)
	}
	migrated := at(filepath.Join(dir, "migrated.db"), has.newest)
	if got, want := schema(t, made), schema(t, migrated); !slices.Equal(got, want) {
		t.Errorf("the blank database has\n%q\nmigrations make\n%q\nrun go generate ./store/sqlite", got, want)
	}
	for _, table := range tables(t, made) {
		var n, want int
		for db, to := range map[*sql.DB]*int{made: &n, migrated: &want} {
			if err := db.QueryRowContext(t.Context(), "SELECT count(*) FROM \""+table+"\"").Scan(to); err != nil {
				t.Fatal(err)
			}
		}
		if n != want {
			t.Errorf("%s has %d rows in the blank database, %d after migrations", table, n, want)
		}
	}
}

func tables(t *testing.T, db *sql.DB) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), "SELECT name FROM sqlite_schema WHERE type = 'table'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var names []string
	for rows.Next() {
		var s string
		if err := rows.Scan(&s); err != nil {
			t.Fatal(err)
		}
		names = append(names, s)
	}
	return names
}
