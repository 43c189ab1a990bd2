-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Records are large, and are written once. What a call took is added when it
-- has ended, and lists show all but the record, so it stands by itself: SQLite
-- writes a row anew as a whole, and reads through what stands before a column.
CREATE TABLE records (
    n      INTEGER PRIMARY KEY REFERENCES contexts (n) ON DELETE CASCADE,
    record TEXT    NOT NULL -- JSON
) STRICT;

INSERT INTO records (n, record) SELECT n, record FROM contexts;
ALTER TABLE contexts DROP COLUMN record;

-- Likewise the newest use of a segment, which changes with every call.
CREATE TABLE segment_uses (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    used         INTEGER NOT NULL, -- the n of the newest context that names it
    PRIMARY KEY (owner, conversation, digest),
    FOREIGN KEY (owner, conversation, digest) REFERENCES segments (owner, conversation, digest) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

INSERT INTO segment_uses (owner, conversation, digest, used) SELECT owner, conversation, digest, used FROM segments;
DROP INDEX segments_by_use;
ALTER TABLE segments DROP COLUMN used;
