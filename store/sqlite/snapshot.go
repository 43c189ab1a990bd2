// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
)

// Snapshot writes one state of the database at path to a new file, also while a server uses it.
// It changes nothing at path, not its schema either.
func Snapshot(ctx context.Context, path, to string) error {
	const op = "sqlite.Snapshot"
	db, err := sql.Open("sqlite", fileURI(path)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return failure(op, path, err)
	}
	defer db.Close()
	if _, err := db.ExecContext(ctx, "VACUUM INTO ?", to); err != nil {
		return failure(op, path, err)
	}
	return nil
}
