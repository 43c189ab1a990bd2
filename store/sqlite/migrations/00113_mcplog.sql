-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Calls of MCP are in the log as well. Each of the two kinds of rows is trimmed by itself.
ALTER TABLE gateway_log ADD COLUMN server TEXT NOT NULL DEFAULT ''; -- that was called by MCP; empty: a request of the gateway
