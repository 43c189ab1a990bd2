// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestSchema is internal, because from outside a new database is the same
// whether schema.sql or the migrations made it. With ARTEL_MAKE_SCHEMA it
// writes schema.sql.
func TestSchema(t *testing.T) {
	open := func() *sql.DB {
		db, err := sql.Open("sqlite", filepath.Join(t.TempDir(), "a.db"))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { db.Close() })
		return db
	}
	made, migrated := open(), open()
	if os.Getenv("ARTEL_MAKE_SCHEMA") != "" {
		known, err := knownSchema()
		if err == nil {
			err = migrateTo(context.Background(), migrated, known.newest)
		}
		if err == nil {
			err = os.WriteFile("schema.sql", []byte(dump(t, migrated)), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	if err := createSchema(t.Context(), made); err != nil {
		t.Fatal(err)
	}
	has, _, err := schemaOf(t.Context(), made)
	if err != nil || has.newest < schemaNewest {
		t.Fatalf("schema.sql makes schema %d: %v", has.newest, err)
	}
	if err := migrateTo(context.Background(), migrated, has.newest); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"SELECT type || ' ' || name || ' ' || coalesce(sql, '') FROM sqlite_schema",
		"SELECT version_id FROM goose_db_version",
		"SELECT name || ' ' || (SELECT count(*) FROM pragma_table_info(name)) FROM sqlite_schema WHERE type = 'table'",
	} {
		got, want := strs(t, made, query), strs(t, migrated, query)
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: schema.sql makes\n%q\nmigrations make\n%q\nrun go generate ./store/sqlite", query, got, want)
		}
	}
	for _, table := range strs(t, made, "SELECT name FROM sqlite_schema WHERE type = 'table'") {
		count := fmt.Sprintf("SELECT count(*) FROM %q", table)
		if got, want := strs(t, made, count), strs(t, migrated, count); !slices.Equal(got, want) {
			t.Errorf("%s has %s rows from schema.sql, %s from migrations", table, got, want)
		}
	}
}

// dump returns the statements that make a database like db.
func dump(t *testing.T, db *sql.DB) string {
	var b strings.Builder
	b.WriteString("-- Generated from migrations by go generate. Do not edit.\n")
	for _, s := range strs(t, db, `SELECT s.sql FROM sqlite_schema s JOIN pragma_table_list l ON l.name = s.tbl_name AND l.schema = 'main'
		WHERE s.sql IS NOT NULL AND s.name NOT LIKE 'sqlite\_%' ESCAPE '\' AND l.type <> 'shadow' ORDER BY s.rowid`) {
		b.WriteString(s + ";\n")
	}
	for _, v := range strs(t, db, "SELECT version_id FROM goose_db_version ORDER BY id") {
		b.WriteString("INSERT INTO goose_db_version (version_id, is_applied) VALUES (" + v + ", 1);\n")
	}
	return b.String()
}

func strs(t *testing.T, db *sql.DB, query string) []string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), query)
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
	return all
}
