-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- The notes of one run, without those of all others of the conversation.
CREATE INDEX notes_by_run ON notes (owner, conversation, run, kind);

-- Runs that have ended kept an empty note.
DELETE FROM notes WHERE kind = 'heads' AND body = '{}';
