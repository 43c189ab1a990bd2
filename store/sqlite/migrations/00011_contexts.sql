-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- How attachments were sent is asked for by whoever opens a conversation, and
-- tells little among many events.
CREATE INDEX events_contexts ON events (owner, conversation, seq) WHERE type = 'context_built';
