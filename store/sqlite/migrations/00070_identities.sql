-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Accounts at OpenID providers by which users log in. A user has at most one of each
-- provider, so that an address that the provider gives to another person leads nowhere.
CREATE TABLE identities (
    n          INTEGER PRIMARY KEY, -- the order in which they were made
    issuer     TEXT    NOT NULL, -- the address of the provider
    subject    TEXT    NOT NULL, -- the id of the account there
    user       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    UNIQUE (issuer, subject),
    UNIQUE (user, issuer)
) STRICT;
