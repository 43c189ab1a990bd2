// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/artelhq/artel"
	"github.com/artelhq/artel/store/rows"
)

//go:embed migrations/*.sql
var migrations embed.FS

//go:generate env ARTEL_MAKE_SCHEMA=1 go test -count=1 -run ^TestSchema$ .

// schemaSQL makes the schema of a new database in one transaction, which is much
// faster than the migrations. It may be older than these; the missing ones are
// then applied as to any database.
//
//go:embed schema.sql
var schemaSQL string

// makeFile creates a missing database file. SQLite would give it other modes; the
// files beside it take over the modes of this one.
func makeFile(path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return f.Close()
}

// createSchema applies schemaSQL to an empty database.
func createSchema(ctx context.Context, db *sql.DB) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if _, err := tx.ExecContext(ctx, schemaSQL); err != nil {
		return err
	}
	return tx.Commit()
}

// prepare brings the schema up to date. If it is, that costs one query.
func (s *Store) prepare(ctx context.Context) error {
	known, err := knownSchema()
	if err != nil {
		return err
	}
	// Another process may open a new file or migrate at the same time and make this
	// attempt fail. The next attempt then finds the schema up to date.
	const attempts = 5
	for i := 0; ; i++ {
		has, isNew, err := schemaOf(ctx, s.db)
		switch {
		case err != nil:
		case has == known:
			return nil
		case has.newest > known.newest:
			return artel.Errorf(artel.Unsupported, "store.Open", s.path,
				"the database has schema %d, this program supports up to %d: use a newer program, or another file", has.newest, known.newest)
		case isNew:
			err = createSchema(ctx, s.db)
		default:
			err = migrateTo(ctx, s.db, known.newest)
		}
		if err != nil && i+1 == attempts {
			return err
		}
	}
}

// A schemaState identifies the migrations that were applied. Two programs with
// the same newest migration may differ in number, because a migration with a
// lower number may be added later; it is then applied out of order.
type schemaState struct {
	newest int64
	number int
}

// schemaOf returns the state of db. A new database has no table of migrations; one
// whose first migration was interrupted has it, and its state is zero too.
func schemaOf(ctx context.Context, db *sql.DB) (has schemaState, isNew bool, err error) {
	var table int
	err = db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'").Scan(&table)
	if err != nil || table == 0 {
		return has, err == nil, err
	}
	err = db.QueryRowContext(ctx, `SELECT count(DISTINCT version_id), coalesce(max(version_id), 0)
		FROM goose_db_version WHERE is_applied AND version_id > 0`).Scan(&has.number, &has.newest)
	return has, false, err
}

// The migrations written in Go: SQL alone can neither fold text, nor cut it after
// a number of characters without reading all of it.
const (
	schemaIndexed = 3
	schemaNewest  = 9
)

func inGo() []*goose.Migration {
	return []*goose.Migration{
		goose.NewGoMigration(schemaIndexed, &goose.GoFunc{RunTx: rows.IndexAll}, nil),
		goose.NewGoMigration(schemaNewest, &goose.GoFunc{RunTx: rows.AddHeads}, nil),
	}
}

// knownSchema returns the state after all migrations of this program.
func knownSchema() (schemaState, error) {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		return schemaState{}, err
	}
	number, _, _ := strings.Cut(entries[len(entries)-1].Name(), "_")
	newest, err := strconv.ParseInt(number, 10, 64)
	return schemaState{newest: max(newest, schemaNewest), number: len(entries) + len(inGo())}, err
}

// migrateTo applies the missing migrations up to version.
func migrateTo(ctx context.Context, db *sql.DB, version int64) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true), goose.WithAllowOutofOrder(true), goose.WithGoMigrations(inGo()...))
	if err != nil {
		return err
	}
	_, err = p.UpTo(ctx, version)
	return err
}
