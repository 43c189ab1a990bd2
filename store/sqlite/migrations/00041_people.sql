-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Who may use the deployment. Nothing in other tables refers to these rows: the id
-- of a user is the owner of the rows that the user makes, and stays their owner
-- when the user is removed.
CREATE TABLE users (
    n          INTEGER PRIMARY KEY, -- the order in which they were made
    id         TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    email      TEXT    NOT NULL UNIQUE, -- in lower case
    role       TEXT    NOT NULL, -- admin, member or viewer
    password   TEXT    NOT NULL, -- argon2id in PHC form; empty: none is set
    disabled   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- Links by which users set a password. Codes are kept as hashes, as all secrets here.
CREATE TABLE invitations (
    user       TEXT    NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    hash       TEXT    NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT;

-- Logins of browsers.
CREATE TABLE sessions (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    hash       TEXT    NOT NULL UNIQUE,
    user       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    client     TEXT    NOT NULL, -- User-Agent
    address    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL, -- exact to a minute
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user);

-- Tokens of programs.
CREATE TABLE tokens (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    hash       TEXT    NOT NULL UNIQUE,
    user       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name       TEXT    NOT NULL,
    scopes     TEXT    NOT NULL, -- a JSON array
    created_at INTEGER NOT NULL,
    used_at    INTEGER, -- exact to a minute; NULL: never
    expires_at INTEGER  -- NULL: never
) STRICT;
CREATE INDEX tokens_by_user ON tokens (user);
