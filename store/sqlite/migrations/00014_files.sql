-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Names for bytes that programs have uploaded. info is their MediaInfo as JSON.
CREATE TABLE files (
    owner      TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    holder     TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    filename   TEXT    NOT NULL,
    purpose    TEXT    NOT NULL,
    info       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER, -- NULL: never
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX files_by_age ON files (owner, holder, created_at, id);
CREATE INDEX files_by_expiry ON files (expires_at) WHERE expires_at IS NOT NULL;
