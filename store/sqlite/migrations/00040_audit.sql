-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Who did what to which thing, when and from where, in the whole deployment.
-- Rows never change; old ones are removed.
CREATE TABLE audit (
    n       INTEGER PRIMARY KEY AUTOINCREMENT,
    time    INTEGER NOT NULL,
    actor   TEXT    NOT NULL, -- an owner; empty: unknown
    action  TEXT    NOT NULL,
    target  TEXT    NOT NULL, -- may be empty, as the following columns
    detail  TEXT    NOT NULL,
    address TEXT    NOT NULL  -- of the client
) STRICT;
CREATE INDEX audit_by_time ON audit (time);
CREATE INDEX audit_by_actor ON audit (actor, n);
CREATE INDEX audit_by_action ON audit (action, n);
-- +goose StatementBegin
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'entries of the audit log never change'); END;
-- +goose StatementEnd
