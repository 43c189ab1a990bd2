-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Addresses to which events of users are sent.
CREATE TABLE webhooks (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    user         TEXT    NOT NULL, -- there may be no row of it in users: without a login, all belongs to local
    delivered_at INTEGER, -- of the last accepted delivery; NULL: none
    created_at   INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    url          TEXT    NOT NULL,
    events       TEXT    NOT NULL, -- a JSON array of types
    secret       BLOB, -- encrypted by internal/secret
    disabled     INTEGER NOT NULL,
    reason       TEXT    NOT NULL -- why it was disabled; empty: by its user
) STRICT;
CREATE INDEX webhooks_by_user ON webhooks (user);

-- What is sent to webhooks.
CREATE TABLE deliveries (
    n            INTEGER PRIMARY KEY,
    webhook      TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    conversation TEXT    NOT NULL, -- empty: a test
    event        INTEGER NOT NULL, -- seq in events
    type         TEXT    NOT NULL, -- empty: a test
    created_at   INTEGER NOT NULL,
    state        TEXT    NOT NULL, -- waiting, accepted or failed
    attempts     INTEGER NOT NULL,
    due_at       INTEGER, -- of the next attempt; NULL: none
    tried_at     INTEGER, -- of the last attempt, like what follows; NULL: none
    status       INTEGER NOT NULL DEFAULT 0, -- HTTP; 0: no answer
    took         INTEGER NOT NULL DEFAULT 0, -- microseconds
    answer       TEXT    NOT NULL DEFAULT '', -- its beginning
    error        TEXT    NOT NULL DEFAULT '',
    UNIQUE (webhook, conversation, event)
) STRICT;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook, n);
CREATE INDEX deliveries_due ON deliveries (webhook, due_at) WHERE due_at IS NOT NULL;
