-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- What the gateway has done, one row for each request; of each owner the newest
-- are kept. n orders them.
CREATE TABLE gateway_log (
    n       INTEGER PRIMARY KEY AUTOINCREMENT,
    owner   TEXT    NOT NULL,
    key     TEXT    NOT NULL, -- its name; may be empty
    service TEXT    NOT NULL,
    status  INTEGER NOT NULL,
    changed INTEGER NOT NULL, -- 1: something of the request was changed
    body    TEXT    NOT NULL  -- JSON
) STRICT;

CREATE INDEX gateway_log_by_owner ON gateway_log (owner, n);
