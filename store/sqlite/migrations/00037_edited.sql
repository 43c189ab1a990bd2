-- +goose Up

-- An answer may be replaced by one that a person has written.
ALTER TABLE messages ADD COLUMN edited INTEGER NOT NULL DEFAULT 0;
