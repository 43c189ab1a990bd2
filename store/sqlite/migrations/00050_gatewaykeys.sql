-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Keys of clients of the gateway that users have made.
CREATE TABLE gateway_keys (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    hash       TEXT    NOT NULL UNIQUE,
    user       TEXT    NOT NULL, -- there may be no row of it in users: without a login, all belongs to local
    created_at INTEGER NOT NULL,
    used_at    INTEGER, -- exact to a minute; NULL: never
    name       TEXT    NOT NULL,
    services   TEXT    NOT NULL, -- a JSON array of ids, or null: all
    requests   INTEGER NOT NULL, -- in any minute; this and the next: 0 is no limit
    tokens     INTEGER NOT NULL, -- in any minute
    concurrent INTEGER NOT NULL, -- requests at once
    budget     REAL    NOT NULL, -- US dollars
    period     TEXT    NOT NULL, -- of the budget: day or month; empty: no budget
    expires_at INTEGER, -- NULL: never
    disabled   INTEGER NOT NULL
) STRICT;
CREATE INDEX gateway_keys_by_user ON gateway_keys (user);
