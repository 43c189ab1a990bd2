-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- The variables of macros as they are after the run that answered a message.
CREATE TABLE variables (
    owner        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    message      TEXT NOT NULL,
    value        TEXT NOT NULL, -- JSON
    PRIMARY KEY (owner, conversation, message),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;
