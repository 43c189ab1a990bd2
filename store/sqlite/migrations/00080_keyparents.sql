-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- A key of the gateway that was made with a token ends with it.
ALTER TABLE gateway_keys ADD COLUMN parent TEXT REFERENCES tokens (id) ON DELETE CASCADE; -- NULL: made with a login, or without one
CREATE INDEX gateway_keys_by_parent ON gateway_keys (parent);
