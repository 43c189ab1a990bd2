-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- What administrators configure while the server runs. It belongs to the deployment.
CREATE TABLE entries (
    n          INTEGER PRIMARY KEY, -- the order in which they were made
    kind       TEXT    NOT NULL, -- service, mcp_server or http_tool
    id         TEXT    NOT NULL,
    fields     TEXT    NOT NULL, -- a JSON object as in artel.yaml, without secrets
    secrets    BLOB, -- encrypted by internal/secret; NULL: none
    disabled   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (kind, id)
) STRICT;
