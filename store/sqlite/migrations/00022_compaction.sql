-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Of a summary, the newest message that it stands for; empty: all before it.
ALTER TABLE messages ADD COLUMN covers TEXT NOT NULL DEFAULT '';

-- What a run is for; empty: it answers its message.
ALTER TABLE runs ADD COLUMN purpose TEXT NOT NULL DEFAULT '';
