-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- What model calls have used, by day. Rows stay when a user or a key is removed.
CREATE TABLE usage (
    day       INTEGER NOT NULL, -- in UTC, since 1970
    user      TEXT    NOT NULL,
    key       TEXT    NOT NULL, -- id of the key or token of the gateway's client; empty: none
    service   TEXT    NOT NULL,
    model     TEXT    NOT NULL,
    agent     TEXT    NOT NULL, -- empty: none
    source    TEXT    NOT NULL, -- gateway or run
    calls     INTEGER NOT NULL,
    input     INTEGER NOT NULL, -- tokens, like the next three
    cached    INTEGER NOT NULL, -- of input
    output    INTEGER NOT NULL,
    reasoning INTEGER NOT NULL, -- of output
    cost      INTEGER NOT NULL, -- in billionths of a US dollar, of calls with a known cost
    unknown   INTEGER NOT NULL, -- calls without a known cost
    PRIMARY KEY (day, user, key, service, model, agent, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_key ON usage (key, day);
CREATE INDEX usage_by_user ON usage (user, day);

-- What limits have counted in their period, at most: calls are counted here before
-- they are made.
CREATE TABLE usage_marks (
    subject TEXT    NOT NULL PRIMARY KEY,
    began   INTEGER NOT NULL,
    amount  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
