-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Grows with each change of an artifact's versions, over the artifacts of a
-- conversation, so that a reader who remembers them finds what is new.
ALTER TABLE artifacts ADD COLUMN mark INTEGER NOT NULL DEFAULT 0;
CREATE INDEX artifacts_by_mark ON artifacts (owner, conversation, mark);
