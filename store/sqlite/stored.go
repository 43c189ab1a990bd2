// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"

	"github.com/artelhq/artel"
)

// The same counts as those of the triggers, computed from the rows.
const (
	recountBlobs = `SELECT owner, digest, count(*) AS uses, max(size) AS size FROM (
		SELECT owner, digest, coalesce(iif(json_valid(media), json_extract(media, '$.size'), 0), 0) AS size FROM versions WHERE in_blob = 1
		UNION ALL SELECT owner, digest, coalesce(iif(json_valid(media), json_extract(media, '$.size'), 0), 0) FROM edits WHERE in_blob = 1
		UNION ALL SELECT owner, digest, coalesce(iif(json_valid(info), json_extract(info, '$.size'), 0), 0) FROM files
	) GROUP BY owner, digest`
	recountBytes = `SELECT owner, sum(bytes) AS bytes FROM (
		SELECT owner, size AS bytes FROM blobs
		UNION ALL SELECT owner, coalesce(octet_length(text), 0) + iif(octet_length(changes) > 4096, octet_length(changes), 0) FROM versions
		UNION ALL SELECT owner, coalesce(octet_length(text), 0) + iif(octet_length(changes) > 4096, octet_length(changes), 0) FROM edits
	) GROUP BY owner`
)

// A Miscount is an owner whose stored bytes are not what the rows add up to.
type Miscount struct {
	Owner         artel.Owner
	Counted, Real int64 // bytes
	Blobs         int   // blobs with another number of uses than is kept
}

const miscounts = "WITH blobs AS (" + recountBlobs + "), sums AS (" + recountBytes + `), wrong AS (
		SELECT coalesce(s.owner, b.owner) AS owner, count(*) AS blobs FROM stored_blobs s FULL JOIN blobs b ON b.owner = s.owner AND b.digest = s.digest
		WHERE s.uses IS NOT b.uses GROUP BY 1
	), bytes AS (
		SELECT coalesce(s.owner, r.owner) AS owner, coalesce(s.bytes, 0) AS counted, coalesce(r.bytes, 0) AS bytes FROM stored s FULL JOIN sums r ON r.owner = s.owner
	) SELECT b.owner, b.counted, b.bytes, coalesce(w.blobs, 0) FROM bytes b LEFT JOIN wrong w ON w.owner = b.owner
	WHERE b.counted <> b.bytes OR w.blobs > 0 ORDER BY b.owner`

// Recount adds up what each owner of a database file stores, from its rows, and
// returns the owners with other numbers in the tables. With repair it stores the right
// numbers, and keeps other writers waiting while it adds up; otherwise it changes
// nothing. A database of an older schema has no numbers, and so none that are wrong.
func Recount(ctx context.Context, path string, repair bool) (found []Miscount, err error) {
	const op = "sqlite.Recount"
	mode := "?mode=ro"
	if repair {
		mode = "?mode=rw&_txlock=immediate"
	}
	db, err := sql.Open("sqlite", fileURI(path)+mode+"&_pragma=busy_timeout(60000)")
	if err != nil {
		return nil, failure(op, path, err)
	}
	defer func() { _ = db.Close() }()
	if found, err = recount(ctx, db, repair); err != nil {
		return nil, failure(op, path, err)
	}
	return found, nil
}

func recount(ctx context.Context, db *sql.DB, repair bool) (found []Miscount, err error) {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback() }()
	var there int
	if err := tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema WHERE name = 'stored'").Scan(&there); err != nil || there == 0 {
		return nil, err
	}
	rows, err := tx.QueryContext(ctx, miscounts)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var m Miscount
		if err := rows.Scan(&m.Owner, &m.Counted, &m.Real, &m.Blobs); err != nil {
			return nil, err
		}
		found = append(found, m)
	}
	if err := rows.Err(); err != nil || !repair || len(found) == 0 {
		return found, err
	}
	for _, query := range []string{
		"DELETE FROM stored_blobs", "INSERT INTO stored_blobs (owner, digest, uses, size) " + recountBlobs,
		"DELETE FROM stored", // the triggers of stored_blobs have counted
		"INSERT INTO stored (owner, bytes) WITH blobs AS (SELECT owner, size FROM stored_blobs) " + recountBytes,
	} {
		if _, err := tx.ExecContext(ctx, query); err != nil {
			return nil, err
		}
	}
	return found, tx.Commit()
}
