-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- 1 while a conversation is brought in over several transactions. Until then it
-- is hidden as a deleted one is, and purged as one when nobody goes on with it.
ALTER TABLE conversations ADD COLUMN importing INTEGER NOT NULL DEFAULT 0;
