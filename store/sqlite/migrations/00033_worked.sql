-- SPDX-License-Identifier: Apache-2.0

-- +goose Up

-- How long the holders of a run's lease have been at work on it, in
-- microseconds: its limit of time does not begin anew when it is taken over.
ALTER TABLE runs ADD COLUMN worked INTEGER NOT NULL DEFAULT 0;
