-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Where branches begin: what stands under a message.
CREATE INDEX messages_by_parent ON messages (owner, conversation, parent, n) WHERE within = '';
