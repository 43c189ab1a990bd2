-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- A token that was made with another one ends with it.
ALTER TABLE tokens ADD COLUMN parent TEXT REFERENCES tokens (id) ON DELETE CASCADE; -- NULL: made with a login
CREATE INDEX tokens_by_parent ON tokens (parent);
