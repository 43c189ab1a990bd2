-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- What people and runs leave for each other: messages that wait for their turn,
-- what is said to a run at work, questions of permission and their answers.
CREATE TABLE notes (
    n            INTEGER PRIMARY KEY, -- the order in which they came
    owner        TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run          TEXT    NOT NULL,
    message      TEXT    NOT NULL, -- the message on whose branch it holds
    kind         TEXT    NOT NULL,
    open         INTEGER NOT NULL, -- 1: somebody has to do something about it
    body         TEXT    NOT NULL, -- JSON
    created_at   INTEGER NOT NULL,
    UNIQUE (owner, id),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX notes_by_kind ON notes (owner, conversation, kind, open);

-- A conversation has one run at work at a time, and any number that wait.
DROP INDEX runs_active;
CREATE UNIQUE INDEX runs_active ON runs (owner, conversation) WHERE state IN ('running', 'waiting');
