// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
)

// QuickCheck reads the database at path without changing it, also while a server
// uses it, and returns what is damaged; empty if nothing is.
func QuickCheck(ctx context.Context, path string) (damages []string, err error) {
	const op = "sqlite.QuickCheck"
	db, err := sql.Open("sqlite", fileURI(path)+"?mode=ro&_pragma=busy_timeout(5000)")
	if err != nil {
		return nil, failure(op, path, err)
	}
	defer db.Close()
	rows, err := db.QueryContext(ctx, "PRAGMA quick_check(20)")
	if err != nil {
		return nil, failure(op, path, err)
	}
	defer rows.Close()
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			return nil, failure(op, path, err)
		}
		if line != "ok" {
			damages = append(damages, line)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, failure(op, path, err)
	}
	return damages, nil
}
