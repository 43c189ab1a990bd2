-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- The thread of a subagent that a message or an event belongs to: the ids of
-- the calls that lead to it with "/" between them. Empty: none.
ALTER TABLE messages ADD COLUMN within TEXT NOT NULL DEFAULT '';
ALTER TABLE events ADD COLUMN within TEXT NOT NULL DEFAULT '';

CREATE INDEX messages_within ON messages (owner, conversation, run, n) WHERE within <> '';
