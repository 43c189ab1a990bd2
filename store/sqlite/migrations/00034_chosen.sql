-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Which service was chosen for a message is asked for with the other turnings.
DROP INDEX events_turnings;
CREATE INDEX events_turnings ON events (owner, conversation, seq) WHERE type IN ('compaction_completed', 'service_changed', 'service_chosen');
