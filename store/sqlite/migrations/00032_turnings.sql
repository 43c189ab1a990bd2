-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Where histories were summed up and runs went on with another service is asked
-- for by whoever opens a conversation, and is rare among its events.
CREATE INDEX events_turnings ON events (owner, conversation, seq) WHERE type IN ('compaction_completed', 'service_changed');
