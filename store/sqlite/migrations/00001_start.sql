-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- Times are microseconds since 1970, UTC. An empty text is "none", except
-- where NULL has a meaning of its own. The owner is part of every key, so that
-- no reference can cross from one owner to another.

CREATE TABLE conversations (
    owner      TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    service    TEXT    NOT NULL,
    leaf       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;

CREATE INDEX conversations_by_update ON conversations (owner, updated_at, id);

CREATE TABLE messages (
    n            INTEGER PRIMARY KEY, -- breaks ties between equal times
    parent_n     INTEGER,             -- the parent's n, so that a branch is walked fast
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    parent       TEXT    NOT NULL,
    role         TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    run          TEXT    NOT NULL,
    muted        INTEGER NOT NULL,
    summary      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    parts        TEXT,                -- JSON; NULL: nil
    UNIQUE (owner, id),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX messages_by_time ON messages (owner, conversation, created_at, n);

CREATE TABLE artifacts (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    created_at   INTEGER NOT NULL,
    PRIMARY KEY (owner, conversation, id),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- What artifacts were, as their readers see it.
CREATE TABLE versions (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    artifact     TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    parent       INTEGER NOT NULL,
    message      TEXT    NOT NULL,
    run          TEXT    NOT NULL,
    author       TEXT    NOT NULL,
    update_type  TEXT    NOT NULL,
    title        TEXT    NOT NULL,
    filename     TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    media        TEXT    NOT NULL, -- JSON of what is known about the bytes
    digest       TEXT    NOT NULL,
    in_blob      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    changes      TEXT,             -- JSON; NULL: nil
    text         TEXT,             -- NULL: binary
    PRIMARY KEY (owner, conversation, artifact, number),
    FOREIGN KEY (owner, conversation, artifact) REFERENCES artifacts (owner, conversation, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX versions_by_digest ON versions (owner, digest);

-- The journal: every edit under its own number, kept when it is folded. The
-- newest number of an artifact is found here, so that its row must stay. The
-- key begins with what runs look for, and the unfolded edits are few and close
-- together in it, so that an append touches few pages.
CREATE TABLE edits (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    artifact     TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    folded       INTEGER NOT NULL, -- 1: a visible version holds it
    parent       INTEGER NOT NULL,
    message      TEXT    NOT NULL,
    run          TEXT    NOT NULL,
    author       TEXT    NOT NULL,
    update_type  TEXT    NOT NULL,
    title        TEXT    NOT NULL,
    filename     TEXT    NOT NULL,
    source       TEXT    NOT NULL,
    media        TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    in_blob      INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    changes      TEXT,
    text         TEXT,             -- NULL: follows from changes, or binary
    PRIMARY KEY (owner, conversation, folded, artifact, number),
    FOREIGN KEY (owner, conversation, artifact) REFERENCES artifacts (owner, conversation, id) ON DELETE CASCADE
) STRICT;

CREATE INDEX edits_by_digest ON edits (owner, digest) WHERE in_blob = 1;

CREATE TABLE runs (
    owner        TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    message      TEXT    NOT NULL,
    reply        TEXT    NOT NULL,
    state        TEXT    NOT NULL,
    service      TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    usage        TEXT    NOT NULL, -- JSON
    error        TEXT,             -- JSON; NULL: none
    started_at   INTEGER NOT NULL,
    finished_at  INTEGER,
    holder       TEXT    NOT NULL, -- of the lease: the process that works on the run
    lease_until  INTEGER NOT NULL,
    PRIMARY KEY (owner, id),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

-- A conversation has one run at a time.
CREATE UNIQUE INDEX runs_active ON runs (owner, conversation) WHERE state IN ('queued', 'running', 'waiting');
CREATE INDEX runs_by_conversation ON runs (owner, conversation);
CREATE INDEX runs_by_lease ON runs (lease_until) WHERE state IN ('queued', 'running', 'waiting');

CREATE TABLE events (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    seq          INTEGER NOT NULL, -- from 1, without gaps
    type         TEXT    NOT NULL,
    run          TEXT    NOT NULL,
    agent        TEXT    NOT NULL,
    time         INTEGER NOT NULL,
    data         TEXT,             -- JSON; NULL: nil
    PRIMARY KEY (owner, conversation, seq),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;

CREATE TABLE answers (
    owner      TEXT    NOT NULL,
    key        TEXT    NOT NULL,
    request    TEXT    NOT NULL,
    status     INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    body       BLOB,
    PRIMARY KEY (owner, key)
) STRICT;

CREATE INDEX answers_by_time ON answers (owner, created_at);
