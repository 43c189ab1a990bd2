-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- What is deleted is hidden first, and removed later piece by piece: once that
-- has begun, it is not restored.
ALTER TABLE conversations ADD COLUMN deleted_at INTEGER; -- NULL: it is there
ALTER TABLE conversations ADD COLUMN purging INTEGER NOT NULL DEFAULT 0;
CREATE INDEX conversations_by_deletion ON conversations (deleted_at) WHERE deleted_at IS NOT NULL;

-- A search compares folded text. A conversation's number is the upper half of
-- the rowids that its messages have in grams, so that a search knows the
-- conversations of its matches without reading a message.
ALTER TABLE conversations ADD COLUMN folded_title TEXT NOT NULL DEFAULT '';
ALTER TABLE conversations ADD COLUMN number INTEGER;
UPDATE conversations SET number = (SELECT o.number FROM
    (SELECT owner, id, row_number() OVER (ORDER BY created_at, owner, id) AS number FROM conversations) o
    WHERE o.owner = conversations.owner AND o.id = conversations.id);
CREATE UNIQUE INDEX conversations_by_number ON conversations (number);

-- The grams of what users and assistants have written: every run of one to
-- three characters inside words, as search.go makes them. The rowid is the
-- conversation's number << 32 | the message's n. The text itself is read from
-- the messages: grams only say which.
CREATE VIRTUAL TABLE grams USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='ascii');

-- +goose StatementBegin
CREATE TRIGGER grams_of_message AFTER DELETE ON messages BEGIN
    DELETE FROM grams WHERE rowid = (SELECT number FROM conversations WHERE owner = old.owner AND id = old.conversation) << 32 | old.n;
END;
-- +goose StatementEnd
