-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- The objects of blobs in a bucket, and the keys of those that are no blobs: reserved
-- for one that is being written, or dropped.
CREATE TABLE blobs (
    digest TEXT    PRIMARY KEY,
    key    TEXT    NOT NULL,
    size   INTEGER NOT NULL, -- bytes
    put_at INTEGER NOT NULL  -- when it was last kept
) STRICT, WITHOUT ROWID;

CREATE TABLE blob_trash (
    key TEXT    PRIMARY KEY,
    due INTEGER NOT NULL -- when its object may be deleted
) STRICT, WITHOUT ROWID;

CREATE INDEX blob_trash_due ON blob_trash (due);
