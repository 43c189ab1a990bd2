-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- What people have set. A value of NULL was deleted: its revision stays, so
-- that no other value can be taken for it.
CREATE TABLE settings (
    owner      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    value      TEXT,             -- JSON
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;

-- How the requests of model calls came to be. n orders the calls of a
-- conversation.
CREATE TABLE contexts (
    n            INTEGER PRIMARY KEY AUTOINCREMENT,
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run          TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    summary      TEXT    NOT NULL, -- JSON
    record       TEXT    NOT NULL, -- JSON
    usage        TEXT,             -- JSON; NULL: nothing was reported
    UNIQUE (owner, run, number),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX contexts_by_conversation ON contexts (owner, conversation, n);

-- The pieces of those requests that stand in no message, each once.
CREATE TABLE segments (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    used         INTEGER NOT NULL, -- the n of the newest context that names it
    body         BLOB    NOT NULL,
    PRIMARY KEY (owner, conversation, digest),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX segments_by_use ON segments (owner, conversation, used);
