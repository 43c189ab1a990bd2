-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Other forms of bytes that were made once: smaller pictures, the words of a
-- recording. form says which and how it was made; info is the MediaInfo of
-- the made bytes as JSON.
CREATE TABLE renditions (
    owner      TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    form       TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    info       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, source, form)
) STRICT, WITHOUT ROWID;
