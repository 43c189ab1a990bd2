// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"io/fs"
	"strconv"
	"strings"

	"github.com/pressly/goose/v3"

	"github.com/artelhq/artel"
)

//go:embed migrations/*.sql
var migrations embed.FS

// prepare brings the schema up to date. The usual case, that it is, costs one
// query.
func (s *Store) prepare(ctx context.Context) error {
	latest, err := latestSchema()
	if err != nil {
		return err
	}
	// Another process may be at the same work: what it did first makes ours
	// fail, and is then just what was wanted.
	const attempts = 5
	for i := 0; ; i++ {
		version, err := schemaOf(ctx, s.db)
		switch {
		case err != nil:
			return err
		case version == latest:
			return nil
		case version > latest:
			return artel.Errorf(artel.Unsupported, "store.Open", s.path,
				"the database has schema %d, this program knows up to %d: use a newer program, or another file", version, latest)
		}
		if err := migrateTo(ctx, s.db, latest); err != nil && i+1 == attempts {
			return err
		}
	}
}

// schemaOf returns the newest migration that db has, 0 for a new database.
func schemaOf(ctx context.Context, db *sql.DB) (int64, error) {
	var known int
	err := db.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'goose_db_version'").Scan(&known)
	if err != nil || known == 0 {
		return 0, err
	}
	var version sql.NullInt64
	err = db.QueryRowContext(ctx, "SELECT max(version_id) FROM goose_db_version WHERE is_applied").Scan(&version)
	return version.Int64, err
}

// The migrations that are written in Go: SQL alone cannot fold text, nor cut it
// after a number of characters without reading all of it into one row.
const (
	schemaIndexed = 3
	schemaNewest  = 9
)

func inGo() []*goose.Migration {
	return []*goose.Migration{
		goose.NewGoMigration(schemaIndexed, &goose.GoFunc{RunTx: indexAll}, nil),
		goose.NewGoMigration(schemaNewest, &goose.GoFunc{RunTx: packAll}, nil),
	}
}

// latestSchema returns the newest migration in the program.
func latestSchema() (int64, error) {
	entries, err := migrations.ReadDir("migrations")
	if err != nil {
		return 0, err
	}
	number, _, _ := strings.Cut(entries[len(entries)-1].Name(), "_")
	latest, err := strconv.ParseInt(number, 10, 64)
	return max(latest, schemaNewest), err
}

// migrateTo applies the migrations up to version.
func migrateTo(ctx context.Context, db *sql.DB, version int64) error {
	files, err := fs.Sub(migrations, "migrations")
	if err != nil {
		return err
	}
	p, err := goose.NewProvider(goose.DialectSQLite3, db, files, goose.WithDisableGlobalRegistry(true), goose.WithGoMigrations(inGo()...))
	if err != nil {
		return err
	}
	_, err = p.UpTo(ctx, version)
	return err
}
