-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- At which times runs of users are started.
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

-- Which runs they have started, and which they are about to start.
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
