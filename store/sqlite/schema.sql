-- Generated from migrations by go generate. Do not edit.
CREATE TABLE goose_db_version (
		id INTEGER PRIMARY KEY AUTOINCREMENT,
		version_id INTEGER NOT NULL,
		is_applied INTEGER NOT NULL,
		tstamp TIMESTAMP DEFAULT (datetime('now'))
	);
CREATE TABLE conversations (
    owner      TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    title      TEXT    NOT NULL,
    agent      TEXT    NOT NULL,
    service    TEXT    NOT NULL,
    leaf       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL, deleted_at INTEGER, purging INTEGER NOT NULL DEFAULT 0, folded_title TEXT NOT NULL DEFAULT '', number INTEGER, importing INTEGER NOT NULL DEFAULT 0,
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
    parts        TEXT, covers TEXT NOT NULL DEFAULT '', within TEXT NOT NULL DEFAULT '', edited INTEGER NOT NULL DEFAULT 0,                -- JSON; NULL: nil
    UNIQUE (owner, id),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX messages_by_time ON messages (owner, conversation, created_at, n);
CREATE TABLE artifacts (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    created_at   INTEGER NOT NULL, newest TEXT NOT NULL DEFAULT '',
    PRIMARY KEY (owner, conversation, id),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
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
    lease_until  INTEGER NOT NULL, purpose TEXT NOT NULL DEFAULT '', worked INTEGER NOT NULL DEFAULT 0, term INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (owner, id),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
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
    data         TEXT, within TEXT NOT NULL DEFAULT '',             -- JSON; NULL: nil
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
CREATE INDEX conversations_by_deletion ON conversations (deleted_at) WHERE deleted_at IS NOT NULL;
CREATE UNIQUE INDEX conversations_by_number ON conversations (number);
CREATE VIRTUAL TABLE grams USING fts5(text, content='', contentless_delete=1, detail=none, tokenize='ascii');
CREATE TRIGGER grams_of_message AFTER DELETE ON messages BEGIN
    DELETE FROM grams WHERE rowid = (SELECT number FROM conversations WHERE owner = old.owner AND id = old.conversation) << 32 | old.n;
END;
CREATE TABLE renditions (
    owner      TEXT    NOT NULL,
    source     TEXT    NOT NULL,
    form       TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    info       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    PRIMARY KEY (owner, source, form)
) STRICT, WITHOUT ROWID;
CREATE INDEX versions_of_tools ON versions (created_at) WHERE source = 'tool_result' AND run = '';
CREATE INDEX events_contexts ON events (owner, conversation, seq) WHERE type = 'context_built';
CREATE TABLE variables (
    owner        TEXT NOT NULL,
    conversation TEXT NOT NULL,
    message      TEXT NOT NULL,
    value        TEXT NOT NULL, -- JSON
    PRIMARY KEY (owner, conversation, message),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;
CREATE TABLE settings (
    owner      TEXT    NOT NULL,
    name       TEXT    NOT NULL,
    revision   INTEGER NOT NULL,
    value      TEXT,             -- JSON
    updated_at INTEGER NOT NULL,
    PRIMARY KEY (owner, name)
) STRICT, WITHOUT ROWID;
CREATE TABLE contexts (
    n            INTEGER PRIMARY KEY AUTOINCREMENT,
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run          TEXT    NOT NULL,
    number       INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    summary      TEXT    NOT NULL, -- JSON
    usage        TEXT,             -- JSON; NULL: nothing was reported
    UNIQUE (owner, run, number),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX contexts_by_conversation ON contexts (owner, conversation, n);
CREATE TABLE segments (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    body         BLOB    NOT NULL,
    PRIMARY KEY (owner, conversation, digest),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;
CREATE TABLE files (
    owner      TEXT    NOT NULL,
    id         TEXT    NOT NULL,
    holder     TEXT    NOT NULL,
    digest     TEXT    NOT NULL,
    filename   TEXT    NOT NULL,
    purpose    TEXT    NOT NULL,
    info       TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    expires_at INTEGER, -- NULL: never
    PRIMARY KEY (owner, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX files_by_age ON files (owner, holder, created_at, id);
CREATE INDEX files_by_expiry ON files (expires_at) WHERE expires_at IS NOT NULL;
CREATE TABLE gateway_log (
    n       INTEGER PRIMARY KEY AUTOINCREMENT,
    owner   TEXT    NOT NULL,
    key     TEXT    NOT NULL, -- its name; may be empty
    service TEXT    NOT NULL,
    status  INTEGER NOT NULL,
    changed INTEGER NOT NULL, -- 1: something of the request was changed
    body    TEXT    NOT NULL  -- JSON
, server TEXT NOT NULL DEFAULT '') STRICT;
CREATE INDEX gateway_log_by_owner ON gateway_log (owner, n);
CREATE TABLE records (
    n      INTEGER PRIMARY KEY REFERENCES contexts (n) ON DELETE CASCADE,
    record TEXT    NOT NULL -- JSON
) STRICT;
CREATE TABLE segment_uses (
    owner        TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    digest       TEXT    NOT NULL,
    used         INTEGER NOT NULL, -- the n of the newest context that names it
    PRIMARY KEY (owner, conversation, digest),
    FOREIGN KEY (owner, conversation, digest) REFERENCES segments (owner, conversation, digest) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
CREATE INDEX messages_within ON messages (owner, conversation, run, n) WHERE within <> '';
CREATE TABLE notes (
    n            INTEGER PRIMARY KEY, -- the order in which they came
    owner        TEXT    NOT NULL,
    id           TEXT    NOT NULL,
    conversation TEXT    NOT NULL,
    run          TEXT    NOT NULL,
    message      TEXT    NOT NULL, -- the message on whose branch it holds
    kind         TEXT    NOT NULL,
    open         INTEGER NOT NULL, -- 1: somebody has to do something about it
    body         TEXT    NOT NULL, -- JSON
    created_at   INTEGER NOT NULL,
    UNIQUE (owner, id),
    FOREIGN KEY (owner, conversation) REFERENCES conversations (owner, id) ON DELETE CASCADE
) STRICT;
CREATE INDEX notes_by_kind ON notes (owner, conversation, kind, open);
CREATE UNIQUE INDEX runs_active ON runs (owner, conversation) WHERE state IN ('running', 'waiting');
CREATE INDEX messages_by_parent ON messages (owner, conversation, parent, n) WHERE within = '';
CREATE INDEX events_turnings ON events (owner, conversation, seq) WHERE type IN ('compaction_completed', 'service_changed', 'service_chosen');
CREATE TABLE audit (
    n       INTEGER PRIMARY KEY AUTOINCREMENT,
    time    INTEGER NOT NULL,
    actor   TEXT    NOT NULL, -- an owner; empty: unknown
    action  TEXT    NOT NULL,
    target  TEXT    NOT NULL, -- may be empty, as the following columns
    detail  TEXT    NOT NULL,
    address TEXT    NOT NULL  -- of the client
) STRICT;
CREATE INDEX audit_by_time ON audit (time);
CREATE INDEX audit_by_actor ON audit (actor, n);
CREATE INDEX audit_by_action ON audit (action, n);
CREATE TRIGGER audit_is_append_only BEFORE UPDATE ON audit BEGIN SELECT RAISE(ABORT, 'entries of the audit log never change'); END;
CREATE TABLE users (
    n          INTEGER PRIMARY KEY, -- the order in which they were made
    id         TEXT    NOT NULL UNIQUE,
    name       TEXT    NOT NULL,
    email      TEXT    NOT NULL UNIQUE, -- in lower case
    role       TEXT    NOT NULL, -- admin, member or viewer
    password   TEXT    NOT NULL, -- argon2id in PHC form; empty: none is set
    disabled   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE TABLE invitations (
    user       TEXT    NOT NULL PRIMARY KEY REFERENCES users (id) ON DELETE CASCADE,
    hash       TEXT    NOT NULL UNIQUE,
    expires_at INTEGER NOT NULL
) STRICT;
CREATE TABLE sessions (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    hash       TEXT    NOT NULL UNIQUE,
    user       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    client     TEXT    NOT NULL, -- User-Agent
    address    TEXT    NOT NULL,
    created_at INTEGER NOT NULL,
    used_at    INTEGER NOT NULL, -- exact to a minute
    expires_at INTEGER NOT NULL
) STRICT;
CREATE INDEX sessions_by_user ON sessions (user);
CREATE TABLE tokens (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    hash       TEXT    NOT NULL UNIQUE,
    user       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    name       TEXT    NOT NULL,
    scopes     TEXT    NOT NULL, -- a JSON array
    created_at INTEGER NOT NULL,
    used_at    INTEGER, -- exact to a minute; NULL: never
    expires_at INTEGER  -- NULL: never
, parent TEXT REFERENCES tokens (id) ON DELETE CASCADE) STRICT;
CREATE INDEX tokens_by_user ON tokens (user);
CREATE INDEX notes_by_run ON notes (owner, conversation, run, kind);
CREATE INDEX tokens_by_parent ON tokens (parent);
CREATE TABLE gateway_keys (
    n          INTEGER PRIMARY KEY,
    id         TEXT    NOT NULL UNIQUE,
    hash       TEXT    NOT NULL UNIQUE,
    user       TEXT    NOT NULL, -- there may be no row of it in users: without a login, all belongs to local
    created_at INTEGER NOT NULL,
    used_at    INTEGER, -- exact to a minute; NULL: never
    name       TEXT    NOT NULL,
    services   TEXT    NOT NULL, -- a JSON array of ids, or null: all
    requests   INTEGER NOT NULL, -- in any minute; this and the next: 0 is no limit
    tokens     INTEGER NOT NULL, -- in any minute
    concurrent INTEGER NOT NULL, -- requests at once
    budget     REAL    NOT NULL, -- US dollars
    period     TEXT    NOT NULL, -- of the budget: day or month; empty: no budget
    expires_at INTEGER, -- NULL: never
    disabled   INTEGER NOT NULL
, parent TEXT REFERENCES tokens (id) ON DELETE CASCADE) STRICT;
CREATE INDEX gateway_keys_by_user ON gateway_keys (user);
CREATE TABLE usage (
    day       INTEGER NOT NULL, -- in UTC, since 1970
    user      TEXT    NOT NULL,
    key       TEXT    NOT NULL, -- id of the key or token of the gateway's client; empty: none
    service   TEXT    NOT NULL,
    model     TEXT    NOT NULL,
    agent     TEXT    NOT NULL, -- empty: none
    source    TEXT    NOT NULL, -- gateway or run
    calls     INTEGER NOT NULL,
    input     INTEGER NOT NULL, -- tokens, like the next three
    cached    INTEGER NOT NULL, -- of input
    output    INTEGER NOT NULL,
    reasoning INTEGER NOT NULL, -- of output
    cost      INTEGER NOT NULL, -- in billionths of a US dollar, of calls with a known cost
    unknown   INTEGER NOT NULL, -- calls without a known cost
    PRIMARY KEY (day, user, key, service, model, agent, source)
) STRICT, WITHOUT ROWID;
CREATE INDEX usage_by_key ON usage (key, day);
CREATE INDEX usage_by_user ON usage (user, day);
CREATE TABLE usage_marks (
    subject TEXT    NOT NULL PRIMARY KEY,
    began   INTEGER NOT NULL,
    amount  INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE entries (
    n          INTEGER PRIMARY KEY, -- the order in which they were made
    kind       TEXT    NOT NULL, -- service, mcp_server or http_tool
    id         TEXT    NOT NULL,
    fields     TEXT    NOT NULL, -- a JSON object as in artel.yaml, without secrets
    secrets    BLOB, -- encrypted by internal/secret; NULL: none
    disabled   INTEGER NOT NULL,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    UNIQUE (kind, id)
) STRICT;
CREATE TABLE identities (
    n          INTEGER PRIMARY KEY, -- the order in which they were made
    issuer     TEXT    NOT NULL, -- the address of the provider
    subject    TEXT    NOT NULL, -- the id of the account there
    user       TEXT    NOT NULL REFERENCES users (id) ON DELETE CASCADE,
    created_at INTEGER NOT NULL,
    UNIQUE (issuer, subject),
    UNIQUE (user, issuer)
) STRICT;
CREATE INDEX gateway_keys_by_parent ON gateway_keys (parent);
CREATE TABLE stored (
    owner TEXT    NOT NULL PRIMARY KEY,
    bytes INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE TABLE stored_blobs (
    owner  TEXT    NOT NULL,
    digest TEXT    NOT NULL,
    uses   INTEGER NOT NULL, -- rows that hold the digest
    size   INTEGER NOT NULL, -- bytes
    PRIMARY KEY (owner, digest)
) STRICT, WITHOUT ROWID;
CREATE TRIGGER stored_blob_first AFTER INSERT ON stored_blobs BEGIN
    INSERT INTO stored (owner, bytes) VALUES (new.owner, new.size) ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_blob_last AFTER UPDATE OF uses ON stored_blobs WHEN new.uses = 0 BEGIN
    DELETE FROM stored_blobs WHERE owner = new.owner AND digest = new.digest;
    UPDATE stored SET bytes = bytes - new.size WHERE owner = new.owner;
END;
CREATE TRIGGER stored_edit_blob AFTER INSERT ON edits WHEN new.in_blob = 1 BEGIN
    INSERT INTO stored_blobs (owner, digest, uses, size) VALUES (new.owner, new.digest, 1, coalesce(json_extract(new.media, '$.size'), 0))
        ON CONFLICT (owner, digest) DO UPDATE SET uses = uses + 1;
END;
CREATE TRIGGER stored_edit_blob_gone AFTER DELETE ON edits WHEN old.in_blob = 1 BEGIN
    UPDATE stored_blobs SET uses = uses - 1 WHERE owner = old.owner AND digest = old.digest;
END;
CREATE TRIGGER stored_edit_blob_dropped AFTER UPDATE OF in_blob ON edits WHEN old.in_blob = 1 AND new.in_blob = 0 BEGIN
    UPDATE stored_blobs SET uses = uses - 1 WHERE owner = old.owner AND digest = old.digest;
END;
CREATE TRIGGER stored_version_blob AFTER INSERT ON versions WHEN new.in_blob = 1 BEGIN
    INSERT INTO stored_blobs (owner, digest, uses, size) VALUES (new.owner, new.digest, 1, coalesce(json_extract(new.media, '$.size'), 0))
        ON CONFLICT (owner, digest) DO UPDATE SET uses = uses + 1;
END;
CREATE TRIGGER stored_version_blob_gone AFTER DELETE ON versions WHEN old.in_blob = 1 BEGIN
    UPDATE stored_blobs SET uses = uses - 1 WHERE owner = old.owner AND digest = old.digest;
END;
CREATE TRIGGER stored_file AFTER INSERT ON files BEGIN
    INSERT INTO stored_blobs (owner, digest, uses, size) VALUES (new.owner, new.digest, 1, coalesce(json_extract(new.info, '$.size'), 0))
        ON CONFLICT (owner, digest) DO UPDATE SET uses = uses + 1;
END;
CREATE TRIGGER stored_file_gone AFTER DELETE ON files BEGIN
    UPDATE stored_blobs SET uses = uses - 1 WHERE owner = old.owner AND digest = old.digest;
END;
CREATE TRIGGER stored_edit AFTER INSERT ON edits WHEN new.text IS NOT NULL OR octet_length(new.changes) > 4096 BEGIN
    INSERT INTO stored (owner, bytes) VALUES (new.owner, coalesce(octet_length(new.text), 0) + iif(octet_length(new.changes) > 4096, octet_length(new.changes), 0))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_edit_changed AFTER UPDATE OF text, changes ON edits BEGIN
    UPDATE stored SET bytes = bytes + coalesce(octet_length(new.text), 0) + iif(octet_length(new.changes) > 4096, octet_length(new.changes), 0)
        - coalesce(octet_length(old.text), 0) - iif(octet_length(old.changes) > 4096, octet_length(old.changes), 0) WHERE owner = new.owner;
END;
CREATE TRIGGER stored_edit_gone AFTER DELETE ON edits WHEN old.text IS NOT NULL OR octet_length(old.changes) > 4096 BEGIN
    UPDATE stored SET bytes = bytes - coalesce(octet_length(old.text), 0) - iif(octet_length(old.changes) > 4096, octet_length(old.changes), 0) WHERE owner = old.owner;
END;
CREATE TRIGGER stored_version AFTER INSERT ON versions WHEN new.text IS NOT NULL OR octet_length(new.changes) > 4096 BEGIN
    INSERT INTO stored (owner, bytes) VALUES (new.owner, coalesce(octet_length(new.text), 0) + iif(octet_length(new.changes) > 4096, octet_length(new.changes), 0))
        ON CONFLICT (owner) DO UPDATE SET bytes = bytes + excluded.bytes;
END;
CREATE TRIGGER stored_version_changed AFTER UPDATE OF text, changes ON versions BEGIN
    UPDATE stored SET bytes = bytes + coalesce(octet_length(new.text), 0) + iif(octet_length(new.changes) > 4096, octet_length(new.changes), 0)
        - coalesce(octet_length(old.text), 0) - iif(octet_length(old.changes) > 4096, octet_length(old.changes), 0) WHERE owner = new.owner;
END;
CREATE TRIGGER stored_version_gone AFTER DELETE ON versions WHEN old.text IS NOT NULL OR octet_length(old.changes) > 4096 BEGIN
    UPDATE stored SET bytes = bytes - coalesce(octet_length(old.text), 0) - iif(octet_length(old.changes) > 4096, octet_length(old.changes), 0) WHERE owner = old.owner;
END;
CREATE TABLE blobs (
    digest TEXT    PRIMARY KEY,
    key    TEXT    NOT NULL,
    size   INTEGER NOT NULL, -- bytes
    put_at INTEGER NOT NULL  -- when it was last kept
) STRICT, WITHOUT ROWID;
CREATE TABLE blob_trash (
    key TEXT    PRIMARY KEY,
    due INTEGER NOT NULL -- when its object may be deleted
) STRICT, WITHOUT ROWID;
CREATE INDEX blob_trash_due ON blob_trash (due);
CREATE TABLE webhooks (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    user         TEXT    NOT NULL, -- there may be no row of it in users: without a login, all belongs to local
    delivered_at INTEGER, -- of the last accepted delivery; NULL: none
    created_at   INTEGER NOT NULL,
    name         TEXT    NOT NULL,
    url          TEXT    NOT NULL,
    events       TEXT    NOT NULL, -- a JSON array of types
    secret       BLOB, -- encrypted by internal/secret
    disabled     INTEGER NOT NULL,
    reason       TEXT    NOT NULL -- why it was disabled; empty: by its user
) STRICT;
CREATE INDEX webhooks_by_user ON webhooks (user);
CREATE TABLE deliveries (
    n            INTEGER PRIMARY KEY,
    webhook      TEXT    NOT NULL REFERENCES webhooks (id) ON DELETE CASCADE,
    conversation TEXT    NOT NULL, -- empty: a test
    event        INTEGER NOT NULL, -- seq in events
    type         TEXT    NOT NULL, -- empty: a test
    created_at   INTEGER NOT NULL,
    state        TEXT    NOT NULL, -- waiting, accepted or failed
    attempts     INTEGER NOT NULL,
    due_at       INTEGER, -- of the next attempt; NULL: none
    tried_at     INTEGER, -- of the last attempt, like what follows; NULL: none
    status       INTEGER NOT NULL DEFAULT 0, -- HTTP; 0: no answer
    took         INTEGER NOT NULL DEFAULT 0, -- microseconds
    answer       TEXT    NOT NULL DEFAULT '', -- its beginning
    error        TEXT    NOT NULL DEFAULT '',
    UNIQUE (webhook, conversation, event)
) STRICT;
CREATE INDEX deliveries_by_webhook ON deliveries (webhook, n);
CREATE INDEX deliveries_due ON deliveries (webhook, due_at) WHERE due_at IS NOT NULL;
CREATE TABLE schedules (
    n            INTEGER PRIMARY KEY,
    id           TEXT    NOT NULL UNIQUE,
    user         TEXT    NOT NULL, -- there may be no row of it in users: without a login, all belongs to local
    created_at   INTEGER NOT NULL,
    next_at      INTEGER, -- NULL: none
    name         TEXT    NOT NULL,
    cron         TEXT    NOT NULL,
    zone         TEXT    NOT NULL, -- of cron
    agent        TEXT    NOT NULL,
    conversation TEXT    NOT NULL, -- empty: a new one each time
    message      TEXT    NOT NULL, -- its text
    paused       INTEGER NOT NULL
) STRICT;
CREATE INDEX schedules_by_user ON schedules (user);
CREATE INDEX schedules_due ON schedules (next_at) WHERE next_at IS NOT NULL;
CREATE TABLE schedule_runs (
    n            INTEGER PRIMARY KEY,
    schedule     TEXT    NOT NULL REFERENCES schedules (id) ON DELETE CASCADE,
    planned_at   INTEGER NOT NULL,
    created_at   INTEGER NOT NULL,
    missed       INTEGER NOT NULL, -- later times that passed before created_at
    manual       INTEGER NOT NULL, -- a user asked for it
    conversation TEXT    NOT NULL, -- of the run
    run          TEXT    NOT NULL, -- its id, also before it is started
    state        TEXT    NOT NULL, -- waiting, started, skipped or failed
    error        TEXT    NOT NULL,
    until        INTEGER -- when another process may start it; NULL: it is over
) STRICT;
CREATE INDEX schedule_runs_by_schedule ON schedule_runs (schedule, n);
CREATE INDEX schedule_runs_due ON schedule_runs (until) WHERE until IS NOT NULL;
INSERT INTO goose_db_version (version_id, is_applied) VALUES (0, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (1, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (2, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (3, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (4, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (5, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (6, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (8, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (9, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (11, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (12, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (13, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (14, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (20, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (21, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (22, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (24, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (25, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (29, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (32, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (33, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (34, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (37, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (40, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (41, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (43, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (44, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (50, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (51, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (60, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (70, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (80, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (90, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (95, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (110, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (113, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (116, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (120, 1);
INSERT INTO goose_db_version (version_id, is_applied) VALUES (121, 1);
